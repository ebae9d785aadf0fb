"""Numeric types, SCALE, hashing, storage keys, weights and pub-sub types: the lowest room, which imports no other."""
