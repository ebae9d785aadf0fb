"""What an adapter stands on: something that takes events into a log and lets it be read."""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from pubsub_emulator.eventplane.distributor.core.messages import No, Unknown
from pubsub_emulator.eventplane.distributor.event import Event, Notice
from pubsub_emulator.eventplane.distributor.service.adapters import Page
from pubsub_emulator.eventplane.distributor.simulation.network import Network


class Published(NamedTuple):
    """The event is in the log; `new` if it was not before, `time` is its block's in seconds."""

    time: int
    new: bool


class Ledger(Protocol):
    """A network's log."""

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish, and wait until the event is in the log."""
        ...

    async def read(self, after: int, limit: int) -> Page | None:
        """Notices after a number; `None` where the network cannot be reached."""
        ...

    async def wait(self, after: int, seconds: float) -> None:
        """Return once there is something after a number, or after so many seconds."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class MemoryLedger:
    """A log in memory, for demonstrations and tests; its faults are those of the emulated network."""

    def __init__(self, network: Network, clock: Callable[[], float] = time.time) -> None:
        self.network = network
        self._clock = clock
        self._grown = asyncio.Event()

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish as the network does: it may be away, refuse, lie, or do and not tell."""
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
        self._grown.set()
        self._grown = asyncio.Event()
        return notice

    async def read(self, after: int, limit: int) -> Page | None:
        """Notices after a number."""
        if not self.network.up:
            return None
        found = self.network.log[after : after + limit]
        return Page(tuple(found), after + limit >= len(self.network.log))

    async def wait(self, after: int, seconds: float) -> None:
        """Return when the log has grown."""
        grown = self._grown
        if len(self.network.log) <= after:
            try:
                await asyncio.wait_for(grown.wait(), seconds)
            except TimeoutError:
                return

    async def close(self) -> None:
        """Nothing to let go of."""
