"""The gRPC front: `pubsub.events.v1.Events` of `protocol/events.proto` over grpc.aio (EV-25).

Handlers are registered by name, with the messages of the generated module: no untyped stubs.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import grpc
import grpc.aio

from pubsub_emulator.eventplane.errors import (
    BadCursor,
    BadFilter,
    CursorAbandoned,
    EventPlaneError,
    LimitReached,
    StoreUnavailable,
    UnknownToken,
)
from pubsub_emulator.eventplane.filters.codec import parse_filters
from pubsub_emulator.eventplane.log.rows import Row
from pubsub_emulator.eventplane.protocol import events_pb2 as pb
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor
from pubsub_emulator.eventplane.subscriptions.hub import Message
from pubsub_emulator.eventplane.subscriptions.service import Ended, EventService

NAME: Final = "pubsub.events.v1.Events"
_GRACE_SECONDS: Final = 2.0

_STATUS: Final[dict[type[Exception], grpc.StatusCode]] = {
    BadFilter: grpc.StatusCode.INVALID_ARGUMENT,
    BadCursor: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownToken: grpc.StatusCode.NOT_FOUND,
    CursorAbandoned: grpc.StatusCode.OUT_OF_RANGE,
    LimitReached: grpc.StatusCode.RESOURCE_EXHAUSTED,
    StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
}

SubscribeContext = grpc.aio.ServicerContext[pb.SubscribeRequest, pb.SubscribeResponse]
StreamContext = grpc.aio.ServicerContext[pb.StreamRequest, pb.EventsMessage]
CancelContext = grpc.aio.ServicerContext[pb.CancelRequest, pb.CancelResponse]
Context = SubscribeContext | StreamContext | CancelContext


class RpcFront:
    """The methods of one service."""

    def __init__(self, service: EventService) -> None:
        self._service = service

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the methods."""
        handlers = {
            "Subscribe": grpc.unary_unary_rpc_method_handler(
                self.subscribe, pb.SubscribeRequest.FromString, pb.SubscribeResponse.SerializeToString
            ),
            "Stream": grpc.unary_stream_rpc_method_handler(
                self.stream, pb.StreamRequest.FromString, pb.EventsMessage.SerializeToString
            ),
            "Cancel": grpc.unary_unary_rpc_method_handler(
                self.cancel, pb.CancelRequest.FromString, pb.CancelResponse.SerializeToString
            ),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))

    async def subscribe(self, request: pb.SubscribeRequest, context: SubscribeContext) -> pb.SubscribeResponse:
        """Make a subscription."""
        after = request.after if request.HasField("after") else None
        try:
            filters = parse_filters(request.filters_json)
            token, bound = await self._service.subscribe(filters, client_of(context), after, batches=request.batches)
        except EventPlaneError as error:
            await self._refuse(context, error)
        return pb.SubscribeResponse(token=token, after=bound)

    async def stream(self, request: pb.StreamRequest, context: StreamContext) -> AsyncIterator[pb.EventsMessage]:
        """Stream events until the client leaves or the stream cannot go on."""
        after = request.after if request.HasField("after") else None
        try:
            async with self._service.stream(request.token, client_of(context), after) as messages:
                async for message in messages:
                    yield self._encoded(message)
        except (EventPlaneError, Ended) as error:
            await self._refuse(context, error)

    async def cancel(self, request: pb.CancelRequest, context: CancelContext) -> pb.CancelResponse:
        """Forget a subscription."""
        try:
            await self._service.cancel(request.token)
        except EventPlaneError as error:
            await self._refuse(context, error)
        return pb.CancelResponse()

    def _encoded(self, message: Message) -> pb.EventsMessage:
        return pb.EventsMessage(events=map(encode_event, message.rows), cursor=self._service.text(message.cursor))

    async def _refuse(self, context: Context, error: EventPlaneError | Ended) -> NoReturn:
        if isinstance(error, CursorAbandoned):
            after = self._service.text(Cursor(error.epoch, error.common))
            context.set_trailing_metadata((("after", after), ("common", str(error.common))))
        if isinstance(error, Ended):
            status = grpc.StatusCode.UNAVAILABLE if error.resumable else grpc.StatusCode.CANCELLED
        else:
            status = _STATUS.get(type(error), grpc.StatusCode.INVALID_ARGUMENT)
        await context.abort(status, str(error))
        raise error  # abort has raised


@asynccontextmanager
async def serve_grpc(service: EventService, host: str, port: int) -> AsyncIterator[int]:
    """Serve the methods at a port, 0 for any; gives the port. Raises `OSError` when it cannot be had."""
    server = grpc.aio.server()
    RpcFront(service).add_to(server)
    async with listening(server, host, port) as found:
        yield found


@asynccontextmanager
async def listening(server: grpc.aio.Server, host: str, port: int) -> AsyncIterator[int]:
    """Run a gRPC server at a port, 0 for any; gives the port. Raises `OSError` when it cannot be had."""
    try:
        found = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise OSError(f"cannot listen on {host}:{port}") from error
    await server.start()
    try:
        yield found
    finally:
        await server.stop(_GRACE_SECONDS)


def encode_event(row: Row) -> pb.Event:
    """A row as protobuf."""
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


def client_of(context: "grpc.aio.ServicerContext[Any, Any]") -> str:
    """Who asks: the address without scheme and port, which limits are counted by."""
    scheme, _, address = context.peer().partition(":")
    return address.rpartition(":")[0].strip("[]") if scheme in {"ipv4", "ipv6"} else scheme
