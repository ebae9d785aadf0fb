"""`pubsub events serve`."""

import asyncio
import sys
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from interchain_events.events.log.sql_store import SqlStore, existing_store
from interchain_events.events.subscriptions.callers import read_callers
from interchain_events.events.subscriptions.registry import SqlRegistry
from interchain_events.events.subscriptions.service import EventService, StreamRecorder
from interchain_events.events.subscriptions.sse import serve_http
from interchain_events.events.subscriptions.streams import Limits
from pubsub_emulator.cli.base.ending import asked_to_end
from pubsub_emulator.cli.exits import INTERRUPTED
from pubsub_emulator.cli.screen import log_lines, say
from pubsub_emulator.serving.guard import Names


@dataclass(frozen=True, slots=True)
class EventsOptions:
    """The options of the command."""

    place: str
    host: str
    names: tuple[str, ...]
    origins: tuple[str, ...]
    tokens: Path | None
    port: int
    grpc_port: int | None
    streams: int
    streams_per_client: int
    subscriptions_per_client: int
    keep_days: float
    heartbeat: float
    deliveries: Path | None


def serve_events(given: EventsOptions) -> None:
    """Serve a log until Ctrl-C, and exit with code 130. Raises `PubsubError`."""
    log_lines()
    with ExitStack() as stack:
        store = stack.enter_context(closing(existing_store(given.place)))
        recorder = None
        if given.deliveries is not None:
            from interchain_events.events.subscriptions.deliveries import DeliveryRecorder

            recorder = stack.enter_context(DeliveryRecorder(given.deliveries, store.network))
        asyncio.run(_serve(given, store, recorder))
    sys.exit(INTERRUPTED)


async def _serve(given: EventsOptions, store: SqlStore, recorder: StreamRecorder | None) -> None:
    """Serve over HTTP, and over gRPC if it has a port, until the program is asked to end."""
    limits = Limits(given.streams_per_client, given.streams, heartbeat_seconds=given.heartbeat)
    callers = read_callers(given.tokens)
    names = Names(given.host, given.names, given.origins, any_host=callers.names is not None)
    registry = SqlRegistry(
        store.database,
        per_client=given.subscriptions_per_client,
        keep_seconds=given.keep_days * 86_400,
    )
    ended = asked_to_end()
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(EventService(store, registry, limits, recorder))
        host, port = await stack.enter_async_context(
            serve_http(service, names, given.port, callers)
        )
        say(
            f"http://{host}:{port}: events of {store.network}, {store.head().seq:,} so far; Ctrl-C"
            " ends it"
        )
        if given.grpc_port is not None:
            from interchain_events.events.subscriptions.rpc import serve_grpc

            grpc_port = await stack.enter_async_context(
                serve_grpc(service, given.host, given.grpc_port, callers)
            )
            say(f"grpc://{given.host}:{grpc_port}")
        sys.stdout.flush()
        await ended.wait()
        service.stop()
