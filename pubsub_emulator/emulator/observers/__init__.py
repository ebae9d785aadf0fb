"""Observers that measure a network."""
