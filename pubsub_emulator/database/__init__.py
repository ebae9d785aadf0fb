"""SQLite and PostgreSQL behind one small protocol, with migrations by component."""
