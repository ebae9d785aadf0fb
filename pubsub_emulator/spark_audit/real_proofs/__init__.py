"""Relay proofs of real parachains, which are opened and attributed byte by byte."""
