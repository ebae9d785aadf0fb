"""The state of all streams, without I/O, clock or threads: it decides who gets which row (EV-21 to EV-24).

A stream is at one of two places. It *catches up*: its owner reads the log for it (`wants`, `filled`). Or it is *live*:
new rows come through `extend`. It goes live when what was read reaches the hub's own head, and falls back when its
queue is full; at that seam nothing is missed or doubled, because `through` says up to where rows were looked at:

    sent <= every seq in queue <= through          everything in (sent, through] that matches is in the queue

A stream that was opened with `seam` gets one message without rows where its catch-up ends; `live` is true from then on.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from pubsub_emulator.events.errors import CursorAbandoned
from pubsub_emulator.events.filters.algebra import Filter, OneOf
from pubsub_emulator.events.filters.index import FilterIndex
from pubsub_emulator.events.log.store import Head, Page
from pubsub_emulator.events.rows import Row
from pubsub_emulator.events.subscriptions.cursor import Cursor

BOUND: Final = 1_000  #: Rows that wait for one client, at most
BATCH: Final = 100  #: Rows of one message, at most, where the client takes batches


class Message(NamedTuple):
    """Rows with the cursor that comes after them; without rows it only moves the cursor (EV-22)."""

    rows: tuple[Row, ...]
    cursor: Cursor
    live: bool = False  #: Whether the catch-up ended, of a stream with a seam


class Request(NamedTuple):
    """A read that a stream needs: rows after `after`, at most `limit`, that match `where`."""

    after: int
    limit: int
    where: Filter


@dataclass(slots=True)
class _Stream:
    where: Filter
    batches: bool
    sent: int
    through: int
    live: bool = False
    queue: deque[Row] = field(default_factory=deque)
    abandoned: int | None = None
    said: bool = True  # whether the client knows, as far as it wanted to, that the catch-up ended
    seam: int | None = None  # where the catch-up ended, once it has


class Hub:
    """All streams of one log. `head` is the end of the log as far as the hub was told of it."""

    def __init__(self, head: Head, *, bound: int = BOUND) -> None:
        self.head = head
        self._bound = bound
        self._streams: dict[int, _Stream] = {}
        self._index: FilterIndex[int] = FilterIndex()
        self._next = 0

    # Streams

    def open(self, filters: Sequence[Filter], after: int, *, batches: bool = False, seam: bool = False) -> int:
        """A stream of what matches one of `filters` after `seq` `after`, of the hub's present epoch; its number."""
        self._next += 1
        where = filters[0] if len(filters) == 1 else OneOf(*filters)
        self._streams[self._next] = _Stream(where, batches, after, after, said=not seam)
        self._settle(self._next, self._streams[self._next])
        return self._next

    def close(self, number: int) -> None:
        """Forget a stream."""
        self._streams.pop(number, None)
        self._index.remove(number)

    def waiting(self, number: int) -> int:
        """Rows in a stream's queue: never more than the bound (EV-23)."""
        return len(self._streams[number].queue)

    def is_live(self, number: int) -> bool:
        """Whether a stream needs no read of the log now."""
        return self._streams[number].live

    @property
    def has_live(self) -> bool:
        """Whether any stream needs to be told of new rows."""
        return len(self._index) > 0

    # The log goes on

    def extend(self, rows: Sequence[Row], through: int) -> list[int]:
        """The log's next rows, all those in (head.seq, through]; returns the streams that have something now."""
        moved: dict[int, None] = {}
        for row in rows:
            for number in self._index.match(row):
                stream = self._streams[number]
                if row.seq <= stream.through:
                    continue
                if len(stream.queue) < self._bound:
                    stream.queue.append(row)
                    moved[number] = None
                else:  # it falls behind
                    stream.live, stream.through = False, row.seq - 1
                    self._index.remove(number)
        self.skip(through)
        return list(moved)

    def skip(self, through: int) -> None:
        """The log goes on to `through`, and nothing on the way is for a live stream."""
        self.head = Head(self.head.epoch, max(self.head.seq, through), self.head.anchor, self.head.hash)
        for stream in self._streams.values():
            if stream.live:
                stream.through = max(stream.through, through)

    def rewind(self, epoch: int, common: int) -> list[int]:
        """Everything after `common` was taken back; returns all streams. Those that sent more end in `take`."""
        self.head = Head(epoch, min(self.head.seq, common))
        for number, stream in self._streams.items():
            if stream.sent > common:  # of several rewinds before its owner hears of it, the deepest counts
                stream.abandoned = common if stream.abandoned is None else min(common, stream.abandoned)
                stream.queue.clear()
            while stream.queue and stream.queue[-1].seq > common:
                stream.queue.pop()
            stream.through = min(stream.through, common)
            stream.seam = None
            self._settle(number, stream)
        return list(self._streams)

    # One stream

    def wants(self, number: int) -> Request | None:
        """The read that a stream needs which catches up and has room; `None` when there is nothing to read now."""
        stream = self._streams[number]
        if stream.live or stream.abandoned is not None or len(stream.queue) > self._bound // 2:
            return None
        return Request(stream.through, self._bound - len(stream.queue), stream.where)

    def filled(self, number: int, request: Request, page: Page) -> bool:
        """Take the rows of a read; `False` when a rewind came between, and it must be read again."""
        stream = self._streams.get(number)
        if stream is None or page.head.epoch != self.head.epoch or request.after != stream.through or stream.live:
            return False
        stream.queue.extend(page.rows)
        stream.through = page.through
        self._settle(number, stream)
        return True

    def take(self, number: int) -> Message | None:
        """The next message of a stream, `None` when none waits. Raises `CursorAbandoned`."""
        stream = self._streams[number]
        if stream.abandoned is not None:
            raise CursorAbandoned(stream.abandoned, self.head.epoch)
        count = min(BATCH, len(stream.queue)) if stream.batches else min(1, len(stream.queue))
        if not stream.said and stream.seam is not None:
            count = sum(row.seq <= stream.seam for row in islice(stream.queue, count))
            if not count:
                stream.said = True
                stream.sent = max(stream.sent, stream.seam)
                return Message((), Cursor(self.head.epoch, stream.sent), live=True)
        if not count:
            return None
        rows = tuple(stream.queue.popleft() for _ in range(count))
        stream.sent = rows[-1].seq
        return Message(rows, Cursor(self.head.epoch, stream.sent), stream.said)

    def heartbeat(self, number: int) -> Message | None:
        """A message without rows that moves the cursor as far as rows were looked at; `None` while rows wait."""
        stream = self._streams[number]
        if stream.queue or stream.abandoned is not None:
            return None
        stream.sent = stream.through
        return Message((), Cursor(self.head.epoch, stream.sent), stream.said)

    def _settle(self, number: int, stream: _Stream) -> None:
        """A stream is live from when everything up to the hub's head was looked at for it."""
        live = stream.through >= self.head.seq and stream.abandoned is None
        if live and not stream.live:
            self._index.add(number, (stream.where,))
            stream.seam = stream.through if stream.seam is None else stream.seam
        elif stream.live and not live:
            self._index.remove(number)
        stream.live = live
