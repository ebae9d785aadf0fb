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
from pubsub_emulator.spark_audit.compare import HistoryRecord, Judged

_MOST: Final = 4


Names = tuple[str, str]
"""What the two sides are called."""


def first_difference(a: Path, b: Path, names: Names) -> list[str]:
    """The place of the first block that differs, and why, line by line; nothing if none does."""
    for mine, other in zip_longest(_blocks(HistoryRecord(a)), _blocks(HistoryRecord(b))):
        if mine is None and other is None:
            continue
        if mine is None:
            return [f"{other.place} is only in {names[1]}"]
        if other is None:
            return [f"{mine.place} is only in {names[0]}"]
        why = list(_reasons(mine, other, names))
        if why:
            number = mine.candidate.inherent.relay_parent_number
            return [f"{mine.place}, on relay block {number}", *why]
    return []


def _blocks(record: HistoryRecord) -> Iterator[Judged]:
    """All blocks by relay parent, then chain; of one chain in their order."""
    streams = [record.blocks(*place) for place in sorted(record.chains)]
    return merge(
        *streams, key=lambda block: (block.candidate.inherent.relay_parent_number, block.chain)
    )


def _reasons(a: Judged, b: Judged, names: Names) -> Iterator[str]:
    mine, other = (block.fields() | {"chain": block.chain} for block in (a, b))
    for name in ("chain", "relay parent", "verdict"):
        if mine[name] != other[name]:
            yield f"  {name}: {mine[name]} in {names[0]}, {other[name]} in {names[1]}"
    yield from _deliveries(a, b, names)
    counts = [
        (len(proof), sum(map(len, proof)))
        for proof in (block.candidate.inherent.proof for block in (a, b))
    ]
    if counts[0] != counts[1]:
        said = (
            f"{nodes} nodes of {size:,} bytes in {name}"
            for (nodes, size), name in zip(counts, names, strict=True)
        )
        yield f"  proof: {', '.join(said)}"


def _deliveries(a: Judged, b: Judged, names: Names) -> Iterator[str]:
    mine, other = ({(each[0], each[1]): each[2:] for each in block.deliveries} for block in (a, b))
    differing = [
        item for item in sorted({**mine, **other}, key=str) if mine.get(item) != other.get(item)
    ]
    for item in differing[:_MOST]:
        place = f"publisher {item[0]}, key {words(item[1], 8)}"
        if item not in mine or item not in other:
            kind = (mine.get(item) or other[item])[0]
            yield f"  delivery: {place}: {kind} only in {names[item not in mine]}"
            continue
        said = [_delivery(each[item]) for each in (mine, other)]
        yield f"  delivery: {place}: {said[0]} in {names[0]}, {said[1]} in {names[1]}"
    if len(differing) > _MOST:
        more = len(differing) - _MOST
        yield f"  and {more} more {'delivery' if more == 1 else 'deliveries'}"


def _delivery(facts: tuple[object, ...]) -> str:
    kind, entry, lifetime, failed = facts
    state = lifetime if isinstance(lifetime, bytes) else b""
    left = {1: f"valid for {int.from_bytes(state[1:], 'little')} blocks", 2: "timed out"}.get(
        state[0] if state else 0
    )
    said = (
        str(kind),
        left,
        "refused by its handler" if failed else None,
        f"entry {words(entry, 8)}",
    )
    return ", ".join(filter(None, said))
