"""Candid: types, interface descriptions, a writer with fixed headers and a strict reader (IC-11)."""
