"""SQLite and PostgreSQL behind one small interface, with migrations for each component's tables."""
