"""The blocks of a node, a history or a scenario, appended to a log."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from interchain_events.events.errors import SourceError
from interchain_events.events.log.sources.network import NetworkLog
from interchain_events.events.log.sql_store import SqlStore
from interchain_events.events.log.store import copy_all
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation


def append_node(
    store: SqlStore,
    url: str,
    parachains: Mapping[int, str],
    first: int | None = None,
    until: int | None = None,
) -> None:
    """Append the final blocks of a node, from `first` on, and follow it up to block `until`.

    `parachains` has the URLs of the parachains' nodes by para id. Without `until`, it never ends.
    Raises `PubsubError`.
    """
    from interchain_events.events.log.sources.rpc import RpcSource  # noqa: PLC0415  # an extra

    async def run() -> None:
        async with RpcSource(url, dict(parachains)) as source:
            await source.reach()
            await source.follow(store, first, until=until)

    asyncio.run(run())


def append_history(store: SqlStore, root: Path, until: int | None = None) -> None:
    """Append the blocks of a history to a log, up to the block `until`.

    They are the blocks of the log's network, or of the history's only one. Raises `SourceError` if
    the history has several networks, and the log's is not among them.
    """
    from interchain_events.events.log.sources.history import (  # noqa: PLC0415  # an extra
        history_blocks,
        history_networks,
    )

    networks = history_networks(root)
    if len(networks) != 1 and store.network not in networks:
        raise SourceError(
            f"{root} has the networks {', '.join(networks)}; select one with --network"
        )
    blocks = history_blocks(root, store.network if store.network in networks else networks[0])
    copy_all(store, (block for block in blocks if until is None or block.number <= until))


def append_scenario(store: SqlStore, scenario: Scenario, until: int | None = None) -> None:
    """Run a scenario up to its last block or `until`, and append its blocks."""
    simulation = Simulation(scenario)
    last = scenario.relay_blocks if until is None else until
    with NetworkLog(simulation.network, store):
        while simulation.network.number < last:
            simulation.step()
