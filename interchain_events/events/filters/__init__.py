"""Filters of a log's rows: conditions that are compiled to a predicate and to SQL (EV-10 to EV-14).

    from interchain_events.events.filters.algebra import All, Chain, Field, Kind
    wanted = All(Kind("Balances.*"), Field("amount", ">=", 10**12))

- `algebra`: `Any`, `All`, `OneOf`, `Not`, `Chain`, `Kind` and `Field`, with their limits.
- `predicate`: a filter as a Python function of a row.
- `sql`: a filter as a WHERE clause with parameters, for SQLite and PostgreSQL.
- `normal`: the normal form of a set of filters.
- `codec`: filters as JSON, for servers and stored subscriptions.
- `index`: finds which of very many filters match a row.
"""
