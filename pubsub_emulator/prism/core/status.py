"""The status of one operation, from its rows and the best branch (PR-60 to PR-62)."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from pubsub_emulator.prism.core.errors import Reason
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.process import read_object


class OperationStatus(IntEnum):
    """The status of an operation; numbers as in `prism.proto`."""

    PENDING = 1
    CANCELLED = 2
    IN_BLOCK = 3
    CONFIRMATION_LEVEL = 4
    APPROVED = 5
    REJECTED = 6


FINAL = frozenset({OperationStatus.APPROVED, OperationStatus.REJECTED, OperationStatus.CANCELLED})
"""What a stream ends with."""


class Place(NamedTuple):
    """The place of an operation on the chain; `time` in milliseconds."""

    number: int
    hash: bytes
    object_index: int
    operation_index: int
    time: int


class Known(NamedTuple):
    """The state of one operation by its rows."""

    applied: Place | None = None
    rejected: tuple[Place, Reason] | None = None
    is_received: bool = False
    is_cancelled: bool = False


class Update(NamedTuple):
    """A status with its level, its reason, its place, where it has them."""

    status: OperationStatus
    level: int = 0
    reason: Reason | None = None
    place: Place | None = None


class BestBlock(NamedTuple):
    """A block of the best branch, with the first place of each operation in it."""

    number: int
    hash: bytes
    operations: Mapping[bytes, Place]


def best_block(number: int, block_hash: bytes, time: int, objects: Iterable[bytes]) -> BestBlock:
    """A block by the objects that it anchors."""
    found: dict[bytes, Place] = {}
    for index, raw in enumerate(objects):
        for place, signed in enumerate(read_object(raw) or ()):
            found.setdefault(sha256(signed.raw), Place(number, block_hash, index, place, time))
    return BestBlock(number, block_hash, found)


class Branch:
    """The unprocessed blocks of the best branch, ascending."""

    def __init__(self) -> None:
        self.blocks: list[BestBlock] = []
        self.number = 0  #: Of the best block
        self.version = 0  #: Changes with the branch
        self.out_of_blocks: dict[bytes, int] = {}
        """Operations whose block left the branch, and that are in none since: the best block at that time."""

    def hash_at(self, number: int) -> bytes | None:
        """The hash of one of these blocks."""
        return next((each.hash for each in self.blocks if each.number == number), None)

    def go_to(self, kept: int, added: Iterable[BestBlock], number: int, processed: int) -> set[bytes]:
        """Keep blocks up to number `kept`, take `added`, forget what is processed; returns what left the branch.

        `added` are blocks that are not among the kept ones, some of them possibly before these.
        """
        self.version += 1
        gone = {name for each in self.blocks if each.number > kept for name in each.operations}
        branch = sorted((*(each for each in self.blocks if each.number <= kept), *added), key=lambda each: each.number)
        inside = {name for each in branch for name in each.operations}  # of a block, too, that is processed already
        self.blocks = [each for each in branch if each.number > processed]
        self.number = number
        out = self.out_of_blocks | dict.fromkeys(gone, number)
        self.out_of_blocks = {name: since for name, since in out.items() if name not in inside}
        return gone - inside

    def give_up(self, most: int) -> None:
        """Forget operations that have been out of blocks for `most` best blocks."""
        self.version += 1
        kept = {name: since for name, since in self.out_of_blocks.items() if since > self.number - most}
        self.out_of_blocks = kept

    def place(self, operation_id: bytes) -> Place | None:
        """The first place of an operation in an unprocessed block."""
        return next((each.operations[operation_id] for each in self.blocks if operation_id in each.operations), None)

    def status(self, operation_id: bytes, known: Known) -> Update | None:
        """The first status that holds (PR-60), `None` for an operation that nobody knows."""
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
            return Update(OperationStatus.REJECTED, reason=known.rejected[1], place=known.rejected[0])
        return Update(OperationStatus.CANCELLED) if known.is_cancelled else None
