"""`pubsub prism`: a node, and its clients."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from pubsub_emulator.cli.ending import asked_to_end
from pubsub_emulator.cli.exits import INTERRUPTED
from pubsub_emulator.cli.screen import say
from pubsub_emulator.client.extrinsics import development_seed
from pubsub_emulator.eventplane.log.sql_store import SqlStore, open_store
from pubsub_emulator.eventplane.prism.client import Message, PrismClient, Subscription, TakenBack
from pubsub_emulator.eventplane.prism.core.filters import OWNERS, Filter, FilterType
from pubsub_emulator.eventplane.prism.core.identifiers import is_hex_hash
from pubsub_emulator.eventplane.prism.core.process import Status
from pubsub_emulator.eventplane.prism.deliveries import NETWORK
from pubsub_emulator.eventplane.prism.service.chain import NodeChain
from pubsub_emulator.eventplane.prism.service.node import PrismNode
from pubsub_emulator.eventplane.prism.service.rpc import serve_prism
from pubsub_emulator.eventplane.prism.service.service import Limits, PrismService
from pubsub_emulator.eventplane.prism.service.watch import StatusRecorder
from pubsub_emulator.eventplane.prism.tables.processor import Processor, Source
from pubsub_emulator.eventplane.protocol import prism_pb2 as pb
from pubsub_emulator.eventplane.subscriptions.service import Recorder

_NAMES: Final = {
    "any": FilterType.ANONYMOUS_ANY_FILTER,
    "create-did": FilterType.CREATE_DID_FILTER,
    "did": FilterType.DID_OWNER_ANY_FILTER,
    "update-did": FilterType.UPDATE_DID_FILTER,
    "issuance": FilterType.CREDENTIALS_ISSUANCE_FILTER,
    "revocation": FilterType.CREDENTIALS_REVOCATION_FILTER,
    "credential": FilterType.REVOKE_CREDENTIAL_FILTER,
}


@dataclass(frozen=True, slots=True)
class Serve:
    """The arguments of `serve`."""

    url: str
    place: str
    network: str
    host: str
    port: int
    depth: int
    first: int
    event: str
    path: str
    seed_env: str | None
    pending_blocks: int
    streams_per_client: int
    subscriptions_per_client: int
    heartbeat: float
    deliveries: Path | None


def serve_node(given: Serve) -> None:
    """Run the command until Ctrl-C, which gives exit code 130. Raises `PubsubError`, `OSError`."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    seed = development_seed("Alice") if given.seed_env is None else _seed(given.seed_env)
    with ExitStack() as stack:
        log = stack.enter_context(closing(open_store(given.place, given.network)))
        recorders: tuple[Recorder, StatusRecorder] | None = None
        if given.deliveries is not None:
            from pubsub_emulator.eventplane.prism.status_deliveries import StatusDeliveries
            from pubsub_emulator.eventplane.subscriptions.deliveries import DeliveryRecorder

            statuses = stack.enter_context(StatusDeliveries(given.deliveries))
            recorders = stack.enter_context(DeliveryRecorder(given.deliveries, NETWORK)), statuses
        asyncio.run(_serve(given, log, seed, recorders))
    sys.exit(INTERRUPTED)


async def _serve(given: Serve, log: SqlStore, seed: bytes, recorders: tuple[Recorder, StatusRecorder] | None) -> None:
    path = tuple(int(each) if each.isdecimal() else each for each in given.path.split("."))
    source = Source(given.event, path)
    limits = Limits(
        given.subscriptions_per_client,
        given.streams_per_client,
        heartbeat_seconds=given.heartbeat,
        pending_blocks=given.pending_blocks,
    )
    service = PrismService(Processor(log.database, log, source, given.depth), limits, *(recorders or ()))
    ended = asked_to_end()
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(NodeChain(given.url, source, seed, given.first))
        await chain.reach(log)
        port = await stack.enter_async_context(serve_prism(service, given.host, given.port))
        node = await stack.enter_async_context(PrismNode(service, log, chain))
        say(f"grpc://{given.host}:{port}: PRISM on {given.url}, depth {given.depth}; Ctrl-C ends it")
        sys.stdout.flush()
        waits = [asyncio.create_task(ended.wait()), asyncio.create_task(node.ended())]
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        for task in done:
            task.result()


def submit_operations(files: Sequence[Path], node: str) -> None:
    """Submit the operations in files to a PRISM node, and print their ids. Raises `PubsubError`."""
    signed = [raw for path in files for raw in _operations(path)]

    async def run() -> None:
        async with PrismClient(node) as client:
            ids, token = await client.schedule(signed)
            click.echo(json.dumps({"operation_ids": [each.hex() for each in ids], "cancel_token": token}))

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The arguments of `subscribe`."""

    filters: Sequence[str]
    status: str | None
    state: Path | None
    node: str
    batches: bool
    everything: bool
    until_live: bool


def subscribe_to(given: Subscribe) -> None:
    """Print the events of a subscription as they come. Raises `PubsubError`."""
    known = _kept(given.state)
    if known is None and not given.filters:
        raise click.UsageError("give a --filter, or --state with the file of a subscription")
    if known is not None and given.filters:
        raise click.UsageError(
            f"{given.state} holds a subscription with its filters; give no --filter, or another file"
        )
    filters = [read_filter(each, given.status) for each in given.filters]
    asyncio.run(_subscribe(given, filters, known))


async def _subscribe(given: Subscribe, filters: Sequence[Filter], known: Subscription | None) -> None:
    async with PrismClient(given.node) as client:
        at = known or await client.subscribe(filters, batches=given.batches, everything=given.everything)
        _keep(given.state, at)
        while True:
            try:
                async with aclosing(client.events(at)) as messages:
                    async for message in messages:
                        at = message.subscription
                        _print(message)
                        _keep(given.state, at)
                        if message.live and given.until_live:
                            return
            except TakenBack as cut:
                click.echo(json.dumps({"taken_back_after": cut.seq_no}))
                at = cut.subscription
                _keep(given.state, at)


def watch_status(operation_id: str, node: str) -> None:
    """Print every status of one operation until it is final. Raises `PubsubError`."""
    if not is_hex_hash(operation_id):
        raise click.UsageError("OPERATION: not 64 lower-case hex digits")

    async def run() -> None:
        async with PrismClient(node) as client, aclosing(client.statuses(bytes.fromhex(operation_id))) as updates:
            async for update in updates:
                click.echo(json.dumps(_update(update)))

    asyncio.run(run())


def read_filter(text: str, status: str | None) -> Filter:
    """Parse a filter of the command line. Raises `click.UsageError`."""
    name, _, value = text.partition("=")
    kind = _NAMES.get(name)
    if kind is None:
        raise click.UsageError(f"--filter {text}: not one of {', '.join(_NAMES)}")
    outcome = None if status is None else Status(status)
    if kind in OWNERS and is_hex_hash(value):
        return Filter(kind, value, status=outcome)
    credential, _, batch = value.partition("@")
    if kind is FilterType.REVOKE_CREDENTIAL_FILTER and is_hex_hash(credential) and (not batch or is_hex_hash(batch)):
        return Filter(kind, None, bytes.fromhex(credential), batch or None, outcome)
    if kind in OWNERS or kind is FilterType.REVOKE_CREDENTIAL_FILTER or value:
        raise click.UsageError(f"--filter {text}: suffix, hash and batch must have 64 lower-case hex digits each")
    return Filter(kind, status=outcome)


def _print(message: Message) -> None:
    for event in message.events:
        click.echo(json.dumps(_event(event)))
    sys.stdout.flush()


def _event(event: pb.SubscriptionEvent) -> dict[str, Any]:
    return {
        "seq_no": event.seq_no,
        "operation_id": event.operation_id.hex(),
        "type": pb.OperationType.Name(event.type),
        "status": "APPLIED" if event.status == pb.OUTCOME_APPLIED else "REJECTED",
        "reason": pb.RejectReason.Name(event.reason),
        "did_suffix": event.did_suffix or None,
        "credential_batch_id": event.credential_batch_id or None,
        "block": event.position.number,
        "time": event.position.time,
        "signed_operation": event.signed_operation.hex(),
    }


def _update(update: pb.OperationStatusUpdate) -> dict[str, Any]:
    found: dict[str, Any] = {"status": pb.OperationStatus.Name(update.status)}
    if update.status == pb.CONFIRMATION_LEVEL:
        found["level"] = update.confirmation_level
    if update.status == pb.REJECTED:
        found["reason"] = pb.RejectReason.Name(update.reason)
    if update.HasField("position"):
        found["block"] = update.position.number
    return found


def _operations(path: Path) -> list[bytes]:
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    found: list[bytes] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                found.append(bytes.fromhex(line.strip().removeprefix("0x")))
            except ValueError:
                raise click.UsageError(f"{path}:{number}: not hex") from None
    return found


def _kept(path: Path | None) -> Subscription | None:
    if path is None or not path.exists():
        return None
    try:
        document = json.loads(path.read_bytes())
        return Subscription(str(document["token"]), str(document["cursor"]))
    except (ValueError, KeyError, TypeError):
        raise click.UsageError(f"{path}: not the state of a subscription") from None


def _keep(path: Path | None, at: Subscription) -> None:
    """Write the file atomically: after a kill it has the old or the new content."""
    if path is None:
        return
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps({"token": at.token, "cursor": at.cursor}) + "\n", encoding="utf-8")
    beside.replace(path)


def _seed(name: str) -> bytes:
    text = os.environ.get(name, "").removeprefix("0x")
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != 32:
        raise click.UsageError(f"--seed-env {name}: the variable does not hold 64 hex digits")
    return raw
