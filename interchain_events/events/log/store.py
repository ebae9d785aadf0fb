"""The interface of logs for readers and writers, in any storage (EV-5).

All methods block and may be called from any thread. Servers call them in worker threads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from interchain_events.events.errors import CursorAbandoned, NotTheNextBlock
from interchain_events.events.filters.algebra import ANY, Filter
from interchain_events.events.rows import Block, Row

BATCH: Final = 100
"""The number of blocks in one transaction when a whole source is copied."""
SPAN = 100_000
"""The greatest number of rows that one `read` looks at. With a rare filter on a long log, `read`
returns before it has `limit` rows, with a position to read on from."""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a log."""

    epoch: int = 0
    """How often blocks were taken back."""
    seq: int = 0
    """The `seq` of the last row, 0 for an empty log."""
    anchor: int | None = None
    """The number of the last leading block, `None` for an empty log."""
    hash: bytes | None = None
    """The hash of that block."""

    def after(self, block: Block) -> "Head":
        """Return the head after `block` has been appended."""
        return Head(self.epoch, self.seq + len(block.entries), block.number, block.hash)


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one `read`, all from the same moment."""

    rows: list[Row]
    """Every matching row with `after < seq <= through`, ascending."""
    through: int
    """The position to read on from."""
    head: Head

    @property
    def is_last(self) -> bool:
        """Return whether the log had no further rows when it was read."""
        return self.through >= self.head.seq


class LogReader(Protocol):
    """A log that can be read.

    Every method raises `StoreUnavailable` while the database does not answer.
    """

    network: str
    """The network's name, with which the log was made."""
    id: bytes
    """16 random bytes, made with the log. They tell the cursors of different logs apart."""

    def head(self) -> Head:
        """Return the end of the log."""

    def common(self, epoch: int) -> int | None:
        """Return the smallest `seq` to which the log went back after `epoch`.

        Returns `None` without a later rewind.
        """

    def epochs(self) -> list[tuple[int, int]]:
        """Return every rewind: the epoch that began with it, and the last `seq` that remained."""

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        """Return matching rows with `seq > after`.

        At most `limit` rows are returned, and at most `span` rows are looked at.
        """

    def wait(self, known: Head, timeout: float) -> bool:
        """Wait at most `timeout` seconds until the head differs from `known`.

        Returns whether it does.
        """


class Store(LogReader, Protocol):
    """A log that can be read and written."""

    def hash_at(self, anchor: int) -> bytes | None:
        """Return the hash of the leading block `anchor`, `None` if the log does not have it."""

    def append(self, blocks: Sequence[Block]) -> int:
        """Append blocks in order, either all or none. Returns the number of those that were new.

        Raises `NotTheNextBlock` if a block does not follow the one before it.
        """

    def rewind(self, anchor: int) -> Head:
        """Take back the blocks after `anchor` and raise the epoch. Returns the new head.

        Changes nothing if `anchor` is the last block. Raises `NotTheNextBlock` if the log does not
        have it.
        """

    def bind(self, genesis: bytes) -> None:
        """Note the genesis hash of the leading chain.

        Raises `AnotherChain` if the log has another one.
        """

    def close(self) -> None:
        """Release connections. Waiting readers return."""


def follows(head: Head, block: Block, kept: bytes | None) -> bool:
    """Return whether `block` is to be appended. It is not if the log has it already.

    `kept` is the hash that the log has at the block's number. Raises `NotTheNextBlock` if the block
    neither is in the log nor follows its head.
    """
    if head.anchor is None or head.hash is None:
        return True
    if kept == block.hash:
        return False
    is_next = block.number == head.anchor + 1 or (block.after_gap and block.number > head.anchor)
    if is_next and block.parent == head.hash:
        return True
    raise NotTheNextBlock(
        f"block {block.number} (0x{block.hash.hex()}, parent 0x{block.parent.hex()}) does not"
        f" follow block {head.anchor} (0x{head.hash.hex()}), the last one of the log"
    )


def check_cursor(head: Head, epoch: int, seq: int, common: int | None) -> bool:
    """Return whether a position belongs to this log. Positions beyond its end do not.

    `common` is `LogReader.common(epoch)`, the smallest `seq` to which the log went back after
    `epoch`. Raises `CursorAbandoned` if the position is beyond it.
    """
    if epoch > head.epoch:
        return False
    if common is not None and seq > common:
        raise CursorAbandoned(common, head.epoch)
    return seq <= head.seq


def put(store: Store, blocks: Sequence[Block]) -> int:
    """Append blocks, after a rewind to their parent if they are on another branch.

    Returns the number of those that were new. Raises `NotTheNextBlock` if the log does not have the
    parent.
    """
    try:
        return store.append(blocks)
    except NotTheNextBlock:
        first = blocks[0]
        if (
            store.hash_at(first.number) == first.hash
            or store.hash_at(first.number - 1) != first.parent
        ):
            raise
        store.rewind(first.number - 1)
        return store.append(blocks)


def copy_all(store: Store, blocks: Iterable[Block]) -> int:
    """Append all blocks of a finite source, `BATCH` at a time.

    Returns the number of those that were new.
    """
    waiting = iter(blocks)
    count = 0
    while batch := list(islice(waiting, BATCH)):
        count += put(store, batch)
    return count
