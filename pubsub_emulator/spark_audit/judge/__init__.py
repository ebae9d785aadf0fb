"""The judgement of segments: from rows to findings and measures, and the units that do it.

`check` judges a segment of a chain, `units` has the units of work around it, `evidence` is the part
that works without a history.
"""
