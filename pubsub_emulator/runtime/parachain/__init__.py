"""The parachain side of a block.

Read `block` (the candidate), then `validate` (the checks).
"""
