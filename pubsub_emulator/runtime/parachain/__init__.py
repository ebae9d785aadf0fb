"""The parachain's part of a block: candidates, their verdicts, and their execution.

Read `block` (the candidate) first, then `validate` (the checks).
"""
