"""`pubsub distributor serve` and `adapter`; they start without what only simulations need."""

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

import click

from pubsub_emulator.cli.base.ending import asked_to_end
from pubsub_emulator.distributor.adapter.ledger import NetworkLog
from pubsub_emulator.distributor.event import NETWORK
from pubsub_emulator.distributor.once import Store, open_store
from pubsub_emulator.distributor.service.config import AccessConfig, make_access, read_config
from pubsub_emulator.distributor.service.logs import log_lines
from pubsub_emulator.distributor.service.serve import running, served, tune_collector
from pubsub_emulator.primitives.errors import PubsubError
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
class EvmWish:
    """The EVM chain of an adapter, and the key that publishes; none without `url`."""

    url: str | None
    contract: str | None
    first: int
    chain_id: int | None
    finality: str
    price: int | None
    stuck: int
    keystore: Path | None
    password_env: str | None
    key_env: str | None


@dataclass(frozen=True, slots=True)
class AdapterWish:
    """The options of an adapter."""

    network: str
    host: str
    names: tuple[str, ...]
    port: int
    store: str
    node: str | None
    seed_env: str | None
    evm: EvmWish
    unique: bool
    everyone: bool


def serve_adapter(wish: AdapterWish) -> None:
    """Serve an adapter of one network until a signal ends it."""
    from pubsub_emulator.distributor.adapter.http import AdapterHttp

    if not NETWORK.fullmatch(wish.network):
        raise click.BadParameter("a network's name has 1 to 32 of the characters a-z, 0-9 and -", param_hint="NETWORK")
    evm = wish.evm
    if evm.url is None and (evm.contract or evm.keystore or evm.key_env or evm.chain_id or evm.price is not None):
        raise click.UsageError("--contract, --keystore, --key-env, --chain-id and --gas-price are for --evm")
    access = make_access(AccessConfig(open=wish.everyone), wish.host, Path())
    log_lines()

    async def run() -> None:
        store = open_store(wish.store)
        ledger = await (_ledger(wish) if evm.url is None else _evm_ledger(wish, evm, evm.url, store))
        names = Names(wish.host, wish.names)
        node = evm.url or wish.node or ""
        http = AdapterHttp(wish.network, ledger, store, access, node=node, names=names)
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


async def _evm_ledger(wish: AdapterWish, evm: EvmWish, url: str, store: Store) -> NetworkLog:
    """The contract of an adapter."""
    from pubsub_emulator.client.rpc import connect
    from pubsub_emulator.distributor.adapter.evm.account import key_of_environment, key_of_keystore
    from pubsub_emulator.distributor.adapter.evm.ledger import EvmSettings, open_ledger
    from pubsub_emulator.distributor.adapter.evm.node import EvmNode, Finality

    if wish.node is not None:
        raise click.UsageError("--node and --evm are chains of two kinds: give one of them")
    if evm.contract is not None and not re.fullmatch("0x[0-9a-fA-F]{40}", evm.contract):
        raise click.BadParameter("an address is 0x and 40 hex digits", param_hint="--contract")
    if evm.finality not in {"safe", "finalized"} and not re.fullmatch("[0-9]{1,2}|100", evm.finality):
        raise click.BadParameter("a number of 0 to 100, safe or finalized is needed", param_hint="--finality")
    if wish.store == "memory:":
        raise click.UsageError("--evm needs a --store that lasts, such as sqlite:FILE: it has transactions under way")
    if (evm.keystore is None) == (evm.key_env is None):
        raise click.UsageError("--evm needs a key: give one of --keystore and --key-env")
    if evm.keystore is None:
        account = key_of_environment(evm.key_env or "")
    elif evm.password_env is None:
        account = key_of_keystore(evm.keystore, click.prompt("password of the keystore", hide_input=True, err=True))
    else:
        account = key_of_keystore(evm.keystore, os.environ.get(evm.password_env, ""))
    finality: Finality = int(evm.finality) if evm.finality.isdecimal() else evm.finality  # type: ignore[assignment]
    settings = EvmSettings(
        evm.contract, evm.first, evm.chain_id, wish.unique, finality, evm.price, stuck=float(evm.stuck)
    )
    node = EvmNode(await connect(url).__aenter__())
    try:
        ledger = await open_ledger(wish.network, node, account, settings, store)
    except PubsubError:
        await node.rpc.__aexit__(None, None, None)
        raise
    click.echo(f"contract {ledger.contract} of chain {ledger.chain_id}, account {account.address}")
    return ledger
