"""The methods of every log for readers and writers, for any storage (EV-5).

Methods block and may be called from any thread; servers call them in worker threads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from pubsub_emulator.events.errors import CursorAbandoned, NotTheNextBlock
from pubsub_emulator.events.filters.algebra import ANY, Filter
from pubsub_emulator.events.rows import Block, Row

BATCH: Final = 100  #: Blocks of one transaction
SPAN = 100_000
"""How many rows one `read` looks at, at most: a rare filter on a long log returns early with a cursor further on."""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a log. `anchor` and `hash` are those of its last leading block, `None` while it has none."""

    epoch: int = 0  #: How often something was taken back
    seq: int = 0  #: The last row's, 0 while there is none
    anchor: int | None = None
    hash: bytes | None = None

    def after(self, block: Block) -> "Head":
        """The head once `block` is appended."""
        return Head(self.epoch, self.seq + len(block.entries), block.number, block.hash)


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one `read`, all of one moment.

    Every matching row with `after < seq <= through` is in `rows`, ascending; `through` is where to read on.
    """

    rows: list[Row]
    through: int
    head: Head

    @property
    def is_last(self) -> bool:
        """Whether the log had nothing further when it was read."""
        return self.through >= self.head.seq


class LogReader(Protocol):
    """A log to read. Raises `StoreUnavailable` from every method while its database does not answer."""

    network: str  #: The name that the log was made with
    id: bytes  #: 16 random bytes, made with the log: cursors of another log differ in it

    def head(self) -> Head:
        """The end of the log."""

    def common(self, epoch: int) -> int | None:
        """The least `seq` that rewinds after `epoch` left; `None` when there were none."""

    def epochs(self) -> list[tuple[int, int]]:
        """Every rewind as (epoch that it began, last `seq` that it left)."""

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        """Matching rows with `seq > after`, at most `limit` of them, looking at no more than `span` rows."""

    def wait(self, known: Head, timeout: float) -> bool:
        """Wait until the head differs from `known`, at most `timeout` seconds; whether it does."""


class Store(LogReader, Protocol):
    """A log to read and write."""

    def hash_at(self, anchor: int) -> bytes | None:
        """The hash of the leading block `anchor`, `None` when the log does not have it."""

    def append(self, blocks: Sequence[Block]) -> int:
        """Append blocks in order, all or none; returns how many the log did not have. Raises `NotTheNextBlock`."""

    def rewind(self, anchor: int) -> Head:
        """Take back blocks after `anchor`, if any, and raise the epoch. Raises `NotTheNextBlock` if it never was."""

    def bind(self, genesis: bytes) -> None:
        """Note the leading chain's genesis hash, or raise `AnotherChain` when the log has another one."""

    def close(self) -> None:
        """Release connections; waiting readers return."""


def follows(head: Head, block: Block, kept: bytes | None) -> bool:
    """Whether to append `block`; not if the log has it, by the hash `kept` at its number. Raises `NotTheNextBlock`."""
    if head.anchor is None or head.hash is None:
        return True
    if kept == block.hash:
        return False
    is_next = block.number == head.anchor + 1 or (block.after_gap and block.number > head.anchor)
    if is_next and block.parent == head.hash:
        return True
    raise NotTheNextBlock(
        f"block {block.number} (0x{block.hash.hex()}, parent 0x{block.parent.hex()}) does not follow block "
        f"{head.anchor} (0x{head.hash.hex()}), the last one of the log"
    )


def check_cursor(head: Head, epoch: int, seq: int, common: int | None) -> bool:
    """Whether a cursor (`epoch`, `seq`) belongs to this log; `False` when it is beyond what the log ever was.

    `common` is the least `seq` that rewinds after `epoch` left, `None` if there were none. Raises `CursorAbandoned`.
    """
    if epoch > head.epoch:
        return False
    if common is not None and seq > common:
        raise CursorAbandoned(common, head.epoch)
    return seq <= head.seq


def put(store: Store, blocks: Sequence[Block]) -> int:
    """Append blocks, after a rewind to their parent if need be; how many were new. Raises `NotTheNextBlock`."""
    try:
        return store.append(blocks)
    except NotTheNextBlock:
        first = blocks[0]
        if store.hash_at(first.number) == first.hash or store.hash_at(first.number - 1) != first.parent:
            raise
        store.rewind(first.number - 1)
        return store.append(blocks)


def copy_all(store: Store, blocks: Iterable[Block]) -> int:
    """Append all blocks of a source that ends, `BATCH` at a time; returns how many were new."""
    waiting, count = iter(blocks), 0
    while batch := list(islice(waiting, BATCH)):
        count += put(store, batch)
    return count
