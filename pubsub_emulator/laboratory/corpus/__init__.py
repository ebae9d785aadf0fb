"""Cases that every campaign replays first. `laboratory/cases.py` describes the files.

In a checkout, `tests/support/laboratory/corpus_cases.py` makes them.
"""
