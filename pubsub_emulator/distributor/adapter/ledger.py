"""The ledger of an adapter: a log to which events are published and from which they are read."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, NamedTuple

from pubsub_emulator.distributor.core.messages import No, Page, Unknown
from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.service.adapters import Query
from pubsub_emulator.distributor.service.requests import newest_per_entity
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork

PAGE: Final = 1000


class Published(NamedTuple):
    """The event is in the log. `new` says that it was not there before; `time` is the block's, in seconds."""

    time: int
    new: bool


class NetworkLog(ABC):
    """A network's log: the notices that were read of it, in order, and whoever waits for more."""

    def __init__(self, log: list[Notice] | None = None) -> None:
        self._log: list[Notice] = [] if log is None else log
        self._times: dict[str, int] = {}  # of the block that has an id first
        self._grown = asyncio.Event()

    def _grow(self, notices: Iterable[Notice]) -> None:
        """Append, and wake who waits."""
        for notice in notices:
            self._log.append(notice)
            if notice.id is not None:
                self._times.setdefault(notice.id, notice.time)
        self._grown.set()
        self._grown = asyncio.Event()

    @abstractmethod
    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish, and wait until the event is in the log."""

    async def read(self, after: int, limit: int) -> Page | None:
        """Notices after a number, or `None` if the network cannot be reached."""
        return Page(tuple(self._log[after : after + limit]), after + limit >= len(self._log))

    async def wait(self, after: int, seconds: float) -> None:
        """Return when the log has a notice after a number, or after `seconds`."""
        if len(self._log) <= after:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._grown.wait(), seconds)

    def _shrink(self, length: int) -> None:
        """Forget all notices but the first ones."""
        kept = self._log[:length]
        self._log.clear()
        self._times.clear()
        self._grow(kept)

    async def close(self) -> None:  # noqa: B027  # a log in this process has none
        """Close connections."""


class MemoryLedger(NetworkLog):
    """A log in memory, for demonstrations and tests; its faults are those of the emulated network."""

    def __init__(self, network: SimulatedNetwork) -> None:
        super().__init__(network.log)
        self.network = network

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish as the emulated network does: it may be down, refuse, lie, or publish without an answer."""
        network = self.network
        if network.delay:
            await asyncio.sleep(network.delay / 1000)
        if not network.up:
            return Unknown("the network is away")
        if network.refuses:
            return No(network.refuses)
        now = int(time.time())
        if network.lies:
            return Published(now, new=True)
        notice = self.append(event)
        return Unknown("the answer was lost") if network.mute else Published(now, new=notice is not None)

    def append(self, event: Event) -> Notice | None:
        """Put an event into the log, past its adapter."""
        notice = self.network.append(event, int(time.time() * 1000))
        self._grow(())
        return notice

    async def read(self, after: int, limit: int) -> Page | None:
        """Notices after a number, `None` while the network is down."""
        return await super().read(after, limit) if self.network.up else None


async def read_log(ledger: NetworkLog, after: int = 0, most: int | None = None) -> list[Notice] | None:
    """At most `most` notices after number `after`, `None` if the network cannot be reached."""
    found: list[Notice] = []
    while most is None or len(found) < most:
        page = await ledger.read(after, PAGE if most is None else min(PAGE, most - len(found)))
        if page is None:
            return None
        found += page.notices
        if page.complete or not page.notices:
            break
        after = found[-1].number
    return found


async def selected(ledger: NetworkLog, query: Query) -> list[Notice] | None:
    """The notices of a log that a client asks for, `None` if the network cannot be reached."""
    unbounded = query.all and query[:3] == Query()[:3]
    log = await read_log(ledger, query.after, query.limit if unbounded else None)
    if log is None:
        return None
    found = [each for each in log if query.concerns(each)]
    return (found if query.all else newest_per_entity(found, lambda each: each.event.order))[: query.limit]
