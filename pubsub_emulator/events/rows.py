"""Rows of the log, and how a leading block with all that it included becomes rows (EV-1). Pure.

    block = assemble(ChainBlock(None, 7, hash, time, events), included, parent=parent_hash)
    row = block.rows(after=41)[0]          # seq 42

id = blake2-256(block hash ++ index as u32 LE)
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain as chained
from typing import Final, NamedTuple

from pubsub_emulator.events.values import Value, canonical, decode_fields, encode_fields
from pubsub_emulator.primitives.hashing import blake2_256


class Row(NamedTuple):
    """One event. A plain tuple in the order of the table's columns, so that reading costs what a bare SELECT costs."""

    seq: int  #: From 1, no gaps
    anchor: int  #: Block number of the leading chain
    chain: int | None  #: A para id; `None` for the leading chain itself
    block: int  #: Block number on `chain`
    index: int  # type: ignore[assignment]  # EV-1 names the column as `tuple` names a method, which rows do not need
    """The event's place in its block."""
    kind: str  #: Pallet and variant as metadata spells them, `Broadcaster.DataPublished`
    id: bytes  #: 32 bytes, equal in every log of the chain
    time: int  #: Milliseconds since 1970, from the chain
    body: str  #: The fields as canonical JSON, see `log.values`

    @property
    def fields(self) -> dict[str, Value]:
        """The fields by name, decoded at each call."""
        return decode_fields(self.body)


row_of: Final[Callable[[tuple[object, ...]], Row]] = partial(tuple.__new__, Row)
"""`Row._make` without its check of the length, where that is certain: a tenth of a page's time."""


@dataclass(frozen=True, slots=True)
class ChainBlock:
    """A block of one chain as a source reads it: `events` are (kind, fields) in block order."""

    chain: int | None
    number: int
    hash: bytes
    time: int
    events: Sequence[tuple[str, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class Block:
    """A leading block with the rows of all that it included; appended whole or not at all (EV-2)."""

    number: int
    hash: bytes
    parent: bytes
    entries: tuple[Row, ...]  #: Their `seq` is 0 until they are appended
    after_gap: bool = False
    """Whether blocks between it and the log's last, which is its `parent`, are left out: they have no rows."""

    def rows(self, after: int) -> list[Row]:
        """The rows of this block when the log's last `seq` before it is `after`."""
        return [row_of((seq, *entry[1:])) for seq, entry in enumerate(self.entries, after + 1)]


def row_json(row: Row) -> str:
    """`{"seq":…,"anchor":…,"chain":…,"block":…,"index":…,"kind":…,"id":"0x…","time":…,"fields":{…}}`."""
    chain = "null" if row.chain is None else row.chain
    return (
        f'{{"seq":{row.seq},"anchor":{row.anchor},"chain":{chain},"block":{row.block},"index":{row[4]},'
        f'"kind":{json.dumps(row.kind)},"id":"0x{row.id.hex()}","time":{row.time},"fields":{row.body}}}'
    )


def row_digest(row: Row) -> bytes:
    """blake2b-256 of the row's JSON: equal for equal rows, whoever delivers them."""
    return blake2_256(row_json(row).encode())


def event_id(block_hash: bytes, index: int) -> bytes:
    """The id of an event (EV-1)."""
    return bytes(blake2_256(block_hash + index.to_bytes(4, "little")))


def assemble(leading: ChainBlock, included: Iterable[ChainBlock], *, parent: bytes, after_gap: bool = False) -> Block:
    """The log's block: events of `leading` first, then those of each included block in the order given."""
    blocks = chained((leading,), included)
    entries = tuple(entry for each in blocks for entry in _entries(leading.number, each))
    return Block(leading.number, bytes(leading.hash), bytes(parent), entries, after_gap)


def _entries(anchor: int, block: ChainBlock) -> Iterable[Row]:
    for index, (kind, fields) in enumerate(block.events):
        body = encode_fields({name: canonical(value) for name, value in fields.items()})
        identity = event_id(block.hash, index)
        yield Row(0, anchor, block.chain, block.number, index, kind, identity, block.time, body)
