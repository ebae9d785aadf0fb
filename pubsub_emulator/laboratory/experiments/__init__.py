"""Experiments: one workload each, and where its bytes went."""
