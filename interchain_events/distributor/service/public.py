"""A public adapter (profile `legacy`), which is read by time.

Of the requested time, a public adapter shows only the newest event of each entity. It goes through
that time second by second, and answers other requests only after that. So a log is read in windows
of time, one after the other. If a window fails, the next ones are shorter. After a timeout, the
next ones also get more time.

The numbers of events have no gaps. If numbers are missing between two events, the time between them
is read, too.

The version of the interface is not configured. The adapter is asked for it.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import aiohttp

from interchain_events.distributor.core.messages import LogPage
from interchain_events.distributor.event import Notice, legacy_notice
from interchain_events.distributor.service.adapters import (
    HttpAdapter,
    HttpAnswer,
    ProbeAnswer,
    Profile,
    Query,
)

VERSIONS: Final = ("v2", "v1")
"""The versions of the interface, the preferred one first."""
ENVIRONMENTS: Final = ("dev", "prd", "sbx")
"""All environments of a public adapter. It never shows an event without one of them."""
AROUND: Final = 600
"""The seconds by which a search begins earlier and ends later, because clocks differ."""
DAY: Final = 86_400
"""Seconds of a day, the shortest window."""
EARLIEST: Final = 1_672_531_200
"""The beginning of 2023 in seconds. The contracts of public adapters are younger."""
FIRST_WINDOW: Final = 90 * DAY
"""The length of the first window in seconds."""
MOST_WINDOW: Final = 16 * FIRST_WINDOW
"""The greatest length of a window in seconds."""
MOST_PATIENCE: Final = 160.0
"""The longest timeout of a window, in seconds."""
MOST_SPLITS: Final = 32
"""The greatest number of further requests with which one read looks for missing events."""


class PublicAdapter(HttpAdapter):
    """A public adapter over HTTP."""

    def __init__(self, url: str, profile: Profile, session: aiohttp.ClientSession) -> None:
        super().__init__(url, profile, session)
        self._version = ""
        """The version that the adapter serves, empty if it is not known."""
        self._environments = profile.environments or ENVIRONMENTS
        self._reading = asyncio.Lock()
        """Held during a read, because the adapter serves only one request at a time."""
        self._window = FIRST_WINDOW
        """The length of the next window in seconds."""
        self._patience = profile.timeout
        """The timeout of the next window in seconds."""

    async def _base(self) -> str | None:
        """Return the URL of the version that the adapter serves, `None` if none is found."""
        if not self._version:
            await self._find_version()
        return f"{self._url}/api/{self._version}" if self._version else None

    async def _find_version(self) -> dict[str, int]:
        """Find the version that the adapter serves.

        Returns the statuses of the answers of other versions, empty if a version is found.
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

        After a status 404 the version is found anew, because the adapter may have been replaced by
        one of another version.
        """
        answer = await super()._ask(method, path, **how)
        if answer is not None and answer.status == 404:
            self._version = ""
        return answer

    async def misfit(self) -> str:
        """Return why this is not a public adapter. Empty if it is one, or does not answer."""
        statuses = await self._find_version()
        if not statuses or self._version:
            return ""
        reasons = ", ".join(
            f"/api/{version}/subscribe has status {status}" for version, status in statuses.items()
        )
        return f"{self._url} is not a public adapter: {reasons}"

    async def probe(self, event_id: str, since: int, entity: str, second: int = 0) -> ProbeAnswer:
        """Return whether the events since a time include the id, or hide it for good.

        An event of the entity hides the earlier ones of the requested time. So the time before the
        earliest shown event is requested, again and again, until no event of the entity is shown.
        """
        start = max(since - AROUND, EARLIEST)
        shown = await self._between(start, int(time.time()) + AROUND)
        if shown is None:
            return ProbeAnswer(None)
        answer = shown_among(tuple(shown.values()), event_id, entity, second=second)
        for _ in range(MOST_SPLITS):
            times = [notice.time for notice in shown.values() if notice.event.order == entity]
            if answer.there or not times or min(times) <= start:
                return answer
            earlier = await self._between(start, min(times) - 1, whole=False)
            if earlier is None:
                return ProbeAnswer(None)
            before = shown_among(tuple(earlier.values()), event_id, entity, second=second)
            # The last shown event also hides other events of its second.
            is_hidden = before.hidden or (
                not before.there and second != 0 and before.last == second
            )
            answer = ProbeAnswer(
                bool(before.there), hidden=answer.hidden or is_hidden, last=answer.last
            )
            shown = earlier
        # The search has not come to its end, so an absent event may still be hidden.
        return ProbeAnswer(answer.there, hidden=not answer.there, last=answer.last)

    async def read(self, after: int, limit: int, since: int) -> LogPage | None:  # noqa: ARG002  # it is read by time
        """Return one window of the log.

        Returns `None` on failure, and while another read is under way: the adapter would not
        answer, and the other read's answer suffices.
        """
        if self._reading.locked():
            return None
        start = max(since, EARLIEST)
        end = int(time.time()) + AROUND
        until = start + self._window
        complete = until >= end - DAY
        notices = await self._between(start, end if complete else until, after)
        if notices is None:
            return None
        in_order = tuple(notices[number] for number in sorted(notices))
        return LogPage(in_order, complete, until=0 if complete else until)

    async def query(self, query: Query) -> list[Notice] | None:
        """Return the notices that a client's query asks for, `None` on failure."""
        start = max(query.start // 1000, EARLIEST)
        end = min(query.end // 1000, int(time.time()) + AROUND)
        notices: dict[int, Notice] = {}
        while start <= end:
            until = min(start + self._window, end)
            part = await self._between(start, until, whole=query.all)
            if part is None:
                return None
            notices |= part
            start = until + 1
        return [notice for _, notice in sorted(notices.items()) if query.concerns(notice)]

    async def _between(
        self, start: int, end: int, after: int | None = None, *, whole: bool = True
    ) -> dict[int, Notice] | None:
        """Return the events between two seconds by number, `None` on failure.

        If `whole` is false, these are only the events that the adapter shows for that time. If it
        is true, the times in which numbers are missing are read, too, with at most `MOST_SPLITS`
        further requests. `after` is the number before the first wanted one, if it is known.
        """
        async with self._reading:
            notices = await self._shown(start, end)
            if notices is None or not whole:
                return notices
            tried: set[tuple[int, int]] = {(start, end)}
            for _ in range(MOST_SPLITS):
                untried = (times for times in _missing(notices, after, start) if times not in tried)
                times = next(untried, None)
                if times is None:
                    break
                more = await self._shown(*times)
                if more is None:
                    break
                tried.add(times)
                notices |= more
            return notices

    async def _shown(self, start: int, end: int) -> dict[int, Notice] | None:
        """GET `/events` between two seconds, for each environment.

        Returns the shown events by number, `None` on failure. The window and the timeout adapt to
        the speed of the answers.
        """
        shown: dict[int, Notice] = {}
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
                # An error may also be a matter of time: the adapter loses the connection to its
                # node during searches of more than five seconds.
                self._window = max(self._window // 4, DAY)
                if time.monotonic() - begun >= self._patience:
                    self._patience = min(self._patience * 2, MOST_PATIENCE)
                return None
            if time.monotonic() - begun < self._patience / 4:
                self._window = min(self._window * 2, MOST_WINDOW)
            for notice in notices:
                shown[notice.number] = legacy_notice(notice, self._profile.chain_id)
        return shown


def shown_among(
    notices: tuple[Notice, ...], event_id: str, entity: str, second: int = 0
) -> ProbeAnswer:
    """Return whether an id is among the shown events, and the time of the last event in seconds.

    An absent id may be hidden by another event of its entity that has the same `second`. If
    `second` is 0, it is unknown, so any event of the entity may hide the id.
    """
    there = any(notice.id == event_id for notice in notices)
    hiding = (notice.event.order == entity and second in {0, notice.time} for notice in notices)
    return ProbeAnswer(
        there,
        hidden=not there and any(hiding),
        last=max((notice.time for notice in notices), default=0),
    )


def _missing(
    notices: dict[int, Notice], after: int | None, start: int
) -> Iterator[tuple[int, int]]:
    """Yield the times in which the events with missing numbers must be, as pairs of seconds.

    A time ends with the next known event. It is followed by the time that ends a second earlier,
    because that event may hide missing ones of its own second.
    """
    number = after
    begin = start
    for following, notice in sorted(notices.items()):
        if number is not None and following > number + 1:
            yield begin, notice.time
            if notice.time > begin:
                yield begin, notice.time - 1
        if number is None or following > number:
            number = following
            begin = notice.time
