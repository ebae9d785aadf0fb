"""The base of all gRPC fronts: methods, callers, refusals, limits on size and time, and a server.

    methods = Methods("a.v1.Service", CODES, EVERYBODY)
    methods.unary("Ask", pb.AskRequest, front.ask)
    methods.stream("Follow", pb.FollowRequest, front.follow)
    async with serving([methods], "127.0.0.1", 0) as port: …

`front.ask(request, client)` is a coroutine function that returns the answer, and
`front.follow(request, client)` is an asynchronous generator of answers.

Requests are decoded here, so that bytes that are not a message are answered with INVALID_ARGUMENT.
A connection whose network has failed ends after `KEEPALIVE_SECONDS` plus `PING_SECONDS`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.errors import BadCursor, BadFilter, LimitReached, UnknownToken
from interchain_events.events.subscriptions.callers import Callers, UnknownCaller
from interchain_events.events.subscriptions.streams import Ended
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.serving.listening import CannotListen

MOST_BYTES: Final = 256 << 10
"""The greatest size of a request in bytes, unless a front sets another limit."""
KEEPALIVE_SECONDS: Final = 30
"""How long a connection may be silent before it is pinged."""
PING_SECONDS: Final = 10
"""How long a ping may remain unanswered before the connection ends."""
HANDSHAKE_SECONDS: Final = 10
"""How long a new connection may take for the handshakes of TLS and HTTP/2."""
_GRACE_SECONDS: Final = 2.0

Q = TypeVar("Q", bound=Message)
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Metadata: TypeAlias = tuple[tuple[str, str], ...]

CODES: Final[Mapping[type[Exception], grpc.StatusCode]] = {
    BadFilter: grpc.StatusCode.INVALID_ARGUMENT,
    BadCursor: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownToken: grpc.StatusCode.NOT_FOUND,
    LimitReached: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnknownCaller: grpc.StatusCode.UNAUTHENTICATED,
    StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
}
"""The status for each error that all fronts can raise. Other expected errors are INTERNAL."""


class Refused(Exception):
    """Raised by a method to end its call with a status and trailing metadata."""

    def __init__(self, code: grpc.StatusCode, words: str, trailer: Metadata = ()) -> None:
        super().__init__(words)
        self.code = code
        self.trailer = trailer


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Methods:
    """The methods of one service."""

    def __init__(
        self, name: str, codes: Mapping[type[Exception], grpc.StatusCode], callers: Callers
    ) -> None:
        self.name = name
        self.handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {}
        self._codes = codes
        self._callers = callers

    def unary(
        self, name: str, request: type[Q], answer: Callable[[Q, str], Awaitable[Message]]
    ) -> None:
        """Add a method with one answer.

        `answer` gets the request and the client's name.
        """

        async def handle(raw: bytes, context: Context) -> bytes:
            try:
                client = self._client(context)
                return (await answer(_decoded(request, raw), client)).SerializeToString()
            except (PubsubError, Ended, Refused) as error:
                await self._refuse(context, error)

        self.handlers[name] = grpc.unary_unary_rpc_method_handler(handle)

    def stream(
        self,
        name: str,
        request: type[Q],
        messages: Callable[[Q, str], AsyncGenerator[Message, None]],
    ) -> None:
        """Add a method with a stream of answers.

        `messages` gets the request and the client's name.
        """

        async def handle(raw: bytes, context: Context) -> None:
            try:
                client = self._client(context)
                async with aclosing(messages(_decoded(request, raw), client)) as answers:
                    async for message in answers:
                        await context.write(message.SerializeToString())
            except (PubsubError, Ended, Refused) as error:
                await self._refuse(context, error)

        self.handlers[name] = grpc.unary_stream_rpc_method_handler(handle)

    def _client(self, context: Context) -> str:
        """Return the name of the caller. Raises `UnknownCaller`."""
        metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
        return self._callers.name(metadata.get("authorization", ""), _address(context.peer()))

    async def _refuse(self, context: Context, error: Exception) -> NoReturn:
        """End a call with the status of an error."""
        match error:
            case Refused(code=code, trailer=trailer):
                context.set_trailing_metadata(trailer)
            case Ended(resumable=resumable):
                code = grpc.StatusCode.UNAVAILABLE if resumable else grpc.StatusCode.CANCELLED
            case _:
                code = self._codes.get(type(error), grpc.StatusCode.INTERNAL)
        await context.abort(code, str(error))
        # Not reached, because `abort` raises.
        raise error


@asynccontextmanager
async def serving(
    services: Sequence[Methods],
    host: str,
    port: int,
    *,
    tls: Tls | None = None,
    most_bytes: int = MOST_BYTES,
) -> AsyncIterator[int]:
    """Serve services at a port inside of the context, and yield the port.

    Port 0 takes any free port. Raises `CannotListen` if the port is not available.
    """
    server = grpc.aio.server(
        options=(
            ("grpc.max_receive_message_length", most_bytes),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1_000),
            ("grpc.keepalive_time_ms", KEEPALIVE_SECONDS * 1_000),
            # The default of 60 s would replace the timeout of keepalive.
            ("grpc.http2.ping_timeout_ms", PING_SECONDS * 1_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_SECONDS * 500),
        )
    )
    for service in services:
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service.name, service.handlers),)
        )
    place = f"{host}:{port}"
    try:
        if tls is None:
            bound_port = server.add_insecure_port(place)
        else:
            bound_port = server.add_secure_port(place, _credentials(tls))
    except RuntimeError as error:
        raise CannotListen(
            f"cannot listen on {host} port {port}: it is in use, or not an address of this machine;"
            " port 0 takes any free one"
        ) from error
    await server.start()
    try:
        yield bound_port
    finally:
        await server.stop(_GRACE_SECONDS)


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])


def _decoded(kind: type[Q], raw: bytes) -> Q:
    """Return the message in a request's bytes. Raises `Refused`."""
    try:
        return kind.FromString(raw)
    except DecodeError:
        words = f"the request cannot be decoded as {kind.DESCRIPTOR.name}"
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, words) from None


def _address(peer: str) -> str:
    """Return the address of a peer, without scheme and port."""
    scheme, _, address = peer.partition(":")
    return address.rpartition(":")[0].strip("[]") if scheme in {"ipv4", "ipv6"} else scheme
