"""Numeric types, SCALE, hashing, storage keys, weights and the shared pub-sub types.

This is the lowest room: it imports no other.
"""
