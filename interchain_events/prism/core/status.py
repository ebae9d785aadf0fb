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


class OperationPlace(NamedTuple):
    """The place of an operation on the chain."""

    number: int
    hash: bytes
    object_index: int
    """The place of the object among the objects of the block, from 0."""
    operation_index: int
    """The place of the operation in the object, from 0."""
    time: int
    """The block's time in milliseconds."""


class OperationState(NamedTuple):
    """The state of one operation according to its rows."""

    applied: OperationPlace | None = None
    rejected: tuple[OperationPlace, Reason] | None = None
    is_received: bool = False
    """Whether it was scheduled here and has not been processed yet."""
    is_cancelled: bool = False
    """Whether it was scheduled here and cancelled."""


class StatusUpdate(NamedTuple):
    """A status. Level, reason and place are set if they belong to this status."""

    status: OperationStatus
    level: int = 0
    """The number of blocks above the operation's block, for CONFIRMATION_LEVEL."""
    reason: Reason | None = None
    place: OperationPlace | None = None


class BestBlock(NamedTuple):
    """A block of the best branch."""

    number: int
    hash: bytes
    operations: Mapping[bytes, OperationPlace]
    """The first place of each operation in the block, by operation id."""


def best_block(number: int, block_hash: bytes, time: int, objects: Iterable[bytes]) -> BestBlock:
    """Return a block from the objects that it anchors."""
    places: dict[bytes, OperationPlace] = {}
    for object_index, raw in enumerate(objects):
        for operation_index, signed in enumerate(read_object(raw) or ()):
            place = OperationPlace(
                number,
                block_hash,
                object_index,
                operation_index=operation_index,
                time=time,
            )
            places.setdefault(sha256(signed.raw), place)
    return BestBlock(number, block_hash, places)


class Branch:
    """The part of the best branch that has not been processed yet."""

    def __init__(self) -> None:
        self.blocks: list[BestBlock] = []
        """The unprocessed blocks, in ascending order."""
        self.number = 0
        """The number of the best block."""
        self.version = 0
        """A number that changes with the branch. Rows that were read while it changed are stale."""
        self.out_of_blocks: dict[bytes, int] = {}
        """The operations whose block has left the branch and that have not been in another block
        since, each with the number of the best block at that time."""

    def hash_at(self, number: int) -> bytes | None:
        """Return the hash of an unprocessed block, `None` if there is no such block."""
        return next((block.hash for block in self.blocks if block.number == number), None)

    def go_to(
        self, common: int, added: Iterable[BestBlock], number: int, processed: int
    ) -> set[bytes]:
        """Move to another best block. Returns the operations that have left the branch.

        Blocks up to number `common` remain, and `added` are new. Some of `added` may come before
        remaining blocks. `number` is the new best block. Blocks up to `processed` are dropped.
        """
        self.version += 1
        remaining = [block for block in self.blocks if block.number <= common]
        left = [block for block in self.blocks if block.number > common]
        branch = sorted((*remaining, *added), key=lambda block: block.number)
        gone = set(chained.from_iterable(block.operations for block in left))
        # This includes the operations of processed blocks, which have not left the branch either.
        inside = set(chained.from_iterable(block.operations for block in branch))
        self.blocks = [block for block in branch if block.number > processed]
        self.number = number
        out = self.out_of_blocks | dict.fromkeys(gone, number)
        self.out_of_blocks = {name: since for name, since in out.items() if name not in inside}
        return gone - inside

    def give_up(self, most: int) -> None:
        """Forget the operations that have been out of blocks for `most` best blocks."""
        self.version += 1
        self.out_of_blocks = {
            name: since for name, since in self.out_of_blocks.items() if since > self.number - most
        }

    def place(self, operation_id: bytes) -> OperationPlace | None:
        """Return the first place of an operation in the unprocessed blocks, `None` without one."""
        for block in self.blocks:
            if operation_id in block.operations:
                return block.operations[operation_id]
        return None

    def status(self, operation_id: bytes, known: OperationState) -> StatusUpdate | None:
        """Return the first status of PR-60 that holds, `None` for an unknown operation."""
        if known.applied is not None:
            return StatusUpdate(OperationStatus.APPROVED, place=known.applied)
        place = self.place(operation_id)
        if place is not None:
            level = max(self.number - place.number, 0)
            status = OperationStatus.CONFIRMATION_LEVEL if level else OperationStatus.IN_BLOCK
            return StatusUpdate(status, level, place=place)
        if known.is_received or operation_id in self.out_of_blocks:
            return StatusUpdate(OperationStatus.PENDING)
        if known.rejected is not None:
            rejected_at, reason = known.rejected
            return StatusUpdate(OperationStatus.REJECTED, reason=reason, place=rejected_at)
        return StatusUpdate(OperationStatus.CANCELLED) if known.is_cancelled else None
