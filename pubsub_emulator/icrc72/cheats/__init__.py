"""Cheats of every role as named objects, and the stage on which they act."""
