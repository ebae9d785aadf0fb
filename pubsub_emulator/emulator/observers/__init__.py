"""Observers that measure what happens in a network."""
