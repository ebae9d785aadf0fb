"""A history of a network: its tables, the commits that add to it, and the reading of it."""
