"""Events of chains, delivered in order, without gaps, once to each subscriber that they concern.

rows           `Row`, `Block`, and `assemble`: ids and order (pure)
values         the fields of an event as JSON without floats, written in one way
filters        an algebra of conditions, as a predicate, as SQL, as an index
log            what a chain did, in a database
subscriptions  streams of a log's rows, over gRPC, server-sent events and JSON-RPC
cheats         a broadcaster that does not deliver what it owes
"""

from pubsub_emulator.primitives.face import face

__getattr__, __dir__ = face(__name__)
