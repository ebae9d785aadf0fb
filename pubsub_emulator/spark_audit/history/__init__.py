"""A history: its tables, how files join it, and how they are read again."""
