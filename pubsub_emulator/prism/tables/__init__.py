"""PRISM's tables in SQLite and PostgreSQL (PR-30 to PR-35).

schema      the tables and their migrations
ledger      DIDs and batches, read from the rows of applied operations
processor   from the log's blocks to rows, one transaction a block (PR-2, PR-3, PR-5)
operations  pages of rows for subscriptions; the subscriptions themselves are in registry
scheduled   operations that this node was given to anchor (PR-63)
"""
