"""Relay chain, parachains and collators as one network."""
