"""The tables of a history and of its audit: columns, types, versions and partitions.

Each file states its table's name and version in its metadata. Readers check these and the columns.
Sizes are in bytes, heights are block numbers.

    history   relay_headers authorities subscriptions checkpoints blocks deliveries events nodes
              truth
    audit     block_measures publisher_measures waste proof_parts findings summaries chains
              read_errors

The descriptions of tables and columns are data. They are written into files, table comments and the
documentation.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain as chained
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.row import Row


def _list_of(**fields: pa.DataType) -> pa.DataType:
    """Return the type of a list of structs, whose fields must not be null."""
    return pa.list_(
        pa.struct([pa.field(name, kind, nullable=False) for name, kind in fields.items()])
    )


_NAME: Final = b"pubsub.table"
"""Metadata key of a file: the table's name."""
_VERSION: Final = b"pubsub.version"
"""Metadata key of a file: the table's version."""
_DOC: Final = b"doc"
"""Metadata key of a column: its meaning."""

_CLAIMED_SLOT: Final = "slot that the header claims; none beyond 63 bits"

HASH: Final = pa.binary(32)
U32: Final = pa.uint32()
U64: Final = pa.uint64()
INT: Final = pa.int64()
"""Signed integers of 64 bits: the JVM has no unsigned ones, and savings can be negative."""
I64_MAX: Final = 2**63 - 1
"""The largest number that a column can hold."""
BYTES: Final = pa.binary()
TEXT: Final = pa.string()
MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")
DAY: Final = pa.date32()
HASHES: Final = pa.list_(HASH)
MESSAGES: Final = _list_of(sent_at=U32, data=BYTES)
HASHED: Final = _list_of(sent_at=U32, msg_hash=HASH)
ENTRIES: Final = _list_of(key=BYTES, value=BYTES)


class SchemaError(PubsubError):
    """A file or row that does not fit its table: another name, version, columns or types."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: pa.DataType
    doc: str
    """The meaning, beyond what the name says. It is written into files and documentation."""
    nullable: bool = False

    def signed(self, unsigned: Collection[pa.DataType]) -> "Column":
        """Return the column with `INT` in place of these types, also inside lists and structs."""

        def fit(kind: pa.DataType) -> pa.DataType:
            if pa.types.is_list(kind):
                return pa.list_(fit(kind.value_type))
            if pa.types.is_struct(kind):
                return pa.struct([field.with_type(fit(field.type)) for field in kind])
            return INT if kind in unsigned else kind

        return replace(self, type=fit(self.type))


@dataclass(frozen=True)
class Table:
    """One table, in one version or several, all of which can be read.

    `added` has the columns of later versions. A file has such a column, and the version that adds
    it, only if one of its rows has a value there. So old files stay valid, and older programs can
    read new files that do not need the new columns. If an earlier version had unsigned integers,
    `former` is that version.
    """

    name: str
    version: int
    """The first version with the present types. Versions with added columns follow it."""
    doc: str
    """The first sentence states the grain: one row per …"""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Columns by which rows are unique and sorted, in each partition."""
    partitions: tuple[str, ...] = ()
    """Columns by which the rows of a history are divided into files or row groups, so that the
    parts can be read separately."""
    added: tuple[tuple[Column, ...], ...] = ()
    """Columns that later versions add, a tuple for each version."""
    former: "Table | None" = None
    """The table in the version before, with unsigned integers of 64 bits."""
    example: str = ""
    """A query in DuckDB's SQL, for the documentation."""

    def signed(self, *unsigned: pa.DataType) -> "Table":
        """Return the table with `INT` instead of some unsigned types, by default of all."""
        replaced = unsigned or (U32, U64)

        def signed(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            return tuple(column.signed(replaced) for column in columns)

        return replace(self, columns=signed(self.columns), added=tuple(map(signed, self.added)))

    def since(self, version: int) -> "Table":
        """Return version `version` of this table, in which `INT` replaces `U64`.

        `former` of the result is this table, without the columns that were added in `version` or
        later.
        """
        former = replace(self, added=self.added[: version - self.version - 1])
        return replace(self.signed(U64), version=version, former=former)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns by which rows are unique in the whole table."""
        return tuple(dict.fromkeys((*self.partitions, *self.key)))

    @cached_property
    def stages(self) -> tuple["Table", ...]:
        """This version and each later one, with all columns that were added until then."""
        stage = replace(self, added=())
        stages = [stage]
        for columns in self.added:
            stage = replace(stage, version=stage.version + 1, columns=(*stage.columns, *columns))
            stages.append(stage)
        return tuple(stages)

    @property
    def wider(self) -> "Table":
        """The last version, with all added columns."""
        return self.stages[-1]

    def for_rows(self, rows: Iterable[Row]) -> "Table":
        """Return the earliest version that has every column for which these rows have a value."""
        if not self.added:
            return self
        row_list = list(rows)
        for stage in range(len(self.added), 0, -1):
            names = [column.name for column in self.added[stage - 1]]
            for row in row_list:
                if any(map(row.get, names)):
                    return self.stages[stage]
        return self

    @property
    def versions(self) -> str:
        """The versions that can be read, in words for a message."""
        first = (self.former or self).version
        if first < self.wider.version:
            return f"versions {first} to {self.wider.version} are"
        return f"version {self.version} is"

    def version_of(self, version: int) -> "Table | None":
        """Return this table in a version, `None` if that version is not known."""
        if version == self.version:
            return self
        for stage in self.stages:
            if stage.version == version:
                return stage
        return None if self.former is None else self.former.version_of(version)

    def present(self, rows: pa.Table, version: int) -> pa.Table:
        """Convert rows that were read in some version to the types of this one.

        A claimed slot beyond 63 bits becomes null, because a header can claim any number. Raises
        `SchemaError` if another number is beyond 63 bits or below 0.
        """
        if self.former is None:
            return rows
        columns = {column.name: column for column in self.wider.columns}
        is_former = version < self.version
        for old_column in self.former.wider.columns:
            column = columns[old_column.name]
            if column.type == old_column.type or old_column.name not in rows.column_names:
                continue
            index = rows.column_names.index(old_column.name)
            values = rows.column(old_column.name)
            if is_former and column.doc == _CLAIMED_SLOT:
                values = pc.if_else(
                    pc.greater(values, pa.scalar(I64_MAX, U64)), pa.scalar(None, U64), values
                )
            try:
                # Rows of this version keep their types. For them, casting to the unsigned type only
                # finds negative numbers.
                fitting = values.cast(column.type if is_former else old_column.type)
            except pa.ArrowInvalid:
                problem = "beyond 63 bits" if is_former else "below 0"
                raise SchemaError(f"{self.name}.{column.name} has a number {problem}") from None
            if is_former:
                rows = rows.set_column(
                    index, pa.field(column.name, column.type, column.nullable), fitting
                )
        return rows

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with name, version and meanings of columns in its metadata."""
        fields = [
            pa.field(
                column.name,
                column.type,
                nullable=column.nullable,
                metadata={_DOC: column.doc.encode()},
            )
            for column in self.columns
        ]
        return pa.schema(
            fields, metadata={_NAME: self.name.encode(), _VERSION: str(self.version).encode()}
        )

    def check(self, file_schema: pa.Schema) -> None:
        """Raise `SchemaError` unless a file has the schema of this table.

        The file may be in this version or in a later one with added columns.
        """
        metadata: dict[bytes, bytes] = dict(file_schema.metadata or {})
        name = metadata.get(_NAME)
        version = metadata.get(_VERSION)
        if name != self.name.encode():
            raise SchemaError(f"this is table {_shown(name)}, not {self.name}")
        stage = next(
            (candidate for candidate in self.stages if version == str(candidate.version).encode()),
            None,
        )
        if stage is None:
            raise SchemaError(
                f"{self.name} version {_shown(version)} is not version {self.version}, the one"
                " known here"
            )
        if not file_schema.equals(stage.schema, check_metadata=False):
            raise SchemaError(f"the columns are not those of {self.name} version {stage.version}")

    def arrow(self, rows: list[Row], among: Iterable[Row] | None = None) -> pa.Table:
        """Convert rows to an Arrow table, sorted by the key.

        `among` has all rows of the file, by default only `rows`. They decide the version, because
        all row groups of a file must have the same columns. Raises `SchemaError`.
        """
        if self.added:
            version = replace(self.for_rows(rows if among is None else among), added=())
            return version.arrow(_fitted(version, self.added, rows))
        names = {column.name for column in self.columns}
        for row in rows:
            if row.keys() != names:
                unexpected = sorted(row.keys() ^ names)
                raise SchemaError(
                    f"a row of {self.name} lacks or does not know {', '.join(unexpected)}"
                )
        # Nulls come first. They cannot be compared with other values.
        ordered = sorted(
            rows, key=lambda row: tuple((row[name] is not None, row[name]) for name in self.key)
        )
        try:
            table = pa.Table.from_pylist(ordered, schema=self.schema)
            table.validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SchemaError(f"a row of {self.name} does not fit its columns: {error}") from None
        for column in self.columns:
            if not column.nullable and table.column(column.name).null_count:
                raise SchemaError(f"{self.name}.{column.name} has no value in some row")
        return table


def fitted(table: Table, rows: Iterable[Row]) -> tuple[Table, list[Row]]:
    """Return the version of a table that these rows need, and the rows with exactly its columns."""
    copies = [dict(row) for row in rows]
    version = table.for_rows(copies)
    return version, _fitted(version, table.added, copies)


def _fitted(version: Table, added: tuple[tuple[Column, ...], ...], rows: list[Row]) -> list[Row]:
    """Return rows with exactly the columns of a version.

    A missing added column becomes null, or an empty list if it cannot be null.
    """
    names = {column.name for column in version.columns}
    blank: Row = {
        column.name: None if column.nullable else [] for column in chained.from_iterable(added)
    }
    added_values = {name: value for name, value in blank.items() if name in names}
    absent = blank.keys() - names
    fitting = []
    for row in rows:
        present = {name: value for name, value in row.items() if name not in absent}
        fitting.append({**added_values, **present})
    return fitting


def _shown(text: bytes | None) -> str:
    return "without a name" if text is None else repr(text.decode(errors="replace"))


def _optional(name: str, kind: pa.DataType, doc: str) -> Column:
    """Return a column whose values may be null."""
    return Column(name, kind, doc, nullable=True)


_NETWORK: Final = Column(
    "network", TEXT, "name of the network: the relay chain and everything attached to it"
)
_CHAIN: Final = Column("chain", U32, "ParaId of the subscriber")
_SEGMENT: Final = Column(
    "segment", U32, "stretch of the network's history that starts with a checkpoint of each chain"
)
_POSITION: Final = Column(
    "position", U64, "place in the order in which the chain's candidates were judged, from 0"
)
_NUMBER: Final = Column("number", U32, "block number that the candidate claims")
_BLOCK: Final = Column("block", HASH, "hash of the candidate's header, seal included")


_OF_CHAIN: Final = (_NETWORK, _CHAIN)
_STRETCH: Final = (*_OF_CHAIN, _SEGMENT)
_POSITIONED: Final = (*_STRETCH, _POSITION, _NUMBER)
_OF_BLOCK: Final = (*_POSITIONED, _BLOCK)

RELAY_HEADERS: Final = Table(
    "relay_headers",
    1,
    "One row per relay block: the trusted input of every proof.",
    columns=(
        _NETWORK,
        Column("number", U32, "relay block number"),
        _optional("hash", HASH, "hash of its header; none where only the storage root is known"),
        Column("storage_root", HASH, "state root against which relay proofs are opened"),
        _optional(
            "slot", U64, "slot that no candidate judged here may exceed; none where not known"
        ),
    ),
    key=("number", "storage_root"),
    partitions=("network",),
    example="""
SELECT network, MIN(number) AS min, MAX(number) AS max, COUNT(*) AS headers
FROM relay_headers
GROUP BY network
ORDER BY network
""",
).since(2)

AUTHORITIES: Final = Table(
    "authorities",
    1,
    "One row per change of a chain's collator set.",
    columns=(
        *_OF_CHAIN,
        Column("from_block", U32, "first block number of the chain that the set is to author"),
        Column("keys", HASHES, "Ed25519 public keys in turn order"),
    ),
    key=("chain", "from_block"),
    partitions=("network",),
    example="""
SELECT network, chain, from_block, LEN(keys) AS collators
FROM authorities
ORDER BY network, chain, from_block
""",
)

SUBSCRIPTIONS: Final = Table(
    "subscriptions",
    1,
    "One row per change of a chain's subscriptions.",
    columns=(
        *_OF_CHAIN,
        Column("from_block", U32, "first block number of the chain under which they hold"),
        Column("hash", HASH, "blake2_256 of the SCALE of `items`"),
        Column(
            "items",
            _list_of(publisher=U32, keys=HASHES),
            "publishers ascending, each with its keys ascending",
        ),
    ),
    key=("chain", "from_block"),
    partitions=("network",),
    example="""
SELECT network, chain, from_block, item.publisher, LEN(item.keys) AS keys
FROM (SELECT network, chain, from_block, UNNEST(items) AS item FROM subscriptions)
ORDER BY network, chain, from_block, item.publisher
""",
)

CHECKPOINTS: Final = Table(
    "checkpoints",
    1,
    "One row per chain and segment: the state at which the segment starts, in full.",
    columns=(
        *_STRETCH,
        Column("position", U64, "position of the first candidate judged on top of it"),
        Column("number", U32, "block whose post-state this is"),
        Column("header", BYTES, "SCALE of that block's header, seal included"),
        Column("state_root", HASH, "commitment to the state: the root of `entries` and `children`"),
        Column("entries", ENTRIES, "top trie, child roots left out, keys ascending"),
        Column(
            "children",
            _list_of(key=BYTES, entries=ENTRIES),
            "child tries by storage key without its prefix, ascending",
        ),
    ),
    key=("chain", "segment"),
    partitions=("network", "chain"),
    example="""
SELECT network, chain, segment, number, LEN(entries) AS entries
FROM checkpoints
ORDER BY network, chain, segment
""",
).since(2)

BLOCKS: Final = Table(
    "blocks",
    2,
    "One row per candidate block, whatever became of it; the exact candidate can be rebuilt from"
    " row and nodes. Imported relay proofs stand here too, without what their source does not"
    " tell.",
    columns=(
        *_POSITIONED,
        _optional("slot", U64, _CLAIMED_SLOT),
        replace(_BLOCK, nullable=True),
        Column(
            "status", TEXT, "`included`, `rejected`, or `imported` for a relay proof from elsewhere"
        ),
        _optional("verdict", TEXT, "why it was rejected, a name of PS-52"),
        _optional("detail", TEXT, "the chain's words on the verdict"),
        _optional("included_at", U32, "relay block in which the candidate was judged"),
        _optional("slot_now", U64, "slot that it might not exceed then"),
        Column("relay_parent", U32, "relay block number that the inherent claims"),
        Column("relay_parent_root", HASH, "storage root that the inherent claims for it"),
        _optional("relay_root", HASH, "storage root that the relay chain vouches for"),
        _optional("collator", HASH, "Ed25519 key whose turn the slot is"),
        _optional("header", BYTES, "SCALE of the header, seal included"),
        _optional("parent", HASH, "hash of the parent's header"),
        _optional("parent_state_root", HASH, "state on which the candidate was judged"),
        _optional("state_root", HASH, "post-state root that the header claims"),
        _optional("max_pov", U64, "the runtime's `max_pov_size`"),
        _optional("allowed_pov", U64, "bytes of it that messages and pub-sub share"),
        Column("downward", MESSAGES, "downward messages, in queue order"),
        Column(
            "horizontal",
            _list_of(sender=U32, messages=MESSAGES),
            "horizontal messages by sender, ascending",
        ),
        Column("messages_used", U32, "bytes of the messages in the inherent, full and hashed"),
        Column(
            "proof",
            pa.list_(U32),
            "numbers of its nodes in `nodes`, in the order of the proof, repetitions kept",
        ),
        _optional(
            "unpruned",
            _list_of(publisher=U32, bytes=U64),
            "what the collator's full proof weighed: witnessed by the network, not verifiable",
        ),
        _optional(
            "strategy", TEXT, "cheat that the author was told to follow; never read by the audit"
        ),
        _optional("source", TEXT, "where an imported proof came from"),
    ),
    key=("segment", "position"),
    partitions=("network", "chain"),
    added=(
        (
            Column(
                "extrinsics",
                pa.list_(BYTES),
                "signed extrinsics after the inherent, each with its length first",
            ),
        ),
        (
            _optional("block_time", MILLISECONDS, "what `Timestamp.set` of an imported block says"),
            _optional(
                "runtime", TEXT, "name and version of the runtime by whose metadata it was decoded"
            ),
            Column(
                "descendants", pa.list_(BYTES), "SCALE of `relay_parent_descendants`, relay headers"
            ),
            _optional("collator_peer_id", BYTES, "what the inherent says of its collator's peer"),
        ),
        (
            _optional("parent_head", BYTES, "parent header that the inherent states"),
            _optional("claimed_max_pov", U32, "`max_pov_size` that the inherent states"),
            Column("hashed_downward", HASHED, "downward messages that are only there as a hash"),
            Column(
                "hashed_horizontal",
                _list_of(sender=U32, messages=HASHED),
                "horizontal messages that are only there as a hash, by sender, ascending",
            ),
        ),
    ),
    example="""
SELECT network, chain, status, verdict, COUNT(*) AS blocks
FROM blocks
GROUP BY network, chain, status, verdict
ORDER BY network, chain, status, verdict
""",
).since(5)

DELIVERIES: Final = Table(
    "deliveries",
    1,
    "One row per callback of a subscriber's handler, in order within its block.",
    columns=(
        *_OF_BLOCK,
        Column("sequence", U32, "order within the block, from 0"),
        Column("publisher", U32, "ParaId of the publisher"),
        Column("key", HASH, "published key"),
        Column("kind", TEXT, "`updated` or `removed`"),
        _optional(
            "entry_hash", HASH, "blake2_256 of the entry; of the last one delivered when removed"
        ),
        _optional("ttl_state", BYTES, "SCALE of `TtlState` against the relay parent"),
        Column("failed", pa.bool_(), "whether the handler refused it"),
    ),
    key=("segment", "position", "sequence"),
    partitions=("network", "chain"),
    example="""
SELECT network, chain, publisher, kind, COUNT(*) AS callbacks
FROM deliveries
GROUP BY network, chain, publisher, kind
ORDER BY network, chain, publisher, kind
""",
).since(2)

EVENTS: Final = Table(
    "events",
    1,
    "One row per relay block and per parachain block that it included, with its events: what a log"
    " is made of.",
    columns=(
        _NETWORK,
        _SEGMENT,
        Column("anchor", U32, "relay block number"),
        Column(
            "place", U32, "0 for the relay block itself, then the blocks it included in their order"
        ),
        _optional("chain", U32, "ParaId; none for the relay chain"),
        Column("number", U32, "block number on the chain"),
        Column("hash", HASH, "hash of the block's header"),
        Column("parent", HASH, "hash of its parent's header"),
        Column(
            "time",
            U64,
            "milliseconds since 1970: the block's timestamp, or its relay block's slot x 6,000",
        ),
        Column("events", BYTES, "SCALE of its events in order, `Vec<RuntimeEvent>`"),
    ),
    key=("anchor", "place"),
    partitions=("network",),
    example="""
SELECT network, chain, COUNT(*) AS blocks, SUM(OCTET_LENGTH(events)) AS bytes
FROM events
GROUP BY network, chain
ORDER BY network, chain
""",
).since(2)

NODES: Final = Table(
    "nodes",
    2,
    "One row per distinct proof node of a segment, all chains together; detached values are nodes.",
    columns=(
        _NETWORK,
        _SEGMENT,
        Column(
            "number",
            U32,
            "place among the segment's nodes as they came, from 0: what `blocks.proof` refers to",
        ),
        Column("hash", HASH, "blake2_256 of `data`"),
        Column("data", BYTES, "the node"),
    ),
    key=("number",),
    partitions=("network", "segment"),
    example="""
SELECT network, segment, COUNT(*) AS nodes, SUM(OCTET_LENGTH(data)) AS bytes
FROM nodes
GROUP BY network, segment
ORDER BY network, segment
""",
)

TRUTH: Final = Table(
    "truth",
    1,
    "One row per cheat that an author was told to try: the findings that an audit must make, and no"
    " others. The audit does not read it.",
    columns=(
        *_OF_BLOCK,
        _optional("slot", U64, _CLAIMED_SLOT),
        _optional("collator", HASH, "Ed25519 key whose turn the slot is"),
        Column("strategy", TEXT, "the cheat, a name of `pubsub_emulator.collator.cheats`"),
        Column("verdict", TEXT, "the verdict due, a name of PS-52"),
        Column(
            "due",
            pa.list_(TEXT),
            "every verdict that holds, in the order of PS-52; the first is `verdict`",
        ),
    ),
    key=("chain", "segment", "position"),
    partitions=("network",),
    example="""
SELECT strategy, verdict, COUNT(*) AS cheats
FROM truth
GROUP BY strategy, verdict
ORDER BY strategy, verdict
""",
).since(2)
_COSTS: Final = (
    Column(
        "top_path_bytes",
        INT,
        "cost of top-trie nodes that prove child roots, static ones not counted",
    ),
    Column("child_node_bytes", INT, "cost of child-trie nodes in the proof"),
    Column("value_bytes", INT, "cost of detached values in the proof"),
    Column("cache_charges", INT, "charged for nodes read from the cache"),
    Column("row_charges", INT, "charged for `LastDelivered` rows"),
    Column("cached_bytes", INT, "what cached nodes would have cost in the proof"),
)
LEDGER: Final = tuple(column.name for column in _COSTS)
"""Columns with the costs of a publisher."""

BLOCK_MEASURES: Final = Table(
    "block_measures",
    7,
    "One row per candidate: where its bytes went (PS-70). What only executing tells is none when"
    " rejected.",
    columns=(
        *_POSITIONED,
        replace(_BLOCK, nullable=True),
        _optional(
            "block_time",
            MILLISECONDS,
            "when it was judged: 6 seconds for each relay block since 2026-01-01 00:00 UTC, since"
            " emulated networks have no clock; of an imported block its own word",
        ),
        _optional("day", DAY, "of `block_time`, UTC"),
        Column("status", TEXT, "as recorded: `included`, `rejected`, `imported`"),
        _optional("verdict", TEXT, "as found by this audit, none for a valid block"),
        Column("judged", pa.bool_(), "whether this audit executed or opened it"),
        _optional("slot", U64, _CLAIMED_SLOT),
        _optional("collator", HASH, "Ed25519 key whose turn the slot is"),
        _optional("slot_now", U64, "slot that it might not exceed when it was judged"),
        _optional("sealed", pa.bool_(), "whether that key made the seal, whatever else is wrong"),
        Column("relay_parent", INT, "relay block number that the inherent claims"),
        Column(
            "relay_root_checked",
            pa.bool_(),
            "whether the relay parent's root was compared with the relay chain's own header",
        ),
        _optional("relay_lag", INT, "relay blocks from the relay parent to the judgement"),
        Column("proof_nodes", INT, "nodes in the proof, repetitions counted"),
        Column("proof_bytes", INT, "their cost"),
        _optional(
            "repeated_bytes",
            INT,
            "of it, nodes that the chain's block before in the segment had proven already; none "
            "where it was not judged or was refused",
        ),
        _optional(
            "junk_bytes",
            INT,
            "of it, nodes that a refused block had no use for, repetitions included",
        ),
        Column("messages_bytes", INT, "SCALE size of the messages"),
        _optional("max_pov", INT, "the runtime's `max_pov_size`"),
        _optional("budget", INT, "what pub-sub might use"),
        _optional("used", INT, "what it used"),
        _optional("unused", INT, "what was left"),
        _optional("stopped", pa.bool_(), "whether the stop rule fired"),
        _optional("static_bytes", INT, "cost of nodes that static keys need"),
        _optional("map_charges", INT, "charged for the pre-state maps"),
        *(replace(column, nullable=True) for column in _COSTS),
        _optional(
            "own_state_bytes", INT, "what reading its own state adds to the chain's storage proof"
        ),
        _optional("cache_state_bytes", INT, "the part of it that only the cache causes"),
        _optional(
            "cache_net",
            INT,
            "`cached_bytes` less `cache_state_bytes`: negative where the cache costs",
        ),
        _optional(
            "unpruned_bytes", INT, "full proof of all subscribed keys, as the collator witnessed it"
        ),
        _optional(
            "saved_unchanged", INT, "of it, what publishers with an unchanged root did not cost"
        ),
        _optional("saved_pruned", INT, "of it and the static nodes, all that the proof leaves out"),
        _optional("publishers", INT, "publishers met"),
        _optional("unchanged", INT, "of them, with an unchanged root"),
        _optional("resolved", INT, "of them, resolved to the end under a new root"),
        _optional("deliveries", INT, "callbacks"),
        _optional("timed_out", INT, "of them, of entries already expired"),
        _optional("expired_valid", INT, "of them, delivered as valid and expired when judged"),
        _optional("cursor_before", BYTES, "SCALE of the cursor before the block: (ParaId, key)"),
        _optional("cursor_after", BYTES, "and after it"),
    ),
    key=("segment", "position"),
    partitions=("network", "chain"),
    added=(
        (
            _optional("extrinsics_bytes", INT, "signed extrinsics, with their lengths"),
            _optional("extrinsics_state_bytes", INT, "what running them adds to the storage proof"),
        ),
        (
            _optional(
                "ref_time",
                INT,
                "weight: picoseconds of its reads and writes, and of hashing its proof",
            ),
            _optional(
                "proof_size", INT, "weight: bytes of its proof and of the chain's storage proof"
            ),
        ),
        (
            _optional("requested_bytes", INT, "cost of nodes that only requested keys need"),
            _optional("hashed_messages", INT, "messages that are only there as a hash"),
            _optional("descendants", INT, "relay headers in the inherent"),
        ),
    ),
    example="""
SELECT network, chain, number, proof_bytes, 100 * used // budget AS percent
FROM block_measures
WHERE budget > 0
ORDER BY used / budget DESC, network, chain, segment, position
LIMIT 10
""",
).signed()

PUBLISHER_MEASURES: Final = Table(
    "publisher_measures",
    4,
    "One row per executed block and publisher met in it.",
    columns=(
        *_POSITIONED,
        Column("publisher", U32, "ParaId of the publisher"),
        Column("unchanged", pa.bool_(), "its root was the one processed last"),
        Column("resolved", pa.bool_(), "all its items were resolved under the new root"),
        *_COSTS,
        _optional(
            "unpruned_bytes", INT, "full proof of its subscribed keys, as the collator witnessed it"
        ),
        Column("deliveries", INT, "callbacks for its keys"),
        Column(
            "delays",
            pa.list_(INT),
            "relay blocks from publish to judgement, of each entry delivered, ascending",
        ),
    ),
    key=("segment", "position", "publisher"),
    partitions=("network", "chain"),
    example="""
SELECT network, chain, publisher, COUNT(*) AS blocks, SUM(deliveries) AS deliveries
FROM publisher_measures
GROUP BY network, chain, publisher
ORDER BY network, chain, publisher
""",
).signed()

WASTE: Final = Table(
    "waste",
    1,
    "One row per segment, day and cause of bytes that a chain paid for and need not have.",
    columns=(
        *_STRETCH,
        _optional("day", DAY, "of the blocks, UTC; none where their time is not known"),
        Column(
            "cause",
            TEXT,
            "`refused`: the proof of a refused block; `junk`: the part of it that no block could"
            " use; `repeated`: nodes that the block before had proven; `static`: nodes of static"
            " keys; `cache`: charges for nodes read from the cache; `unread`: nodes that no key"
            " needs. The last four may be about the same bytes",
        ),
        Column("blocks", INT, "blocks with such bytes"),
        Column("bytes", INT, "the bytes"),
    ),
    key=("network", "chain", "segment", "day", "cause"),
    example="""
SELECT day, cause, SUM(bytes) AS bytes
FROM waste
GROUP BY day, cause
ORDER BY bytes DESC, day, cause
""",
).signed()

FINDINGS: Final = Table(
    "findings",
    2,
    "One row per finding; the evidence can be checked again from the row alone.",
    columns=(
        Column(
            "id",
            HASH,
            "blake2_256 over network, chain, code and the finding's subject: equal in every run",
        ),
        *_OF_CHAIN,
        _optional("segment", U32, "segment in which it was found"),
        _optional("position", U64, "position of the candidate"),
        _optional("number", U32, "block number that the candidate claims"),
        _optional("block", HASH, "hash of the candidate's header"),
        _optional("collator", HASH, "Ed25519 key that answers for it"),
        Column(
            "code",
            TEXT,
            "a verdict of PS-52 or a name of `pubsub_emulator.spark_audit.judge.findings`",
        ),
        Column("severity", TEXT, "`info`, `warning` or `error`"),
        Column(
            "evidence", BYTES, "self-contained, see `pubsub_emulator.spark_audit.judge.evidence`"
        ),
        Column("detail", TEXT, "the facts in words"),
        Column("verifier", TEXT, "version of this program that found it"),
    ),
    key=("network", "chain", "id"),
    example="""
SELECT network, chain, severity, code, COUNT(*) AS findings
FROM findings
GROUP BY network, chain, severity, code
ORDER BY network, chain, severity, code
""",
).signed()

PROOF_PARTS: Final = Table(
    "proof_parts",
    2,
    "One row per part of an imported relay proof: together the parts weigh what the proof weighs.",
    columns=(
        *_POSITIONED,
        Column(
            "kind",
            TEXT,
            "`key`, `child trie`, `neighbour` (beside a key), `shared` by keys, `absence` (leads to"
            " no entry), `unplaced` (below nodes that the chain may have stored), or `unread`",
        ),
        Column(
            "name", TEXT, "the key in words; of `shared` the number of keys, of `unread` nothing"
        ),
        _optional("key", BYTES, "relay key that the part belongs to alone"),
        _optional("state", TEXT, "of a key: `value`, `absent` or `not proven`"),
        _optional("value_bytes", INT, "bytes of the value that the key has"),
        Column("nodes", INT, "distinct nodes of this part, detached values included"),
        Column("bytes", INT, "their cost: bytes and length prefixes"),
        _optional(
            "path_bytes", INT, "cost of all nodes on the way to the key, shared ones included"
        ),
    ),
    key=("segment", "position", "kind", "name"),
    partitions=("network", "chain"),
    example="""
SELECT kind, name, SUM(nodes) AS nodes, SUM(bytes) AS bytes
FROM proof_parts
GROUP BY kind, name
ORDER BY bytes DESC, kind, name
""",
).signed()

SUMMARIES: Final = Table(
    "summaries",
    3,
    "One row per measure of a chain, of a collator, or of a publisher as one chain sees it; exact,"
    " nearest-rank.",
    columns=(
        *_OF_CHAIN,
        Column("scope", TEXT, "`chain`, `collator` or `publisher`"),
        Column("subject", TEXT, "the collator's key in hex, the publisher's ParaId, or nothing"),
        Column(
            "measure", TEXT, "a column of `block_measures` or `publisher_measures`, or `budget_ppm`"
        ),
        Column("count", INT, "blocks that have it"),
        Column("total", INT, "sum"),
        Column("min", INT, "smallest value"),
        Column("p50", INT, "median"),
        Column("p90", INT, "9 in 10 are not above it"),
        Column("p99", INT, "99 in 100 are not above it"),
        Column("max", INT, "largest value"),
    ),
    key=("network", "chain", "scope", "subject", "measure"),
    example="""
SELECT network, chain, count, min, p50, p99, max
FROM summaries
WHERE scope = 'chain' AND measure = 'proof_bytes'
ORDER BY network, chain
""",
).signed()

CHAINS: Final = Table(
    "chains",
    2,
    "One row per chain: whether its history is verified, from where to where.",
    columns=(
        *_OF_CHAIN,
        Column("status", TEXT, "`verified`, `not verified`, or `opened` for imported relay proofs"),
        Column("reasons", pa.list_(TEXT), "why it is not verified"),
        Column("segments", INT, "segments in the history"),
        Column("complete", INT, "of them, judged to the end without a read error"),
        Column("candidates", INT, "candidates or imported proofs"),
        Column("judged", INT, "of them, judged"),
        Column("proof_bytes", INT, "cost of all their proofs"),
        _optional("end_number", INT, "last block reached"),
        _optional("end", HASH, "hash of its header"),
    ),
    key=("network", "chain"),
    added=((_optional("name", TEXT, "what its history calls it, a claim; in no digest"),),),
    example="""
SELECT network, chain, status, complete, segments, reasons
FROM chains
ORDER BY network, chain
""",
).signed()

READ_ERRORS: Final = Table(
    "read_errors",
    3,
    "One row per file, row group or candidate that could not be read or judged.",
    columns=(
        Column("path", TEXT, "file, relative to the history"),
        _optional("row_group", INT, "row group in it, none for the whole file"),
        _optional("network", TEXT, "network it belongs to, where known"),
        _optional("chain", U32, "chain it belongs to, where known"),
        _optional("segment", U32, "segment it belongs to, where known"),
        _optional("position", U64, "candidate that cannot be judged for it, where one"),
        Column("error", TEXT, "the reason"),
    ),
    key=("path", "row_group", "network", "chain", "segment", "position", "error"),
    example="""
SELECT path, row_group, network, chain, error
FROM read_errors
ORDER BY path, row_group, error
""",
).signed()

OF_HISTORY: Final = (
    RELAY_HEADERS,
    AUTHORITIES,
    SUBSCRIPTIONS,
    CHECKPOINTS,
    BLOCKS,
    DELIVERIES,
    EVENTS,
    NODES,
    TRUTH,
)
"""The tables of a history."""
OF_SEGMENT: Final = (BLOCK_MEASURES, PUBLISHER_MEASURES, WASTE, PROOF_PARTS, FINDINGS, READ_ERRORS)
"""The tables that judging a segment fills."""
OF_AUDIT: Final = (*OF_SEGMENT, SUMMARIES, CHAINS)
"""The tables of an audit."""
