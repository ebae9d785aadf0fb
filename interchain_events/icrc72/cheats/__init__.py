"""Cheats of every role, which the audit must find, and the stage on which they act."""
