"""Doing something once: claims with leases that are committed, released or revoked."""
