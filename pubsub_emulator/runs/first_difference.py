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


Names = tuple[str, str]
"""What the two sides are called."""


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
    fields, other_fields = (block.fields() | {"chain": block.chain} for block in (a, b))
    for name in ("chain", "relay parent", "verdict"):
        if fields[name] != other_fields[name]:
            yield f"  {name}: {fields[name]} in {names[0]}, {other_fields[name]} in {names[1]}"
    yield from _deliveries(a, b, names)
    proofs = [block.candidate.inherent.proof for block in (a, b)]
    counts = [(len(proof), sum(map(len, proof))) for proof in proofs]
    if counts[0] != counts[1]:
        sizes = (
            f"{nodes} nodes of {size:,} bytes in {name}"
            for (nodes, size), name in zip(counts, names, strict=True)
        )
        yield f"  proof: {', '.join(sizes)}"


def _deliveries_by_key(block: RecordedBlock) -> dict[tuple[object, object], tuple[object, ...]]:
    """Return the other columns of a block's deliveries by publisher and key."""
    return {(delivery[0], delivery[1]): delivery[2:] for delivery in block.deliveries}


def _deliveries(a: RecordedBlock, b: RecordedBlock, names: Names) -> Iterator[str]:
    deliveries = _deliveries_by_key(a)
    other_deliveries = _deliveries_by_key(b)
    differing = [
        item
        for item in sorted({**deliveries, **other_deliveries}, key=str)
        if deliveries.get(item) != other_deliveries.get(item)
    ]
    for item in differing[:_MOST]:
        place = f"publisher {item[0]}, key {words(item[1], 8)}"
        if item not in deliveries or item not in other_deliveries:
            kind = (deliveries.get(item) or other_deliveries[item])[0]
            yield f"  delivery: {place}: {kind} only in {names[item not in deliveries]}"
            continue
        first = _delivery(deliveries[item])
        second = _delivery(other_deliveries[item])
        yield f"  delivery: {place}: {first} in {names[0]}, {second} in {names[1]}"
    if len(differing) > _MOST:
        more = len(differing) - _MOST
        yield f"  and {more} more {'delivery' if more == 1 else 'deliveries'}"


def _delivery(facts: tuple[object, ...]) -> str:
    kind, entry, lifetime, failed = facts
    state = lifetime if isinstance(lifetime, bytes) else b""
    remaining = {1: f"valid for {int.from_bytes(state[1:], 'little')} blocks", 2: "timed out"}.get(
        state[0] if state else 0
    )
    parts = (
        str(kind),
        remaining,
        "refused by its handler" if failed else None,
        f"entry {words(entry, 8)}",
    )
    return ", ".join(filter(None, parts))
