"""Plumbing for files of every kind, used by all rooms.

Bounded readers of untrusted input, atomic writers, settings files, strangers' texts that are shown
escaped, and suggestions for misspelt names.
"""
