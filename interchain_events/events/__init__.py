"""Events of chains: a log of them, and subscriptions that deliver each event once and in order.

- `rows`: a row of the log, and how blocks become rows.
- `values`: the fields of an event as JSON, written in exactly one way.
- `filters`: conditions on rows, as a predicate, as SQL and as an index.
- `log`: the events of a chain, in a database.
- `subscriptions`: streams of a log's rows over gRPC, server-sent events and JSON-RPC.
- `cheats`: broadcasters that deliver other events than they should.
"""

from pubsub_emulator.lazy import face

__getattr__, __dir__ = face(__name__)
