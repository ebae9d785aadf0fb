"""The rows of the log, and their derivation from a leading block and its included blocks (EV-1).

Everything here is pure.

    block = assemble(ChainBlock(None, 7, hash, time, events), included, parent=parent_hash)
    row = block.rows(after=41)[0]          # seq 42

The id of an event is blake2-256(block hash ++ index as u32 in little endian).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain as chained
from typing import Final, NamedTuple

from interchain_events.events.values import Value, canonical, decode_fields, encode_fields
from pubsub_emulator.primitives.hashing import blake2_256

ROW_BYTES: Final = 512
"""The approximate size of a row without its fields, in bytes."""


class Row(NamedTuple):
    """One event.

    It is a tuple in the order of the table's columns, so that a row of a SELECT needs no
    conversion.
    """

    seq: int
    """The place in the log, counted from 1 without gaps."""
    anchor: int
    """The block number of the leading chain."""
    chain: int | None
    """The id of a parachain, `None` for the leading chain."""
    block: int
    """The block number on `chain`."""
    index: int  # type: ignore[assignment]  # EV-1 names the column as `tuple` names a method, which rows do not need
    """The event's place in its block."""
    kind: str
    """The pallet and the variant as metadata spells them, for example
    `Broadcaster.DataPublished`."""
    id: bytes
    """32 bytes, the same in every log of the chain."""
    time: int
    """The chain's time in milliseconds since 1970."""
    body: str
    """The fields as canonical JSON (see `events.values`)."""

    @property
    def fields(self) -> dict[str, Value]:
        """Return the fields by name. Each call decodes them again."""
        return decode_fields(self.body)

    @property
    def weight(self) -> int:
        """Return the row's approximate size in bytes, for limits on waiting rows."""
        return ROW_BYTES + len(self.body)


row_of: Final[Callable[[tuple[object, ...]], Row]] = partial(tuple.__new__, Row)
"""A function that makes a row of a tuple with the right length.

`Row._make` would check the length, which takes a tenth of the time of reading a page.
"""


@dataclass(frozen=True, slots=True)
class ChainBlock:
    """A block of one chain, as a source reads it."""

    chain: int | None
    """The id of a parachain, `None` for the leading chain."""
    number: int
    hash: bytes
    time: int
    """The block's time in milliseconds since 1970."""
    events: Sequence[tuple[str, Mapping[str, object]]]
    """The kind and the fields of each event, in the order of the block."""


@dataclass(frozen=True, slots=True)
class Block:
    """A leading block with the rows of everything that it included.

    The log appends it either completely or not at all (EV-2).
    """

    number: int
    hash: bytes
    parent: bytes
    entries: tuple[Row, ...]
    """The rows. Their `seq` is 0 until they are appended."""
    after_gap: bool = False
    """Whether blocks without rows have been left out before this one. `parent` is then the log's
    last block."""

    def rows(self, after: int) -> list[Row]:
        """Return the rows with their `seq`.

        `after` is the log's last `seq` before this block.
        """
        return [row_of((seq, *entry[1:])) for seq, entry in enumerate(self.entries, after + 1)]


def row_json(row: Row) -> str:
    """Return a row as a JSON object with the names of its columns, and `fields` for `body`.

    Bytes are hexadecimal text. Equal rows have the same text, because `row_digest` hashes it.
    """
    chain = "null" if row.chain is None else row.chain
    return (
        f'{{"seq":{row.seq},"anchor":{row.anchor},"chain":{chain},"block":{row.block},"index":{row[4]},'
        f'"kind":{json.dumps(row.kind)},"id":"0x{row.id.hex()}","time":{row.time},"fields":{row.body}}}'
    )


def row_digest(row: Row) -> bytes:
    """Return the blake2b-256 hash of a row's JSON, the same for every broadcaster of the row."""
    return blake2_256(row_json(row).encode())


def event_id(block_hash: bytes, index: int) -> bytes:
    """Return the id of an event (EV-1)."""
    return bytes(blake2_256(block_hash + index.to_bytes(4, "little")))


def assemble(
    leading: ChainBlock, included: Iterable[ChainBlock], *, parent: bytes, after_gap: bool = False
) -> Block:
    """Return the log's block of a leading block and the blocks that it included.

    The events of `leading` come first, then those of each included block. `parent` is the hash of
    the leading block before it.
    """
    blocks = chained((leading,), included)
    entries = tuple(chained.from_iterable(_entries(leading.number, block) for block in blocks))
    return Block(
        leading.number, bytes(leading.hash), bytes(parent), entries=entries, after_gap=after_gap
    )


def _entries(anchor: int, block: ChainBlock) -> Iterable[Row]:
    """Yield the rows of one chain's block, without their `seq`."""
    for index, (kind, fields) in enumerate(block.events):
        body = encode_fields({name: canonical(value) for name, value in fields.items()})
        identity = event_id(block.hash, index)
        yield Row(0, anchor, block.chain, block.number, index, kind, identity, block.time, body)
