"""Experiments: the costs of one workload, byte by byte."""
