"""Bytes in proofs that a chain did not need, by block, and their sums by day and cause."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
from pubsub_emulator.spark_audit.history.row import Row

_COLUMNS: Final = {"repeated": "repeated_bytes", "static": "static_bytes", "cache": "cache_charges"}
"""Causes of waste in included blocks, with the columns of `block_measures` that have their bytes.
"""

_Key = tuple[object, ...]
"""Network, chain, segment, day and cause."""


class Repeated:
    """Nodes that consecutive blocks of a chain prove again."""

    def __init__(self) -> None:
        self._before: frozenset[int] = frozenset()

    def weigh(self, row: Row, nodes: Mapping[int, bytes]) -> int:
        """Return the bytes of nodes that the proof of the chain's previous block had as well.

        Call it once for each block, in order. The next call compares with this block.
        """
        numbers = frozenset(row["proof"])
        repeated = numbers & self._before
        self._before = numbers
        return sum(node_cost(len(nodes[number])) for number in repeated if number in nodes)


def junk_bytes(proof: Sequence[bytes], refusal: InvalidBlock) -> int:
    """Return the size of the nodes in a refused block's proof that judging did not need, in bytes.

    These are nodes that the verifier did not visit, and repetitions of nodes.
    """
    unused: set[object] = set()
    for offence in refusal.evidence:
        if offence.verdict is Verdict.UNUSED_NODES:
            unused.update(offence.subject)
    seen: set[bytes] = set()
    total = 0
    for node in proof:
        if node in seen or (unused and blake2_256(node) in unused):
            total += node_cost(len(node))
        seen.add(node)
    return total


def waste_rows(measures: Iterable[Row], parts: Iterable[Row]) -> list[Row]:
    """Return the rows of `waste` for one segment of one chain.

    `measures` has its rows of `block_measures`, `parts` its rows of `proof_parts`.
    """
    sums: dict[_Key, list[int]] = {}
    days: dict[int, date | None] = {}
    place: _Key = ()
    for row in measures:
        place = (row["network"], row["chain"], row["segment"])
        days[row["position"]] = row["day"]
        for cause, weight in _of_block(row):
            _add(sums, (*place, row["day"], cause), weight)
    for part in parts:
        if part["kind"] == "unread":
            _add(sums, (*place, days.get(part["position"]), "unread"), part["bytes"])
    names = ("network", "chain", "segment", "day", "cause", "blocks", "bytes")
    return [dict(zip(names, (*key, *sums[key]), strict=True)) for key in sums]


def _of_block(row: Row) -> Iterator[tuple[str, int]]:
    """Yield the bytes of waste in a block by cause.

    The whole proof of a refused block is waste.
    """
    if row["status"] == "rejected":
        yield "refused", row["proof_bytes"]
        yield "junk", row["junk_bytes"] or 0
        return
    for cause, column in _COLUMNS.items():
        yield cause, row[column] or 0


def _add(sums: dict[_Key, list[int]], key: _Key, weight: int) -> None:
    """Count one more block with `weight` bytes of waste, unless `weight` is 0."""
    if weight:
        count_and_bytes = sums.setdefault(key, [0, 0])
        count_and_bytes[0] += 1
        count_and_bytes[1] += weight
