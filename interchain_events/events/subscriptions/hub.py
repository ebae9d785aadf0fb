"""The state of all streams of a log, which decides which stream gets which row (EV-21 to EV-24).

It has no I/O, clock or threads. A stream either *catches up*, that is, its owner reads the log for
it (`wants`, `filled`), or it is *live* and gets new rows from `extend`. It becomes live when the
reads have reached the hub's own head. It falls back to catching up when its queue is full.

No row is missed or repeated at these changes, because `through` is the last row that has been
considered for the stream:

    sent <= every seq in queue <= through

The queue has every matching row after `sent` and up to `through`.

A stream that was opened with `seam` gets one message without rows where its catch-up ends. From
then on, `live` is true in its messages.
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
    """Whether the catch-up has ended. Always true for a stream without a seam."""


class LogRead(NamedTuple):
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
    """The last `seq` that was taken or skipped."""
    through: int
    """The last `seq` that was considered for this stream."""
    live: bool = False
    queue: deque[Row] = field(default_factory=deque)
    weight: int = 0
    """The size of the rows in the queue, in bytes."""
    abandoned: int | None = None
    """The last `seq` that both branches have, if sent rows have been taken back since."""
    is_seam_sent: bool = True
    """Whether the client has been told that the catch-up has ended. Always true without a seam."""
    seam: int | None = None
    """The `seq` at which the catch-up ended, `None` until then."""


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
        """The number of the stream that was opened last."""

    # Streams

    def open(
        self, filters: Sequence[Filter], after: int, *, batches: bool = False, seam: bool = False
    ) -> int:
        """Open a stream and return its number.

        The stream gets the rows that match one of `filters` and have a greater `seq` than `after`
        in the hub's current epoch. With `seam`, it also gets a message when its catch-up ends.
        """
        self._next += 1
        where = filters[0] if len(filters) == 1 else OneOf(*filters)
        stream = _Stream(where, batches, sent=after, through=after, is_seam_sent=not seam)
        self._streams[self._next] = stream
        self._settle(self._next, stream)
        return self._next

    def close(self, number: int) -> None:
        """Remove a stream."""
        self._streams.pop(number, None)
        self._index.remove(number)

    def waiting(self, number: int) -> int:
        """Return the number of rows in a stream's queue, which is never above the bound (EV-23)."""
        return len(self._streams[number].queue)

    def is_live(self, number: int) -> bool:
        """Return whether a stream is live, so that its owner need not read the log for it."""
        return self._streams[number].live

    @property
    def has_live(self) -> bool:
        """Return whether any stream is live."""
        return len(self._index) > 0

    # The log changes

    def extend(self, rows: Sequence[Row], through: int) -> list[int]:
        """Add the log's next rows, which are all rows after the head and up to `through`.

        Returns the numbers of the streams that have got rows.
        """
        # A dict keeps the order.
        extended: dict[int, None] = {}
        for row in rows:
            for number in self._index.match(row):
                stream = self._streams[number]
                if row.seq <= stream.through:
                    continue
                if len(stream.queue) < self._bound and stream.weight < self._bound_bytes:
                    stream.queue.append(row)
                    stream.weight += row.weight
                    extended[number] = None
                else:
                    # The stream falls behind. It will read this row and later ones from the log.
                    stream.live = False
                    stream.through = row.seq - 1
                    self._index.remove(number)
        self.skip(through)
        return list(extended)

    def skip(self, through: int) -> None:
        """Move the head to `through`. No row up to there may match a live stream."""
        self.head = Head(
            self.head.epoch,
            max(self.head.seq, through),
            self.head.anchor,
            hash=self.head.hash,
        )
        for stream in self._streams.values():
            if stream.live:
                stream.through = max(stream.through, through)

    def rewind(self, epoch: int, common: int) -> list[int]:
        """Take back the rows after `common`, and return the numbers of all streams.

        For streams that have sent such rows, `take` raises `CursorAbandoned` from now on.
        """
        self.head = Head(epoch, min(self.head.seq, common))
        for number, stream in self._streams.items():
            if stream.sent > common:
                # If there are several rewinds before the next `take`, the deepest one counts.
                if stream.abandoned is None or common < stream.abandoned:
                    stream.abandoned = common
                stream.queue.clear()
                stream.weight = 0
            while stream.queue and stream.queue[-1].seq > common:
                stream.weight -= stream.queue.pop().weight
            stream.through = min(stream.through, common)
            stream.seam = None
            self._settle(number, stream)
        return list(self._streams)

    # One stream

    def wants(self, number: int) -> LogRead | None:
        """Return the read that a stream needs, `None` if it needs none now.

        It needs one while it catches up, unless its queue is more than half full.
        """
        stream = self._streams[number]
        if stream.live or stream.abandoned is not None:
            return None
        if len(stream.queue) > self._bound // 2 or stream.weight > self._bound_bytes // 2:
            return None
        return LogRead(stream.through, self._bound - len(stream.queue), stream.where)

    def filled(self, number: int, request: LogRead, page: Page) -> bool:
        """Add the rows of a read for `request`. Returns whether they could be used.

        They are useless if the log was rewound or another read was added since. The stream must
        then read again.
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
        for index, row in enumerate(page.rows):
            # The remaining rows are read again when the client has taken earlier ones.
            if index and stream.weight >= self._bound_bytes:
                stream.through = page.rows[index - 1].seq
                break
            stream.queue.append(row)
            stream.weight += row.weight
        self._settle(number, stream)
        return True

    def take(self, number: int) -> Message | None:
        """Return the next message of a stream, `None` if there is none.

        Raises `CursorAbandoned` if rows that were sent have been taken back.
        """
        stream = self._streams[number]
        if stream.abandoned is not None:
            raise CursorAbandoned(stream.abandoned, self.head.epoch)
        count = min(BATCH if stream.batches else 1, len(stream.queue))
        if not stream.is_seam_sent and stream.seam is not None:
            # The message about the end of the catch-up comes after the rows up to the seam.
            count = sum(row.seq <= stream.seam for row in islice(stream.queue, count))
            if not count:
                stream.is_seam_sent = True
                stream.sent = max(stream.sent, stream.seam)
                return Message((), Cursor(self.head.epoch, stream.sent), live=True)
        if not count:
            return None
        rows = tuple(stream.queue.popleft() for _ in range(count))
        stream.weight -= sum(row.weight for row in rows)
        stream.sent = rows[-1].seq
        return Message(rows, Cursor(self.head.epoch, stream.sent), live=stream.is_seam_sent)

    def heartbeat(self, number: int) -> Message | None:
        """Return a message without rows that moves the cursor to the last row that was considered.

        Returns `None` while rows wait, or if sent rows have been taken back.
        """
        stream = self._streams[number]
        if stream.queue or stream.abandoned is not None:
            return None
        stream.sent = stream.through
        return Message((), Cursor(self.head.epoch, stream.sent), live=stream.is_seam_sent)

    def _settle(self, number: int, stream: _Stream) -> None:
        """Make a stream live if all rows up to the hub's head have been considered for it."""
        is_live = stream.through >= self.head.seq and stream.abandoned is None
        if is_live and not stream.live:
            self._index.add(number, (stream.where,))
            if stream.seam is None:
                stream.seam = stream.through
        elif stream.live and not is_live:
            self._index.remove(number)
        stream.live = is_live
