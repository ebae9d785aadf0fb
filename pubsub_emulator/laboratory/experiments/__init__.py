"""Experiments, which measure the costs of workloads in bytes."""
