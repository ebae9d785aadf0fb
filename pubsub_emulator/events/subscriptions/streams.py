"""Open streams, counted against the limits of their clients (EV-25)."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pubsub_emulator.events.errors import LimitReached
from pubsub_emulator.events.subscriptions.hub import BOUND


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what one client and all clients hold open (EV-25), and of rows that wait."""

    streams_per_client: int = 16
    streams: int = 1_000
    bound: int = BOUND
    heartbeat_seconds: float = 15.0
    full_reads: int = 1_000
    """Streams that read the whole log from the start at once, in all; a client has half of them at most, or one."""
    unread_seconds: float = 60.0
    """How long a message may wait for its client, before the stream is dropped; it counts until the client leaves."""


class Ended(Exception):
    """A stream ends though its client did nothing wrong; `resumable` with the same token and cursor (EV-26)."""

    def __init__(self, reason: str, *, resumable: bool) -> None:
        super().__init__(reason)
        self.resumable = resumable


@dataclass(eq=False, slots=True)
class Held:
    """A stream that counts against the limits of its client."""

    client: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_cancelled: bool = False
    reads_all: bool = False  #: Whether it reads the whole log from the start now
    waits_since: float | None = None
    """When a message was handed over that its client has not taken yet, by the event loop's clock."""
    is_unread: bool = False
    """Whether the client took nothing for too long: no rows are held for it any more, and it ends."""


async def woken(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most some seconds; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False


class Streams:
    """The streams that are open, of one service or of several that share limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held: dict[Held, None] = {}  # in the order of opening, so that a run under one clock is always the same
        self._is_stopping = False

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return len(self._held)

    def stop(self) -> None:
        """End all streams with a resumable status; no new ones open (EV-26)."""
        self._is_stopping = True
        for each in self._held:
            each.wake.set()

    @contextlib.contextmanager
    def held(self, client: str, *, reads_all: bool = False) -> Iterator[Held]:
        """Count a stream of a client. Raises `LimitReached`, `Ended`."""
        self.check_stopping()
        if len(self._held) >= self.limits.streams:
            raise LimitReached(f"{self.limits.streams} streams are open in all")
        if sum(each.client == client for each in self._held) >= self.limits.streams_per_client:
            raise LimitReached(f"a client may have {self.limits.streams_per_client} streams")
        if reads_all:
            self._check_full_reads(client)
        made = Held(client, reads_all=reads_all)
        self._held[made] = None
        try:
            yield made
        finally:
            del self._held[made]

    def _check_full_reads(self, client: str) -> None:
        """One client that reads slowly cannot take all the places. Raises `LimitReached`."""
        reading = [each.client for each in self._held if each.reads_all]
        own = max(self.limits.full_reads // 2, 1)
        if len(reading) >= self.limits.full_reads:
            raise LimitReached(f"{self.limits.full_reads} clients read everything from the start now")
        if reading.count(client) >= own:
            raise LimitReached(f"a client may read everything from the start in {own} streams at once")

    def check(self, held: Held) -> None:
        """Raises `Ended` when a stream cannot go on."""
        if held.is_cancelled:
            raise Ended("cancelled", resumable=False)
        if held.is_unread:
            raise Ended(f"nothing was read for {self.limits.unread_seconds:g} seconds", resumable=True)
        self.check_stopping()

    def check_stopping(self) -> None:
        """Raises `Ended` once the service stops."""
        if self._is_stopping:
            raise Ended("shutdown", resumable=True)
