"""Open streams, counted against the limits of their clients (EV-25)."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from interchain_events.events.errors import LimitReached
from interchain_events.events.subscriptions.hub import BOUND


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on open streams, per client and in total (EV-25), and on waiting rows."""

    streams_per_client: int = 16
    """The greatest number of open streams of one client."""
    streams: int = 1_000
    """The greatest number of open streams in total."""
    bound: int = BOUND
    """The greatest number of rows that wait for one stream."""
    heartbeat_seconds: float = 15.0
    """The wait after which a stream without rows gets a heartbeat."""
    full_reads: int = 1_000
    """The greatest number of streams that read the whole log from the start at once. One client may
    have half of them, but at least one."""
    unread_seconds: float = 60.0
    """How long a message may wait for its client. After that the stream is dropped, but counts
    against the limits until the client disconnects."""


class Ended(Exception):
    """Raised if a stream ends without an error of its client (EV-26).

    If `resumable` is true, the client can resume with the same token and its last cursor.
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
    """The time of the event loop's clock since which a message waits for the client, `None` if no
    message waits."""
    is_unread: bool = False
    """Whether a message has waited for the client for too long. Then the stream's rows have been
    released, and the stream ends."""


async def woken(event: asyncio.Event, seconds: float) -> bool:
    """Wait until an event is set, at most `seconds`. Returns whether it is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False


class Streams:
    """The open streams of one service, or of several services that share limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # A dict keeps the order of opening, so that runs under a simulated clock are the same.
        self._held: dict[Held, None] = {}
        self._is_stopping = False

    @property
    def open_streams(self) -> int:
        """Return the number of open streams."""
        return len(self._held)

    def stop(self) -> None:
        """End all streams with a resumable status, and refuse new ones (EV-26)."""
        self._is_stopping = True
        for held in self._held:
            held.wake.set()

    @contextlib.contextmanager
    def held(self, client: str, *, reads_all: bool = False) -> Iterator[Held]:
        """Count a stream of a client inside of the context.

        `reads_all` is true if it reads the whole log from the start. Raises `LimitReached`, or
        `Ended` if the service stops.
        """
        self.check_stopping()
        if len(self._held) >= self.limits.streams:
            raise LimitReached(
                f"the server has {self.limits.streams} open streams, which is its limit"
            )
        own_streams = sum(held.client == client for held in self._held)
        if own_streams >= self.limits.streams_per_client:
            raise LimitReached(
                f"a client may have at most {self.limits.streams_per_client} streams"
            )
        if reads_all:
            self._check_full_reads(client)
        held = Held(client, reads_all=reads_all)
        self._held[held] = None
        try:
            yield held
        finally:
            del self._held[held]

    def _check_full_reads(self, client: str) -> None:
        """Raise `LimitReached` if a client may not read the whole log from the start now.

        The limit per client leaves places for others, however slowly one client reads.
        """
        reading = [held.client for held in self._held if held.reads_all]
        most_of_client = max(self.limits.full_reads // 2, 1)
        if len(reading) >= self.limits.full_reads:
            raise LimitReached(
                f"{self.limits.full_reads} streams already read everything from the start"
            )
        if reading.count(client) >= most_of_client:
            raise LimitReached(
                f"a client may read everything from the start in at most {most_of_client} streams"
            )

    def check(self, held: Held) -> None:
        """Raise `Ended` if a stream was cancelled or dropped, or if the service stops."""
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
