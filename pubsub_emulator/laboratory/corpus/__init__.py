"""Cases that every campaign replays first. `laboratory/cases.py` describes the files."""
