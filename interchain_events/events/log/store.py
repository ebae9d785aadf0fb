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
"""The greatest number of rows that one `read` looks at. If few rows match, `read` returns fewer
than `limit` rows and the position from which to continue."""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a log."""

    epoch: int = 0
    """The number of times that blocks were taken back."""
    seq: int = 0
    """The `seq` of the last row, 0 for an empty log."""
    anchor: int | None = None
    """The number of the last leading block, `None` for an empty log."""
    hash: bytes | None = None
    """The hash of the last leading block, `None` for an empty log."""

    def after(self, block: Block) -> "Head":
        """Return the head after `block` has been appended."""
        return Head(self.epoch, self.seq + len(block.entries), block.number, block.hash)


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one `read`, all from the same moment."""

    rows: list[Row]
    """Every matching row with `after < seq <= through`, ascending."""
    through: int
    """The `seq` after which the next `read` continues."""
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
    """The name of the network, given when the log was created."""
    id: bytes
    """16 random bytes, chosen when the log was created. They distinguish the cursors of different
    logs."""

    def head(self) -> Head:
        """Return the end of the log."""

    def common(self, epoch: int) -> int | None:
        """Return the smallest `seq` to which the log was rewound after `epoch`.

        Returns `None` if there was no later rewind.
        """

    def epochs(self) -> list[tuple[int, int]]:
        """Return every rewind: the epoch that began with it, and the last `seq` that remained."""

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        """Return matching rows with `seq > after`, and the head of the same moment.

        At most `limit` rows are returned, and at most `span` rows are looked at.
        """

    def wait(self, known: Head, timeout: float) -> bool:
        """Wait until the head differs from `known`, at most `timeout` seconds.

        Returns whether it differs.
        """


class Store(LogReader, Protocol):
    """A log that can be read and written."""

    def hash_at(self, anchor: int) -> bytes | None:
        """Return the hash of the leading block `anchor`, `None` if the log does not have it."""

    def append(self, blocks: Sequence[Block]) -> int:
        """Append all blocks in order, and return the number of those that were new.

        Raises `NotTheNextBlock` if a block does not follow the one before it. Then no block is
        appended.
        """

    def rewind(self, anchor: int) -> Head:
        """Take back the blocks after `anchor`, begin a new epoch and return the new head.

        If `anchor` is the last block, the log remains as it is. Raises `NotTheNextBlock` if the log
        does not have `anchor`.
        """

    def bind(self, genesis: bytes) -> None:
        """Store the genesis hash of the leading chain.

        Raises `AnotherChain` if the log has another genesis hash.
        """

    def close(self) -> None:
        """Release connections. Waiting readers return."""


def follows(head: Head, block: Block, stored: bytes | None) -> bool:
    """Return whether `block` must be appended, or false if the log has it already.

    `stored` is the hash that the log has at the block's number, `None` if it has none. Raises
    `NotTheNextBlock` if the block neither is in the log nor follows its head.
    """
    if head.anchor is None or head.hash is None:
        return True
    if stored == block.hash:
        return False
    is_next = block.number == head.anchor + 1 or (block.after_gap and block.number > head.anchor)
    if is_next and block.parent == head.hash:
        return True
    raise NotTheNextBlock(
        f"block {block.number} (0x{block.hash.hex()}, parent 0x{block.parent.hex()}) does not"
        f" follow block {head.anchor} (0x{head.hash.hex()}), the last one of the log"
    )


def check_cursor(head: Head, epoch: int, seq: int, common: int | None) -> bool:
    """Return whether a position is in this log, that is, not beyond its end.

    `common` is the result of `LogReader.common(epoch)`, the smallest `seq` to which the log was
    rewound after `epoch`. Raises `CursorAbandoned` if the position is beyond it.
    """
    if epoch > head.epoch:
        return False
    if common is not None and seq > common:
        raise CursorAbandoned(common, head.epoch)
    return seq <= head.seq


def put(store: Store, blocks: Sequence[Block]) -> int:
    """Append blocks. If they are on another branch, rewind the log to their parent first.

    Returns the number of blocks that were new. Raises `NotTheNextBlock` if the log does not have
    the parent.
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

    Returns the number of blocks that were new. Raises `NotTheNextBlock`.
    """
    remaining = iter(blocks)
    count = 0
    while batch := list(islice(remaining, BATCH)):
        count += put(store, batch)
    return count
