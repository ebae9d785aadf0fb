"""Relay proofs of real parachains, opened and explained byte by byte."""
