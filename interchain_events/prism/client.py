"""A client of a PRISM node that keeps track of its position in the stream.

    async with PrismClient("127.0.0.1:50052") as node:
        subscription = await node.subscribe([Filter(FilterType.CREATE_DID_FILTER)])
        async for message in node.events(subscription):
            subscription = message.subscription

`events` connects again if necessary, and yields each event once and in order. To continue later, a
client only has to store the subscription in the last message.

If the node has taken operations back, `TakenBack` is raised. The caller then drops the operations
after `seq_no` and continues with the subscription in the error.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self, TypeVar

import grpc
import grpc.aio
from google.protobuf import message as protobuf

from interchain_events.events.errors import EventsError
from interchain_events.events.subscriptions.grpc_server import KEEPALIVE_SECONDS, PING_SECONDS
from interchain_events.prism.core.filters import Filter
from interchain_events.prism.protocol import prism_pb2 as pb
from interchain_events.prism.service.rpc import NAME, OUTCOMES

R = TypeVar("R")

_RETRY_SECONDS: Final = 0.5
_AGAIN: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})
"""The statuses after which a stream connects again."""


class NodeError(EventsError):
    """Raised if the node refuses a request. `code` is the gRPC status."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(f"{code.name}: {words}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ClientSubscription:
    """A subscription and the client's position in it. A client need not store anything else."""

    token: str
    cursor: str
    """The cursor after the last message, empty to begin with the first operation."""


class TakenBack(EventsError):
    """Raised if operations after `seq_no` were taken back.

    The caller drops them and continues with `subscription`. `operation_id` is the id of the last
    operation that remains, empty if there is none.
    """

    def __init__(self, seq_no: int, operation_id: bytes, subscription: ClientSubscription) -> None:
        super().__init__(f"operations after {seq_no} were reverted")
        self.seq_no = seq_no
        self.operation_id = operation_id
        self.subscription = subscription


class ClientMessage(NamedTuple):
    """A message of a stream."""

    events: Sequence[pb.SubscriptionEvent]
    """The operations. A heartbeat has none."""
    subscription: ClientSubscription
    """The subscription that the client must store when it has processed the events."""
    live: bool
    """Whether the stream has caught up."""


class PrismClient:
    """A connection to a node at `host:port`.

    Use it as an asynchronous context manager. `token` is the caller's token, if the node needs one.
    `roots` are the trusted certificates in PEM, for a node with TLS. Methods raise `NodeError`.
    """

    def __init__(self, address: str, *, token: str = "", roots: bytes | None = None) -> None:
        options = (
            ("grpc.keepalive_time_ms", KEEPALIVE_SECONDS * 1_000),
            ("grpc.http2.ping_timeout_ms", PING_SECONDS * 1_000),
        )
        if roots is None:
            self._channel = grpc.aio.insecure_channel(address, options)
        else:
            self._channel = grpc.aio.secure_channel(
                address, grpc.ssl_channel_credentials(roots), options
            )
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        """The metadata of every call."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close(None)

    async def subscribe(
        self, filters: Iterable[Filter], *, batches: bool = False, everything: bool = False
    ) -> ClientSubscription:
        """Create a subscription to later operations, or to all if `everything` is true."""
        request = pb.NewSubscriptionRequest(
            filters=map(encode_filter, filters), allow_operations_batches=batches
        )
        answer = await self._call("NewSubscription", request, pb.NewSubscriptionResponse.FromString)
        return ClientSubscription(answer.subscription_token, "" if everything else answer.cursor)

    async def events(
        self, subscription: ClientSubscription, *, reconnect: bool = True
    ) -> AsyncGenerator[ClientMessage, None]:
        """Yield the messages after the subscription's cursor.

        If `reconnect` is true, connect again after a lost connection. Also raises `TakenBack`.
        """
        current = subscription
        while True:
            request = pb.GetSubscriptionEventsStreamRequest(subscription_token=current.token)
            if current.cursor:
                request.cursor = current.cursor
            call = self._stream(
                "GetSubscriptionEventsStream", request, pb.SubscriptionEvents.FromString
            )
            try:
                async for answer in call:
                    current = replace(current, cursor=answer.cursor)
                    yield ClientMessage(answer.events, current, answer.live)
            except grpc.aio.AioRpcError as error:
                if reconnect and error.code() in _AGAIN:
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
                raise _error(error, current) from None
            finally:
                call.cancel()

    async def cancel(self, subscription: ClientSubscription) -> None:
        """Delete a subscription."""
        request = pb.CancelSubscriptionRequest(subscription_token=subscription.token)
        await self._call("CancelSubscription", request, pb.CancelSubscriptionResponse.FromString)

    async def schedule(self, signed: Iterable[bytes]) -> tuple[list[bytes], str]:
        """Request that operations be anchored in one object.

        Returns their ids and the token that is needed to cancel them.
        """
        request = pb.ScheduleOperationsRequest(signed_operations=signed)
        answer = await self._call(
            "ScheduleOperations", request, pb.ScheduleOperationsResponse.FromString
        )
        return list(answer.operation_ids), answer.cancel_token

    async def cancel_operation(self, operation_id: bytes, cancel_token: str) -> None:
        """Cancel an operation that is not in a block."""
        request = pb.CancelOperationRequest(operation_id=operation_id, cancel_token=cancel_token)
        await self._call("CancelOperation", request, pb.CancelOperationResponse.FromString)

    async def statuses(self, operation_id: bytes) -> AsyncGenerator[pb.OperationStatusUpdate, None]:
        """Yield the status of an operation, and then its changes, until a final one."""
        request = pb.GetOperationStatusStreamRequest(operation_id=operation_id)
        call = self._stream(
            "GetOperationStatusStream", request, pb.OperationStatusUpdate.FromString
        )
        try:
            async for update in call:
                yield update
        except grpc.aio.AioRpcError as error:
            raise _error(error, ClientSubscription("", "")) from None
        finally:
            call.cancel()

    def _stream(
        self, method: str, request: protobuf.Message, decode: Callable[[bytes], R]
    ) -> "grpc.aio.UnaryStreamCall[protobuf.Message, R]":
        """Begin a call with a stream of answers."""
        call = self._channel.unary_stream(
            f"/{NAME}/{method}", type(request).SerializeToString, decode
        )
        return call(request, metadata=self._metadata)

    async def _call(
        self, method: str, request: protobuf.Message, decode: Callable[[bytes], R]
    ) -> R:
        """Return the answer to a call. Raises `NodeError`."""
        call = self._channel.unary_unary(
            f"/{NAME}/{method}", type(request).SerializeToString, decode
        )
        try:
            answer: R = await call(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise _error(error, ClientSubscription("", "")) from None
        return answer


def encode_filter(part: Filter) -> pb.SubscriptionFilter:
    """Return a filter as a protobuf message."""
    return pb.SubscriptionFilter(
        type=part.type.name,
        did_suffix=part.did_suffix or "",
        credential_hash=part.credential_hash or b"",
        credential_batch_id=part.credential_batch_id or "",
        statuses=[] if part.status is None else [OUTCOMES[part.status]],
    )


def event_document(event: pb.SubscriptionEvent) -> dict[str, object]:
    """Return an event of a subscription as a JSON object."""
    signed = event.signed_operation.hex()
    status = "APPLIED" if event.status == pb.OUTCOME_APPLIED else "REJECTED"
    operation = {
        "operation_id": event.operation_id.hex(),
        "type": pb.OperationType.Name(event.type),
    }
    outcome = {"status": status, "reason": pb.RejectReason.Name(event.reason)}
    owner = {
        "did_suffix": event.did_suffix or None,
        "credential_batch_id": event.credential_batch_id or None,
    }
    if event.storage_entry_id:
        owner["storage_entry_id"] = event.storage_entry_id
    about = {"revokes_whole_batch": True} if event.revokes_whole_batch else {}
    place = {"block": event.position.number, "time": event.position.time}
    return {
        "seq_no": event.seq_no,
        **operation,
        **outcome,
        **owner,
        **about,
        **place,
        "signed_operation": signed,
    }


def status_document(update: pb.OperationStatusUpdate) -> dict[str, object]:
    """Return a status of an operation as a JSON object."""
    document: dict[str, object] = {"status": pb.OperationStatus.Name(update.status)}
    if update.status == pb.CONFIRMATION_LEVEL:
        document["level"] = update.confirmation_level
    if update.status == pb.REJECTED:
        document["reason"] = pb.RejectReason.Name(update.reason)
    if update.HasField("position"):
        document["block"] = update.position.number
    return document


def _error(error: grpc.aio.AioRpcError, subscription: ClientSubscription) -> EventsError:
    """Return the error for a failed call. `subscription` has the client's position."""
    trailing: Iterable[tuple[object, object]] = tuple(error.trailing_metadata() or ())  # type: ignore[arg-type]  # pairs
    details = {str(key): str(value) for key, value in trailing}
    if "last-common-cursor" in details:
        return TakenBack(
            int(details["last-common-seq-no"]),
            bytes.fromhex(details["last-common-operation"]),
            replace(subscription, cursor=details["last-common-cursor"]),
        )
    return NodeError(error.code(), error.details() or "")
