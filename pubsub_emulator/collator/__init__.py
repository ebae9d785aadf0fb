"""Collators: the honest author of a parachain's blocks, and the cheats that the verifier must refuse."""
