"""What makes a state machine a parachain: the inherent, the relay state proof, the budget, and the verdict on a block.

Read `block` (what a collator claims), then `validate` (how the claim is judged).
"""
