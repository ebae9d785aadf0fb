"""How fast it is, and how cost grows; see README.md."""
