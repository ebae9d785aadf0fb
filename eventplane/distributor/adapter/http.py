"""The HTTP interface of an adapter (ID-10): the same as a distributor's, of one network."""

import asyncio
import json
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp import web

from pubsub_emulator.eventplane.distributor.adapter.desk import Desk
from pubsub_emulator.eventplane.distributor.adapter.ledger import Ledger
from pubsub_emulator.eventplane.distributor.core.messages import No, Unknown
from pubsub_emulator.eventplane.distributor.event import Notice, parse_publication
from pubsub_emulator.eventplane.distributor.service.access import Access
from pubsub_emulator.eventplane.distributor.service.addresses import guarded_connector
from pubsub_emulator.eventplane.distributor.service.metrics import Metrics
from pubsub_emulator.eventplane.distributor.service.openapi import document
from pubsub_emulator.eventplane.distributor.service.problems import (
    MOST_BODY,
    Problem,
    bad,
    json_body,
    not_found,
    problems,
)
from pubsub_emulator.eventplane.distributor.service.requests import (
    check_receiver,
    newest_per_entity,
    parse_number,
    parse_query,
    parse_wish,
)
from pubsub_emulator.eventplane.once import Store

PAGE: Final = 1000
POST_SECONDS: Final = 5.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=POST_SECONDS)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_JSON: Final = {"Content-Type": "application/json"}


@lru_cache(1024)
def notification(network: str, notice: Notice) -> bytes:
    """The body of a notification, made once for all subscriptions."""
    return _ENCODER.encode({**notice.body(), "network": network}).encode()


class AdapterHttp:
    """The routes of one adapter. `private` allows endpoints at private addresses; `node` is its chain's node."""

    def __init__(
        self, network: str, ledger: Ledger, store: Store, access: Access, *, private: bool = True, node: str = ""
    ) -> None:
        self._ledger = ledger
        self._node = node
        self._access = access
        self._private = private
        self.metrics = Metrics()
        self._session: aiohttp.ClientSession | None = None
        self.desk = Desk(ledger, store, self.post)
        self._network = network

    def application(self) -> web.Application:
        """The application; it starts and stops deliveries itself."""
        app = web.Application(client_max_size=MOST_BODY, middlewares=[problems])
        guarded = self._access.needs
        for base in ("/api/v1", "/api/v2"):
            app.router.add_post(f"{base}/publishEvent", guarded("publish")(self.publish))
            app.router.add_post(f"{base}/subscribe", guarded("subscribe")(self.subscribe))
            app.router.add_post(f"{base}/subscribe/all", guarded("subscribe")(self.subscribe_all))
            app.router.add_get(f"{base}/subscribe", guarded("read")(self.subscriptions), allow_head=False)
            app.router.add_delete(f"{base}/subscribe/{{subscription}}", guarded("subscribe")(self.unsubscribe))
            app.router.add_get(f"{base}/events", guarded("read")(self.events), allow_head=False)
            app.router.add_get(f"{base}/publications/{{id}}", guarded("read")(self.publication), allow_head=False)
        app.router.add_get("/health", self.health, allow_head=False)
        app.router.add_get("/livez", self.alive, allow_head=False)
        app.router.add_get("/metrics", guarded("read")(self.metrics_text), allow_head=False)
        app.router.add_get("/openapi.json", self.openapi, allow_head=False)
        app.cleanup_ctx.append(self._life)
        return app

    async def _life(self, _app: web.Application) -> Any:
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(private=self._private), cookie_jar=aiohttp.DummyCookieJar()
        )
        await self.desk.start()
        yield
        await self.desk.stop()
        await self._session.close()
        await self._ledger.close()

    async def post(self, endpoint: str, notices: list[Notice]) -> list[bool]:
        """Notify an endpoint of each, at once."""
        return await asyncio.gather(*(self._post(endpoint, notice) for notice in notices))

    async def _post(self, endpoint: str, notice: Notice) -> bool:
        if self._session is None:
            return False
        body = notification(self._network, notice)
        try:
            async with self._session.post(
                endpoint, data=body, headers=_JSON, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                self.metrics.count("posts", outcome=f"{response.status // 100}xx")
                return response.status // 100 == 2
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            self.metrics.count("posts", outcome="none")
            return False

    async def publish(self, request: web.Request) -> web.Response:
        """Publish on the network, and answer once the event is in its log."""
        fields = await json_body(request)
        event_id, event = parse_publication(fields)
        check_receiver(request, fields, self._node)
        answer = await self._ledger.publish(event)
        self.metrics.count("calls", network=self._network, outcome=type(answer).__name__.lower())
        if isinstance(answer, No):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", answer.reason)
        if isinstance(answer, Unknown):
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "network-down", answer.reason)
        body: Any = answer.time
        if "return=representation" in request.headers.get("Prefer", "").lower():
            state = {"name": self._network, "state": "published"}
            body = {"globalId": event_id, "timestamp": answer.time, "networks": [state]}
        return web.json_response(body, status=HTTPStatus.CREATED if answer.new else HTTPStatus.OK)

    async def subscribe(self, request: web.Request) -> web.Response:
        """Subscribe to types of events."""
        return await self._subscribe(request, everything=False)

    async def subscribe_all(self, request: web.Request) -> web.Response:
        """Subscribe to every event."""
        return await self._subscribe(request, everything=True)

    async def _subscribe(self, request: web.Request, *, everything: bool) -> web.Response:
        wish = parse_wish(await json_body(request), everything=everything, private=self._private)
        if wish.secret is not None:
            raise bad("bad-subscription", "secret: an adapter does not sign; let a distributor do it")
        name, new = await self.desk.subscribe(wish)
        body = {"subscriptionId": name, "networks": [{"name": self._network, "success": True}]}
        return web.json_response(body, status=HTTPStatus.CREATED if new else HTTPStatus.OK)

    async def subscriptions(self, _request: web.Request) -> web.Response:
        """Every subscription."""
        return web.json_response(
            [
                {
                    "subscriptionId": name,
                    "eventTypes": each.types,
                    "metadata": each.metadata,
                    "notificationEndpoint": each.endpoint,
                }
                for name, each in self.desk.subscriptions()
            ]
        )

    async def unsubscribe(self, request: web.Request) -> web.Response:
        """End a subscription."""
        name = request.match_info["subscription"]
        if "\0" in name or not name.isascii() or not self.desk.unsubscribe(name):
            raise not_found("no subscription of that name")
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _log(self, after: int = 0, most: int | None = None) -> list[Notice]:
        """The log after a number, or so much of it. Raises `Problem` where the network cannot be reached."""
        found: list[Notice] = []
        while most is None or len(found) < most:
            page = await self._ledger.read(after, PAGE if most is None else min(PAGE, most - len(found)))
            if page is None:
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "network-down")
            found += page.notices
            if page.complete or not page.notices:
                break
            after = found[-1].number
        return found

    async def events(self, request: web.Request) -> web.Response:
        """Events of the log: the newest of each entity, or all."""
        asked = parse_query(request.query)
        after = parse_number(request.query)
        unbounded = asked.start == 0 and asked.environment is None and asked.all and "endDate" not in request.query
        found = [
            notice
            for notice in await self._log(after, asked.limit if unbounded else None)
            if asked.start <= notice.time * 1000 <= asked.end
            and (asked.environment is None or asked.environment in notice.event.metadata)
        ]
        if not asked.all:
            found = newest_per_entity(found, lambda notice: notice.event.order)
        return web.json_response([notice.row() for notice in found[: asked.limit]])

    async def publication(self, request: web.Request) -> web.Response:
        """Whether the log has an id."""
        event_id = request.match_info["id"]
        if not any(notice.id == event_id for notice in await self._log()):
            raise not_found("the network does not have that id")
        state = {"name": self._network, "state": "seen"}
        return web.json_response({"globalId": event_id, "networks": [state]})

    async def alive(self, _request: web.Request) -> web.Response:
        """The process answers."""
        return web.json_response({"status": "UP"})

    async def health(self, _request: web.Request) -> web.Response:
        """Whether the network answers."""
        page = await self._ledger.read(0, 1)
        status = "DOWN" if page is None else "UP"
        body = {"status": status, "checks": [{"name": f"network {self._network}", "status": status}]}
        return web.json_response(body, status=HTTPStatus.OK if page is not None else HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics_text(self, _request: web.Request) -> web.Response:
        """Counters."""
        gauges: dict[str, tuple[str, float]] = {
            "notifications_given_up": ("Notifications that were given up.", self.desk.lost)
        }
        return web.Response(text=self.metrics.text(gauges), content_type="text/plain", charset="utf-8")

    async def openapi(self, _request: web.Request) -> web.Response:
        """The description of this interface."""
        return web.json_response(document(distributor=False))
