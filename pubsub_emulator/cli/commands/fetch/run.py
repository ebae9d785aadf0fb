"""`pubsub fetch`: blocks of real chains into a history."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import monotonic
from typing import Final

import click

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import files, say, stage
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.pages.words import size
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.fetch.chunks import ChunkSource
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate
from pubsub_emulator.spark_audit.fetch.exports import ExportSource
from pubsub_emulator.spark_audit.fetch.fetch import BlockRange, BlockSource, Fetched, fetch
from pubsub_emulator.spark_audit.fetch.nodes import NodeBlockSource

_WHOLE: Final = 10
"""The number of blocks per second from which the pace is printed without decimals."""


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """The arguments of `pubsub fetch`."""

    nodes: tuple[str, ...]
    relay_nodes: tuple[str, ...]
    chunks: str | None
    export: str | None
    network: str
    chain: int
    first: int
    last: int | None
    out: str
    unit: int
    rate: float | None
    connections: int
    timeout: float


def run_fetch(options: FetchOptions) -> Result:
    """Fetch blocks of a parachain into a history, and print how many were added."""
    sources = [bool(options.nodes), options.chunks is not None, options.export is not None]
    if sources.count(True) != 1:
        raise click.UsageError("give one of --node, --chunks and --export")
    began = monotonic()
    try:
        with stage(f"fetching blocks of {options.network} {options.chain}") as advance:
            fetched = asyncio.run(_fetch(options, _Watch(advance, options.chain)))
    except KeyboardInterrupt:
        say("interrupted: complete units are in the history, and the same command continues")
        raise
    seconds = monotonic() - began
    known = f", {fetched.there:,} were there already" if fetched.there else ""
    # The clock may not have moved if every block was there already.
    rate = fetched.fetched / max(seconds, 1e-3)
    decimals = 0 if rate >= _WHOLE else 1
    pace = f" ({rate:,.{decimals}f} a second)" if fetched.fetched else ""
    say(
        f"blocks {fetched.first:,} to {fetched.last:,}: {fetched.fetched:,} fetched in"
        f" {seconds:,.1f} s{pace}{known}"
    )
    if fetched.fetched:
        say(f"{fetched.nodes:,} distinct proof nodes, proofs of {size(fetched.proof_bytes)} in all")
    if fetched.differing:
        say(
            f"{fetched.differing:,} inherents state another relay root than the relay chain:"
            " `pubsub audit` shows which"
        )
    files("written:", ((options.out, "a history, for `pubsub audit`"),))
    place = {
        "network": options.network,
        "chain": options.chain,
        "from": fetched.first,
        "to": fetched.last,
    }
    added = {"fetched": fetched.fetched, "there_already": fetched.there}
    proofs = {
        "nodes": fetched.nodes,
        "proof_bytes": fetched.proof_bytes,
        "other_relay_roots": fetched.differing,
    }
    return Result({**place, **added, **proofs, "history": options.out})


class _Watch:
    """Shows how far a fetch is, and why it waits when all nodes rest."""

    def __init__(self, advance: ProgressCallback, chain: int) -> None:
        self._advance = advance
        self._chain = chain
        self._progress: tuple[int, int | None] = (0, None)

    def __call__(self, done: int, total: int) -> None:
        self._progress = (done, total)
        self._advance(done, total, f"fetching: blocks of {self._chain}")

    def resting(self, reason: str) -> None:
        """Show that the fetch waits, because all nodes rest."""
        self._advance(*self._progress, f"waiting for a node, {reason}")


async def _fetch(options: FetchOptions, watch: _Watch) -> Fetched:
    """Open the nodes and the source that the options name, and fetch from them."""
    limits = RequestRate(options.connections, options.rate, options.timeout)
    async with AsyncExitStack() as stack:
        relay = None
        if options.relay_nodes:
            relay = await stack.enter_async_context(
                Endpoints(options.relay_nodes, limits, watch.resting)
            )
        source: BlockSource
        chain = ParaId(options.chain)
        if options.chunks is not None:
            source = ChunkSource(options.network, chain, options.chunks, relay)
        elif options.export is not None:
            source = ExportSource(options.network, chain, options.export, relay)
        else:
            nodes = await stack.enter_async_context(Endpoints(options.nodes, limits, watch.resting))
            source = NodeBlockSource(options.network, chain, nodes, relay)
        return await fetch(
            source, BlockRange(options.first, options.last, options.unit), options.out, watch
        )
