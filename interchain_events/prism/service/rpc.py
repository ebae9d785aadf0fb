"""The gRPC front: `eventplane.prism.v1.PrismNode` of `protocol/prism.proto`.

A request is checked completely before it has an effect. A token is looked up first.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from typing import Final

import grpc

from interchain_events.events.errors import BadCursor, CursorAbandoned, UnknownToken
from interchain_events.events.rows import Row
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.grpc_server import CODES, Methods, Refused, Tls, serving
from interchain_events.events.subscriptions.service import START
from interchain_events.prism.core.errors import (
    AlreadyThere,
    BadRequest,
    NotCancellable,
    NothingAnchors,
    Undecodable,
    UnknownOperation,
)
from interchain_events.prism.core.filters import OWNERS, Filter, FilterType
from interchain_events.prism.core.identifiers import is_hex_hash, suffix_of
from interchain_events.prism.core.process import Status
from interchain_events.prism.core.status import OperationPlace, StatusUpdate
from interchain_events.prism.protocol import prism_pb2 as pb
from interchain_events.prism.service.service import PrismService
from interchain_events.prism.tables.operations import OperationRow

NAME: Final = "eventplane.prism.v1.PrismNode"
"""The full name of the service."""
MOST_FILTERS: Final = 64
"""The greatest number of a subscription's filters, and of a filter's statuses."""
_HASH_BYTES: Final = 32

_CODES: Final = {
    **CODES,
    BadRequest: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownOperation: grpc.StatusCode.NOT_FOUND,
    AlreadyThere: grpc.StatusCode.ALREADY_EXISTS,
    NotCancellable: grpc.StatusCode.FAILED_PRECONDITION,
    NothingAnchors: grpc.StatusCode.FAILED_PRECONDITION,
}
"""The status for each error."""
_STATUSES: Final = {pb.OUTCOME_APPLIED: Status.APPLIED, pb.OUTCOME_REJECTED: Status.REJECTED}
OUTCOMES: Final = {status: number for number, status in _STATUSES.items()}
"""The number of each status in the protocol."""


class _Front:
    """The methods of one service."""

    def __init__(self, service: PrismService) -> None:
        self._service = service
        self._events = service.events

    def methods(self, callers: Callers) -> Methods:
        """Return the methods of the gRPC service."""
        methods = Methods(NAME, _CODES, callers)
        methods.unary("NewSubscription", pb.NewSubscriptionRequest, self.subscribe)
        methods.unary("CancelSubscription", pb.CancelSubscriptionRequest, self.cancel)
        methods.unary("ScheduleOperations", pb.ScheduleOperationsRequest, self.schedule)
        methods.unary("CancelOperation", pb.CancelOperationRequest, self.cancel_operation)
        methods.stream(
            "GetSubscriptionEventsStream", pb.GetSubscriptionEventsStreamRequest, self.stream
        )
        methods.stream(
            "GetOperationStatusStream", pb.GetOperationStatusStreamRequest, self.statuses
        )
        return methods

    async def subscribe(
        self, request: pb.NewSubscriptionRequest, client: str
    ) -> pb.NewSubscriptionResponse:
        """Create a subscription (PR-50)."""
        filters = read_filters(request.filters)
        token, cursor = await self._events.subscribe(
            filters, client, batches=request.allow_operations_batches
        )
        last = await asyncio.to_thread(self._events.subscriptions.after_operation, token)
        return pb.NewSubscriptionResponse(
            subscription_token=token, events_after=last, cursor=cursor
        )

    async def stream(
        self, request: pb.GetSubscriptionEventsStreamRequest, client: str
    ) -> AsyncGenerator[pb.SubscriptionEvents, None]:
        """Stream operations until the client disconnects or the stream ends (PR-51 to PR-53)."""
        code = grpc.StatusCode.FAILED_PRECONDITION
        try:
            after = await self._after(request)
            async with self._events.stream(
                request.subscription_token, client, after, seam=True
            ) as messages:
                code = grpc.StatusCode.ABORTED
                async for message in messages:
                    yield pb.SubscriptionEvents(
                        events=map(encode_row, message.rows),
                        cursor=self._events.text(message.cursor),
                        live=message.live,
                    )
        except CursorAbandoned as error:
            last, name = await asyncio.to_thread(
                self._events.log.last_common, Cursor(error.epoch, error.common)
            )
            trailer = (
                ("last-common-operation", name.hex()),
                ("last-common-seq-no", str(last.seq)),
                ("last-common-cursor", self._events.text(last)),
            )
            raise Refused(code, str(error), trailer) from None

    async def cancel(
        self, request: pb.CancelSubscriptionRequest, _client: str
    ) -> pb.CancelSubscriptionResponse:
        """Delete a subscription."""
        with _field("subscription_token"):
            await self._events.cancel(request.subscription_token)
        return pb.CancelSubscriptionResponse()

    async def schedule(
        self, request: pb.ScheduleOperationsRequest, client: str
    ) -> pb.ScheduleOperationsResponse:
        """Store operations to be anchored (PR-63)."""
        ids, token = await self._service.schedule(request.signed_operations, client)
        return pb.ScheduleOperationsResponse(operation_ids=ids, cancel_token=token)

    async def cancel_operation(
        self, request: pb.CancelOperationRequest, _client: str
    ) -> pb.CancelOperationResponse:
        """Cancel a scheduled operation."""
        _check_hash(request.operation_id, "operation_id")
        with _field("operation_id"):
            await self._service.cancel_operation(request.operation_id, request.cancel_token)
        return pb.CancelOperationResponse()

    async def statuses(
        self, request: pb.GetOperationStatusStreamRequest, client: str
    ) -> AsyncGenerator[pb.OperationStatusUpdate, None]:
        """Stream the status of one operation (PR-61)."""
        _check_hash(request.operation_id, "operation_id")
        with _field("operation_id"):
            async with aclosing(self._service.statuses(request.operation_id, client)) as updates:
                async for update in updates:
                    yield encode_update(update)

    async def _after(self, request: pb.GetSubscriptionEventsStreamRequest) -> str | None:
        """Return where a stream begins, as the argument `after` of `EventService.stream`.

        Raises `UnknownToken`, `UnknownOperation` and `BadCursor`, whose messages name the field.
        """
        with _field("subscription_token"):
            await asyncio.to_thread(self._events.registry.get, request.subscription_token)
        which = request.WhichOneof("start")
        if which == "cursor":
            with _field("cursor"):
                return self._events.text(self._events.cursor(request.cursor))
        if which == "since_subscription" and request.since_subscription:
            return None
        if which == "events_after" and request.events_after:
            if len(request.events_after) != _HASH_BYTES:
                raise BadCursor(
                    f"events_after: an operation id has 32 bytes, not {len(request.events_after)}"
                )
            with _field("events_after"):
                cursor = await asyncio.to_thread(
                    self._events.log.after_operation, request.events_after
                )
            return self._events.text(cursor)
        return START


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Add the name of a request's field to the errors raised inside of the context."""
    try:
        yield
    except (BadCursor, UnknownOperation, UnknownToken) as error:
        raise type(error)(f"{name}: {error}") from error


def serve_prism(
    service: PrismService,
    host: str,
    port: int,
    callers: Callers = EVERYBODY,
    tls: Tls | None = None,
) -> AbstractAsyncContextManager[int]:
    """Serve the methods at a port, 0 for any free one. The context yields the port.

    Raises `CannotListen` if the port is not available.
    """
    return serving([_Front(service).methods(callers)], host, port, tls=tls)


def read_filters(given: Sequence[pb.SubscriptionFilter]) -> list[Filter]:
    """Return the filters of a request (PR-43), one for each status that a filter names.

    Raises `BadRequest`, whose message names the field.
    """
    if not given:
        raise BadRequest("filters: at least one is needed")
    if len(given) > MOST_FILTERS:
        raise BadRequest(f"filters: at most {MOST_FILTERS} are allowed, not {len(given)}")
    filters: list[Filter] = []
    for index, filter_ in enumerate(given):
        filters += _read_filter(filter_, f"filters[{index}]")
    return filters


def _read_filter(given: pb.SubscriptionFilter, where: str) -> list[Filter]:
    """Return the filters for one filter of a request, one for each of its statuses.

    `where` names the filter in errors. Raises `BadRequest`.
    """
    try:
        kind = FilterType(given.type)
    except ValueError:
        raise BadRequest(f"{where}.type: unknown filter type {given.type}") from None
    if kind in OWNERS and not given.did_suffix:
        raise BadRequest(f"{where}.did_suffix: {kind.name} needs the suffix of a DID")
    if kind not in OWNERS and given.did_suffix:
        raise BadRequest(f"{where}.did_suffix: {kind.name} does not take the suffix of a DID")
    suffix: str | None = None
    if given.did_suffix:
        try:
            suffix = suffix_of(given.did_suffix)
        except Undecodable as error:
            raise BadRequest(f"{where}.did_suffix: {error}") from None
    if kind is FilterType.REVOKE_CREDENTIAL_FILTER:
        _check_hash(given.credential_hash, f"{where}.credential_hash")
    elif given.credential_hash or given.credential_batch_id:
        raise BadRequest(
            f"{where}: only REVOKE_CREDENTIAL_FILTER takes credential_hash and credential_batch_id"
        )
    if given.credential_batch_id and not is_hex_hash(given.credential_batch_id):
        raise BadRequest(
            f"{where}.credential_batch_id: 64 hex digits in lower case are needed, not"
            f" {given.credential_batch_id[:80]!r}"
        )
    for_both = Filter(
        kind,
        suffix,
        credential_hash=given.credential_hash or None,
        credential_batch_id=given.credential_batch_id or None,
    )
    if len(given.statuses) > MOST_FILTERS:
        raise BadRequest(
            f"{where}.statuses: at most {MOST_FILTERS} are allowed, not {len(given.statuses)}"
        )
    statuses = sorted({*given.statuses})
    for status in statuses:
        if status not in _STATUSES:
            raise BadRequest(f"{where}.statuses: unknown status {status}")
    if not statuses:
        return [for_both]
    return [for_both._replace(status=_STATUSES[status]) for status in statuses]


def encode_row(row: Row) -> pb.SubscriptionEvent:
    """Return a row of the log of operations as a protobuf message."""
    if not isinstance(row, OperationRow):
        raise TypeError(f"a {type(row).__name__} is not a row of the log of operations")
    event = row.event
    return pb.SubscriptionEvent(
        operation_id=event.operation_id,
        seq_no=event.seq_no,
        type=event.type.name,
        status=OUTCOMES[event.status],
        reason="NONE" if event.reason is None else event.reason.name,
        did_suffix=event.did_suffix or "",
        credential_batch_id=event.credential_batch_id or "",
        signed_operation=event.content,
        position=_position(event.place),
        storage_entry_id=event.storage_entry_id or "",
        revokes_whole_batch=row.revokes_whole_batch,
    )


def encode_update(update: StatusUpdate) -> pb.OperationStatusUpdate:
    """Return a status as a protobuf message."""
    return pb.OperationStatusUpdate(
        status=update.status.name,
        confirmation_level=update.level,
        reason="NONE" if update.reason is None else update.reason.name,
        position=None if update.place is None else _position(update.place),
    )


def _position(place: OperationPlace) -> pb.BlockPosition:
    return pb.BlockPosition(**place._asdict())


def _check_hash(value: bytes, where: str) -> None:
    """Raise `BadRequest` unless a value has the size of a hash."""
    if len(value) != _HASH_BYTES:
        raise BadRequest(f"{where}: 32 bytes are needed, not {len(value)}")
