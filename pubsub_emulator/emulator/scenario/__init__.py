"""Scenarios: files that describe a network and what happens in it."""
