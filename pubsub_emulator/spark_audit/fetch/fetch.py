"""The fetching of ranges of real blocks, which become segments of a history.

Blocks that are in the history already are not fetched again. A range is divided into units at block
numbers that are multiples of the unit's size. Each unit is committed as soon as it is complete, so
the same command continues after an interruption.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple, Protocol

from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.spark_audit.fetch.errors import FetchError, WrongBlock
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import check_name
from pubsub_emulator.spark_audit.history.names import write_names
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.imported import (
    UNIT_BLOCKS,
    Present,
    RelayProof,
    write_segment,
)

MOST_IN_UNIT: Final = 10_000
"""The maximum number of blocks in a unit."""
_OTHER_PLACE: Final = "ask nodes of the fork that the history has, or write to another place"

Advance = Callable[[int, int], None]
"""Called with the number of blocks that are done, and of all blocks to fetch."""


class BlockSource(Protocol):
    """A source of blocks."""

    network: str
    chain: ParaId

    async def newest(self) -> int:
        """Return the number of the last finalized block. Raises `FetchError`."""

    async def name(self) -> str | None:
        """Return the chain's name, `None` if the source has none. Call it after `blocks`."""

    async def blocks(
        self, first: int, last: int, advance: Callable[[int], None]
    ) -> list[RelayProof]:
        """Return the inherents of all blocks of a range in order. Raises `FetchError`."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """The blocks to fetch."""

    first: int
    last: int | None = None
    """The last block, `None` for the newest one of the source."""
    unit: int = UNIT_BLOCKS
    """Blocks of a segment."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a run."""

    first: int
    """The first block of the range."""
    last: int
    """The last block of the range."""
    fetched: int
    """Blocks that this run added to the history."""
    there: int
    """Blocks of the range that the history already had."""
    nodes: int
    """Proof nodes that were written."""
    proof_bytes: int
    """Bytes of the nodes in all proofs that were added."""
    differing: int
    """Blocks whose inherent states another relay root than the relay chain's header."""


async def fetch(
    source: BlockSource, wanted: BlockRange, address: Address | Store, advance: Advance
) -> Fetched:
    """Add a range of a chain's blocks to the history at `address`.

    Raises `FetchError`, `CommitError`, `OSError`.
    """
    check_name(source.network)
    if wanted.first < 1:
        raise FetchError("block 0 has no inherent: ranges begin at block 1")
    if not 1 <= wanted.unit <= MOST_IN_UNIT:
        raise FetchError(f"a unit has 1 to {MOST_IN_UNIT:,} blocks")
    last = await source.newest() if wanted.last is None else wanted.last
    if last < wanted.first:
        raise FetchError(f"block {wanted.first} comes after block {last}, the last of the range")
    out = open_store(address)
    present = Present.of(out)
    rows = present.imported(["number", "block", "parent"], source.network, source.chain)
    known: Known = {row["number"]: _HashAndParent(row["block"], row["parent"]) for row in rows}
    missing = list(_units(known, wanted.first, last, size=wanted.unit))
    if wanted.last is not None and missing:
        # A block that is not finalized must not become part of a history.
        final = await source.newest()
        if final < last:
            raise FetchError(f"block {last} is not final yet; the newest final block is {final}")
    total = sum(end - begin + 1 for begin, end in missing)
    done = 0
    nodes = 0
    proof_bytes = 0
    differing = 0

    def report(count: int) -> None:
        advance(done + count, total)

    for begin, end in missing:
        proofs = await source.blocks(begin, end, report)
        _check_joins(source, proofs, known)
        nodes += write_segment(out, present, proofs)
        # Some sources know the name only after the first blocks were read.
        if not done and (name := await source.name()) is not None:
            write_names(out, source.network, {int(source.chain): name})
        for proof in proofs:
            known[proof.number] = _HashAndParent(proof.block, proof.parent)
            proof_bytes += sum(map(len, proof.proof))
            header = proof.relay_header
            if header is not None and header.storage_root != proof.relay_root:
                differing += 1
        done += len(proofs)
        advance(done, total)
    return Fetched(
        first=wanted.first,
        last=last,
        fetched=done,
        there=last - wanted.first + 1 - total,
        nodes=nodes,
        proof_bytes=proof_bytes,
        differing=differing,
    )


class _HashAndParent(NamedTuple):
    """The hashes by which a block in the history joins its neighbours, `None` if not known."""

    hash: Hash | None
    parent: Hash | None
    """The hash of the block before it."""


Known = dict[int, _HashAndParent]
"""Blocks in the history by number."""


def _units(known: Known, first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield first and last block of each unit of missing blocks.

    Units end at known blocks and at multiples of `size`.
    """
    missing = (number for number in range(first, last + 1) if number not in known)
    # In a run of consecutive numbers, the number minus its index is constant.
    for _, group in groupby(
        enumerate(missing), lambda entry: (entry[1] - entry[0], entry[1] // size)
    ):
        numbers = [number for _, number in group]
        yield numbers[0], numbers[-1]


def _check_joins(source: BlockSource, proofs: list[RelayProof], known: Known) -> None:
    """Raise `WrongBlock` unless each block's parent is the block before it.

    The neighbours of the new blocks may be in the history already.
    """
    hashes = {proof.number: proof.block for proof in proofs}
    named = {proof.number: proof.parent for proof in proofs}
    joins = [(number, f"block {number}", parent) for number, parent in named.items()]
    following = max(named) + 1
    if following in known:
        joins.append((following, f"block {following} of the history", known[following].parent))
    for number, child, parent in joins:
        previous = hashes.get(number - 1)
        if previous is None and number - 1 in known:
            previous = known[number - 1].hash
        if previous is not None and parent is not None and previous != parent:
            raise WrongBlock(
                f"{source.network} {source.chain}: {child} names 0x{parent.hex()} as its parent,"
                f" and block {number - 1} is 0x{previous.hex()}: two forks; {_OTHER_PLACE}"
            )
