"""The judgement of segments, which turns rows of a history into findings and measures.

`check` judges a segment of one chain. `units` has the functions that workers run. `evidence` judges
a single finding again and needs no history.
"""
