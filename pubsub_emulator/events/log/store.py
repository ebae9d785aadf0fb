"""The methods of every log for readers and writers, for any storage (EV-5).

Methods block and may be called from any thread; servers call them in worker threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pubsub_emulator.events.filters.algebra import ANY, Filter
from pubsub_emulator.events.log.rules import Head
from pubsub_emulator.events.rows import Block, Row

SPAN = 100_000
"""How many rows one `read` looks at, at most: a rare filter on a long log returns early with a cursor further on."""


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

    @property
    def network(self) -> str:
        """The name that the log was made with."""

    @property
    def id(self) -> bytes:
        """16 random bytes, made with the log: cursors of another log differ in it."""

    def head(self) -> Head:
        """The end of the log."""

    def common(self, epoch: int) -> int | None:
        """The least `seq` that rewinds after `epoch` left; `None` when there were none."""

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
        """Take back every block after `anchor` and raise the epoch; nothing happens where none follows.

        Raises `NotTheNextBlock` when the log never had block `anchor`.
        """

    def bind(self, genesis: bytes) -> None:
        """Note the leading chain's genesis hash, or raise `AnotherChain` when the log has another one."""

    def close(self) -> None:
        """Release connections; waiting readers return."""
