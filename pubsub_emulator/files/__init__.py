"""Plumbing for files of every kind, used by all rooms.

It has bounded readers of untrusted input, atomic writers, settings files, the escaping of untrusted
texts for display, and suggestions for misspelt names.
"""
