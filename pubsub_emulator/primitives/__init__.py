"""Numeric types, SCALE, hashing, storage keys, weights and pub-sub types.

This is the lowest room: it imports no other room.
"""
