"""Tables of an event server's deliveries and of the statuses that it reported.

They can be stored beside a history, which never refers to them.
"""

from typing import Final

from pubsub_emulator.spark_audit.history.schema import BYTES, HASH, INT, TEXT, Column, Table

_NETWORK: Final = Column("network", TEXT, "name of the log's network")
_STREAM: Final = Column("stream", TEXT, "name of one connection, random")
_SUBSCRIPTION: Final = Column("subscription", TEXT, "SHA-256 of the token in hex")

EVENT_LOG: Final = Table(
    "event_log",
    1,
    "One row per event of the log.",
    (
        _NETWORK,
        Column("seq", INT, "place in the log, from 1"),
        Column("chain", INT, "para id; none for the leading chain", nullable=True),
        Column("kind", TEXT, "`Pallet.Event`"),
        Column("id", HASH, "the event's id"),
        Column("digest", HASH, "blake2b-256 of the event's JSON"),
        Column("fields", TEXT, "the fields with typed scalars, see `deliveries.tagged`"),
    ),
    ("network", "seq"),
)

EVENT_EPOCHS: Final = Table(
    "event_epochs",
    1,
    "One row per rewind of the log.",
    (
        _NETWORK,
        Column("epoch", INT, "the epoch that began with it"),
        Column("common", INT, "the last `seq` that it left"),
    ),
    ("network", "epoch"),
)

EVENT_STREAMS: Final = Table(
    "event_streams",
    1,
    "One row per stream that began and one per stream that ended.",
    (
        _NETWORK,
        _STREAM,
        _SUBSCRIPTION,
        Column("filters", TEXT, "JSON of the subscription's filters"),
        Column("epoch", INT, "of the cursor"),
        Column("seq", INT, "of the cursor: that it began after, or that it ended with"),
        Column("at", INT, "milliseconds since 1970, by the server's clock"),
        Column("ended", TEXT, "how it ended; none for the row of its beginning", nullable=True),
    ),
    ("network", "stream", "at"),
)

EVENT_DELIVERIES: Final = Table(
    "event_deliveries",
    1,
    "One row per event that was handed to a client's connection.",
    (
        _NETWORK,
        _STREAM,
        _SUBSCRIPTION,
        Column("position", INT, "order within the stream, from 0"),
        Column("epoch", INT, "of the cursor that came with it"),
        Column("seq", INT, "of the event, as delivered"),
        Column("id", BYTES, "of the event, as delivered"),
        Column("digest", HASH, "blake2b-256 of the event's JSON, as delivered"),
        Column("at", INT, "milliseconds since 1970, by the server's clock"),
    ),
    ("network", "stream", "position"),
)

_RUN: Final = Column("run", TEXT, "name of one run of the node, random")
_OPERATION: Final = Column("operation", HASH, "the operation's id")
_ORDER: Final = Column("order", INT, "place among all that this run wrote down of statuses, from 1")
_STATUS: Final = (
    Column("status", TEXT, "a name of PR-60"),
    Column("level", INT, "blocks above the operation's, 0 where it has none"),
    Column("reason", TEXT, "why it was rejected", nullable=True),
    Column("block", INT, "number of its block", nullable=True),
    Column("block_hash", BYTES, "hash of its block", nullable=True),
    Column("object_index", INT, "of its object in the block", nullable=True),
    Column("operation_index", INT, "of it in the object", nullable=True),
)
_AT: Final = Column("at", INT, "milliseconds since 1970, by the server's clock")

STATUS_TRUTHS: Final = Table(
    "status_truths",
    1,
    "One row per status of a watched operation, written when the node came to it.",
    (_NETWORK, _RUN, _ORDER, _OPERATION, *_STATUS, _AT),
    ("network", "run", "order"),
)

STATUS_ANSWERS: Final = Table(
    "status_answers",
    1,
    "One row per status that was handed to a client's connection.",
    (
        _NETWORK,
        _RUN,
        _ORDER,
        _STREAM,
        _OPERATION,
        Column("position", INT, "order within the stream, from 0"),
        *_STATUS,
        _AT,
    ),
    ("network", "run", "order"),
)

STATUS_STREAMS: Final = Table(
    "status_streams",
    1,
    "One row per stream of statuses that ended.",
    (
        _NETWORK,
        _RUN,
        _STREAM,
        _OPERATION,
        Column(
            "settled", INT, "the last order at which it had nothing more to tell", nullable=True
        ),
        Column("ended", TEXT, "how it ended"),
        _AT,
    ),
    ("network", "run", "stream"),
)

_ALL: Final = (
    EVENT_LOG,
    EVENT_EPOCHS,
    EVENT_STREAMS,
    EVENT_DELIVERIES,
    STATUS_TRUTHS,
    STATUS_ANSWERS,
    STATUS_STREAMS,
)
TABLES: Final = {table.name: table for table in _ALL}
"""The tables by name."""
