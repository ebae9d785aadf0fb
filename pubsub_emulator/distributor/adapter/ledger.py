"""The ledger of an adapter: a log to which events are published and from which they are read."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from pubsub_emulator.distributor.core.messages import No, Unknown
from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.service.adapters import Page
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork


class Published(NamedTuple):
    """The event is in the log. `new` says that it was not there before; `time` is the block's, in seconds."""

    time: int
    new: bool


class Growth:
    """Wakes who waits for a log to grow."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        """The log has grown."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float | None = None) -> None:
        """Return when the log has grown, or after `seconds`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)


class NetworkLog(Protocol):
    """A network's log."""

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish, and wait until the event is in the log."""
        ...

    async def read(self, after: int, limit: int) -> Page | None:
        """Notices after a number, or `None` if the network cannot be reached."""
        ...

    async def wait(self, after: int, seconds: float) -> None:
        """Return when the log has a notice after a number, or after `seconds`."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class MemoryLedger:
    """A log in memory, for demonstrations and tests; its faults are those of the emulated network."""

    def __init__(self, network: SimulatedNetwork, clock: Callable[[], float] = time.time) -> None:
        self.network = network
        self._clock = clock
        self._growth = Growth()

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish as the emulated network does: it may be down, refuse, lie, or publish without an answer."""
        network = self.network
        if network.delay:
            await asyncio.sleep(network.delay / 1000)
        if not network.up:
            return Unknown("the network is away")
        if network.refuses:
            return No(network.refuses)
        now = int(self._clock() * 1000)
        if network.lies:
            return Published(now // 1000, new=True)
        notice = self.append(event)
        if network.mute:
            return Unknown("the answer was lost")
        return Published(now // 1000, new=notice is not None)

    def append(self, event: Event) -> Notice | None:
        """Put an event into the log, past its adapter."""
        notice = self.network.append(event, int(self._clock() * 1000))
        self._growth.tell()
        return notice

    async def read(self, after: int, limit: int) -> Page | None:
        """Notices after a number."""
        if not self.network.up:
            return None
        found = self.network.log[after : after + limit]
        return Page(tuple(found), after + limit >= len(self.network.log))

    async def wait(self, after: int, seconds: float) -> None:
        """Return when the log has grown."""
        if len(self.network.log) <= after:
            await self._growth.wait(seconds)

    async def close(self) -> None:
        """Does nothing: there is no connection."""
