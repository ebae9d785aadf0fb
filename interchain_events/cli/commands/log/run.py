"""`pubsub log`: following a source, reading and rewinding a log."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from interchain_events.events.errors import BadFilter, SourceError
from interchain_events.events.filters.algebra import (
    ANY,
    All,
    Chain,
    Filter,
    Kind,
    OneOf,
    check_limits,
)
from interchain_events.events.filters.codec import parse_filters
from interchain_events.events.log.sources.network import NetworkLog
from interchain_events.events.log.sql_store import SqlStore, existing_store, open_store
from interchain_events.events.log.store import copy_all
from interchain_events.events.rows import row_json
from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.screen import log_lines, say, say_document
from pubsub_emulator.emulator.scenario.file import find_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation

_PAGE: Final = 1_000


def follow_source(  # noqa: PLR0917  # the options of the command
    source: str,
    place: str,
    network: str,
    paras: Sequence[str],
    first: int | None,
    until: int | None,
) -> None:
    """Append the blocks of a source to a log, and follow it if wanted. Raises `PubsubError`."""
    log_lines()
    if not source.startswith(options.NODE_URLS) and (paras or first is not None):
        raise click.UsageError("--para and --from need a node's URL as SOURCE")
    urls = dict(map(options.para_url, paras))
    with closing(open_store(place, network)) as store:
        before = store.head().seq
        try:
            if source.startswith(options.NODE_URLS):
                _follow_node(source, urls, store, first, until)
            elif (Path(source) / "_commits").is_dir():
                _copy_history(Path(source), store, until)
            else:
                scenario = find_scenario(source)
                simulation = Simulation(scenario)
                with NetworkLog(simulation.network, store):
                    while simulation.network.number < (
                        scenario.relay_blocks if until is None else until
                    ):
                        simulation.step()
        finally:
            head = store.head()
            said = (
                "empty"
                if head.anchor is None
                else f"block {head.anchor}, seq {head.seq}, epoch {head.epoch}"
            )
            say(f"{store.database.place}: {said}; {head.seq - before:+,} events")


def _follow_node(
    url: str, paras: dict[int, str], store: SqlStore, first: int | None, until: int | None
) -> None:
    from interchain_events.events.log.sources.rpc import RpcSource

    async def run() -> None:
        async with RpcSource(url, paras) as source:
            await source.reach()
            await source.follow(store, first, until=until)

    asyncio.run(run())


def _copy_history(root: Path, store: SqlStore, until: int | None) -> None:
    from interchain_events.events.log.sources.history import history_blocks, history_networks

    networks = history_networks(root)
    if len(networks) != 1 and store.network not in networks:
        raise SourceError(
            f"{root} holds the networks {', '.join(networks)}; select one with --network"
        )
    blocks = history_blocks(root, store.network if store.network in networks else networks[0])
    copy_all(store, (block for block in blocks if until is None or block.number <= until))


def read_log(  # noqa: PLR0917  # the options of the command
    place: str,
    after: int,
    limit: int | None,
    kinds: Sequence[str],
    chain: str | None,
    text: str | None,
    *,
    wait: bool,
) -> None:
    """Print matching rows of a log, and wait for more if wanted. Raises `PubsubError`."""
    where = _where(kinds, chain, text)
    with closing(existing_store(place)) as store:
        left = limit
        epoch = store.head().epoch
        while left is None or left > 0:
            page = store.read(after, _PAGE if left is None else min(left, _PAGE), where)
            if page.head.epoch != epoch:
                common = store.common(epoch)
                epoch = page.head.epoch
                if common is not None and after > common:
                    say(f"events after seq {common} were taken back; going on from there")
                    after = common
                    continue
            for row in page.rows:
                say_document(row_json(row))
            after = page.through
            left = None if left is None else left - len(page.rows)
            if page.is_last:
                if not wait:
                    return
                store.wait(page.head, 1.0)


def _where(kinds: Sequence[str], chain: str | None, text: str | None) -> Filter:
    parts: list[Filter] = []
    if kinds:
        parts.append(OneOf(*map(Kind, kinds)))
    if chain is not None:
        if chain != "leading" and not chain.isdecimal():
            raise BadFilter(f"--chain {chain}: neither a para id nor `leading`")
        parts.append(Chain(None if chain == "leading" else int(chain)))
    if text is not None:
        parts += parse_filters(text if text.lstrip().startswith("[") else f"[{text}]")
    check_limits(parts)
    return All(*parts) if parts else ANY
