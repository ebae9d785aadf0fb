"""Collators: the honest author of a parachain's blocks, and the cheats.

The verifier must refuse the blocks of the cheats.
"""
