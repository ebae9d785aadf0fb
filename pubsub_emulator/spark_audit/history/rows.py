"""Conversion of records to rows, and of rows back to the exact candidate and state.

Records are the reports that a network in this process sends to its observers. `HistoryWriter` (in
`store`) converts them to rows. The audit converts rows to candidates and states.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from pubsub_emulator.emulator.network.block_time import own_timestamp
from pubsub_emulator.emulator.network.records import (
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import encode_ttl_state
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    HashedMessage,
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
)
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.block import Candidate, Inherent, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row, fields_of

POSITIONED: Final = ("network", "chain", "segment", "position", "number")
"""The columns that locate a block, without its hash."""
BLOCK_PLACE: Final = (*POSITIONED, "block")
"""The columns that identify a block. Several tables have them."""

DELIVERED: Final = ("publisher", "key", "kind", "entry_hash", "ttl_state", "failed")
"""The columns of `deliveries` that describe the callback itself."""

_CANDIDATE_HAS: Final = ("header", "block", "included_at", "slot_now")
"""Columns that a candidate must have. Only imported proofs may lack them."""


def slot_of(header: Header) -> int | None:
    """Return the slot that a header claims, `None` if it is beyond 63 bits.

    Tables have signed integers, and a header can claim any slot.
    """
    slot = header.aura_slot()
    return None if slot is None or slot > schema.I64_MAX else slot


_items = scale.sorted_map(scale.u32, scale.vec(scale.fixed(32)))
"""The codec of subscriptions: keys by publisher."""

M = TypeVar("M", InboundDownwardMessage, InboundHrmpMessage, HashedMessage)
FORMER: Final = "0.3.0"
"""The last version in which the inherent of parachain blocks had another form."""


class NodeTable:
    """The distinct proof nodes of a segment, numbered in the order in which they were added.

    Proofs refer to nodes by number, because hashes would take far more space.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hash, int] = {}
        self._rows: list[Row] = []

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, node: bytes) -> int:
        """Return a node's number for the column `blocks.proof`. Add the node if it is new."""
        node_hash = blake2_256(node)
        number = self._numbers.setdefault(node_hash, len(self._rows))
        if number == len(self._rows):
            self._rows.append({"number": number, "hash": node_hash, "data": node})
        return number

    def rows(self, network: str, segment: int) -> list[Row]:
        """Return the rows of `nodes`."""
        return [{"network": network, "segment": segment, **row} for row in self._rows]


class RowError(PubsubError):
    """A row that contradicts itself or does not decode, and so cannot be judged."""


class LostNode(RowError):
    """The history lacks a node of the row's proof."""


def relay_row(network: str, record: RelayRecord) -> Row:
    """Return the row of a relay block in `relay_headers`."""
    return {"network": network, **fields_of(record, ("number", "hash", "storage_root", "slot"))}


def relay_events_row(network: str, segment: int, record: RelayRecord) -> Row | None:
    """Return the row of a relay block in `events`.

    Returns `None` for a block that was built before the observer was added, because its events are
    not known.
    """
    if record.parent is None:
        return None
    place = {
        "network": network,
        "segment": segment,
        "anchor": record.number,
        "place": 0,
        "chain": None,
    }
    block = fields_of(record, ("number", "hash", "parent", "time"))
    return {**place, **block, "events": encode_events(record.events)}


def block_events_row(
    network: str, record: BlockRecord, outcome: BlockOutcome, place: int, relay_time: int
) -> Row:
    """Return the row of an included parachain block in `events`.

    `place` is the block's number among the blocks included in the relay block, from 1.
    `relay_time` is the relay block's time, which is used for chains without a clock of their own.
    """
    header = record.candidate.header
    time = own_timestamp(outcome.state)
    if time is None:
        time = relay_time
    place_columns = {
        "network": network,
        **fields_of(record, ("segment", "chain")),
        "anchor": record.included_at,
        "place": place,
    }
    block = {
        "number": header.number,
        "hash": header.hash(),
        "parent": header.parent_hash,
        "time": time,
    }
    return {
        **place_columns,
        **block,
        "events": encode_events(applied.event for applied in outcome.events),
    }


def encode_events(events: Iterable[Event]) -> bytes:
    """Encode events as SCALE `Vec<RuntimeEvent>`."""
    encoded = [event.encode() for event in events]
    return scale.encode_compact(len(encoded)) + b"".join(encoded)


def decode_events(data: bytes) -> list[Event]:
    """Decode SCALE `Vec<RuntimeEvent>`. Raises `ScaleError`, also if bytes are left over."""
    reader = every_runtime().reader(data)
    events = [every_runtime().read_event(reader) for _ in range(reader.length())]
    reader.end()
    return events


def subscription_row(network: str, record: SubscriptionRecord) -> Row:
    """Return the row of a change of subscriptions."""
    items = {int(para): list(keys) for para, keys in record.items}
    published = [{"publisher": para, "keys": keys} for para, keys in items.items()]
    place = {"network": network, **fields_of(record, ("chain", "from_block"))}
    return {**place, "hash": blake2_256(encode_items(items)), "items": published}


def encode_items(items: Mapping[int, list[bytes]]) -> bytes:
    """Encode subscriptions in SCALE, publishers ascending. Their hash is over these bytes."""
    return _items.encode(dict(items))


def checkpoint_row(network: str, record: CheckpointRecord, position: int) -> Row:
    """Return the row of a checkpoint.

    `position` is that of the chain's next candidate. Child roots are left out, because they can be
    computed from the child tries.
    """
    state = record.state
    top = (
        (key, value)
        for key, value in state.top_entries()
        if not key.startswith(CHILD_STORAGE_PREFIX)
    )
    children = ((child, state.child_entries(child)) for child in sorted(state.children))
    return {
        "network": network,
        **fields_of(record, ("chain", "segment")),
        "position": position,
        "number": record.header.number,
        "header": record.header.encode(),
        "state_root": state.root(),
        "entries": _entry_rows(top),
        "children": [
            {"key": child, "entries": _entry_rows(entries)} for child, entries in children
        ],
    }


def block_row(
    network: str,
    record: BlockRecord,
    position: int,
    nodes: NodeTable,
    *,
    collator: bytes | None,
    parent_root: Hash,
    spec: RuntimeSpec,
) -> Row:
    """Return the row of a judged candidate.

    `parent_root` and `spec` belong to the state on which it was judged. Nodes of its proof that are
    new are added to `nodes`.
    """
    header = record.candidate.header
    inherent = record.candidate.inherent
    refusal = record.refusal
    return {
        "network": network,
        **fields_of(record, ("chain", "segment", "included_at", "slot_now", "strategy")),
        "position": position,
        "number": header.number,
        "slot": slot_of(header),
        "block": header.hash(),
        "status": "included" if refusal is None else "rejected",
        "verdict": None if refusal is None else refusal.verdict.value,
        "detail": None if refusal is None else str(refusal),
        "relay_parent": inherent.relay_parent_number,
        "relay_parent_root": inherent.relay_parent_storage_root,
        "relay_root": record.relay_storage_root,
        "collator": collator,
        "header": header.encode(),
        "parent": header.parent_hash,
        "parent_state_root": parent_root,
        "state_root": header.state_root,
        "max_pov": spec.max_pov_size,
        "allowed_pov": spec.allowed_pov,
        **message_columns(inherent.messages),
        "messages_used": inherent.messages_used,
        "parent_head": inherent.parent_head,
        "claimed_max_pov": inherent.max_pov_size,
        "descendants": [descendant.encode() for descendant in inherent.descendants],
        "collator_peer_id": inherent.collator_peer_id,
        "proof": [nodes.number(node) for node in inherent.proof],
        "unpruned": [{"publisher": para, "bytes": size} for para, size in record.unpruned],
        "source": None,
        "extrinsics": list(record.candidate.extrinsics),
    }


def truth_row(row: Row, due: tuple[Verdict, ...]) -> Row:
    """Return the row of a cheat in `truth`, which is for tests of the audit.

    `row` is the candidate's row in `blocks`. `due` has the verdicts that the audit must find, at
    least one.
    """
    names = [verdict.value for verdict in due]
    block_columns = columns_of(row, (*BLOCK_PLACE, "slot", "collator", "strategy"))
    return {**block_columns, "verdict": names[0], "due": names}


def delivery_rows(place: Row, deliveries: tuple[Delivery, ...]) -> list[Row]:
    """Return the rows of a block's callbacks. `place` has the columns `BLOCK_PLACE`."""
    rows: list[Row] = []
    for sequence, delivery in enumerate(deliveries):
        row = {**place, "sequence": sequence, **fields_of(delivery, DELIVERED)}
        if delivery.ttl_state is not None:
            row["ttl_state"] = encode_ttl_state(delivery.ttl_state)
        rows.append(row)
    return rows


def candidate_of(row: Row, nodes: Mapping[int, bytes]) -> Candidate:
    """Return the exact candidate of a row of `blocks`.

    Raises `RowError` if the row contradicts itself, and `LostNode` if a node is missing.
    """
    if row["status"] not in {"included", "rejected"}:
        raise RowError(f"the status {row['status']!r} is not known")
    for name in _CANDIDATE_HAS:
        if row[name] is None:
            raise RowError(f"the row of a candidate has no {name}")
    if row.get("parent_head") is None or row.get("claimed_max_pov") is None:
        raise RowError(
            "the row of a candidate has no parent_head: it was written by version"
            f" {FORMER} or older, which can read it"
        )
    try:
        header = Header.decode(row["header"])
    except ScaleError as error:
        raise RowError(f"the header does not decode: {error}") from None
    parent = RelayBlockNumber(row["relay_parent"])
    root = Hash(row["relay_parent_root"])
    try:
        descendants = tuple(map(Header.decode, row.get("descendants") or ()))
    except ScaleError as error:
        raise RowError(f"a relay header does not decode: {error}") from None
    inherent = Inherent(
        parent,
        root,
        proof_of(row, nodes),
        parent_head=row["parent_head"],
        max_pov_size=row["claimed_max_pov"],
        messages=messages_of(row),
        descendants=descendants,
        collator_peer_id=row.get("collator_peer_id"),
    )
    if header.hash() != row["block"]:
        raise RowError("the header does not have the block's hash")
    return Candidate(header, inherent, tuple(row.get("extrinsics") or ()))


def message_columns(messages: InboundMessages) -> Row:
    """Return downward and horizontal messages, full and hashed, as columns of `blocks`."""
    return {
        "downward": [
            {"sent_at": message.sent_at, "data": message.msg} for message in messages.downward
        ],
        "horizontal": [
            _queue_columns(sender, queue, "data") for sender, queue in messages.horizontal
        ],
        "hashed_downward": [
            fields_of(message, ("sent_at", "msg_hash")) for message in messages.hashed_downward
        ],
        "hashed_horizontal": [
            _queue_columns(sender, queue, "msg_hash")
            for sender, queue in messages.hashed_horizontal
        ],
    }


def _queue_columns(sender: ParaId, queue: Iterable[object], content: str) -> Row:
    """Return the messages of one sender. `content` is the name of their data or hash."""
    messages = [fields_of(message, ("sent_at", content)) for message in queue]
    return {"sender": sender, "messages": messages}


def messages_of(row: Row) -> InboundMessages:
    """Return the downward and horizontal messages of a row, in the order of the columns."""

    def read(kind: type[M], rows: Iterable[Row], content: str) -> tuple[M, ...]:
        return tuple(kind(RelayBlockNumber(entry["sent_at"]), entry[content]) for entry in rows)

    horizontal = tuple(
        (ParaId(entry["sender"]), read(InboundHrmpMessage, entry["messages"], "data"))
        for entry in row["horizontal"]
    )
    hashed = tuple(
        (ParaId(entry["sender"]), read(HashedMessage, entry["messages"], "msg_hash"))
        for entry in row.get("hashed_horizontal") or ()
    )
    return InboundMessages(
        read(InboundDownwardMessage, row["downward"], "data"),
        horizontal,
        read(HashedMessage, row.get("hashed_downward") or (), "msg_hash"),
        hashed_horizontal=hashed,
    )


def proof_of(row: Row, nodes: Mapping[int, bytes]) -> tuple[bytes, ...]:
    """Return the nodes of a row's proof in their order. Raises `LostNode` if one is missing."""
    try:
        return tuple(nodes[reference] for reference in row["proof"])
    except KeyError as missing:
        raise LostNode(
            f"proof node {missing.args[0]} of the segment is not in the history"
        ) from None


def state_of(row: Row) -> tuple[Header, State]:
    """Return the header and the state of a checkpoint.

    Raises `RowError` unless the state has the root that the header commits to.
    """
    try:
        header = Header.decode(row["header"])
    except ScaleError as error:
        raise RowError(f"the checkpoint's header does not decode: {error}") from None
    child_keys = [child["key"] for child in row["children"]]
    if len(set(child_keys)) != len(child_keys) or not all(
        child["entries"] for child in row["children"]
    ):
        raise RowError("the checkpoint names a child trie twice, or one without entries")
    top = _entries(row["entries"])
    if any(key.startswith(CHILD_STORAGE_PREFIX) for key, _ in top):
        raise RowError("the entries contain child roots, which follow from the child tries")
    state = State.from_entries(
        top, {child["key"]: _entries(child["entries"]) for child in row["children"]}
    )
    if state.root() != header.state_root or header.state_root != row["state_root"]:
        raise RowError("the checkpoint's state does not have the root that its header commits to")
    return header, state


def columns_of(row: Row, names: Iterable[str]) -> Row:
    """Return some columns of a row."""
    return {name: row[name] for name in names}


def block_place(row: Row) -> Row:
    """Return the columns `BLOCK_PLACE` of a row."""
    return columns_of(row, BLOCK_PLACE)


def empty_row(table: schema.Table) -> Row:
    """Return a row of a table in which all columns are `None`."""
    return dict.fromkeys(column.name for column in table.columns)


def _entry_rows(entries: Iterable[tuple[bytes, bytes]]) -> list[Row]:
    return [{"key": key, "value": value} for key, value in entries]


def _entries(rows: Iterable[Row]) -> list[tuple[bytes, bytes]]:
    return [(row["key"], row["value"]) for row in rows]
