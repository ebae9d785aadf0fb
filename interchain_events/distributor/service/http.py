"""The HTTP interface of a distributor (ID-10)."""

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from interchain_events.database.errors import StoreError
from interchain_events.distributor.core import messages, rows
from interchain_events.distributor.core.hooks import for_interest
from interchain_events.distributor.core.states import NOT_READ, NetworkState, status_of
from interchain_events.distributor.event import Notice, parse_notification, parse_publication
from interchain_events.distributor.once import Transaction
from interchain_events.distributor.service import requests
from interchain_events.distributor.service.access import AccessRights, Verifier, jwt_event
from interchain_events.distributor.service.adapters import Query
from interchain_events.distributor.service.engine import Engine
from interchain_events.distributor.service.figures import Figures, read_figures
from interchain_events.distributor.service.interface import (
    HttpInterface,
    listed,
    wants_representation,
)
from interchain_events.distributor.service.metrics import Gauge, gauge
from interchain_events.distributor.service.problems import (
    Handler,
    Problem,
    bad,
    json_body,
    not_found,
    problems,
)
from interchain_events.distributor.service.standing import Party
from interchain_events.distributor.service.status_page import (
    MOST_ROWS,
    POLICY,
    REFRESH,
    Check,
    NetworkLine,
    StatusPage,
    SubscriptionLine,
    status_page,
)
from pubsub_emulator.serving.guard import Names
from pubsub_emulator.serving.metrics import Labels

MOST_EVENT_BYTES: Final = 16 * 2**20
"""The greatest size of the events that are read from a network for one query, in bytes."""
MOST_PAGES: Final = 20
"""The greatest number of pages that are read from a network for one query."""
FIGURES_SECONDS: Final = 5.0
"""How long the figures of `/metrics` and of the status page are cached. Counting reads all jobs."""
HEALTH_SECONDS: Final = 2.0
"""How long a health check waits for the store."""


class DistributorHttp(HttpInterface):
    """The routes of one engine.

    `private` allows endpoints at private addresses. `most` is the number of requests that are
    served at once. `names` are the host names by which the distributor may be called.
    """

    DISTRIBUTOR = True
    ROUTES = (
        ("GET", "/dead-letters", "admin", "dead_letters"),
        ("POST", "/dead-letters/{letter}/redrive", "admin", "redrive"),
    )

    def __init__(
        self,
        engine: Engine,
        access: AccessRights,
        *,
        verifier: Verifier | None,
        private: bool,
        most: int,
        names: Names,
        signed_only: bool = False,
    ) -> None:
        super().__init__(access, engine.metrics, private=private, names=names, most_requests=most)
        self._engine = engine
        self._signed_only = signed_only
        """Whether publications must be in `application/jwt`."""
        self._known: Figures | None = None
        """The figures that were read last."""
        self._counted = 0.0
        """The time of the monotonic clock, in seconds, at which they were read."""
        self._verifier = verifier

    def application(self) -> web.Application:
        """Return the application. Its caller starts and stops the engine.

        The routes of notifications need no right, because their URLs have keys.
        """
        app = self._routed(self._measured, problems)
        app.router.add_post("/internal/eventNotification/{network}/{key}", self.notification)
        app.router.add_post(
            "/internal/desmosNotification/{network}/{subscription}/{key}", self.notification
        )
        return app

    @web.middleware
    async def _measured(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count requests by route and status."""
        # This middleware is the outermost one, so it also counts answers made from errors.
        response = await handler(request)
        resource = request.match_info.route.resource
        route = "" if resource is None else resource.canonical
        self.metrics.count(
            "requests", method=request.method, route=route, status=str(response.status)
        )
        return response

    # publishing

    async def publish(self, request: web.Request) -> web.Response:
        """Publish an event on every network.

        Answers with the block time in seconds, or with the states on all networks if the client
        prefers the representation. The time is 0 if no network has the event yet.
        """
        signed = request.content_type == "application/jwt"
        if self._signed_only and not signed:
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "not-signed",
                "only signed publications are accepted: Content-Type: application/jwt",
            )
        fields: object
        if signed:
            fields = await jwt_event(self._verifier, await request.read())
        else:
            fields = await json_body(request)
        event_id, event = parse_publication(fields)
        requests.check_receiver(request, fields, self._engine.rules.public_url)
        reply, states = await self._engine.publish(event_id, event)
        if states is None:
            raise Problem(
                HTTPStatus.CONFLICT, "conflict", "the same id was published with other content"
            )
        status = status_of(states, new=reply.new)
        if status == HTTPStatus.UNPROCESSABLE_ENTITY:
            detail = "; ".join(f"{state.name}: {state.error}" for state in states.networks)
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, "refused", f"every network refuses: {detail}"
            )
        body: Any = states.time
        if not body and status != HTTPStatus.ACCEPTED:
            # The adapters did not report the time of the block.
            body = int(time.time())
        headers = {}
        if wants_representation(request):
            body = {
                "globalId": event_id,
                "networks": [self._state(state) for state in states.networks],
            }
            if states.time:
                body["timestamp"] = states.time
            headers["Preference-Applied"] = "return=representation"
        return web.json_response(body, status=status, headers=headers)

    async def publication(self, request: web.Request) -> web.Response:
        """Answer with the states of an id on all networks."""
        event_id = _named(request, "id")
        states = await self._engine.where(event_id)
        if not states.known:
            raise not_found("no event with this id is known")
        return web.json_response(
            {"globalId": event_id, "networks": [self._state(state) for state in states.networks]}
        )

    def _state(self, state: NetworkState) -> dict[str, str]:
        """Return the state on a network, as it is sent to the client.

        If the network's log is not read yet because its adapter fails, the error says why.
        """
        fields = {"name": state.name, "state": state.state}
        error = state.error
        if error == NOT_READ:
            error = self._engine.standing.cause(Party.ADAPTER, state.name) or error
        if error:
            fields["error"] = error
        return fields

    # subscriptions

    async def _subscribed(self, wanted: requests.SubscriptionRequest) -> web.Response:
        """Store a subscription, and answer with its name and with what each network said.

        Raises a `Problem` with status 429 if there are too many subscriptions.
        """
        request = messages.Subscribe(
            *wanted, fresh=secrets.token_hex(16), key=secrets.token_hex(16)
        )
        reply = messages.reply_of(await self._engine.tell(request))
        if reply.code:
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, reply.code, reply.value)
        answers = await self._on_networks(reply, request)
        networks = [_success(name, success=accepted) for name, accepted in answers]
        status = HTTPStatus.CREATED if reply.new else HTTPStatus.OK
        return web.json_response(
            {"subscriptionId": reply.value, "networks": networks}, status=status
        )

    async def _on_networks(
        self, reply: messages.Reply, request: messages.Subscribe
    ) -> list[tuple[str, bool]]:
        """Subscribe on every adapter, and return each network's name and whether it has accepted.

        If one fails, the next comparison tries it again (ID-32). If an equal subscription existed
        before, the stored answers are returned.
        """
        names = self._engine.rules.networks
        if not reply.new:
            places = [(name, f"{name}|{reply.value}") for name in names]
            return await self._engine.look(
                lambda tx: [(name, tx.get(rows.HOOKS, place) is not None) for name, place in places]
            )
        hooks = (for_interest(self._engine.rules, name, reply.value, request) for name in names)
        answers = await asyncio.gather(*map(self._engine.make_hook, hooks))
        for answer in answers:
            await self._engine.tell(answer)
        return [(answer.network, bool(answer.accepted)) for answer in answers]

    async def subscriptions(self, _request: web.Request) -> web.Response:
        """Answer with every subscription, without secrets."""
        answer = []
        for name, text in await self._engine.read_all(rows.SUBSCRIPTIONS):
            interest = rows.Interest(*json.loads(text))
            fields = listed(name, interest.types, interest.metadata, endpoint=interest.endpoint)
            answer.append({**fields, "active": bool(interest.active)})
        return web.json_response(answer)

    async def unsubscribe(self, request: web.Request) -> web.Response:
        """Remove a subscription."""
        name = _named(request, "subscription")
        reply = messages.reply_of(await self._engine.tell(messages.Unsubscribe(name)))
        if reply.code:
            raise not_found("there is no subscription with this name")
        return web.Response(status=HTTPStatus.NO_CONTENT)

    # notifications

    async def notification(self, request: web.Request) -> web.StreamResponse:
        """Take an adapter's notification, and answer with status 200 when it is stored (ID-31).

        The key is checked before the body is read, so that strangers cannot make the distributor
        read bodies.
        """
        network = _named(request, "network")
        key = _named(request, "key")
        subscription = (
            _named(request, "subscription") if "subscription" in request.match_info else None
        )
        if network not in self._engine.rules.networks:
            raise not_found("there is no network with this name")
        if not await self._engine.is_key(network, subscription, key):
            raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "the key is wrong")

        async def store(request: web.Request) -> web.Response:
            named, notice = parse_notification(await json_body(request))
            if named is not None and named != network:
                raise bad(
                    "wrong-network",
                    f"a notification of {named!r} came to the address of {network!r}",
                )
            notice = self._engine.as_published(network, notice)
            reply = messages.reply_of(
                await self._engine.tell(messages.Noticed(network, key, notice, subscription))
            )
            if reply.code == "unauthorized":
                raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "the key is wrong")
            if reply.code:
                raise not_found("there is no network with this name")
            return web.json_response({})

        return await self._whole(store)(request)

    # dead letters

    async def dead_letters(self, _request: web.Request) -> web.Response:
        """Answer with every dead letter."""
        letters = await self._engine.read_all(rows.DEAD)
        return web.json_response(
            [_letter(name, rows.DeadLetter(*json.loads(text))) for name, text in letters]
        )

    async def redrive(self, request: web.Request) -> web.Response:
        """Try a dead letter again, and answer with status 202 and the event's id."""
        reply = messages.reply_of(
            await self._engine.tell(messages.Redrive(_named(request, "letter")))
        )
        if reply.code == "not-found":
            raise not_found("there is no dead letter with this name")
        if reply.code:
            raise Problem(HTTPStatus.CONFLICT, reply.code, reply.value)
        return web.json_response({"globalId": reply.value}, status=HTTPStatus.ACCEPTED)

    # events

    async def events(self, request: web.Request) -> web.Response:
        """Answer with the events of all networks, each once, ascending by time.

        An event that is on several networks is shown from the first of them that answers. The
        header `IED-Missing` names the networks that did not answer, and `IED-Next` has the cursor
        after this page.
        """
        query = requests.parse_query(request.query)
        cursor = requests.read_cursor(request.query.get("after", ""))
        names = self._engine.rules.networks
        parts = await asyncio.gather(
            *(self._of_network(name, query, cursor.get(name, 0)) for name in names)
        )
        missing = [name for name, part in zip(names, parts, strict=True) if part is None]
        reached = {name: part for name, part in zip(names, parts, strict=True) if part is not None}
        merged: list[tuple[str, Notice]] = []
        for name, part in reached.items():
            merged += [(name, notice) for notice in part]
        homes = await self._homes([notice.id for _, notice in merged if notice.id], reached)
        merged.sort(key=lambda row: (row[1].time, row[0], row[1].number))
        merged = merged[: requests.horizon(merged, reached, query.limit)]
        matching = [
            (name, notice)
            for name, notice in merged
            if notice.id and homes.get(notice.id, name) == name
        ]
        if not query.all:
            matching = requests.newest_per_entity(matching, lambda row: row[1].event.order)
        page = matching[: query.limit]
        headers = {"IED-Missing": ",".join(missing)} if missing else {}
        # The next page begins after the last row that was shown or left out here.
        passed = merged
        if len(page) < len(matching):
            passed = merged[: merged.index(page[-1]) + 1]
        if passed:
            headers["IED-Next"] = requests.write_cursor(cursor, passed)
        return web.json_response([notice.row() for _, notice in page], headers=headers)

    async def _of_network(self, name: str, query: Query, after: int) -> list[Notice] | None:
        """Return the events of one network, `None` if its adapter did not answer.

        One page is enough for a query for all events. A query for the newest event of each entity
        needs all pages. Raises a `Problem` if they have too many events.
        """
        adapter = self._engine.adapters[name]
        notices = list[Notice]()
        size = 0
        for _ in range(MOST_PAGES):
            part = await adapter.query(query._replace(after=after))
            if part is None:
                return None
            notices += part
            size += sum(map(_weight, part))
            if size > MOST_EVENT_BYTES:
                break
            if query.all or len(part) < query.limit or name in self._engine.rules.legacy:
                return notices
            after = part[-1].number
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY, "too-many", "too many events; request a shorter time"
        )

    async def _homes(self, ids: list[str], reached: Mapping[str, object]) -> dict[str, str]:
        """Return for each id the network from which it is shown.

        It is the first network in `reached` that has the id.
        """

        def look(tx: Transaction) -> dict[str, str]:
            homes: dict[str, str] = {}
            for event_id in ids:
                # Later names replace earlier ones, so the first network remains.
                for name in reversed(self._engine.rules.networks):
                    if name in reached and tx.has(rows.published(name), event_id):
                        homes[event_id] = name
            return homes

        return await self._engine.look(look)

    # operations

    async def health(self, _request: web.Request) -> web.Response:
        """Answer with the state of the store, of the adapters and of the alarms.

        Only a store that is down makes the whole service `DOWN`.
        """
        checks = await self._checks()
        status = _worst(checks)
        listed = []
        for check in checks:
            fields = {"name": check.name, "status": check.status}
            if check.cause:
                fields["cause"] = check.cause
            listed.append(fields)
        code = HTTPStatus.SERVICE_UNAVAILABLE if status == "DOWN" else HTTPStatus.OK
        return web.json_response({"status": status, "checks": listed}, status=code)

    async def _checks(self) -> list[Check]:
        """Return the state of the store and of each adapter, and a check for each alarm."""
        standing = self._engine.standing
        alarms: list[tuple[str, str]] = []
        try:
            alarms = await asyncio.wait_for(self._engine.read_all(rows.ALARMS), HEALTH_SECONDS)
            cause = standing.cause(Party.STORE, "store")
        except TimeoutError:
            cause = f"no answer within {HEALTH_SECONDS:g} s"
        except StoreError as error:
            cause = str(error)
        checks = [Check("store", "DOWN" if cause else "UP", cause)]
        for name, reached in self._engine.reached.items():
            is_silent = reached.failed_at > reached.answered_at
            cause = standing.cause(Party.ADAPTER, name) if is_silent else ""
            checks.append(Check(f"adapter {name}", "DEGRADED" if is_silent else "UP", cause))
        for name, text in alarms:
            network = name.partition("|")[0]
            event_id, _, times = text.rpartition(": ")
            cause = f"the adapter accepted {event_id} {times}, and the network does not have it"
            checks.append(Check(f"acceptances of {network}", "DEGRADED", cause))
        return checks

    async def _figures(self) -> Figures:
        """Return the figures of the store, which are cached for `FIGURES_SECONDS`.

        Raises `StoreError`.
        """
        age = time.monotonic() - self._counted
        if self._known is None or age > FIGURES_SECONDS:
            self._known = await self._engine.in_thread(read_figures, self._engine.store)
            self._counted = time.monotonic()
        return self._known

    async def _gauges(self) -> dict[str, Gauge]:
        """Return each gauge by name, without those that need the store if it is down."""
        engine = self._engine
        names = engine.rules.networks
        standing = engine.standing
        now = time.monotonic()
        gauges = {
            "store_trips": gauge("Questions to the store since the start.", engine.store.trips()),
            "requests_now": gauge("Requests being served.", self._serving),
            "adapter_up": Gauge(
                "1 if the adapter of a network answers, else 0.",
                [(_label(name), float(not standing.cause(Party.ADAPTER, name))) for name in names],
            ),
            "adapter_silent_seconds": Gauge(
                "Seconds since the adapter of a network last answered.",
                [(_label(name), now - engine.reached[name].answered_at) for name in names],
            ),
            "subscribers_down": gauge(
                "Subscribers whose last notification failed.",
                len(standing.names(Party.SUBSCRIBER)),
            ),
            "store_losses": gauge(
                "How often the store was found to have lost rows since the start.", engine.losses
            ),
        }
        try:
            backlog = await engine.in_thread(engine.store.backlog)
            figures = await self._figures()
        except StoreError:
            return {**gauges, "store_up": gauge(_STORE_UP, 0)}
        return {
            **gauges,
            "store_up": gauge(_STORE_UP, float(not standing.cause(Party.STORE, "store"))),
            "backlog": gauge("Stored rows that wait for a time: jobs, checks and timers.", backlog),
            "waiting_events": Gauge(
                "Events that wait to be published on a network.",
                [(_label(name), figures.waiting(name)) for name in names],
            ),
            "oldest_event_seconds": Gauge(
                "Seconds for which the oldest event has waited for a network.",
                [(_label(name), figures.age(rows.on_network(name))) for name in names],
            ),
            "refused_events": Gauge(
                "Events that were given up on a network.",
                [(_label(name), figures.refused(name)) for name in names],
            ),
            "waiting_notifications": gauge(
                "Notifications that wait for a subscriber.",
                sum(figures.jobs[target] for target in figures.notified()),
            ),
            "oldest_notification_seconds": gauge(
                "Seconds for which the oldest notification has waited.",
                figures.age(*figures.notified()),
            ),
            "undelivered_notifications": gauge(
                "Notifications that were given up.", figures.undelivered()
            ),
        }

    async def page(self, request: web.Request) -> web.Response:
        """Answer with the status page, or with a list of the calls unless HTML is asked for."""
        if request.path != "/" or "text/html" not in request.headers.get("Accept", ""):
            return await super().page(request)
        return web.Response(
            text=status_page(await self._status(is_refreshed=REFRESH in request.query)),
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-store"},
        )

    async def _status(self, *, is_refreshed: bool) -> StatusPage:
        """Return the content of the status page.

        The page needs no token, so it shows subscriptions only if callers need no token either.
        """
        engine = self._engine
        checks = await self._checks()
        figures = Figures()
        lines: list[SubscriptionLine] | None = None
        total = 0
        try:
            figures = await self._figures()
            if self._access.everyone:
                subscriptions = await engine.read_all(rows.SUBSCRIPTIONS)
                total = len(subscriptions)
                lines = [
                    self._line(name, text, figures) for name, text in subscriptions[:MOST_ROWS]
                ]
        except StoreError as error:
            engine.store_failed(error)
        networks = [
            NetworkLine(
                name,
                engine.standing.cause(Party.ADAPTER, name),
                waiting=figures.waiting(name),
                oldest=figures.age(rows.on_network(name)),
                given_up=figures.refused(name),
            )
            for name in engine.rules.networks
        ]
        return StatusPage(
            engine.rules.public_url,
            _worst(checks),
            checks,
            networks,
            subscriptions=lines,
            total=total,
            is_refreshed=is_refreshed,
        )

    def _line(self, name: str, text: str, figures: Figures) -> SubscriptionLine:
        """Return a subscription for the status page."""
        interest = rows.Interest(*json.loads(text))
        return SubscriptionLine(
            name,
            interest.types,
            interest.endpoint,
            waiting=figures.jobs[rows.to_subscription(name)],
            cause=self._engine.standing.cause(Party.SUBSCRIBER, name),
            active=bool(interest.active),
        )


_STORE_UP: Final = "1 if the store answers, else 0."


def _label(network: str) -> Labels:
    """Return the labels of a value that belongs to a network."""
    return (("network", network),)


def _weight(notice: Notice) -> int:
    """Return the approximate size of a notice's texts, in bytes."""
    event = notice.event
    return len(event.data_location) + len(event.event_type) + sum(map(len, event.metadata))


def _worst(checks: list[Check]) -> str:
    """Return the worst status of the checks."""
    statuses = {check.status for check in checks}
    for status in ("DOWN", "DEGRADED"):
        if status in statuses:
            return status
    return "UP"


def _success(network: str, *, success: bool) -> dict[str, object]:
    """Return an adapter's answer to a subscription, as it is sent to the client."""
    fields: dict[str, object] = {"name": network, "success": success}
    if not success:
        fields["error"] = "the adapter has not accepted it yet"
    return fields


def _letter(name: str, letter: rows.DeadLetter) -> dict[str, object]:
    """Return a dead letter, as it is sent to an operator."""
    kind, _, target = letter.target.partition(":")
    return {
        "letterId": name,
        "globalId": letter.id,
        "network" if kind == "n" else "subscription": target,
        "reason": letter.reason,
        "timestamp": letter.time,
        "tries": letter.tries,
    }


def _named(request: web.Request, part: str) -> str:
    """Return the part of the path with a name.

    Raises a `Problem` with status 404 if stores cannot write the text or it is too long.
    """
    text = request.match_info[part]
    if not requests.is_storable(text) or len(text) > requests.MOST_CURSOR:
        raise not_found()
    return text
