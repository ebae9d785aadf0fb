"""Judging: from the rows of a segment to findings and measures, and the units of work that do it."""
