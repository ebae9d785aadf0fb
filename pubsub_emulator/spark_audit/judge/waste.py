"""Bytes in proofs that a chain did not need, by block, and their sums by day and cause."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
from pubsub_emulator.spark_audit.history.row import Row

_COLUMNS: Final = {"repeated": "repeated_bytes", "static": "static_bytes", "cache": "cache_charges"}
"""Causes of waste in included blocks, with the columns of `block_measures` that have their bytes.
"""


class _Group(NamedTuple):
    """The key columns of `waste`."""

    network: str
    chain: int
    segment: int
    day: date | None
    cause: str


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
    sums: dict[_Group, list[int]] = {}
    days: dict[int, date | None] = {}
    for row in measures:
        days[row["position"]] = row["day"]
        for cause, weight in _of_block(row):
            _add(sums, _group(row, row["day"], cause), weight)
    for part in parts:
        if part["kind"] == "unread":
            _add(sums, _group(part, days.get(part["position"]), "unread"), part["bytes"])
    return [
        {**group._asdict(), "blocks": blocks, "bytes": weight}
        for group, (blocks, weight) in sums.items()
    ]


def _group(row: Row, day: date | None, cause: str) -> _Group:
    return _Group(row["network"], row["chain"], row["segment"], day=day, cause=cause)


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


def _add(sums: dict[_Group, list[int]], group: _Group, weight: int) -> None:
    """Add a block with `weight` bytes of waste to a group's sums, unless `weight` is 0.

    The sums of a group are the number of its blocks and their bytes.
    """
    if weight:
        blocks_and_bytes = sums.setdefault(group, [0, 0])
        blocks_and_bytes[0] += 1
        blocks_and_bytes[1] += weight
