"""The log of what a chain did: ordered, without gaps, in a database (EV-1 to EV-6).

    store = open_store("events.db", network="demo")        # or postgresql://…
    store.append([block])                                  # `events.rows.assemble` makes a block
    page = store.read(after=0, limit=100, where=Kind("Broadcaster.*"))

- `store`: the interface of logs, and the rules that every log follows.
- `memory`: a log without a database, with which the others are compared in tests.
- `sql_store`: a log in a database. Each table prefix is another log.
- `sources`: where blocks come from: an emulated network, JSON-RPC, or a written history.
"""
