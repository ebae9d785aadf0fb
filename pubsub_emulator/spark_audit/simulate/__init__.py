"""Simulations of many networks with planted cheats, to test audits against the truth."""
