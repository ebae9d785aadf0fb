"""Ranges of real blocks become segments of a history; what is there already is not fetched again.

Units begin at multiples of their size, whichever range was asked for. Each is committed once it is whole, so the same
command goes on where a run ended.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.spark_audit.fetch.errors import FetchError, WrongBlock
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import check_name
from pubsub_emulator.spark_audit.history.names import write_names
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.imported import UNIT_BLOCKS, Present, RelayProof, write_segment

MOST_IN_UNIT: Final = 10_000
_OTHER_PLACE: Final = "ask nodes of the fork that the history has, or write to another place"

Advance = Callable[[int, int], None]
"""Told how many blocks are done, of how many."""


class Source(Protocol):
    """A source of blocks."""

    network: str
    chain: ParaId

    async def newest(self) -> int:
        """The height of the last block that it has for good. Raises `FetchError`."""

    async def name(self) -> str | None:
        """The chain's name, known once blocks were read; `None` where the source has none."""

    async def blocks(self, first: int, last: int, advance: Callable[[int], None]) -> list[RelayProof]:
        """The inherents of a range of blocks, ascending, all of them. Raises `FetchError`."""


@dataclass(frozen=True, slots=True)
class Range:
    """Blocks `first` to `last`, which may be left to the source, in units of so many."""

    first: int
    last: int | None = None
    unit: int = UNIT_BLOCKS


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a run: blocks `first` to `last` are in the history, `fetched` of them now."""

    first: int
    last: int
    fetched: int
    there: int
    nodes: int
    proof_bytes: int
    differing: int
    """Blocks whose inherent states another relay root than the relay chain's header."""


async def fetch(source: Source, wanted: Range, address: Address | Store, advance: Advance) -> Fetched:
    """Add a range of a chain's blocks to the history at `address`. Raises `FetchError`, `CommitError`, `OSError`."""
    check_name(source.network)
    if wanted.first < 1:
        raise FetchError("block 0 has no inherent: ranges begin at block 1")
    if not 1 <= wanted.unit <= MOST_IN_UNIT:
        raise FetchError(f"a unit has 1 to {MOST_IN_UNIT:,} blocks")
    newest = await source.newest() if wanted.last is None else wanted.last
    if newest < wanted.first:
        raise FetchError(f"block {wanted.first} comes after block {newest}, the last of the range")
    out = open_store(address)
    present = Present.of(out)
    rows = present.imported(["number", "block", "parent"], source.network, source.chain)
    known: Known = {row["number"]: (row["block"], row["parent"]) for row in rows}
    last = newest
    missing = list(_units(known, wanted.first, last, wanted.unit))
    if wanted.last is not None and missing:
        final = await source.newest()
        if final < last:
            raise FetchError(f"block {last} is not final yet; the newest final block is {final}")
    total = sum(end - begin + 1 for begin, end in missing)
    done = nodes = proof_bytes = differing = 0

    def tell(count: int) -> None:
        advance(done + count, total)

    for begin, end in missing:
        proofs = await source.blocks(begin, end, tell)
        _check_joins(source, proofs, known)
        nodes += write_segment(out, present, proofs)
        if not done and (name := await source.name()) is not None:
            write_names(out, source.network, {int(source.chain): name})
        known.update({proof.number: (proof.block, proof.parent) for proof in proofs})
        proof_bytes += sum(len(node) for proof in proofs for node in proof.proof)
        differing += sum(
            proof.relay_header is not None and proof.relay_header.storage_root != proof.relay_root for proof in proofs
        )
        done += len(proofs)
        advance(done, total)
    return Fetched(wanted.first, last, done, last - wanted.first + 1 - total, nodes, proof_bytes, differing)


Known = dict[int, tuple[Hash | None, Hash | None]]
"""Hash and parent of each block that the history holds, by number."""


def _units(known: Known, first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """The stretches of a range that are not there, cut at multiples of `size`."""
    missing = (number for number in range(first, last + 1) if number not in known)
    # What follows each other is as far from its place among all that is missing.
    for _, group in groupby(enumerate(missing), lambda each: (each[1] - each[0], each[1] // size)):
        numbers = [number for _, number in group]
        yield numbers[0], numbers[-1]


def _check_joins(source: Source, proofs: list[RelayProof], known: Known) -> None:
    """Each block names the one before it, also where that is in the history already. Raises `WrongBlock`."""
    hashes = {proof.number: proof.block for proof in proofs}
    named = {proof.number: proof.parent for proof in proofs}
    after = max(named) + 1
    joins = [(number, f"block {number}", parent) for number, parent in named.items()]
    joins.append((after, f"block {after} of the history", known.get(after, (None, None))[1]))
    for number, child, parent in joins:
        before = hashes.get(number - 1) or known.get(number - 1, (None, None))[0]
        if before is not None and parent is not None and before != parent:
            raise WrongBlock(
                f"{source.network} {source.chain}: {child} names 0x{parent.hex()} as its parent, and block "
                f"{number - 1} is 0x{before.hex()}: two forks; {_OTHER_PLACE}"
            )
