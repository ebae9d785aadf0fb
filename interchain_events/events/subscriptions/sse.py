"""The HTTP front: subscriptions as JSON, events as server-sent events (EV-25).

    POST   /subscriptions   {"filters": [f, …], "after": cursor?, "batches": bool?}
                            -> 201 {"token", "after"}
    DELETE /subscriptions   Authorization: Bearer <token>  -> 204
    GET    /events          the same header or ?token=
                            ?after=<cursor> or ?after=start, and Last-Event-ID resumes
    GET    /health          200 while the log answers, otherwise 503
    GET    /metrics         Prometheus text

Each event has its cursor as id. `event: event` has one row. If the subscription accepts batches,
`event: events` has a list of rows. An id alone is a heartbeat: it moves Last-Event-ID, but browsers
do not dispatch an event for it. A stream that cannot continue ends with `event: end` and the
reason. The id of that event is the cursor from which to resume. Errors are problem+json (RFC 9457).
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from interchain_events.database.errors import StoreError, StoreUnavailable
from interchain_events.events.errors import (
    BadCursor,
    BadFilter,
    CursorAbandoned,
    EventsError,
    LimitReached,
    UnknownToken,
)
from interchain_events.events.filters.algebra import Filter
from interchain_events.events.filters.codec import MAX_BYTES, filters_from_json
from interchain_events.events.rows import Row, row_json
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers, UnknownCaller
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.hub import Message
from interchain_events.events.subscriptions.service import EventService
from interchain_events.events.subscriptions.streams import Ended
from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.serving.body import read_body
from pubsub_emulator.serving.guard import Names, guard, let_read
from pubsub_emulator.serving.listening import listening
from pubsub_emulator.serving.metrics import family, sample

SERVICE: Final = web.AppKey("service", EventService[Filter])
"""The key under which the application has its service."""

_STATUS: Final[dict[type[Exception], HTTPStatus]] = {
    BadFilter: HTTPStatus.BAD_REQUEST,
    BadCursor: HTTPStatus.BAD_REQUEST,
    UnknownToken: HTTPStatus.NOT_FOUND,
    UnknownCaller: HTTPStatus.UNAUTHORIZED,
    CursorAbandoned: HTTPStatus.GONE,
    LimitReached: HTTPStatus.TOO_MANY_REQUESTS,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    Ended: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The HTTP status of each expected error. Others have status 400."""
_COUNTERS: Final = {
    "rows": "Rows handed to clients.",
    "messages": "Messages with rows handed to clients.",
    "heartbeats": "Messages without rows.",
    "catch_up_reads": "Reads of the log for clients that were behind.",
    "streams_opened": "Streams opened.",
    "streams_abandoned": "Streams ended because their events were reverted.",
}
"""The help texts of the counters."""
_GRACE_SECONDS: Final = 2.0
_CACHED: Final = 2_048
"""The number of rows whose texts are cached, for clients that read the same part of the log."""


class _Front:
    """The routes of one service."""

    def __init__(self, service: EventService[Filter], names: Names, callers: Callers) -> None:
        self._callers = callers
        self._service = service
        self._names = names
        self._texts: dict[int, tuple[bytes, bytes]] = {}
        """The id and the text of recently sent rows, by `seq`."""

    def application(self) -> web.Application:
        """Return the aiohttp application. Its caller starts and stops the service."""
        app = web.Application(
            client_max_size=MAX_BYTES, middlewares=[_problems, guard(self._names)]
        )
        let_read(app, self._names)
        app[SERVICE] = self._service
        app.router.add_post("/subscriptions", self.subscribe)
        app.router.add_delete("/subscriptions", self.cancel)
        app.router.add_get("/events", self.events)
        app.router.add_get("/health", self.health)
        app.router.add_get("/metrics", self.metrics)
        return app

    async def subscribe(self, request: web.Request) -> web.Response:
        """Create a subscription, and answer with its token and its lower bound."""
        # The caller is checked before the body is read.
        client = self._client(request)
        body = parse_json(await read_body(request), "the body", BadFilter)
        if (
            not isinstance(body, dict)
            or "filters" not in body
            or body.keys() - {"filters", "after", "batches"}
        ):
            raise BadFilter(
                "the body must be a JSON object with `filters`, and may have `after` and `batches`"
            )
        after = body.get("after")
        batches = body.get("batches", False)
        if not isinstance(after, (str, type(None))) or not isinstance(batches, bool):
            raise BadFilter("`after` must be a cursor, and `batches` true or false")
        filters = filters_from_json(body["filters"])
        token, cursor = await self._service.subscribe(filters, client, after, batches=batches)
        return web.json_response({"token": token, "after": cursor}, status=HTTPStatus.CREATED)

    async def cancel(self, request: web.Request) -> web.Response:
        """Delete the subscription of the token."""
        await self._service.cancel(_token(request))
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Stream the subscription's events until the client disconnects or the stream ends."""
        after = request.headers.get("Last-Event-ID") or request.query.get("after")
        async with contextlib.AsyncExitStack() as stack:
            stream = self._service.stream(
                _token(request), None, after, dropped=lambda: _abort(request)
            )
            messages = await stack.enter_async_context(stream)
            response = web.StreamResponse(
                headers={
                    "Content-Type": "text/event-stream",
                    "Cache-Control": "no-store",
                    "X-Accel-Buffering": "no",
                }
            )
            await response.prepare(request)
            # This comment tells the client at once that the stream is open.
            await response.write(b": open\n\n")
            try:
                with contextlib.suppress(ConnectionError):
                    async for message in messages:
                        await response.write(self._text(message))
            except CursorAbandoned as error:
                cursor = self._service.text(Cursor(error.epoch, error.common))
                await _send_end(
                    response, cursor, "abandoned", detail=str(error), common=error.common
                )
            except Ended as ended:
                detail = "resume with Last-Event-ID" if ended.resumable else ""
                await _send_end(response, None, str(ended), detail=detail)
            return response

    def _client(self, request: web.Request) -> str:
        """Return the name of the caller. Raises `UnknownCaller`."""
        return self._callers.name(
            request.headers.get("Authorization", ""), request.remote or "unknown"
        )

    async def health(self, _request: web.Request) -> web.Response:
        """Answer with status 200 if the log can be read, otherwise 503."""
        status = HTTPStatus.OK if self._service.available else HTTPStatus.SERVICE_UNAVAILABLE
        return web.json_response(
            {"available": self._service.available, "seq": self._service.head_seq}, status=status
        )

    async def metrics(self, _request: web.Request) -> web.Response:
        """Answer with counters and gauges."""
        return web.Response(
            text=_prometheus(self._service), content_type="text/plain", charset="utf-8"
        )

    def _text(self, message: Message) -> bytes:
        """Return a message as a server-sent event."""
        if len(message.rows) == 1:
            return self._text_of_row(message.rows[0], message.cursor)
        cursor = self._service.text(message.cursor)
        if message.rows:
            rows = ",".join(map(row_json, message.rows))
            return f"id: {cursor}\nevent: events\ndata: [{rows}]\n\n".encode()
        return f"id: {cursor}\n\n".encode()

    def _text_of_row(self, row: Row, cursor: Cursor) -> bytes:
        """Return a message of one row as a server-sent event. It is cached for other clients."""
        row_id, text = self._texts.get(row.seq, (b"", b""))
        # After a rewind, another row may have the same `seq`.
        if row_id != row.id:
            head = f"id: {self._service.text(cursor)}\nevent: event\ndata: "
            text = f"{head}{row_json(row)}\n\n".encode()
            self._texts[row.seq] = (row.id, text)
            if len(self._texts) > _CACHED:
                del self._texts[next(iter(self._texts))]
        return text


def serve_http(
    service: EventService[Filter], names: Names, port: int, callers: Callers = EVERYBODY
) -> AbstractAsyncContextManager[tuple[str, int]]:
    """Serve the routes at a port, 0 for any free one. The context yields the address.

    If a client disconnects, its stream ends at once.
    """
    app = _Front(service, names, callers).application()
    return listening(app, names.host, port, _GRACE_SECONDS, cancels=True)


async def _send_end(
    response: web.StreamResponse,
    cursor: str | None,
    reason: str,
    detail: str,
    common: int | None = None,
) -> None:
    """Send the event that ends a stream, with the reason and the cursor from which to resume.

    `common` is the last `seq` that remained after a rewind.
    """
    fields: dict[str, object] = {"reason": reason, "detail": detail, "after": cursor}
    if common is not None:
        fields["common"] = common
    id_line = "" if cursor is None else f"id: {cursor}\n"
    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        await response.write(f"{id_line}event: end\ndata: {json.dumps(fields)}\n\n".encode())


def _prometheus(service: EventService[Filter]) -> str:
    """Return the counters and gauges of a service as text."""
    counters = [
        (f"{name}_total", "counter", words, service.counts[name])
        for name, words in _COUNTERS.items()
    ]
    gauges = (
        ("head_seq", "gauge", "The last row known.", service.head_seq),
        ("streams", "gauge", "Streams open now.", service.open_streams),
        ("waiting_rows", "gauge", "Rows in all queues.", service.waiting_rows),
        ("available", "gauge", "Whether the log answers.", int(service.available)),
    )
    lines: list[str] = []
    for short, kind, words, value in (*counters, *gauges):
        name = f"pubsub_events_{short}"
        lines += family(name, kind, words, [sample(name, value)])
    return "\n".join(lines) + "\n"


def _abort(request: web.Request) -> None:
    """Close a client's connection without sending buffered data."""
    if request.transport is not None:
        request.transport.abort()


def _token(request: web.Request) -> str:
    """Return the token in the header or in the query, empty if there is none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token
    return request.query.get("token", "")


def _problem(status: HTTPStatus, error: BaseException, **more: object) -> web.Response:
    """Return an error as problem+json."""
    body = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": str(error),
        **more,
    }
    return web.json_response(body, status=status, content_type="application/problem+json")


@web.middleware
async def _problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer expected errors as problem+json. After a rewind, it has the cursor to resume from."""
    try:
        return await handler(request)
    except CursorAbandoned as error:
        after = request.app[SERVICE].text(Cursor(error.epoch, error.common))
        return _problem(HTTPStatus.GONE, error, after=after, common=error.common)
    except (EventsError, StoreError, Ended) as error:
        return _problem(_STATUS.get(type(error), HTTPStatus.BAD_REQUEST), error)
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        return _problem(HTTPStatus(error.status), error)
