"""A node under clients for a long time: blocks come, clients follow and vanish, memory is watched.

`python -m bench.node_soak --minutes 60` prints a line every ten seconds: blocks, live connections, resident MiB. The
exit code is 1 when memory grew by more than a tenth in the second half.
"""

import argparse
import asyncio
import json
import sys
from statistics import median
from typing import Final

import aiohttp

from bench.measure import resident
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.server.options import Build, Options
from pubsub_emulator.node.server.server import Server

EVERY: Final = 10
_GROWTH: Final = 1.1


async def client(http: aiohttp.ClientSession, url: str, number: int) -> None:
    """Follow, listen and ask for a while, then vanish without a word; and again."""
    wanted = (
        ("chainHead_v1_follow", [True]),
        ("chain_subscribeNewHeads", []),
        ("pubsub_subscribeDeliveries", []),
        ("state_getKeysPaged", ["0x", 100]),
        ("state_getMetadata", []),
    )
    while True:
        socket = await http.ws_connect(url, max_msg_size=0)
        for at, (method, params) in enumerate(wanted):
            await socket.send_str(json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": params}))
        for _ in range(200 + 10 * number):
            message = await socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
        if number % 2:
            await socket.close()
        elif socket._response.connection is not None:  # noqa: SLF001  # as a cable that is pulled
            socket._response.close()  # noqa: SLF001  # as above


async def soak(minutes: float, clients: int, interval: int) -> int:
    """Run it; returns the exit code."""
    live = LiveNetwork(Simulation(load_bundled("node"), accounts=True))
    options = Options(port=0, dev=True, build=Build.INTERVAL, interval=interval, history=128)
    server = Server(live, options)
    seen: list[float] = []
    async with server.serving() as places, aiohttp.ClientSession() as http:
        urls = [place.url for place in places]
        work = [asyncio.create_task(client(http, urls[at % len(urls)], at)) for at in range(clients)]
        for _ in range(max(round(minutes * 60 / EVERY), 4)):
            await asyncio.sleep(EVERY)
            seen.append(resident() / 1_048_576)
            line = f"{live.network.number:7,} blocks  {len(server.connections):3} connections  {seen[-1]:7.1f} MiB"
            print(line, flush=True)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    half = len(seen) // 2
    quarter = len(seen) // 4
    growth = median(seen[-quarter or -1 :]) / median(seen[half : half + (quarter or 1)])
    print(f"from the third quarter to the last, memory grew to {growth:.3f} of what it was")
    return 1 if growth > _GROWTH else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--interval", type=int, default=50, help="milliseconds from one block to the next")
    given = parser.parse_args()
    sys.exit(asyncio.run(soak(given.minutes, given.clients, given.interval)))
