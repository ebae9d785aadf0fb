"""The first block at which two histories differ in their results, not only in bytes.

Other rules are another runtime, so that all state roots differ from genesis on. Blocks are
therefore compared by their results: the verdict, the deliveries, then the nodes and bytes of the
proof.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import zip_longest
from pathlib import Path
from typing import Final

from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.spark_audit.compare import HistoryRecord, RecordedBlock

_MOST: Final = 4
"""The maximum number of differing deliveries that are described."""

Names = tuple[str, str]
"""The names of the two sides."""


def first_difference(a: Path, b: Path, names: Names) -> list[str]:
    """Return lines about the first block that differs: its place and the reasons.

    The list is empty if no block differs.
    """
    for block, other_block in zip_longest(_blocks(HistoryRecord(a)), _blocks(HistoryRecord(b))):
        if block is None and other_block is None:
            continue
        if block is None:
            return [f"{other_block.place} is only in {names[1]}"]
        if other_block is None:
            return [f"{block.place} is only in {names[0]}"]
        reasons = list(_reasons(block, other_block, names))
        if reasons:
            number = block.candidate.inherent.relay_parent_number
            return [f"{block.place}, on relay block {number}", *reasons]
    return []


def _blocks(record: HistoryRecord) -> Iterator[RecordedBlock]:
    """Yield all blocks in the order of their relay parents, then chains.

    The blocks of a chain keep their order.
    """
    streams = [record.blocks(*place) for place in sorted(record.chains)]
    return merge(
        *streams, key=lambda block: (block.candidate.inherent.relay_parent_number, block.chain)
    )


def _reasons(a: RecordedBlock, b: RecordedBlock, names: Names) -> Iterator[str]:
    """Yield a line for each difference of two blocks. Equal results yield nothing."""
    fields = a.fields() | {"chain": a.chain}
    other_fields = b.fields() | {"chain": b.chain}
    for name in ("chain", "relay parent", "verdict"):
        if fields[name] != other_fields[name]:
            yield f"  {name}: {fields[name]} in {names[0]}, {other_fields[name]} in {names[1]}"
    yield from _deliveries(a, b, names)
    size = _proof_size(a)
    other_size = _proof_size(b)
    if size != other_size:
        yield f"  proof: {size} in {names[0]}, {other_size} in {names[1]}"


def _proof_size(block: RecordedBlock) -> str:
    """Return the number and the bytes of a proof's nodes in words."""
    proof = block.candidate.inherent.proof
    return f"{len(proof)} nodes of {sum(map(len, proof)):,} bytes"


def _deliveries(a: RecordedBlock, b: RecordedBlock, names: Names) -> Iterator[str]:
    """Yield a line for each item that two blocks deliver differently, or that only one delivers.

    An item is a publisher and a key.
    """
    deliveries = {(delivery[0], delivery[1]): delivery[2:] for delivery in a.deliveries}
    other_deliveries = {(delivery[0], delivery[1]): delivery[2:] for delivery in b.deliveries}
    differing = [
        item
        for item in sorted({**deliveries, **other_deliveries}, key=str)
        if deliveries.get(item) != other_deliveries.get(item)
    ]
    for item in differing[:_MOST]:
        place = f"publisher {item[0]}, key {words(item[1], 8)}"
        if item not in deliveries or item not in other_deliveries:
            kind = (deliveries.get(item) or other_deliveries[item])[0]
            side = names[0] if item in deliveries else names[1]
            yield f"  delivery: {place}: {kind} only in {side}"
            continue
        first = _delivery(deliveries[item])
        second = _delivery(other_deliveries[item])
        yield f"  delivery: {place}: {first} in {names[0]}, {second} in {names[1]}"
    if len(differing) > _MOST:
        more = len(differing) - _MOST
        yield f"  and {more} more {'delivery' if more == 1 else 'deliveries'}"


def _delivery(facts: tuple[object, ...]) -> str:
    """Return a delivery in words: kind, remaining lifetime, failure and the entry's hash."""
    kind, entry, lifetime, failed = facts
    remaining = None
    # The lifetime is the SCALE encoding of `TtlState`: 1 and the number of blocks if the entry is
    # valid for a time, and 2 if it has timed out.
    if isinstance(lifetime, bytes) and lifetime[:1] == b"\1":
        remaining = f"valid for {int.from_bytes(lifetime[1:], 'little')} blocks"
    elif isinstance(lifetime, bytes) and lifetime[:1] == b"\2":
        remaining = "timed out"
    parts = (
        str(kind),
        remaining,
        "refused by its handler" if failed else None,
        f"entry {words(entry, 8)}",
    )
    return ", ".join(filter(None, parts))
