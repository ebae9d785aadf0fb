"""A public adapter (profile `legacy`), read by time in the version of its interface that it serves.

Of each entity it shows the newest event in the time asked for, and it steps through that time second by second while
it answers nobody else. So a log is read in windows, one at a time, which get shorter and are waited for longer where it
does not answer in time. Numbers have no gaps: where some are missing between two events, the time between them is read.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import aiohttp

from pubsub_emulator.distributor.core.messages import Page
from pubsub_emulator.distributor.event import Notice, legacy_notice
from pubsub_emulator.distributor.service.adapters import HttpAdapter, HttpAnswer, Place, Profile, Query

VERSIONS: Final = ("v2", "v1")
ENVIRONMENTS: Final = ("dev", "prd", "sbx")
"""All that a public adapter knows; it shows nothing of no environment."""
AROUND: Final = 600
"""Seconds before and after a time in which an event is looked for."""
DAY: Final = 86_400
EARLIEST: Final = 1_672_531_200
"""No contract of public adapters is older (2023)."""
FIRST_WINDOW: Final = 90 * DAY
MOST_WINDOW: Final = 16 * FIRST_WINDOW
MOST_PATIENCE: Final = 160.0
MOST_SPLITS: Final = 32
"""Times between events that one read asks for."""


class PublicAdapter(HttpAdapter):
    """A public adapter over HTTP."""

    def __init__(self, url: str, profile: Profile, session: aiohttp.ClientSession) -> None:
        super().__init__(url, profile, session)
        self._version = ""
        self._environments = profile.environments or ENVIRONMENTS
        self._reading = asyncio.Lock()
        self._window = FIRST_WINDOW
        self._patience = profile.timeout

    async def _base(self) -> str | None:
        if not self._version:
            await self._find_version()
        return f"{self._url}/api/{self._version}" if self._version else None

    async def _find_version(self) -> dict[str, int]:
        """Ask for the version that it serves. Returns the statuses of those that it does not."""
        statuses = {}
        for version in VERSIONS:
            answer = await self._send("GET", f"{self._url}/api/{version}/subscribe")
            if answer is not None and answer.status == 200 and isinstance(answer.json(), list):
                self._version = version
                return {}
            if answer is not None:
                statuses[version] = answer.status
        return statuses

    async def _ask(self, method: str, path: str, **how: object) -> HttpAnswer | None:
        answer = await super()._ask(method, path, **how)
        if answer is not None and answer.status == 404:
            self._version = ""  # it may have been replaced by one of another version
        return answer

    async def misfit(self) -> str:
        """Why this is no public adapter; empty if it is, or nothing answers."""
        statuses = await self._find_version()
        found = ", ".join(f"/api/{version}/subscribe has status {status}" for version, status in statuses.items())
        return f"{self._url} is no public adapter: {found}" if found and not self._version else ""

    async def probe(self, event_id: str, since: int, entity: str) -> Place:
        """Whether the events around a time have the id, or would hide it."""
        found = await self._between(max(since - AROUND, EARLIEST), int(time.time()) + AROUND)
        return Place(None) if found is None else shown_among(tuple(found.values()), event_id, entity)

    async def read(self, after: int, limit: int, since: int) -> Page | None:  # noqa: ARG002  # it is read by time
        """One window of the log; `None` while another read is under way, whose answer counts when it comes."""
        if self._reading.locked():
            return None
        start, end = max(since, EARLIEST), int(time.time()) + AROUND
        until = start + self._window
        complete = until >= end - DAY
        found = await self._between(start, end if complete else until, after)
        if found is None:
            return None
        return Page(tuple(found[number] for number in sorted(found)), complete, 0 if complete else until)

    async def query(self, query: Query) -> list[Notice] | None:
        """Events for a client, window by window."""
        start, end = max(query.start // 1000, EARLIEST), min(query.end // 1000, int(time.time()) + AROUND)
        found: dict[int, Notice] = {}
        while start <= end:
            until = min(start + self._window, end)
            part = await self._between(start, until, whole=query.all)
            if part is None:
                return None
            found |= part
            start = until + 1
        return [found[number] for number in sorted(found) if query.concerns(found[number])]

    async def _between(
        self, start: int, end: int, after: int | None = None, *, whole: bool = True
    ) -> dict[int, Notice] | None:
        """Events by number between two seconds: what is shown and, if `whole`, what is between those and `after`."""
        async with self._reading:
            found = await self._shown(start, end)
            if found is None or not whole:
                return found
            tried: set[tuple[int, int]] = {(start, end)}
            for _ in range(MOST_SPLITS):
                times = next((times for times in _missing(found, after, start) if times not in tried), None)
                more = None if times is None else await self._shown(*times)
                if times is None or more is None:
                    break
                tried.add(times)
                found |= more
            return found

    async def _shown(self, start: int, end: int) -> dict[int, Notice] | None:
        """GET `/events` between two seconds, for each environment."""
        found: dict[int, Notice] = {}
        for environment in self._environments:
            begun = time.monotonic()
            parameters = {"startDate": str(start * 1000), "endDate": str(end * 1000), "envM": environment}
            notices = await self._notices(parameters, timeout=aiohttp.ClientTimeout(total=self._patience))
            if notices is None:
                if time.monotonic() - begun >= self._patience:
                    self._window = max(self._window // 4, DAY)
                    self._patience = min(self._patience * 2, MOST_PATIENCE)
                return None
            if time.monotonic() - begun < self._patience / 4:
                self._window = min(self._window * 2, MOST_WINDOW)
            found |= {notice.number: legacy_notice(notice, self._profile.chain_id) for notice in notices}
        return found


def shown_among(notices: tuple[Notice, ...], event_id: str, entity: str) -> Place:
    """Whether an id is among the newest events of each entity, or would be hidden by a newer one."""
    there = any(notice.id == event_id for notice in notices)
    return Place(there, hidden=not there and any(notice.event.order == entity for notice in notices))


def _missing(found: dict[int, Notice], after: int | None, start: int) -> Iterator[tuple[int, int]]:
    """Times, in seconds, that have events whose numbers are missing: until the next known one, and until before it."""
    number, begun = after, start
    for following in sorted(found):
        until = found[following].time
        if number is not None and following > number + 1:
            yield begun, until
            if until > begun:
                yield begun, until - 1
        if number is None or following > number:
            number, begun = following, until
