"""The event log, as it reads a node that lies."""

import asyncio
import tempfile
from contextlib import closing

from interchain_events.events.log.sources.rpc import RpcSource
from interchain_events.events.log.sql_store import open_store
from pubsub_emulator.node.lying_node import BLOCKS, reads_a_node


@reads_a_node("log")
def _log(url: str) -> str:
    async def run(place: str) -> int:
        async with RpcSource(url, {2000: f"{url}/2000"}) as source:
            with closing(open_store(place, "net")) as store:
                return await source.catch_up(store, 1, until=BLOCKS)

    with tempfile.TemporaryDirectory(prefix="pubsub-fuzz-") as folder:
        return f"{asyncio.run(run(f'{folder}/log.db'))} blocks"
