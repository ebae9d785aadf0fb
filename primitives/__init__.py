"""The ground floor: numeric types, SCALE, hashing, storage keys, weights and the shared pub-sub types.

Nothing here knows of tries, runtimes or networks; everything above imports from here and never the other way round.
"""
