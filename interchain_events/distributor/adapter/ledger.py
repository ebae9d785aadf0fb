"""The ledger of an adapter: the log of a network, to which events can be published."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, NamedTuple

from interchain_events.distributor.core.messages import LogPage, No, Unknown
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.service.adapters import Query
from interchain_events.distributor.service.requests import newest_per_entity
from interchain_events.distributor.simulation.network import SimulatedNetwork

PAGE: Final = 1000
"""The number of notices in one read."""


class Published(NamedTuple):
    """The result of a publication whose event is now in the log."""

    time: int
    """The time of the event's block in seconds, 0 if it is not known."""
    new: bool
    """Whether this publication added the event. If false, the event was there before."""


class Ledger(ABC):
    """The log of a network, as far as it has been read.

    `_log` has the notices in order. The number of a notice is its index plus one.
    """

    def __init__(self, log: list[Notice] | None = None) -> None:
        self._log: list[Notice] = [] if log is None else log
        self._times: dict[str, int] = {}
        """The time, in seconds, of the first block that has an id, by id."""
        self._grown = asyncio.Event()
        """Set at the next change of the log, and then replaced by a new one."""

    def _grow(self, notices: Iterable[Notice]) -> None:
        """Append notices, and wake the callers of `wait`."""
        for notice in notices:
            self._log.append(notice)
            if notice.id is not None:
                self._times.setdefault(notice.id, notice.time)
        self._grown.set()
        self._grown = asyncio.Event()

    @abstractmethod
    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish an event, and wait until it is in the log."""

    async def read(self, after: int, limit: int) -> LogPage | None:
        """Return at most `limit` notices after a number.

        Returns `None` if the network cannot be reached.
        """
        return LogPage(tuple(self._log[after : after + limit]), after + limit >= len(self._log))

    async def has(self, event_id: str) -> bool | None:
        """Return whether the log has an id, `None` if the network cannot be reached.

        The id is looked up and not searched, because the log may have millions of notices, and a
        distributor asks for each event whose publication is in doubt.
        """
        if await self.read(len(self._log), 1) is None:
            return None
        return event_id in self._times

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until the log has a notice after a number, at most for `seconds`."""
        if len(self._log) <= after:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._grown.wait(), seconds)

    def _shrink(self, length: int) -> None:
        """Remove all but the first `length` notices, because the chain no longer has the others."""
        remaining = self._log[:length]
        # A subclass may share this list with the network, so the list itself must change.
        self._log.clear()
        self._times.clear()
        self._grow(remaining)

    async def close(self) -> None:  # noqa: B027  # a log in this process has no connections
        """Close connections."""


class SimulatedLedger(Ledger):
    """The ledger of an emulated network, for demonstrations and tests."""

    def __init__(self, network: SimulatedNetwork) -> None:
        super().__init__(network.log)
        self.network = network

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Publish an event on the emulated network.

        Depending on its settings, the network may be down, refuse the event, claim to have
        published it, or publish it without an answer.
        """
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
        if network.mute:
            return Unknown("the answer was lost")
        return Published(now, new=notice is not None)

    def append(self, event: Event) -> Notice | None:
        """Append an event to the log, and return its notice.

        Returns `None` if the network refuses the id because it has it already.
        """
        notice = self.network.append(event, int(time.time() * 1000))
        # The network has appended to the shared list. This only wakes the callers of `wait`.
        self._grow(())
        return notice

    async def read(self, after: int, limit: int) -> LogPage | None:
        """Return notices after a number, `None` while the network is down."""
        return await super().read(after, limit) if self.network.up else None

    async def has(self, event_id: str) -> bool | None:
        """Return whether the network has an id, `None` while it is down."""
        return self.network.has(event_id) if self.network.up else None


async def read_log(ledger: Ledger, after: int = 0, most: int | None = None) -> list[Notice] | None:
    """Return at most `most` notices after number `after`, all if `most` is `None`.

    Returns `None` if the network cannot be reached.
    """
    notices: list[Notice] = []
    while most is None or len(notices) < most:
        limit = PAGE if most is None else min(PAGE, most - len(notices))
        page = await ledger.read(after, limit)
        if page is None:
            return None
        notices += page.notices
        if page.complete or not page.notices:
            break
        after = notices[-1].number
    return notices


async def selected(ledger: Ledger, query: Query) -> list[Notice] | None:
    """Return the notices that a client's query asks for.

    Returns `None` if the network cannot be reached.
    """
    # If the query has no time and environment, every notice matches, so no more than the limit has
    # to be read.
    matches_every = query.all and query[:3] == Query()[:3]
    log = await read_log(ledger, query.after, query.limit if matches_every else None)
    if log is None:
        return None
    matching = [notice for notice in log if query.concerns(notice)]
    if not query.all:
        matching = newest_per_entity(matching, lambda notice: notice.event.order)
    return matching[: query.limit]
