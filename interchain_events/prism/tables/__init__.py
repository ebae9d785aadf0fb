"""PRISM's tables in SQLite and PostgreSQL (PR-30 to PR-35).

- `schema`: the tables and their migrations.
- `ledger`: DIDs and batches, derived from the rows of applied operations.
- `processor`: from the log's blocks to rows, one transaction a block (PR-2, PR-3, PR-5).
- `operations`: the rows as a log, from which subscriptions are served.
- `registry`: the subscriptions.
- `scheduled`: operations that this node was asked to anchor (PR-63).
"""
