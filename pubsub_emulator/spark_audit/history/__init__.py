"""Histories of networks: tables, commits that add segments, and reading."""
