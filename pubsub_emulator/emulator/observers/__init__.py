"""Observers that count and digest what happens in a network."""
