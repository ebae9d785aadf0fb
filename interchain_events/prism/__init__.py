"""PRISM: DID operations that a chain anchors, the tables that result from them, and subscriptions.

- `core`: the rules, without I/O, clock or database.
- `tables`: the tables in SQLite and PostgreSQL.
- `service`: a node that follows a chain and serves streams over gRPC.
- `client`: a client of such a node.
- `make`: the creation of keys, DIDs and signed operations.
- `local`: a node over an emulated chain, all in one process.
- `cheats`: servers that deliver other operations or statuses than they should.
- `vectors`: the test vectors.
"""

from pubsub_emulator.lazy import face

__getattr__, __dir__ = face(__name__)
