"""Observers of a network that count and digest what happens; none of them changes anything."""
