"""A public adapter (profile `legacy`), which is read by time.

It has the version of the interface that it turns out to serve. In the time asked for, it shows only
the newest event of each entity. It steps through that time second by second and serves nobody else
meanwhile. So a log is read in windows, one at a time. If a window fails, the next ones are shorter,
and after a timeout they may take longer.

Numbers have no gaps. If numbers are missing between two events, the time between those two is read,
too.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import aiohttp

from interchain_events.distributor.core.messages import Page
from interchain_events.distributor.event import Notice, legacy_notice
from interchain_events.distributor.service.adapters import (
    HttpAdapter,
    HttpAnswer,
    Place,
    Profile,
    Query,
)

VERSIONS: Final = ("v2", "v1")
"""The versions of the interface, the preferred one first."""
ENVIRONMENTS: Final = ("dev", "prd", "sbx")
"""All environments that a public adapter knows. An event without one of these is never shown."""
AROUND: Final = 600
"""The seconds before and after a time in which an event is looked for."""
DAY: Final = 86_400
"""Seconds of a day, the shortest window."""
EARLIEST: Final = 1_672_531_200
"""The beginning of 2023 in seconds. No contract of a public adapter is older."""
FIRST_WINDOW: Final = 90 * DAY
"""Seconds of the first window."""
MOST_WINDOW: Final = 16 * FIRST_WINDOW
"""Seconds of the longest window."""
MOST_PATIENCE: Final = 160.0
"""The longest timeout of a window, in seconds."""
MOST_SPLITS: Final = 32
"""The greatest number of times between events that one read asks for."""


class PublicAdapter(HttpAdapter):
    """A public adapter over HTTP."""

    def __init__(self, url: str, profile: Profile, session: aiohttp.ClientSession) -> None:
        super().__init__(url, profile, session)
        self._version = ""
        """The version that the adapter serves, empty if it is not known."""
        self._environments = profile.environments or ENVIRONMENTS
        self._reading = asyncio.Lock()
        """Held during a read, as the adapter serves only one request at a time."""
        self._window = FIRST_WINDOW
        """Seconds of the next window."""
        self._patience = profile.timeout
        """Seconds of the next timeout."""

    async def _base(self) -> str | None:
        """Return the URL of the version that the adapter serves, `None` if none is found."""
        if not self._version:
            await self._find_version()
        return f"{self._url}/api/{self._version}" if self._version else None

    async def _find_version(self) -> dict[str, int]:
        """Find the version that the adapter serves.

        Returns the statuses of those that it does not.
        """
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
        """Send a request to a path of the interface.

        After a 404 the version is found again, because the adapter may have been replaced by
        another version.
        """
        answer = await super()._ask(method, path, **how)
        if answer is not None and answer.status == 404:
            self._version = ""
        return answer

    async def misfit(self) -> str:
        """Return why this is not a public adapter. Empty if it is one, or does not answer."""
        statuses = await self._find_version()
        found = ", ".join(
            f"/api/{version}/subscribe has status {status}" for version, status in statuses.items()
        )
        return (
            f"{self._url} is not a public adapter: {found}" if found and not self._version else ""
        )

    async def probe(self, event_id: str, since: int, entity: str, second: int = 0) -> Place:
        """Return whether the events since a time include the id, or hide it for good.

        An event of the entity hides earlier ones, so the time before the earliest that is shown is
        asked for, again and again, until no event of the entity is shown.
        """
        start = max(since - AROUND, EARLIEST)
        found = await self._between(start, int(time.time()) + AROUND)
        if found is None:
            return Place(None)
        place = shown_among(tuple(found.values()), event_id, entity, second)
        for _ in range(MOST_SPLITS):
            times = [each.time for each in found.values() if each.event.order == entity]
            if place.there or not times or min(times) <= start:
                return place
            earlier = await self._between(start, min(times) - 1, whole=False)
            if earlier is None:
                return Place(None)
            among = shown_among(tuple(earlier.values()), event_id, entity, second)
            # The end of a short log also hides events of the last second that was asked for.
            hidden = among.hidden or (not among.there and second != 0 and among.last == second)
            place = Place(bool(among.there), hidden=place.hidden or hidden, last=place.last)
            found = earlier
        return Place(place.there, hidden=not place.there, last=place.last)

    async def read(self, after: int, limit: int, since: int) -> Page | None:  # noqa: ARG002  # it is read by time
        """Return one window of the log.

        Returns `None` while another read is under way. The adapter would not answer, and the answer
        to the other read will count.
        """
        if self._reading.locked():
            return None
        start = max(since, EARLIEST)
        end = int(time.time()) + AROUND
        until = start + self._window
        complete = until >= end - DAY
        found = await self._between(start, end if complete else until, after)
        if found is None:
            return None
        return Page(
            tuple(found[number] for number in sorted(found)), complete, 0 if complete else until
        )

    async def query(self, query: Query) -> list[Notice] | None:
        """Return events for a client, read window by window."""
        start = max(query.start // 1000, EARLIEST)
        end = min(query.end // 1000, int(time.time()) + AROUND)
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
        """Return the events between two seconds by number.

        Without `whole`, these are the events that the adapter shows for that time. With `whole`,
        the times in which numbers are missing are read, too, as far as `MOST_SPLITS` allows.
        `after` is the number before the first wanted one, if it is known.
        """
        async with self._reading:
            found = await self._shown(start, end)
            if found is None or not whole:
                return found
            tried: set[tuple[int, int]] = {(start, end)}
            for _ in range(MOST_SPLITS):
                times = next(
                    (times for times in _missing(found, after, start) if times not in tried), None
                )
                more = None if times is None else await self._shown(*times)
                if times is None or more is None:
                    break
                tried.add(times)
                found |= more
            return found

    async def _shown(self, start: int, end: int) -> dict[int, Notice] | None:
        """GET `/events` between two seconds, for each environment.

        The window and the timeout adapt to the speed of the answers.
        """
        found: dict[int, Notice] = {}
        for environment in self._environments:
            begun = time.monotonic()
            parameters = {
                "startDate": str(start * 1000),
                "endDate": str(end * 1000),
                "envM": environment,
            }
            notices = await self._notices(
                parameters, timeout=aiohttp.ClientTimeout(total=self._patience)
            )
            if notices is None:
                # Also after an error: a search of more than five seconds outlasts the adapter's
                # connection to its node, and ends with one.
                self._window = max(self._window // 4, DAY)
                if time.monotonic() - begun >= self._patience:
                    self._patience = min(self._patience * 2, MOST_PATIENCE)
                return None
            if time.monotonic() - begun < self._patience / 4:
                self._window = min(self._window * 2, MOST_WINDOW)
            found |= {
                notice.number: legacy_notice(notice, self._profile.chain_id) for notice in notices
            }
        return found


def shown_among(notices: tuple[Notice, ...], event_id: str, entity: str, second: int = 0) -> Place:
    """Return whether an id is among the shown events, and the second of the last one.

    If it is not, another event of the same entity and second hides it. If its `second` is not
    known, 0, each event of the entity may be that one.
    """
    there = any(notice.id == event_id for notice in notices)
    hiding = (notice.event.order == entity and second in {0, notice.time} for notice in notices)
    return Place(
        there,
        hidden=not there and any(hiding),
        last=max((notice.time for notice in notices), default=0),
    )


def _missing(found: dict[int, Notice], after: int | None, start: int) -> Iterator[tuple[int, int]]:
    """Yield the times, in seconds, in which events must lie whose numbers are missing.

    Each ends with the next known event. Another one ends a second earlier, because within one
    second that event may hide the missing ones.
    """
    number, begun = after, start
    for following in sorted(found):
        until = found[following].time
        if number is not None and following > number + 1:
            yield begun, until
            if until > begun:
                yield begun, until - 1
        if number is None or following > number:
            number, begun = following, until
