"""Run a node under clients for a long time, and watch its memory.

`python -m bench.node_soak --minutes 60` prints a line every ten seconds: blocks, live connections,
resident MiB. The exit code is 1 if memory grew by more than a tenth in the second half.

With `--hostile N`, a second process has N clients that read nothing, let the node compute, send
text that is not JSON, or stay silent. A third process has N honest clients, which send ten requests
a second. The exit code is then also 1 if one honest answer in a hundred takes more than a second.
The node accepts twice as many connections as there are such clients. A client that connects again
is refused while its earlier requests are still processed.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import sys
import time
from itertools import cycle, islice
from multiprocessing.queues import Queue
from statistics import median
from typing import Final

import aiohttp

from bench.measure import resident
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.rpc.legacy_state import MOST_ARGUMENTS
from pubsub_emulator.node.server.options import Build, Options, Serving
from pubsub_emulator.node.server.server import Server
from pubsub_emulator.primitives.scale import encode_compact

EVERY: Final = 10
_GROWTH: Final = 1.1
_SLOW: Final = 1.0
"""The seconds within which 99 of 100 honest requests must be answered."""


def _request(method: str, *params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _computing() -> dict[str, object]:
    """Return a request that takes long: a dry run of a batch of remarks.

    It is as large as the arguments of a call may be.
    """
    remark = bytes(2) + encode_compact(0)
    count = (MOST_ARGUMENTS - 100) // len(remark)
    data = (
        bytes((0, 1))
        + bytes(32)
        + bytes((26, 0))
        + encode_compact(count)
        + remark * count
        + bytes((5, 0, 0, 0))
    )
    return _request("state_call", "DryRunApi_dry_run_call", f"0x{data.hex()}")


_HOSTILE: Final = (
    json.dumps(_request("state_getMetadata")),
    json.dumps(_computing()),
    "[" * 50_000,
    json.dumps([_request("state_getKeysPaged", "0x", 1000)] * 90),
    json.dumps(_request("chainHead_v1_follow", True)),
    "x" * 1_000_000,
)


async def client(http: aiohttp.ClientSession, url: str, number: int) -> None:
    """Subscribe and send requests for a while, then vanish, and begin again."""
    wanted = (
        _request("chainHead_v1_follow", True),
        _request("chain_subscribeNewHeads"),
        _request("pubsub_subscribeDeliveries"),
        _request("state_getKeysPaged", "0x", 100),
        _request("state_getMetadata"),
    )
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            socket = await http.ws_connect(url, max_msg_size=0)
            for request in wanted:
                await socket.send_json(request)
            for _ in range(200 + 10 * number):
                message = await socket.receive()
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
            if number % 2:
                await socket.close()
            elif socket._response.connection is not None:  # noqa: SLF001  # like a pulled cable
                socket._response.close()  # noqa: SLF001  # as above
        await asyncio.sleep(0)


async def hostile(http: aiohttp.ClientSession, url: str, number: int) -> None:
    """Send the same hostile request over and over without reading, then connect again."""
    line = _HOSTILE[number % len(_HOSTILE)]
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with http.ws_connect(url) as socket, asyncio.timeout(20):
                for _ in range(200):
                    await socket.send_str(line)
                    await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)


async def honest(http: aiohttp.ClientSession, url: str, took: list[float]) -> None:
    """Send ten requests a second on one connection, and note the seconds of each answer.

    A lost answer counts as 60 seconds.
    """
    while True:
        try:
            async with http.ws_connect(url) as socket:
                for method in cycle(
                    ("system_health", "chain_getHeader", "state_getRuntimeVersion")
                ):
                    start = time.perf_counter()
                    await socket.send_json(_request(method))
                    answer = await socket.receive_json(timeout=30)
                    took.append(time.perf_counter() - start if "result" in answer else 60.0)
                    await asyncio.sleep(0.1)
        except (aiohttp.ClientError, OSError, TimeoutError, TypeError):
            took.append(60.0)
            await asyncio.sleep(0.5)


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def crowd(
    urls: list[str], count: int, seconds: float, answers: "Queue[list[float]] | None"
) -> None:
    """Run `count` clients for some seconds. This runs in a process of its own.

    If `answers` is given, the clients are honest, and the seconds of their answers are put there.
    Otherwise they are hostile.
    """

    async def run() -> None:
        took: list[float] = []
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            places = list(enumerate(islice(cycle(urls), count)))
            if answers is None:
                work = [asyncio.create_task(hostile(http, url, number)) for number, url in places]
            else:
                work = [asyncio.create_task(honest(http, url, took)) for _, url in places]
            await asyncio.sleep(seconds)
            await _ended(work)
        if answers is not None:
            answers.put(took)

    asyncio.run(run())


async def soak(minutes: float, clients: int, interval: int, enemies: int) -> int:
    """Run a node with clients, print its memory every `EVERY` seconds, and return the exit code.

    With `enemies`, as many honest and as many hostile clients run in two further processes.
    """
    live = LiveNetwork(Simulation(load_bundled("node"), accounts=True))
    serving = Serving(connections=clients + 2 * enemies)
    options = Options(
        port=0, dev=True, build=Build.INTERVAL, interval=interval, history=128, serving=serving
    )
    server = Server(live, options)
    seen: list[float] = []
    async with server.serving() as places, aiohttp.ClientSession() as http:
        urls = [place.url for place in places]
        work = [
            asyncio.create_task(client(http, urls[number % len(urls)], number))
            for number in range(clients)
        ]
        spawn = multiprocessing.get_context("spawn")
        answers: Queue[list[float]] = spawn.Queue()
        # The honest crowd puts its latencies into a queue, and the hostile one has no queue.
        queues = (answers, None) if enemies else ()
        crowds = [
            spawn.Process(target=crowd, args=(urls, enemies, minutes * 60, queue))
            for queue in queues
        ]
        for process in crowds:
            process.start()
            # The honest crowd is connected before the hostile one starts.
            await asyncio.sleep(5)
        for _ in range(max(round(minutes * 60 / EVERY), 4)):
            await asyncio.sleep(EVERY)
            seen.append(resident() / 1_048_576)
            line = (
                f"{live.network.number:7,} blocks  {len(server.connections):3} connections "
                f" {seen[-1]:7.1f} MiB"
            )
            print(line, flush=True)
        latencies = sorted(await asyncio.to_thread(answers.get)) if crowds else [0.0]
        for process in crowds:
            await asyncio.to_thread(process.join)
        await _ended(work)
    if crowds:
        shown = ", ".join(
            f"{percent:g} %: {1000 * latencies[int(len(latencies) * percent / 100)]:.0f} ms"
            for percent in (50, 90, 99, 99.9)
        )
        print(f"{len(latencies):,} honest answers, {shown}")
    # There are at least four samples.
    half = len(seen) // 2
    quarter = len(seen) // 4
    growth = median(seen[-quarter:]) / median(seen[half : half + quarter])
    print(f"from the third quarter to the last, memory grew by the factor {growth:.3f}")
    return 1 if growth > _GROWTH or latencies[int(len(latencies) * 0.99)] > _SLOW else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument(
        "--interval", type=int, default=50, help="milliseconds from one block to the next"
    )
    parser.add_argument(
        "--hostile",
        type=int,
        default=0,
        help="hostile clients, and as many honest ones beside them",
    )
    given = parser.parse_args()
    sys.exit(asyncio.run(soak(given.minutes, given.clients, given.interval, given.hostile)))
