"""`pubsub distributor serve` and `adapter`. They do not import the simulations."""

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interchain_events.distributor.adapter.ledger import Ledger
from interchain_events.distributor.event import NETWORK
from interchain_events.distributor.once import Store, open_store
from interchain_events.distributor.service.config import AccessConfig, make_access, read_config
from interchain_events.distributor.service.serve import log_lines, running, served, tune_collector
from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.ending import asked_to_end
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.serving.guard import Names

if TYPE_CHECKING:
    from interchain_events.distributor.adapter.evm.account import EvmAccount


def serve_distributor(path: Path) -> None:
    """Serve a distributor until a signal ends it."""
    config = read_config(path)
    log_lines()

    async def run() -> None:
        async with running(config, path.parent) as service:
            click.echo(f"distributor of {', '.join(config.adapters)} on {service.url}")
            await asked_to_end().wait()
            click.echo("stopping: requests under way are finished first")

    tune_collector()
    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """The options of an adapter.

    The options from `url` on are those of an EVM chain and of the account that publishes there.
    """

    network: str
    host: str
    names: tuple[str, ...]
    origins: tuple[str, ...]
    port: int
    store: str
    node: str | None
    seed_env: str | None
    not_unique: bool
    everyone: bool
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


def serve_adapter(given: AdapterOptions) -> None:
    """Serve an adapter of one network until a signal ends it. Raises `PubsubError`."""
    from interchain_events.distributor.adapter.http import AdapterHttp

    if not NETWORK.fullmatch(given.network):
        raise click.BadParameter(
            "a network's name has 1 to 32 of the characters a-z, 0-9 and -", param_hint="NETWORK"
        )
    evm_only = (given.contract, given.keystore, given.key_env, given.chain_id)
    if given.url is None and (any(evm_only) or given.price is not None):
        raise click.UsageError(
            "--contract, --keystore, --key-env, --chain-id and --gas-price are for --evm"
        )
    access = make_access(AccessConfig(open=given.everyone), given.host, Path())
    log_lines()

    async def run() -> None:
        store = open_store(given.store)
        if given.url is None:
            ledger = await _ledger(given)
        else:
            ledger = await _evm_ledger(given, given.url, store)
        names = Names(given.host, given.names, given.origins)
        node = given.url or given.node or ""
        http = AdapterHttp(given.network, ledger, store, access, node=node, names=names)
        async with served(http.application(), given.host, given.port) as url:
            click.echo(f"adapter of {given.network} on {url}")
            await asked_to_end().wait()

    tune_collector()
    asyncio.run(run())


async def _ledger(given: AdapterOptions) -> Ledger:
    """Return the ledger of a chain in this process, or behind a node.

    Raises `click.UsageError` if the node's chain is not a Substrate chain.
    """
    from interchain_events.distributor.adapter.chain import ChainLedger
    from interchain_events.distributor.adapter.rpc import RpcLedger
    from pubsub_emulator.client.errors import NodeRefused
    from pubsub_emulator.client.extrinsics import development_seed
    from pubsub_emulator.client.rpc import connect

    if given.node is None:
        return ChainLedger(given.network, unique=not given.not_unique)
    seed = development_seed("Alice") if given.seed_env is None else options.seed_of(given.seed_env)
    rpc = await connect(given.node).__aenter__()
    try:
        await rpc.call("system_name")
    except PubsubError as error:
        await rpc.__aexit__(None, None, None)
        if not isinstance(error, NodeRefused):
            raise
        raise click.UsageError(
            f"--node {given.node}: this is not a node of a Substrate chain ({error}); for a node of"
            " an EVM chain use --evm"
        ) from error
    return RpcLedger(given.network, rpc, seed)


async def _evm_ledger(given: AdapterOptions, url: str, store: Store) -> Ledger:
    """Return the ledger of a contract on an EVM chain.

    The contract is created if neither the options nor the store name one. Raises
    `click.UsageError` if options do not fit together, and `PubsubError`.
    """
    from interchain_events.distributor.adapter.evm.ledger import EvmSettings, open_ledger
    from interchain_events.distributor.adapter.evm.node import EvmNode, Finality
    from pubsub_emulator.client.rpc import connect

    _check_evm_options(given)
    finality: Finality = int(given.finality) if given.finality.isdecimal() else given.finality  # type: ignore[assignment]
    settings = EvmSettings(
        given.contract,
        given.first,
        given.chain_id,
        not given.not_unique,
        finality,
        given.price,
        stuck=float(given.stuck),
    )
    account = _account(given)
    node = EvmNode(await connect(url).__aenter__())
    try:
        ledger = await open_ledger(given.network, node, account, settings, store)
    except PubsubError:
        await node.rpc.__aexit__(None, None, None)
        raise
    click.echo(f"contract {ledger.contract} of chain {ledger.chain_id}, account {account.address}")
    return ledger


def _check_evm_options(given: AdapterOptions) -> None:
    """Raise `click.UsageError` if the options with `--evm` do not fit together."""
    if given.node is not None:
        raise click.UsageError("--node and --evm are different kinds of chain: give one of them")
    if given.contract is not None and not re.fullmatch("0x[0-9a-fA-F]{40}", given.contract):
        raise click.BadParameter("an address is 0x and 40 hex digits", param_hint="--contract")
    if given.finality not in {"safe", "finalized"} and not re.fullmatch(
        "[0-9]{1,2}|100", given.finality
    ):
        raise click.BadParameter(
            "a number from 0 to 100, safe or finalized is needed", param_hint="--finality"
        )
    if given.store == "memory:":
        raise click.UsageError(
            "--evm needs a --store that lasts, such as sqlite:FILE, for transactions under way"
        )
    if (given.keystore is None) == (given.key_env is None):
        raise click.UsageError("--evm needs a key: give one of --keystore and --key-env")


def _account(given: AdapterOptions) -> "EvmAccount":
    """Return the account that publishes on an EVM chain. Asks for the password if necessary.

    Raises `KeyUnusable`.
    """
    from interchain_events.distributor.adapter.evm.account import (
        key_of_environment,
        key_of_keystore,
    )

    if given.keystore is None:
        return key_of_environment(given.key_env or "")
    if given.password_env is None:
        password = click.prompt("password of the keystore", hide_input=True, err=True)
    else:
        password = os.environ.get(given.password_env, "")
    return key_of_keystore(given.keystore, password)
