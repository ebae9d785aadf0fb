"""The gRPC front: `pubsub.events.v1.Events` of `protocol/events.proto` (EV-25)."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Final

import grpc

from interchain_events.events.errors import CursorAbandoned
from interchain_events.events.filters.algebra import Filter
from interchain_events.events.filters.codec import MAX_BYTES, parse_filters
from interchain_events.events.protocol import events_pb2 as pb
from interchain_events.events.rows import Row
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.grpc_server import CODES, Methods, Refused, serving
from interchain_events.events.subscriptions.service import EventService

NAME: Final = "pubsub.events.v1.Events"
"""The full name of the service."""
_MOST_BYTES: Final = MAX_BYTES + 1_024
"""The greatest size of a request in bytes: its filters and its other fields."""


class _Front:
    """The methods of one service."""

    def __init__(self, service: EventService[Filter]) -> None:
        self._service = service

    def methods(self, callers: Callers) -> Methods:
        """Return the methods of the gRPC service."""
        methods = Methods(NAME, CODES, callers)
        methods.unary("Subscribe", pb.SubscribeRequest, self.subscribe)
        methods.unary("Cancel", pb.CancelRequest, self.cancel)
        methods.stream("Stream", pb.StreamRequest, self.stream)
        return methods

    async def subscribe(self, request: pb.SubscribeRequest, client: str) -> pb.SubscribeResponse:
        """Create a subscription, and answer with its token and its lower bound."""
        filters = parse_filters(request.filters_json)
        token, bound = await self._service.subscribe(
            filters, client, _after(request), batches=request.batches
        )
        return pb.SubscribeResponse(token=token, after=bound)

    async def stream(
        self, request: pb.StreamRequest, client: str
    ) -> AsyncGenerator[pb.EventsMessage, None]:
        """Stream the subscription's events.

        After a rewind, the trailing metadata has the cursor from which to resume.
        """
        try:
            async with self._service.stream(request.token, client, _after(request)) as messages:
                async for message in messages:
                    events = map(encode_event, message.rows)
                    cursor = self._service.text(message.cursor)
                    yield pb.EventsMessage(events=events, cursor=cursor)
        except CursorAbandoned as error:
            cursor = self._service.text(Cursor(error.epoch, error.common))
            trailer = (("after", cursor), ("common", str(error.common)))
            raise Refused(grpc.StatusCode.OUT_OF_RANGE, str(error), trailer) from None

    async def cancel(self, request: pb.CancelRequest, _client: str) -> pb.CancelResponse:
        """Delete a subscription."""
        await self._service.cancel(request.token)
        return pb.CancelResponse()


def _after(request: pb.SubscribeRequest | pb.StreamRequest) -> str | None:
    """Return the cursor of a request, `None` if it has none."""
    return request.after if request.HasField("after") else None


def serve_grpc(
    service: EventService[Filter], host: str, port: int, callers: Callers = EVERYBODY
) -> AbstractAsyncContextManager[int]:
    """Serve the methods at a port, 0 for any free one. The context yields the port.

    Raises `CannotListen` if the port is not available.
    """
    return serving([_Front(service).methods(callers)], host, port, most_bytes=_MOST_BYTES)


def encode_event(row: Row) -> pb.Event:
    """Return a row as a protobuf message."""
    return pb.Event(
        seq=row.seq,
        anchor=row.anchor,
        chain=row.chain,
        block=row.block,
        index=row[4],
        kind=row.kind,
        id=row.id,
        time=row.time,
        fields_json=row.body,
    )
