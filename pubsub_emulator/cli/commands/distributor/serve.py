"""`pubsub distributor serve` and `adapter`; they start without what only simulations need."""

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

import click

from pubsub_emulator.cli.ending import asked_to_end
from pubsub_emulator.distributor.adapter.ledger import NetworkLog
from pubsub_emulator.distributor.event import NETWORK
from pubsub_emulator.distributor.once import open_store
from pubsub_emulator.distributor.service.config import AccessConfig, make_access, read_config
from pubsub_emulator.distributor.service.logs import log_lines
from pubsub_emulator.distributor.service.serve import running, served, tune_collector
from pubsub_emulator.serving.guard import Names


def serve_distributor(path: Path) -> None:
    """Serve a distributor until a signal ends it."""
    config = read_config(path)
    log_lines()

    async def run() -> None:
        async with running(config, path.parent) as found:
            click.echo(f"distributor of {', '.join(config.adapters)} on {found.url}")
            await asked_to_end().wait()
            click.echo("ending: what is under way is finished first")

    tune_collector()
    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class AdapterWish:
    """What adapter is wanted."""

    network: str
    host: str
    names: tuple[str, ...]
    port: int
    store: str
    node: str | None
    seed_env: str | None
    unique: bool
    everyone: bool


def serve_adapter(wish: AdapterWish) -> None:
    """Serve an adapter of one network until a signal ends it."""
    from pubsub_emulator.distributor.adapter.http import AdapterHttp

    if not NETWORK.fullmatch(wish.network):
        raise click.BadParameter("a network's name has 1 to 32 of the characters a-z, 0-9 and -", param_hint="NETWORK")
    access = make_access(AccessConfig(open=wish.everyone), wish.host, Path())
    log_lines()

    async def run() -> None:
        ledger = await _ledger(wish)
        names = Names(wish.host, wish.names)
        http = AdapterHttp(wish.network, ledger, open_store(wish.store), access, node=wish.node or "", names=names)
        async with served(http.application(), wish.host, wish.port) as url:
            click.echo(f"adapter of {wish.network} on {url}")
            await asked_to_end().wait()

    tune_collector()
    asyncio.run(run())


async def _ledger(wish: AdapterWish) -> NetworkLog:
    """The chain of an adapter."""
    from pubsub_emulator.client.extrinsics import development_seed
    from pubsub_emulator.client.rpc import connect
    from pubsub_emulator.distributor.adapter.chain import ChainLedger
    from pubsub_emulator.distributor.adapter.rpc import RpcLedger

    if wish.node is None:
        return ChainLedger(wish.network, unique=wish.unique)
    seed = development_seed("Alice") if wish.seed_env is None else _seed(wish.seed_env)
    return RpcLedger(wish.network, await connect(wish.node).__aenter__(), seed)


def _seed(name: str) -> bytes:
    """The seed in an environment variable."""
    text = os.environ.get(name, "").removeprefix("0x")
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise click.BadParameter(
            f"the environment variable {name} does not hold 32 bytes in hex", param_hint="--seed-env"
        )
    return bytes.fromhex(text)
