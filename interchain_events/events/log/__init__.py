"""The log of a chain's events: ordered, without gaps, in a database (EV-1 to EV-6).

    store = open_store("events.db", network="demo")        # or postgresql://…
    store.append([block])                                  # `events.rows.assemble` makes a block
    page = store.read(after=0, limit=100, where=Kind("Broadcaster.*"))

- `store`: the interface of logs, and the rules that every log follows.
- `memory`: a log without a database. Tests compare the others with it.
- `sql_store`: a log in a database. Logs with different table prefixes are separate.
- `sources`: the sources of blocks: an emulated network, JSON-RPC, or a written history.
"""
