"""The status of one operation, from its rows and from the best branch (PR-60 to PR-62)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import chain as chained
from typing import NamedTuple

from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.process import read_object


class OperationStatus(IntEnum):
    """The status of an operation, as clients see it. Numbers are those of `prism.proto`."""

    PENDING = 1
    CANCELLED = 2
    IN_BLOCK = 3
    CONFIRMATION_LEVEL = 4
    APPROVED = 5
    REJECTED = 6


FINAL = frozenset({OperationStatus.APPROVED, OperationStatus.REJECTED, OperationStatus.CANCELLED})
"""The statuses after which a stream ends."""


class Place(NamedTuple):
    """The place of an operation on the chain."""

    number: int
    hash: bytes
    object_index: int
    """The object's place among the objects of the block."""
    operation_index: int
    """The operation's place in the object."""
    time: int
    """The block's time in milliseconds."""


class Known(NamedTuple):
    """The state of one operation according to its rows."""

    applied: Place | None = None
    rejected: tuple[Place, Reason] | None = None
    is_received: bool = False
    """Whether it was scheduled here and is not processed."""
    is_cancelled: bool = False
    """Whether it was scheduled here and cancelled."""


class Update(NamedTuple):
    """A status, with those of level, reason and place that it has."""

    status: OperationStatus
    level: int = 0
    """The number of blocks above the operation's block, for CONFIRMATION_LEVEL."""
    reason: Reason | None = None
    place: Place | None = None


class BestBlock(NamedTuple):
    """A block of the best branch."""

    number: int
    hash: bytes
    operations: Mapping[bytes, Place]
    """The first place of each operation in the block, by operation id."""


def best_block(number: int, block_hash: bytes, time: int, objects: Iterable[bytes]) -> BestBlock:
    """Return a block from the objects that it anchors."""
    found: dict[bytes, Place] = {}
    for index, raw in enumerate(objects):
        for place, signed in enumerate(read_object(raw) or ()):
            found.setdefault(sha256(signed.raw), Place(number, block_hash, index, place, time))
    return BestBlock(number, block_hash, found)


class Branch:
    """The part of the best branch that is not processed yet, in ascending order."""

    def __init__(self) -> None:
        self.blocks: list[BestBlock] = []
        """The unprocessed blocks, in ascending order."""
        self.number = 0
        """The number of the best block."""
        self.version = 0
        """A number that changes with the branch. It tells whether rows that were read meanwhile are
        stale."""
        self.out_of_blocks: dict[bytes, int] = {}
        """Operations whose block has left the branch and that have not been in a block since. Each
        has the number of the best block at that time."""

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of one of these blocks, `None` if it is not here."""
        return next((each.hash for each in self.blocks if each.number == number), None)

    def go_to(
        self, kept: int, added: Iterable[BestBlock], number: int, processed: int
    ) -> set[bytes]:
        """Move to another best block. Returns the operations that have left the branch.

        Blocks up to number `kept` remain, `added` are new, and blocks up to `processed` are
        dropped. Some of `added` may come before blocks that remain. `number` is the new best block.
        """
        self.version += 1
        gone = set(
            chained.from_iterable(each.operations for each in self.blocks if each.number > kept)
        )
        branch = sorted(
            (*(each for each in self.blocks if each.number <= kept), *added),
            key=lambda each: each.number,
        )
        # Computed before processed blocks are dropped: their operations have not left the branch
        # either.
        inside = set(chained.from_iterable(each.operations for each in branch))
        self.blocks = [each for each in branch if each.number > processed]
        self.number = number
        out = self.out_of_blocks | dict.fromkeys(gone, number)
        self.out_of_blocks = {name: since for name, since in out.items() if name not in inside}
        return gone - inside

    def give_up(self, most: int) -> None:
        """Drop operations that have been out of blocks for `most` best blocks."""
        self.version += 1
        kept = {
            name: since for name, since in self.out_of_blocks.items() if since > self.number - most
        }
        self.out_of_blocks = kept

    def place(self, operation_id: bytes) -> Place | None:
        """Return the first place of an operation in an unprocessed block, `None` without one."""
        return next(
            (
                each.operations[operation_id]
                for each in self.blocks
                if operation_id in each.operations
            ),
            None,
        )

    def status(self, operation_id: bytes, known: Known) -> Update | None:
        """Return the first status of PR-60 that holds, `None` for an unknown operation."""
        if known.applied is not None:
            return Update(OperationStatus.APPROVED, place=known.applied)
        place = self.place(operation_id)
        if place is not None:
            level = max(self.number - place.number, 0)
            status = OperationStatus.CONFIRMATION_LEVEL if level else OperationStatus.IN_BLOCK
            return Update(status, level, place=place)
        if known.is_received or operation_id in self.out_of_blocks:
            return Update(OperationStatus.PENDING)
        if known.rejected is not None:
            return Update(
                OperationStatus.REJECTED, reason=known.rejected[1], place=known.rejected[0]
            )
        return Update(OperationStatus.CANCELLED) if known.is_cancelled else None
