"""Open streams, counted against the limits of their clients (EV-25)."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from interchain_events.events.errors import LimitReached
from interchain_events.events.subscriptions.hub import BOUND


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on open streams, of one client and in all (EV-25), and on rows that wait."""

    streams_per_client: int = 16
    """The number of streams that one client may have open."""
    streams: int = 1_000
    """The number of streams that may be open in all."""
    bound: int = BOUND
    """The number of rows that may wait for one stream."""
    heartbeat_seconds: float = 15.0
    """The wait after which a stream without rows gets a heartbeat."""
    full_reads: int = 1_000
    """The number of streams that may read the whole log from the start at once. One client may have
    half of them, but at least one."""
    unread_seconds: float = 60.0
    """How long a message may wait until its client takes it. Then the stream is dropped. It counts
    against the limits until the client disconnects."""


class Ended(Exception):
    """Raised if a stream ends without an error of its client (EV-26).

    If `resumable`, the client can resume with the same token and its last cursor.
    """

    def __init__(self, reason: str, *, resumable: bool) -> None:
        super().__init__(reason)
        self.resumable = resumable


@dataclass(eq=False, slots=True)
class Held:
    """A stream that counts against the limits of its client."""

    client: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the stream has something to do."""
    is_cancelled: bool = False
    """Whether the subscription was cancelled."""
    reads_all: bool = False
    """Whether the stream is reading the whole log from the start."""
    waits_since: float | None = None
    """The time of the event loop's clock at which a message was handed over that the client has not
    taken yet."""
    is_unread: bool = False
    """Whether the client took nothing for too long. Then no rows are held for the stream, and it
    ends."""


async def woken(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most some seconds. Returns whether it was set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False


class Streams:
    """The open streams of one service, or of several services that share limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # A dict keeps the order of opening, so that a run under a simulated clock is always the
        # same.
        self._held: dict[Held, None] = {}
        self._is_stopping = False

    @property
    def open_streams(self) -> int:
        """Return the number of open streams."""
        return len(self._held)

    def stop(self) -> None:
        """End all streams with a resumable status, and refuse new ones (EV-26)."""
        self._is_stopping = True
        for each in self._held:
            each.wake.set()

    @contextlib.contextmanager
    def held(self, client: str, *, reads_all: bool = False) -> Iterator[Held]:
        """Count a stream of a client inside of the context. Raises `LimitReached` and `Ended`."""
        self.check_stopping()
        if len(self._held) >= self.limits.streams:
            raise LimitReached(
                f"the server has {self.limits.streams} open streams, the most that it allows"
            )
        if sum(each.client == client for each in self._held) >= self.limits.streams_per_client:
            raise LimitReached(
                f"a client may have at most {self.limits.streams_per_client} streams"
            )
        if reads_all:
            self._check_full_reads(client)
        made = Held(client, reads_all=reads_all)
        self._held[made] = None
        try:
            yield made
        finally:
            del self._held[made]

    def _check_full_reads(self, client: str) -> None:
        """Raise `LimitReached` if a client may not read the whole log from the start now.

        The limit of one client leaves places to others, however slowly that client reads.
        """
        reading = [each.client for each in self._held if each.reads_all]
        own = max(self.limits.full_reads // 2, 1)
        if len(reading) >= self.limits.full_reads:
            raise LimitReached(
                f"{self.limits.full_reads} streams already read everything from the start"
            )
        if reading.count(client) >= own:
            raise LimitReached(
                f"a client may read everything from the start in at most {own} streams"
            )

    def check(self, held: Held) -> None:
        """Raise `Ended` if a stream cannot go on."""
        if held.is_cancelled:
            raise Ended("cancelled", resumable=False)
        if held.is_unread:
            raise Ended(
                f"nothing was read for {self.limits.unread_seconds:g} seconds", resumable=True
            )
        self.check_stopping()

    def check_stopping(self) -> None:
        """Raise `Ended` if the service stops."""
        if self._is_stopping:
            raise Ended("shutdown", resumable=True)
