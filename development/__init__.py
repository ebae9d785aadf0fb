"""Set the project up and run its jobs.

`dev.py` starts it; it needs nothing but Python's standard library.
"""
