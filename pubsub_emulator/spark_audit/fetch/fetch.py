"""Ranges of real blocks become segments of a history; what is there already is not fetched again.

A range is fetched in units that begin at multiples of the unit's size, so that the same blocks make the same units
whichever range they were asked for with. Each is committed once it is whole: a run that ended early, for whatever
reason, goes on with the same command.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    known = _known(present, source)
    last = newest
    if wanted.last is not None and _gaps(known, wanted.first, last):
        final = await source.newest()
        if final < last:
            raise FetchError(f"block {last} is not final yet; the newest final block is {final}")
    missing = list(_units(_gaps(known, wanted.first, last), wanted.unit))
    total = sum(end - begin + 1 for begin, end in missing)
    done = nodes = proof_bytes = differing = 0
    for begin, end in missing:
        proofs = await source.blocks(begin, end, _after(done, total, advance))
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


def _after(before: int, total: int, advance: Advance) -> Callable[[int], None]:
    return lambda count: advance(before + count, total)


Known = dict[int, tuple[Hash | None, Hash | None]]
"""Hash and parent of each block that the history holds, by number."""


def _known(present: Present, source: Source) -> Known:
    rows = present.imported(["number", "block", "parent"], source.network, source.chain)
    return {row["number"]: (row["block"], row["parent"]) for row in rows}


def _gaps(known: Known, first: int, last: int) -> list[tuple[int, int]]:
    """The stretches of a range that are not there."""
    out: list[tuple[int, int]] = []
    start: int | None = None
    for number in range(first, last + 1):
        if number not in known:
            start = number if start is None else start
        elif start is not None:
            out.append((start, number - 1))
            start = None
    if start is not None:
        out.append((start, last))
    return out


def _units(gaps: list[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    for first, last in gaps:
        begin = first
        while begin <= last:
            end = min(last, begin - begin % size + size - 1)
            yield begin, end
            begin = end + 1


def _check_joins(source: Source, proofs: list[RelayProof], known: Known) -> None:
    """Each block names the one before it, also where that is in the history already. Raises `WrongBlock`."""
    hashes = {proof.number: proof.block for proof in proofs}
    named = {proof.number: proof.parent for proof in proofs}
    for number, parent in named.items():
        before = hashes.get(number - 1) or known.get(number - 1, (None, None))[0]
        if before is not None and parent is not None and before != parent:
            raise WrongBlock(
                f"{source.network} {source.chain}: block {number} names 0x{parent.hex()} as its parent, and block "
                f"{number - 1} is 0x{before.hex()}: two forks; {_OTHER_PLACE}"
            )
    last = max(named)
    after = known.get(last + 1, (None, None))[1]
    mine = hashes[last]
    if after is not None and mine is not None and after != mine:
        raise WrongBlock(
            f"{source.network} {source.chain}: block {last + 1} of the history names 0x{after.hex()} as its parent, "
            f"and block {last} is 0x{mine.hex()}: two forks; {_OTHER_PLACE}"
        )
