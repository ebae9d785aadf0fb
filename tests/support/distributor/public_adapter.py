"""A public DLT adapter as it answers over HTTP, in either version of its interface.

Its facts are those of `alastria/DOME-blockchain_connector-dlt_interface` at 3405d23. It has one
thread. `/events` steps second by second from both ends of the time asked for until it meets an
event, and shows the newest event of each entity in that time, of one environment. In a log that
mostly consists of events of the last second of that time, it does not find the end of them, and
leaves out the rest. It appends the empty string to the metadata, since it encodes the chain's id as
a text although it is a number; earlier versions appended the id. A publication
beside another has its nonce and gets 400; the contract takes ids twice. Notifications are sent
once, all at once, and not of what its own organisation published. `/subscribe/all` is not listed,
and subscriptions have no names and no DELETE.
"""

import asyncio
import contextlib
import time
from bisect import bisect_right
from random import Random
from typing import Any

import aiohttp
from aiohttp import web

from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.simulation.network import SimulatedNetwork

OWN = "0x" + "43" * 32


class PublicAdapter:
    """One adapter; `version` may be changed while it serves, `notifies` is whether its
    notifications arrive.
    """

    def __init__(
        self, name: str, chain_id: str = "2020", version: str = "v2", seed: int = 1
    ) -> None:
        self.network = SimulatedNetwork(name, unique=False, legacy=True)
        self.chain_id = chain_id
        self.version = version
        self.up = True
        self.settings: dict[str, Any] = {}
        """Of the distributor for this adapter."""
        self.notifies = True
        self.stops_early = False
        """Whether it leaves out events of the last second, as the real one does. The logs of tests
        are short, and that of a real adapter is not."""
        self.mining = 0.02
        self.step = 1e-10
        """Seconds for one second that it steps through; 2e-8 was measured."""
        self.idle = 5.0
        """The seconds after which its connection to its node is closed, which it does not notice
        while it steps. Its next question to the node, about the events it has found, then fails."""
        self.asked: list[tuple[int, int]] = []
        self.refused = 0
        self.deleted = 0
        self.listed = 0
        self.everything: list[str] = []
        self.interests: list[dict[str, Any]] = []
        self._random = Random(seed)
        self._thread = asyncio.Lock()
        self._publishing = False
        self._sending: set[asyncio.Task[None]] = set()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._versioned])
        for version in ("v1", "v2"):
            app.router.add_post(f"/api/{version}/publishEvent", self.publish)
            app.router.add_post(f"/api/{version}/subscribe", self.subscribe)
            app.router.add_post(f"/api/{version}/subscribe/all", self.subscribe_all)
            app.router.add_get(f"/api/{version}/subscribe", self.subscriptions)
            app.router.add_get(f"/api/{version}/events", self.events)
        app.cleanup_ctx.append(self._life)
        return app

    async def _life(self, _app: web.Application) -> Any:
        """Open the HTTP client, and cancel all notifications when the application ends."""
        self._http = aiohttp.ClientSession()
        yield
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self._http.close()

    @web.middleware
    async def _versioned(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.deleted += request.method == "DELETE"
        async with self._thread:
            pass
        if (
            not request.path.startswith(f"/api/{self.version}/")
            or request.match_info.http_exception is not None
        ):
            return web.json_response({"message": "Not Found"}, status=404)
        found: web.StreamResponse = await handler(request)
        return found

    async def publish(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.up or self._publishing:
            self.refused += self._publishing
            return web.Response(status=400, text="Error connecting to the blockchain node.")
        self._publishing = True
        await asyncio.sleep(self.mining)
        self._publishing = False
        return web.json_response(self.add(body, body.get("iss", OWN)).time, status=201)

    def add(self, body: dict[str, Any], iss: str | None = None, at: int | None = None) -> Notice:
        """Write an event into the log, by this adapter or a stranger, now or at a time in
        seconds.
        """
        metadata = (*body["relevantMetadata"], self.chain_id)
        event = Event(
            body["eventType"],
            body["dataLocation"],
            metadata,
            body["entityId"],
            body["previousEntityHash"],
            iss,
        )
        now = int(time.time()) if at is None else at
        notice = self.network.append(event, now * 1000)
        assert notice is not None
        for each in self.interests:
            if notice.event.event_type in each["eventTypes"] and set(each["metadata"]) & set(
                metadata
            ):
                self._send(each["notificationEndpoint"], notice)
        for endpoint in self.everything:
            self._send(endpoint, notice)
        return notice

    def _send(self, endpoint: str, notice: Notice) -> None:
        if self.notifies and notice.event.iss != OWN:
            task = asyncio.create_task(self._notify(endpoint, notice, 2 * self._random.random()))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _notify(self, endpoint: str, notice: Notice, late: float) -> None:
        await asyncio.sleep(late)
        with contextlib.suppress(aiohttp.ClientError):
            async with self._http.post(endpoint, json=notice.body()):
                pass

    async def subscribe(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not body.get("eventTypes") or not body.get("metadata"):
            return web.Response(status=400, text="Error connecting to the blockchain node.")
        self.interests.append(body)
        return web.Response(status=201, text="OK")

    async def subscribe_all(self, request: web.Request) -> web.Response:
        self.everything.append((await request.json())["notificationEndpoint"])
        return web.Response(status=200, text="OK")

    async def subscriptions(self, _request: web.Request) -> web.Response:
        self.listed += 1
        return web.json_response(self.interests)

    async def events(self, request: web.Request) -> web.Response:
        """Answer with the events of a time, after the seconds that the steps take.

        If this takes longer than `idle` and there are events, the answer is an error.
        """
        start, end = int(request.query["startDate"]) // 1000, int(request.query["endDate"]) // 1000
        self.asked.append((start, end))
        seconds = self.steps(start, end) * self.step
        async with self._thread:
            await asyncio.sleep(seconds)
        has_events = any(start <= notice.time <= end for notice in self.network.log)
        if seconds > self.idle and has_events:
            return web.Response(status=400, text="Error connecting to the blockchain.")
        return web.json_response(
            [notice.row() for notice in self.shown(start, end, request.query.get("envM", ""))]
        )

    def steps(self, start: int, end: int) -> int:
        """Return the seconds through which the adapter steps."""
        within = [notice.time for notice in self.network.log if start <= notice.time <= end]
        return within[0] - start + end - within[-1] if within else 2 * (end - start)

    def shown(self, start: int, end: int, environment: str) -> list[Notice]:
        """Return the newest event of each entity, in order of the entities' first events."""
        log = self.network.log
        if self.stops_early:
            log = log[: _end_found([notice.time for notice in log], end)]
        newest: dict[str, Notice] = {}
        for notice in log:
            if start <= notice.time <= end:
                newest[notice.event.order] = notice
        return [notice for notice in newest.values() if environment in notice.event.metadata]


def _end_found(times: list[int], end: int) -> int:
    """Return the number of events before the end that the adapter finds of a second.

    It finds one event of the last second by bisection. From there it goes on to later ones of that
    second, as many times as there are events before the first one. If it has not come to the last
    one by then, it takes the first one for the last.
    """
    second = max((each for each in times if each <= end), default=None)
    if second is None:
        return 0
    low = 0
    high = len(times) - 1
    while times[found := (low + high) // 2] != second:
        if times[found] < second:
            low = found + 1
        else:
            high = found - 1
    following = bisect_right(times, second)
    return following if following <= 2 * found + 1 else found + 1
