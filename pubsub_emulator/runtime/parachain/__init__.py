"""The parachain side of a block: the inherent, the relay state proof, the budget, and the verdict.

Read `block` (the candidate), then `validate` (the checks).
"""
