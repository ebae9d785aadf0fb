"""The state of all streams of a log, which decides who gets which row (EV-21 to EV-24).

It has no I/O, clock or threads. A stream either *catches up*, which means that its owner reads the
log for it (`wants`, `filled`), or it is *live* and gets new rows from `extend`. It becomes live
when the reads have reached the hub's own head. It falls back to catching up when its queue is full.

No row is missed or doubled at these changes, because `through` says up to where rows have been
looked at for the stream:

    sent <= every seq in queue <= through

The queue has every matching row after `sent` and up to `through`.

A stream that was opened with `seam` gets one message without rows where its catch-up ends. From
then on `live` is true in its messages.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from interchain_events.events.errors import CursorAbandoned
from interchain_events.events.filters.algebra import Filter, OneOf
from interchain_events.events.filters.index import FilterIndex
from interchain_events.events.log.store import Head, Page
from interchain_events.events.rows import Row
from interchain_events.events.subscriptions.cursor import Cursor

BOUND: Final = 1_000
"""The greatest number of rows that wait for one stream."""
BOUND_BYTES: Final = 4 * 2**20
"""The greatest size of the rows that wait for one stream, in bytes. One row may exceed it."""
BATCH: Final = 100
"""The greatest number of rows in one message, if the client accepts several."""


class Message(NamedTuple):
    """Rows, and the cursor after them (EV-22). A message without rows only moves the cursor."""

    rows: tuple[Row, ...]
    cursor: Cursor
    live: bool = False
    """Whether the catch-up has ended, for a stream with a seam."""


class Request(NamedTuple):
    """A read of the log that a stream needs."""

    after: int
    """The `seq` after which to read."""
    limit: int
    """The greatest number of rows."""
    where: Filter
    """The filter that rows must match."""


@dataclass(slots=True)
class _Stream:
    """The state of one stream."""

    where: Filter
    """The filter of the stream, which matches if one of the subscription's filters does."""
    batches: bool
    sent: int
    """The last `seq` that was taken or passed over."""
    through: int
    """The last `seq` that was looked at for this stream."""
    live: bool = False
    queue: deque[Row] = field(default_factory=deque)
    weight: int = 0
    """The bytes of the rows in the queue."""
    abandoned: int | None = None
    """The last `seq` of both branches, if rows that were sent have been taken back since."""
    said: bool = True
    """Whether the client knows that the catch-up has ended. True from the start without a seam."""
    seam: int | None = None
    """The `seq` at which the catch-up has ended, `None` before."""


class Hub:
    """All streams of one log."""

    def __init__(self, head: Head, *, bound: int = BOUND, bound_bytes: int = BOUND_BYTES) -> None:
        self.head = head
        """The end of the log, as far as the hub knows it."""
        self._bound = bound
        self._bound_bytes = bound_bytes
        self._streams: dict[int, _Stream] = {}
        self._index: FilterIndex[int] = FilterIndex()
        """The filters of the live streams."""
        self._next = 0
        """The number of the last stream that was opened."""

    # Streams

    def open(
        self, filters: Sequence[Filter], after: int, *, batches: bool = False, seam: bool = False
    ) -> int:
        """Open a stream and return its number.

        It gets rows that match one of `filters` after the `seq` `after` of the hub's present epoch.
        """
        self._next += 1
        where = filters[0] if len(filters) == 1 else OneOf(*filters)
        self._streams[self._next] = _Stream(where, batches, after, after, said=not seam)
        self._settle(self._next, self._streams[self._next])
        return self._next

    def close(self, number: int) -> None:
        """Remove a stream."""
        self._streams.pop(number, None)
        self._index.remove(number)

    def waiting(self, number: int) -> int:
        """Return the number of rows in a stream's queue, which is never above the bound (EV-23)."""
        return len(self._streams[number].queue)

    def is_live(self, number: int) -> bool:
        """Return whether a stream needs no read of the log now."""
        return self._streams[number].live

    @property
    def has_live(self) -> bool:
        """Return whether any stream needs new rows."""
        return len(self._index) > 0

    # The log goes on

    def extend(self, rows: Sequence[Row], through: int) -> list[int]:
        """Add the log's next rows, which are all rows after the head and up to `through`.

        Returns the streams that have got something.
        """
        moved: dict[int, None] = {}
        for row in rows:
            for number in self._index.match(row):
                stream = self._streams[number]
                if row.seq <= stream.through:
                    continue
                if len(stream.queue) < self._bound and stream.weight < self._bound_bytes:
                    stream.queue.append(row)
                    stream.weight += row.weight
                    moved[number] = None
                else:
                    # The stream falls behind. It will read this row and later ones from the log.
                    stream.live, stream.through = False, row.seq - 1
                    self._index.remove(number)
        self.skip(through)
        return list(moved)

    def skip(self, through: int) -> None:
        """Move the head to `through`, if no row in between is for a live stream."""
        self.head = Head(
            self.head.epoch, max(self.head.seq, through), self.head.anchor, self.head.hash
        )
        for stream in self._streams.values():
            if stream.live:
                stream.through = max(stream.through, through)

    def rewind(self, epoch: int, common: int) -> list[int]:
        """Take back everything after `common`. Returns all streams.

        Streams that have sent later rows end in `take`.
        """
        self.head = Head(epoch, min(self.head.seq, common))
        for number, stream in self._streams.items():
            if stream.sent > common:
                # There may be several rewinds before the owner notices. The deepest one counts.
                stream.abandoned = (
                    common if stream.abandoned is None else min(common, stream.abandoned)
                )
                stream.queue.clear()
                stream.weight = 0
            while stream.queue and stream.queue[-1].seq > common:
                stream.weight -= stream.queue.pop().weight
            stream.through = min(stream.through, common)
            stream.seam = None
            self._settle(number, stream)
        return list(self._streams)

    # One stream

    def wants(self, number: int) -> Request | None:
        """Return the read that a stream needs, `None` if it needs none now.

        It needs one if it catches up and its queue is at most half full.
        """
        stream = self._streams[number]
        if stream.live or stream.abandoned is not None:
            return None
        if len(stream.queue) > self._bound // 2 or stream.weight > self._bound_bytes // 2:
            return None
        return Request(stream.through, self._bound - len(stream.queue), stream.where)

    def filled(self, number: int, request: Request, page: Page) -> bool:
        """Add the rows of a read. Returns whether they could be used.

        They cannot after a rewind or another read. Then the stream must read again.
        """
        stream = self._streams.get(number)
        if (
            stream is None
            or page.head.epoch != self.head.epoch
            or request.after != stream.through
            or stream.live
        ):
            return False
        stream.through = page.through
        for at, row in enumerate(page.rows):
            # The rows that are left out are read again when those before them were taken.
            if at and stream.weight >= self._bound_bytes:
                stream.through = page.rows[at - 1].seq
                break
            stream.queue.append(row)
            stream.weight += row.weight
        self._settle(number, stream)
        return True

    def take(self, number: int) -> Message | None:
        """Return the next message of a stream, `None` if none waits. Raises `CursorAbandoned`."""
        stream = self._streams[number]
        if stream.abandoned is not None:
            raise CursorAbandoned(stream.abandoned, self.head.epoch)
        count = min(BATCH, len(stream.queue)) if stream.batches else min(1, len(stream.queue))
        if not stream.said and stream.seam is not None:
            # The message about the end of the catch-up comes exactly between the rows before and
            # after it.
            count = sum(row.seq <= stream.seam for row in islice(stream.queue, count))
            if not count:
                stream.said = True
                stream.sent = max(stream.sent, stream.seam)
                return Message((), Cursor(self.head.epoch, stream.sent), live=True)
        if not count:
            return None
        rows = tuple(stream.queue.popleft() for _ in range(count))
        stream.weight -= sum(row.weight for row in rows)
        stream.sent = rows[-1].seq
        return Message(rows, Cursor(self.head.epoch, stream.sent), stream.said)

    def heartbeat(self, number: int) -> Message | None:
        """Return a message without rows that moves the cursor to the last row looked at.

        Returns `None` while rows wait.
        """
        stream = self._streams[number]
        if stream.queue or stream.abandoned is not None:
            return None
        stream.sent = stream.through
        return Message((), Cursor(self.head.epoch, stream.sent), stream.said)

    def _settle(self, number: int, stream: _Stream) -> None:
        """Make a stream live if everything up to the hub's head has been looked at for it."""
        live = stream.through >= self.head.seq and stream.abandoned is None
        if live and not stream.live:
            self._index.add(number, (stream.where,))
            stream.seam = stream.through if stream.seam is None else stream.seam
        elif stream.live and not live:
            self._index.remove(number)
        stream.live = live
