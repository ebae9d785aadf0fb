"""`pubsub prism serve`, `submit`, `subscribe` and `status`."""

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from interchain_events.database.opening import open_database
from interchain_events.events.log.sql_store import SqlStore, open_store
from interchain_events.events.subscriptions.callers import Callers, check_reach, read_callers
from interchain_events.events.subscriptions.grpc_server import Tls
from interchain_events.events.subscriptions.service import StreamRecorder
from interchain_events.prism.client import (
    ClientSubscription,
    PrismClient,
    TakenBack,
    event_document,
    status_document,
)
from interchain_events.prism.core.errors import Undecodable
from interchain_events.prism.core.filters import OWNERS, Filter, FilterType
from interchain_events.prism.core.identifiers import is_hex_hash, suffix_of
from interchain_events.prism.core.process import Status
from interchain_events.prism.service.chain import AnchoringChain, NodeChain
from interchain_events.prism.service.db_sync import DEPTH as CARDANO_DEPTH
from interchain_events.prism.service.db_sync import SOURCE, DbSyncChain, is_db_sync, is_url
from interchain_events.prism.service.node import PrismNode
from interchain_events.prism.service.resolver import serve_resolver
from interchain_events.prism.service.rpc import serve_prism
from interchain_events.prism.service.service import PrismLimits, PrismService, StatusRecorder
from interchain_events.prism.tables.operations import NETWORK
from interchain_events.prism.tables.processor import DEPTH, Processor, Source
from interchain_events.prism.tables.resolver import Resolver
from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.ending import asked_to_end
from pubsub_emulator.cli.exits import INTERRUPTED
from pubsub_emulator.cli.screen import log_lines, say, say_document
from pubsub_emulator.client.extrinsics import development_seed
from pubsub_emulator.files.atomic import write_secret
from pubsub_emulator.primitives.hexadecimal import unhex

_NAMES: Final = {
    "any": FilterType.ANONYMOUS_ANY_FILTER,
    "create-did": FilterType.CREATE_DID_FILTER,
    "did": FilterType.DID_OWNER_ANY_FILTER,
    "update-did": FilterType.UPDATE_DID_FILTER,
    "issuance": FilterType.CREDENTIALS_ISSUANCE_FILTER,
    "revocation": FilterType.CREDENTIALS_REVOCATION_FILTER,
    "credential": FilterType.REVOKE_CREDENTIAL_FILTER,
    "storage": FilterType.STORAGE_ENTRIES_FILTER,
}
"""The filters by their names on the command line."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The arguments of `serve`."""

    url: str | None
    db_sync: str | None
    place: str
    network: str
    host: str
    tls_certificate: Path | None
    tls_key: Path | None
    tokens: Path | None
    is_open: bool
    port: int
    resolver_port: int | None
    origins: tuple[str, ...]
    depth: int | None
    first: int
    event: str
    path: str
    seed_env: str | None
    pending_blocks: int
    streams_per_client: int
    subscriptions_per_client: int
    schedules_per_minute: int
    heartbeat: float
    deliveries: Path | None


def serve_node(given: NodeOptions) -> None:
    """Serve a PRISM node until Ctrl-C, and exit with code 130. Raises `PubsubError`."""
    log_lines()
    _check_options(given)
    _refuse_db_sync(given.place)
    callers = read_callers(given.tokens)
    check_reach(given.host, callers, has_tls=given.tls_key is not None, is_open=given.is_open)
    seed = development_seed("Alice") if given.seed_env is None else options.seed_of(given.seed_env)
    with ExitStack() as stack:
        log = stack.enter_context(closing(open_store(given.place, given.network)))
        recorders: tuple[StreamRecorder, StatusRecorder] | None = None
        if given.deliveries is not None:
            from interchain_events.events.subscriptions.deliveries import DeliveryRecorder
            from interchain_events.prism.status_deliveries import StatusDeliveries

            statuses = stack.enter_context(StatusDeliveries(given.deliveries))
            recorders = stack.enter_context(DeliveryRecorder(given.deliveries, NETWORK)), statuses
        asyncio.run(_serve(given, log, seed, callers, recorders))
    sys.exit(INTERRUPTED)


def _check_options(given: NodeOptions) -> None:
    """Raise `click.UsageError` if options do not fit together."""
    if (given.tls_certificate is None) != (given.tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key go together")
    if (given.url is None) == (given.db_sync is None):
        raise click.UsageError("give --chain with a node, or --db-sync with a database")
    if given.db_sync is not None and (given.seed_env is not None or _source(given) != Source()):
        raise click.UsageError("--event, --path and --seed-env belong to --chain")
    if given.db_sync is not None and not is_url(given.db_sync):
        raise click.BadParameter(
            f"{given.db_sync!r} is not a URL such as postgresql://user@host/cexplorer",
            param_hint="--db-sync",
        )


def _refuse_db_sync(place: str) -> None:
    """Refuse a database of db-sync as the node's own, because the node adds tables to its own.

    Raises `click.BadParameter` and `StoreError`.
    """
    if not is_url(place):
        return
    with closing(open_database(place)) as database:
        if is_db_sync(database):
            raise click.BadParameter(
                f"{database.place} is the database of db-sync, which is read-only here; use a"
                " database of this node's own",
                param_hint="--db",
            )


async def _serve(
    given: NodeOptions,
    log: SqlStore,
    seed: bytes,
    callers: Callers,
    recorders: tuple[StreamRecorder, StatusRecorder] | None,
) -> None:
    """Serve until the program is asked to end, or the node fails. Raises `PubsubError`."""
    source = _source(given) if given.db_sync is None else SOURCE
    if given.depth is not None:
        depth = given.depth
    elif given.db_sync is None:
        depth = DEPTH
    else:
        depth = CARDANO_DEPTH
    limits = PrismLimits(
        given.streams_per_client,
        heartbeat_seconds=given.heartbeat,
        subscriptions_per_client=given.subscriptions_per_client,
        pending_blocks=given.pending_blocks,
        schedules_per_minute=given.schedules_per_minute,
    )
    # The log of db-sync has only blocks that are deep enough.
    depth_in_log = depth if given.db_sync is None else 0
    processor = Processor(log.database, log, source, depth_in_log)
    service = PrismService(processor, limits, *(recorders or ()), anchors=given.db_sync is None)
    ended = asked_to_end()
    async with AsyncExitStack() as stack:
        chain: AnchoringChain
        if given.db_sync is not None:
            chain = stack.enter_context(closing(DbSyncChain(given.db_sync, depth, given.first)))
        else:
            chain = await stack.enter_async_context(
                NodeChain(str(given.url), source, seed, given.first)
            )
        tls = None
        if given.tls_certificate and given.tls_key:
            tls = Tls(given.tls_certificate, given.tls_key)
        port = await stack.enter_async_context(
            serve_prism(service, given.host, given.port, callers, tls)
        )
        resolver = ""
        if given.resolver_port is not None:
            resolver = await stack.enter_async_context(
                serve_resolver(
                    Resolver(log.database),
                    given.host,
                    given.resolver_port,
                    callers=callers,
                    tls=_context(tls),
                    origins=given.origins,
                )
            )
        node = await stack.enter_async_context(PrismNode(service, log, chain))
        say(
            f"grpc://{given.host}:{port}: PRISM on {given.url or 'db-sync'}, depth {depth}; Ctrl-C"
            " ends it"
        )
        if resolver:
            say(f"{resolver}: DID documents")
        sys.stdout.flush()
        waits = [asyncio.create_task(ended.wait()), asyncio.create_task(node.ended())]
        finished, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        for task in finished:
            # This raises the error that ended the node.
            task.result()


def _context(tls: Tls | None) -> ssl.SSLContext | None:
    """Return the TLS context of the HTTP server, which has the gRPC server's certificate."""
    if tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)
    return context


def _source(given: NodeOptions) -> Source:
    """Return the kind of the events with objects, and the path of the object in an event."""
    steps = given.path.split(".")
    return Source(given.event, tuple(int(step) if step.isdecimal() else step for step in steps))


@dataclass(frozen=True, slots=True)
class Node:
    """The node of a client, with the client's token and the certificates that it trusts."""

    address: str
    token_env: str | None
    """The environment variable with the token."""
    tls_ca: Path | None
    """The file with the certificates, in PEM. Without it, the connection has no TLS."""

    def client(self) -> PrismClient:
        """Return a client of the node.

        Raises `click.UsageError` if the token's variable is empty.
        """
        token = "" if self.token_env is None else os.environ.get(self.token_env, "")
        if self.token_env is not None and not token:
            raise click.UsageError(f"--token-env {self.token_env}: the variable is empty")
        return PrismClient(
            self.address,
            token=token,
            roots=None if self.tls_ca is None else self.tls_ca.read_bytes(),
        )


def submit_operations(files: Sequence[Path], node: Node) -> None:
    """Submit the operations in files to a PRISM node, and print their ids. Raises `PubsubError`."""
    signed: list[bytes] = []
    for path in files:
        signed += _operations(path)

    async def run() -> None:
        async with node.client() as client:
            ids, token = await client.schedule(signed)
            say_document(
                json.dumps({"operation_ids": [name.hex() for name in ids], "cancel_token": token})
            )

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class SubscribeOptions:
    """The arguments of `subscribe`."""

    filters: Sequence[str]
    status: str | None
    state: Path | None
    node: Node
    batches: bool
    everything: bool
    until_live: bool


def subscribe_to(given: SubscribeOptions) -> None:
    """Print the events of a new subscription, or of the one in the file `state`.

    Raises `click.UsageError` and `PubsubError`.
    """
    known = _read_state(given.state)
    if known is None and not given.filters:
        raise click.UsageError("give a --filter, or --state with the file of a subscription")
    if known is not None and given.filters:
        raise click.UsageError(
            f"{given.state} holds a subscription with its filters; give no --filter, or another"
            " file"
        )
    filters = [read_filter(text, given.status) for text in given.filters]
    asyncio.run(_subscribe(given, filters, known))


async def _subscribe(
    given: SubscribeOptions, filters: Sequence[Filter], known: ClientSubscription | None
) -> None:
    """Print events until Ctrl-C, or until all present ones are printed if `until_live` is true.

    `known` is the subscription to continue. The filters are those of a new one.
    """
    async with given.node.client() as client:
        subscription = known or await client.subscribe(
            filters, batches=given.batches, everything=given.everything
        )
        _write_state(given.state, subscription)
        while True:
            try:
                async with aclosing(client.events(subscription)) as messages:
                    async for message in messages:
                        subscription = message.subscription
                        for event in message.events:
                            say_document(json.dumps(event_document(event)))
                        sys.stdout.flush()
                        _write_state(given.state, subscription)
                        if message.live and given.until_live:
                            return
            except TakenBack as error:
                say_document(json.dumps({"taken_back_after": error.seq_no}))
                subscription = error.subscription
                _write_state(given.state, subscription)


def watch_status(operation_id: str, node: Node) -> None:
    """Print every status of one operation until it is final. Raises `PubsubError`."""
    if not is_hex_hash(operation_id):
        raise click.UsageError("OPERATION: an id of 64 lower-case hex digits is needed")

    async def run() -> None:
        async with (
            node.client() as client,
            aclosing(client.statuses(bytes.fromhex(operation_id))) as updates,
        ):
            async for update in updates:
                say_document(json.dumps(status_document(update)))

    asyncio.run(run())


def read_filter(text: str, status: str | None) -> Filter:
    """Parse a filter of the command line. Raises `click.UsageError`."""
    name, _, value = text.partition("=")
    kind = _NAMES.get(name)
    if kind is None:
        raise click.UsageError(
            f"--filter {text[:100]}: unknown filter. Filters: {', '.join(_NAMES)}"
        )
    outcome = None if status is None else Status(status)
    if kind in OWNERS:
        try:
            return Filter(kind, suffix_of(value), status=outcome)
        except Undecodable as error:
            raise click.UsageError(f"--filter {text[:100]}: {error}") from None
    if kind is FilterType.REVOKE_CREDENTIAL_FILTER:
        credential, _, batch = value.partition("@")
        if is_hex_hash(credential) and (not batch or is_hex_hash(batch)):
            return Filter(kind, None, bytes.fromhex(credential), batch or None, outcome)
        raise click.UsageError(
            f"--filter {text[:100]}: hash and batch must have 64 lower-case hex digits each"
        )
    if value:
        raise click.UsageError(f"--filter {text[:100]}: {name} takes no value")
    return Filter(kind, status=outcome)


def _operations(path: Path) -> Iterator[bytes]:
    """Yield the operations in a file, `-` for standard input.

    Raises `click.UsageError` for a line that is not hex.
    """
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield unhex(line.strip())
            except ValueError:
                raise click.UsageError(f"{path}:{number}: not hex") from None


def _read_state(path: Path | None) -> ClientSubscription | None:
    """Return the subscription in a file, `None` if there is no file.

    Raises `click.UsageError` if the file has other content.
    """
    if path is None or not path.exists():
        return None
    try:
        document = json.loads(path.read_bytes())
        return ClientSubscription(str(document["token"]), str(document["cursor"]))
    except (ValueError, KeyError, TypeError):
        raise click.UsageError(f"{path}: not the state of a subscription") from None


def _write_state(path: Path | None, subscription: ClientSubscription) -> None:
    """Write a subscription to a file atomically, so that a kill never leaves a half-written file.

    Only the owner may read a new file, because its token is enough to cancel the subscription.
    """
    if path is not None:
        state = {"token": subscription.token, "cursor": subscription.cursor}
        write_secret(path, json.dumps(state) + "\n")
