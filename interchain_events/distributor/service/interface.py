"""The base of the HTTP interfaces of distributors and adapters (ID-10).

Both have the same routes, so a distributor can be used wherever an adapter can (ID-2).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from http import HTTPStatus
from typing import ClassVar, Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.metrics import Gauge, Metrics
from interchain_events.distributor.service.openapi import document, page
from interchain_events.distributor.service.problems import (
    BODY_SECONDS,
    MOST_BODY,
    Handler,
    Problem,
    json_body,
)
from interchain_events.distributor.service.requests import SubscriptionRequest, parse_subscription
from pubsub_emulator.serving.body import read_body
from pubsub_emulator.serving.guard import JSON, Names, guard, let_read

JWT: Final = "application/jwt"
"""The content type of signed publications."""
Route = tuple[str, str, str, str]
"""The method, the path, the right that is needed, and the name of the method that handles it."""

_ROUTES: Final[tuple[Route, ...]] = (
    ("POST", "/publishEvent", "publish", "publish"),
    ("POST", "/subscribe", "subscribe", "subscribe"),
    ("POST", "/subscribe/all", "subscribe", "subscribe"),
    ("GET", "/subscribe", "read", "subscriptions"),
    ("DELETE", "/subscribe/{subscription}", "subscribe", "unsubscribe"),
    ("GET", "/events", "read", "events"),
    ("GET", "/publications/{id}", "read", "publication"),
)
"""The routes that distributors and adapters have in common."""


class HttpInterface(ABC):
    """The common routes, and the handlers that are the same for distributors and adapters.

    A subclass has the handlers named in `_ROUTES` and in its own `ROUTES`. `private` allows
    endpoints at private addresses. At most `most_requests` requests are served at once.
    """

    DISTRIBUTOR: ClassVar[bool]
    """Whether this is a distributor or an adapter. This decides which description is served."""
    ROUTES: ClassVar[tuple[Route, ...]] = ()
    """The routes that only the subclass has."""

    def __init__(
        self,
        access: AccessRights,
        metrics: Metrics,
        *,
        private: bool,
        names: Names,
        most_requests: int = 1000,
    ) -> None:
        self._access = access
        self._names = names
        self._private = private
        self.metrics = metrics
        self._most = most_requests
        self._serving = 0
        """The number of requests that are being served."""

    def _routed(self, *middlewares: Middleware) -> web.Application:
        """Return an application with all routes and middlewares.

        The last middleware is the innermost.
        """
        named = guard(self._names, JSON, JWT)
        app = web.Application(client_max_size=MOST_BODY, middlewares=(*middlewares, named))
        let_read(app, self._names)
        guarded = self._access.guarded
        for base in ("/api/v1", "/api/v2"):
            for method, path, right, handler in (*_ROUTES, *self.ROUTES):
                app.router.add_route(
                    method, base + path, guarded(right, self._whole(getattr(self, handler)))
                )
        app.router.add_route("GET", "/health", self.health)
        app.router.add_route("GET", "/livez", self.alive)
        app.router.add_route("GET", "/metrics", guarded("read", self._whole(self.metrics_text)))
        app.router.add_route("GET", "/openapi.json", self.openapi)
        for path in ("/", "/docs"):
            app.router.add_route("GET", path, self.page)
        return app

    def _whole(self, handler: Handler) -> Handler:
        """Wrap a handler so that it runs only after the request's body has been read.

        So slow bodies do not use up the number of requests that are served at once. If that number
        is reached, the answer has status 429.
        """

        async def serve(request: web.Request) -> web.StreamResponse:
            await read_body(request, BODY_SECONDS)
            if self._serving >= self._most:
                raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests")
            self._serving += 1
            try:
                return await handler(request)
            finally:
                self._serving -= 1

        return serve

    async def subscribe(self, request: web.Request) -> web.Response:
        """Subscribe to events of some types or, at `/subscribe/all`, to every event."""
        everything = request.path.endswith("/all")
        wanted = parse_subscription(
            await json_body(request), everything=everything, private=self._private
        )
        return await self._subscribed(wanted)

    @abstractmethod
    async def _subscribed(self, wanted: SubscriptionRequest) -> web.Response:
        """Store a subscription and answer with its name."""

    @abstractmethod
    async def health(self, request: web.Request) -> web.Response:
        """Answer with the state of the service's parts."""

    async def alive(self, _request: web.Request) -> web.Response:
        """Answer that the process is alive."""
        return web.json_response({"status": "UP"})

    @abstractmethod
    async def _gauges(self) -> dict[str, Gauge]:
        """Return each gauge by name."""

    async def metrics_text(self, _request: web.Request) -> web.Response:
        """Answer with counters and gauges."""
        text = self.metrics.text(await self._gauges())
        return web.Response(text=text, content_type="text/plain", charset="utf-8")

    async def openapi(self, _request: web.Request) -> web.Response:
        """Answer with the OpenAPI description of this interface."""
        return web.json_response(document(distributor=self.DISTRIBUTOR))

    async def page(self, _request: web.Request) -> web.Response:
        """Answer with a list of the calls in plain text."""
        return web.Response(text=page(distributor=self.DISTRIBUTOR))


def listed(
    name: str, types: Sequence[str], metadata: Sequence[str], endpoint: str
) -> dict[str, object]:
    """Return a subscription as `GET /subscribe` lists it, without its secret."""
    return {
        "subscriptionId": name,
        "eventTypes": types,
        "metadata": metadata,
        "notificationEndpoint": endpoint,
    }


def wants_representation(request: web.Request) -> bool:
    """Return whether the header `Prefer` asks for `return=representation` (RFC 7240)."""
    wishes = ",".join(request.headers.getall("Prefer", [])).split(",")
    return any(wish.strip().lower() == "return=representation" for wish in wishes)
