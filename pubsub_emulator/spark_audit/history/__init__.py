"""A history of a network on disk or in an object store: tables, commits, and their reading."""
