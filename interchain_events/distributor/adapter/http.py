"""The HTTP interface of an adapter (ID-10). It is that of a distributor for one network."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import lru_cache
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp import web

from interchain_events.distributor.adapter.desk import Desk
from interchain_events.distributor.adapter.ledger import Ledger, selected
from interchain_events.distributor.core.messages import No, Unknown
from interchain_events.distributor.event import Notice, parse_publication
from interchain_events.distributor.once import Store
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.interface import (
    HttpInterface,
    listed,
    wants_representation,
)
from interchain_events.distributor.service.metrics import Gauge, Metrics, gauge
from interchain_events.distributor.service.poster import Poster
from interchain_events.distributor.service.problems import (
    Problem,
    bad,
    json_body,
    not_found,
    problems,
)
from interchain_events.distributor.service.requests import (
    SubscriptionRequest,
    check_receiver,
    parse_number,
    parse_query,
)
from pubsub_emulator.serving.guard import LOCAL, Names

T = TypeVar("T")

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


@lru_cache(1024)
def notification(network: str, notice: Notice) -> bytes:
    """Return the body of a notification. It is cached: all subscriptions get the same one."""
    return _ENCODER.encode({**notice.body(), "network": network}).encode()


class AdapterHttp(HttpInterface):
    """The HTTP interface of one adapter.

    It may notify private addresses, because a distributor usually runs near its adapters. `node` is
    the URL of the network's node, which publications may name as their receiver.
    """

    DISTRIBUTOR = False

    def __init__(
        self,
        network: str,
        ledger: Ledger,
        store: Store,
        access: AccessRights,
        *,
        node: str = "",
        names: Names = LOCAL,
    ) -> None:
        super().__init__(access, Metrics(), private=True, names=names)
        self._ledger = ledger
        self._node = node
        self._poster = Poster(private=True)
        self.desk = Desk(ledger, store, self.post)
        self._network = network

    def application(self) -> web.Application:
        """Return the application. Its start and stop also start and stop the deliveries."""
        app = self._routed(problems)
        app.cleanup_ctx.append(self._life)
        return app

    async def _life(self, _app: web.Application) -> AsyncIterator[None]:
        """Start the deliveries with the application, and stop them with it."""
        await self.desk.start()
        yield
        await self.desk.stop()
        await self._poster.close()
        await self._ledger.close()

    async def post(self, endpoint: str, notices: list[Notice]) -> list[bool]:
        """Notify an endpoint of all notices concurrently.

        Returns for each notice whether it was acknowledged with a status of 200 to 299.
        """
        return await asyncio.gather(*(self._post(endpoint, notice) for notice in notices))

    async def _post(self, endpoint: str, notice: Notice) -> bool:
        """Notify an endpoint of one event.

        Returns whether it was acknowledged with a status of 200 to 299.
        """
        result = await self._poster.send(endpoint, notification(self._network, notice))
        status = result.status
        self.metrics.count("posts", outcome="none" if status is None else f"{status // 100}xx")
        return status is not None and status // 100 == 2

    async def publish(self, request: web.Request) -> web.Response:
        """Publish an event on the network, and answer when it is in the log."""
        fields = await json_body(request)
        event_id, event = parse_publication(fields)
        check_receiver(request, fields, self._node)
        answer = await self._ledger.publish(event)
        self.metrics.count("calls", network=self._network, outcome=type(answer).__name__.lower())
        if isinstance(answer, No):
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", answer.reason)
        if isinstance(answer, Unknown):
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "network-down", answer.reason)
        body: object = answer.time
        if wants_representation(request):
            state = {"name": self._network, "state": "published"}
            body = {"globalId": event_id, "timestamp": answer.time, "networks": [state]}
        return web.json_response(body, status=HTTPStatus.CREATED if answer.new else HTTPStatus.OK)

    async def _subscribed(self, wanted: SubscriptionRequest) -> web.Response:
        """Store a subscription. Refuse one with a secret, because adapters do not sign."""
        if wanted.secret is not None:
            raise bad(
                "bad-subscription", "secret: an adapter does not sign; let a distributor do it"
            )
        name, new = await self.desk.subscribe(wanted)
        body = {"subscriptionId": name, "networks": [{"name": self._network, "success": True}]}
        return web.json_response(body, status=HTTPStatus.CREATED if new else HTTPStatus.OK)

    async def subscriptions(self, _request: web.Request) -> web.Response:
        """Answer with every subscription."""
        subscriptions = self.desk.subscriptions()
        return web.json_response([listed(name, *row) for name, row in subscriptions])

    async def unsubscribe(self, request: web.Request) -> web.Response:
        """End a subscription."""
        name = request.match_info["subscription"]
        if "\0" in name or not name.isascii() or not self.desk.unsubscribe(name):
            raise not_found("there is no subscription with this name")
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def events(self, request: web.Request) -> web.Response:
        """Answer with the log's events that match the query."""
        query = parse_query(request.query)._replace(after=parse_number(request.query))
        notices = _reached(await selected(self._ledger, query))
        return web.json_response([notice.row() for notice in notices])

    async def publication(self, request: web.Request) -> web.Response:
        """Answer with the state of an id, or with status 404 if the log does not have it."""
        event_id = request.match_info["id"]
        if not _reached(await self._ledger.has(event_id)):
            raise not_found("the network has no event with this id")
        state = {"name": self._network, "state": "seen"}
        return web.json_response({"globalId": event_id, "networks": [state]})

    async def health(self, _request: web.Request) -> web.Response:
        """Answer whether the network can be read: with status 200 if it can, otherwise 503."""
        page = await self._ledger.read(0, 1)
        status = "DOWN" if page is None else "UP"
        body = {
            "status": status,
            "checks": [{"name": f"network {self._network}", "status": status}],
        }
        return web.json_response(
            body, status=HTTPStatus.OK if page is not None else HTTPStatus.SERVICE_UNAVAILABLE
        )

    async def _gauges(self) -> dict[str, Gauge]:
        """Return each gauge by name."""
        return {
            "notifications_given_up": gauge("Notifications that were given up.", self.desk.lost)
        }


def _reached(answer: T | None) -> T:
    """Return an answer of the ledger.

    Raises a `Problem` with status 503 if it is `None`: the network could not be reached.
    """
    if answer is None:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "network-down")
    return answer
