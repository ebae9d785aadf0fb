"""`pubsub fetch`, as it reads a node that lies."""

import asyncio

from pubsub_emulator.node.lying_node import reads_a_node
from pubsub_emulator.primitives.types import ParaId


@reads_a_node("fetch")
def _fetch(url: str) -> str:
    from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate
    from pubsub_emulator.spark_audit.fetch.nodes import NodeBlockSource

    async def run() -> int:
        limits = RequestRate(rest=0.001, timeout=5)
        async with Endpoints([f"{url}/2000"], limits) as nodes, Endpoints([url], limits) as relay:
            source = NodeBlockSource("net", ParaId(2000), nodes, relay)
            newest = await source.newest()
            return len(await source.blocks(max(1, newest - 1), newest, lambda _done: None))

    return f"{asyncio.run(run())} blocks"
