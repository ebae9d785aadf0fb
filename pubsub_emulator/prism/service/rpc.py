"""The gRPC front: `eventplane.prism.v1.PrismNode` of `protocol/prism.proto` over grpc.aio.

A request is checked whole before anything is done; a token is looked up first.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import grpc.aio

from pubsub_emulator.eventplane.errors import (
    BadCursor,
    EventPlaneError,
    LimitReached,
    StoreUnavailable,
    UnknownToken,
)
from pubsub_emulator.eventplane.prism.core.errors import (
    AlreadyThere,
    BadRequest,
    NotCancellable,
    UnknownOperation,
)
from pubsub_emulator.eventplane.prism.core.filters import OWNERS, Filter, FilterType
from pubsub_emulator.eventplane.prism.core.identifiers import is_hex_hash
from pubsub_emulator.eventplane.prism.core.process import Status
from pubsub_emulator.eventplane.prism.core.status import Place, Update
from pubsub_emulator.eventplane.prism.service.service import Ended, Message, PrismService, TakenBack
from pubsub_emulator.eventplane.prism.tables.events import (
    Abandoned,
    AfterCursor,
    AfterOperation,
    Event,
    FromStart,
    SinceSubscription,
    Start,
)
from pubsub_emulator.eventplane.protocol import prism_pb2 as pb
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor
from pubsub_emulator.eventplane.subscriptions.rpc import client_of, listening

NAME: Final = "eventplane.prism.v1.PrismNode"
MOST_FILTERS: Final = 64
_HASH: Final = 32
_MOST_MESSAGE: Final = 64 << 20

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_FAILURES: Final = (EventPlaneError, Ended, TakenBack)

_CODES: Final[dict[type[Exception], grpc.StatusCode]] = {
    BadRequest: grpc.StatusCode.INVALID_ARGUMENT,
    BadCursor: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownToken: grpc.StatusCode.NOT_FOUND,
    UnknownOperation: grpc.StatusCode.NOT_FOUND,
    AlreadyThere: grpc.StatusCode.ALREADY_EXISTS,
    NotCancellable: grpc.StatusCode.FAILED_PRECONDITION,
    Abandoned: grpc.StatusCode.FAILED_PRECONDITION,
    TakenBack: grpc.StatusCode.ABORTED,
    LimitReached: grpc.StatusCode.RESOURCE_EXHAUSTED,
    StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
}
_STATUSES: Final = {pb.OUTCOME_APPLIED: Status.APPLIED, pb.OUTCOME_REJECTED: Status.REJECTED}
_OUTCOMES: Final = {status: number for number, status in _STATUSES.items()}


class PrismFront:
    """The methods of one service."""

    def __init__(self, service: PrismService) -> None:
        self._service = service

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the methods."""
        unary: dict[str, tuple[Any, Any, Any]] = {
            "NewSubscription": (self.subscribe, pb.NewSubscriptionRequest, pb.NewSubscriptionResponse),
            "CancelSubscription": (self.cancel, pb.CancelSubscriptionRequest, pb.CancelSubscriptionResponse),
            "ScheduleOperations": (self.schedule, pb.ScheduleOperationsRequest, pb.ScheduleOperationsResponse),
            "CancelOperation": (self.cancel_operation, pb.CancelOperationRequest, pb.CancelOperationResponse),
        }
        streams: dict[str, tuple[Any, Any, Any]] = {
            "GetSubscriptionEventsStream": (
                self.stream,
                pb.GetSubscriptionEventsStreamRequest,
                pb.SubscriptionEvents,
            ),
            "GetOperationStatusStream": (self.statuses, pb.GetOperationStatusStreamRequest, pb.OperationStatusUpdate),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(call, request.FromString, response.SerializeToString)
            for name, (call, request, response) in unary.items()
        }
        handlers |= {
            name: grpc.unary_stream_rpc_method_handler(call, request.FromString, response.SerializeToString)
            for name, (call, request, response) in streams.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))

    async def subscribe(self, request: pb.NewSubscriptionRequest, context: Context) -> pb.NewSubscriptionResponse:
        """Make a subscription (PR-50)."""
        try:
            filters = read_filters(request.filters)
            batches = request.allow_operations_batches
            token, bound = await self._service.subscribe(filters, client_of(context), batches=batches)
        except _FAILURES as error:
            await self._refuse(context, error)
        return pb.NewSubscriptionResponse(
            subscription_token=token, events_after=bound.operation_id, cursor=self._service.text(bound.cursor)
        )

    async def stream(
        self, request: pb.GetSubscriptionEventsStreamRequest, context: Context
    ) -> AsyncIterator[pb.SubscriptionEvents]:
        """Stream events until the client leaves or the stream cannot go on (PR-51 to PR-53)."""
        try:
            start = await self._start(request)
            messages = self._service.stream(request.subscription_token, start, client_of(context))
            async with aclosing(messages):
                async for message in messages:
                    yield self._encoded(message)
        except _FAILURES as error:
            await self._refuse(context, error)

    async def cancel(self, request: pb.CancelSubscriptionRequest, context: Context) -> pb.CancelSubscriptionResponse:
        """Forget a subscription."""
        try:
            await self._service.cancel(request.subscription_token)
        except _FAILURES as error:
            await self._refuse(context, error)
        return pb.CancelSubscriptionResponse()

    async def schedule(self, request: pb.ScheduleOperationsRequest, context: Context) -> pb.ScheduleOperationsResponse:
        """Take operations to anchor (PR-63)."""
        try:
            ids, token = await self._service.schedule(list(request.signed_operations))
        except _FAILURES as error:
            await self._refuse(context, error)
        return pb.ScheduleOperationsResponse(operation_ids=ids, cancel_token=token)

    async def cancel_operation(
        self, request: pb.CancelOperationRequest, context: Context
    ) -> pb.CancelOperationResponse:
        """Cancel an operation that was scheduled here."""
        try:
            _check_hash(request.operation_id, "operation_id")
            await self._service.cancel_operation(request.operation_id, request.cancel_token)
        except _FAILURES as error:
            await self._refuse(context, error)
        return pb.CancelOperationResponse()

    async def statuses(
        self, request: pb.GetOperationStatusStreamRequest, context: Context
    ) -> AsyncIterator[pb.OperationStatusUpdate]:
        """Stream the status of one operation (PR-61)."""
        try:
            _check_hash(request.operation_id, "operation_id")
            updates = self._service.statuses(request.operation_id, client_of(context))
            async with aclosing(updates):
                async for update in updates:
                    yield encode_update(update)
        except _FAILURES as error:
            await self._refuse(context, error)

    async def _start(self, request: pb.GetSubscriptionEventsStreamRequest) -> Start:
        await self._service.check_token(request.subscription_token)
        which = request.WhichOneof("start")
        if which == "events_after" and request.events_after:
            if len(request.events_after) != _HASH:
                raise BadCursor("events_after: an operation id has 32 bytes")
            return AfterOperation(request.events_after)
        if which == "cursor":
            return AfterCursor(self._service.cursor(request.cursor))
        if which == "since_subscription" and request.since_subscription:
            return SinceSubscription()
        return FromStart()

    def _encoded(self, message: Message) -> pb.SubscriptionEvents:
        events = map(encode_event, message.events)
        return pb.SubscriptionEvents(events=events, cursor=self._service.text(message.cursor), live=message.live)

    async def _refuse(self, context: Context, error: Exception) -> NoReturn:
        cut = error.cut if isinstance(error, TakenBack) else error
        if isinstance(cut, Abandoned):
            context.set_trailing_metadata(
                (
                    ("last-common-operation", cut.operation_id.hex()),
                    ("last-common-seq-no", str(cut.seq_no)),
                    ("last-common-cursor", self._service.text(Cursor(cut.epoch, cut.seq_no))),
                )
            )
        if isinstance(error, Ended):
            code = grpc.StatusCode.UNAVAILABLE if error.is_resumable else grpc.StatusCode.CANCELLED
        else:
            code = _CODES.get(type(error), grpc.StatusCode.INTERNAL)
        await context.abort(code, str(error))
        raise error  # abort has raised


@asynccontextmanager
async def serve_prism(service: PrismService, host: str, port: int) -> AsyncIterator[int]:
    """Serve the methods at a port, 0 for any; gives the port. Raises `OSError` when it cannot be had."""
    server = grpc.aio.server(options=(("grpc.max_receive_message_length", _MOST_MESSAGE),))
    PrismFront(service).add_to(server)
    async with listening(server, host, port) as found:
        yield found


def read_filters(filters: Iterable[pb.SubscriptionFilter]) -> list[Filter]:
    """The filters of a request, one for each status where it names some. Raises `BadRequest` with the field."""
    given = list(filters)
    if not given:
        raise BadRequest("filters: there is none")
    if len(given) > MOST_FILTERS:
        raise BadRequest(f"filters: {len(given)}, {MOST_FILTERS} is the most")
    return [each for index, filter_ in enumerate(given) for each in _read_filter(filter_, f"filters[{index}]")]


def _read_filter(given: pb.SubscriptionFilter, where: str) -> list[Filter]:
    try:
        kind = FilterType(given.type)
    except ValueError:
        raise BadRequest(f"{where}.type: {given.type} is none") from None
    if (kind in OWNERS) != bool(given.did_suffix):
        raise BadRequest(f"{where}.did_suffix: {'missing' if kind in OWNERS else 'superfluous'}")
    if given.did_suffix and not is_hex_hash(given.did_suffix):
        raise BadRequest(f"{where}.did_suffix: 64 lower-case hex digits, not {given.did_suffix[:80]!r}")
    revokes = kind is FilterType.REVOKE_CREDENTIAL_FILTER
    if revokes:
        _check_hash(given.credential_hash, f"{where}.credential_hash")
    elif given.credential_hash or given.credential_batch_id:
        raise BadRequest(f"{where}: credential_hash and credential_batch_id are for REVOKE_CREDENTIAL_FILTER")
    if given.credential_batch_id and not is_hex_hash(given.credential_batch_id):
        raise BadRequest(f"{where}.credential_batch_id: 64 lower-case hex digits")
    one = Filter(kind, given.did_suffix or None, given.credential_hash or None, given.credential_batch_id or None)
    statuses = {*given.statuses}
    for each in sorted(statuses):
        if each not in _STATUSES:
            raise BadRequest(f"{where}.statuses: {each} is none")
    return [one._replace(status=_STATUSES[each]) for each in sorted(statuses)] or [one]


def encode_event(event: Event) -> pb.SubscriptionEvent:
    """A row as protobuf."""
    return pb.SubscriptionEvent(
        operation_id=event.operation_id,
        seq_no=event.seq_no,
        type=event.type.name,
        status=_OUTCOMES[event.status],
        reason="NONE" if event.reason is None else event.reason.name,
        did_suffix=event.did_suffix or "",
        credential_batch_id=event.credential_batch_id or "",
        signed_operation=event.content,
        position=_position(event.place),
    )


def encode_update(update: Update) -> pb.OperationStatusUpdate:
    """A status as protobuf."""
    return pb.OperationStatusUpdate(
        status=update.status.name,
        confirmation_level=update.level,
        reason="NONE" if update.reason is None else update.reason.name,
        position=None if update.place is None else _position(update.place),
    )


def _position(place: Place) -> pb.BlockPosition:
    return pb.BlockPosition(
        number=place.number,
        hash=place.hash,
        object_index=place.object_index,
        operation_index=place.operation_index,
        time=place.time,
    )


def _check_hash(value: bytes, where: str) -> None:
    if len(value) != _HASH:
        raise BadRequest(f"{where}: 32 bytes, not {len(value)}")
