"""The log of what a chain did: ordered, gap-free, in a database (EV-1 to EV-6).

    store = open_store("events.db", network="demo")        # or postgresql://…
    store.append([block])                                  # `events.rows.assemble` makes a block
    page = store.read(after=0, limit=100, where=Kind("Broadcaster.*"))

store       the protocol `Store`: `append`, `rewind`, `read`, `wait`; which block may follow which; blocks of a source
memory      a store without a database, the reference of the contract suite
sql_store   the log in such a database; another table prefix makes another log in it
sources     where blocks come from: an emulated network, JSON-RPC, a written history
"""
