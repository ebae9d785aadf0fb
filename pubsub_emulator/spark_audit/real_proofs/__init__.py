"""Relay proofs of real parachains: import, opening, and attribution of their bytes to keys."""
