"""The base of the HTTP interfaces of a distributor and of an adapter (ID-10)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from http import HTTPStatus
from typing import ClassVar, Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from pubsub_emulator.distributor.service.access import Access
from pubsub_emulator.distributor.service.metrics import Metrics
from pubsub_emulator.distributor.service.openapi import document, page
from pubsub_emulator.distributor.service.problems import BODY_SECONDS, MOST_BODY, Handler, Problem, json_body
from pubsub_emulator.distributor.service.requests import Wish, parse_wish
from pubsub_emulator.serving.body import read_body
from pubsub_emulator.serving.guard import JSON, Names, guard

JWT: Final = "application/jwt"
Route = tuple[str, str, str, str]
"""Method, path, the right that it needs, and the name of the handler."""

_ROUTES: Final[tuple[Route, ...]] = (
    ("POST", "/publishEvent", "publish", "publish"),
    ("POST", "/subscribe", "subscribe", "subscribe"),
    ("POST", "/subscribe/all", "subscribe", "subscribe"),
    ("GET", "/subscribe", "read", "subscriptions"),
    ("DELETE", "/subscribe/{subscription}", "subscribe", "unsubscribe"),
    ("GET", "/events", "read", "events"),
    ("GET", "/publications/{id}", "read", "publication"),
)


class Interface(ABC):
    """Routes and the answers that are alike; at most `most_requests` are served at once.

    `private` allows endpoints at private addresses. A subclass has the handlers that `ROUTES` and `_ROUTES` name.
    """

    DISTRIBUTOR: ClassVar[bool]
    ROUTES: ClassVar[tuple[Route, ...]] = ()

    def __init__(
        self, access: Access, metrics: Metrics, *, private: bool, names: Names, most_requests: int = 1000
    ) -> None:
        self._access = access
        self._names = names
        self._private = private
        self.metrics = metrics
        self._most = most_requests
        self._serving = 0

    def _routed(self, *middlewares: Middleware) -> web.Application:
        named = guard(self._names, JSON, JWT)
        app = web.Application(client_max_size=MOST_BODY, middlewares=(*middlewares, named))
        guarded = self._access.guarded
        for base in ("/api/v1", "/api/v2"):
            for method, path, right, handler in (*_ROUTES, *self.ROUTES):
                app.router.add_route(method, base + path, guarded(right, self._whole(getattr(self, handler))))
        app.router.add_route("GET", "/health", self.health)
        app.router.add_route("GET", "/livez", self.alive)
        app.router.add_route("GET", "/metrics", guarded("read", self._whole(self.metrics_text)))
        app.router.add_route("GET", "/openapi.json", self.openapi)
        for path in ("/", "/docs"):
            app.router.add_route("GET", path, self.page)
        return app

    def _whole(self, handler: Handler) -> Handler:
        """Serve a request once its body is here, so that one that is not keeps nobody out; beyond the most: 429."""

        async def take(request: web.Request) -> web.StreamResponse:
            await read_body(request, BODY_SECONDS)
            if self._serving >= self._most:
                raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests")
            self._serving += 1
            try:
                return await handler(request)
            finally:
                self._serving -= 1

        return take

    async def subscribe(self, request: web.Request) -> web.Response:
        """Subscribe to events of some types or, at `/subscribe/all`, to every event."""
        everything = request.path.endswith("/all")
        wish = parse_wish(await json_body(request), everything=everything, private=self._private)
        return await self._subscribed(wish)

    @abstractmethod
    async def _subscribed(self, wish: Wish) -> web.Response: ...

    @abstractmethod
    async def health(self, request: web.Request) -> web.Response:
        """Whether the parts of the service answer."""

    async def alive(self, _request: web.Request) -> web.Response:
        """The process answers."""
        return web.json_response({"status": "UP"})

    @abstractmethod
    async def _gauges(self) -> dict[str, tuple[str, float]]: ...

    async def metrics_text(self, _request: web.Request) -> web.Response:
        """Counters and gauges."""
        text = self.metrics.text(await self._gauges())
        return web.Response(text=text, content_type="text/plain", charset="utf-8")

    async def openapi(self, _request: web.Request) -> web.Response:
        """The description of this interface."""
        return web.json_response(document(distributor=self.DISTRIBUTOR))

    async def page(self, _request: web.Request) -> web.Response:
        """The calls, for a reader."""
        return web.Response(text=page(distributor=self.DISTRIBUTOR))


def listed(name: str, types: Sequence[str], metadata: Sequence[str], endpoint: str) -> dict[str, object]:
    """A subscription as `GET /subscribe` lists it, without its secret."""
    return {"subscriptionId": name, "eventTypes": types, "metadata": metadata, "notificationEndpoint": endpoint}


def wants_representation(request: web.Request) -> bool:
    """Whether `Prefer` asks for `return=representation` (RFC 7240)."""
    wishes = ",".join(request.headers.getall("Prefer", [])).split(",")
    return any(wish.strip().lower() == "return=representation" for wish in wishes)
