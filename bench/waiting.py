"""Events that wait for a network that does not answer: `python -m bench.waiting [COUNT ...]`.

Clients publish events while their only network is down, so that each of them waits in the store
and is tried again. Then the network returns and gets them all. Each row is a process of its own:
events published a second and CPU time for each; the share of a core that the retries of all
waiting events take, over `--watch` seconds; the growth of the process's memory, and the size of
the store; and the CPU time for each event once the network is back. With `--sqlite` the
rows are in a file, and without it in the memory of the process.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.distributor import AT_ONCE, until
from bench.scaling import in_a_child, shown
from interchain_events.distributor.adapter.inside import InsideAdapter, deliver
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.core.messages import Publish
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.once import MemoryStore, open_store
from interchain_events.distributor.service.engine import Engine
from interchain_events.distributor.service.poster import Poster
from interchain_events.distributor.service.serve import tune_collector
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of
from pubsub_emulator.cli.streams import prepare_streams

NETWORK: Final = "a"
KIB_OF_MIB: Final = 1024
LONGEST: Final = 7_200.0
"""Seconds after which a network that is back must have every event."""
COLUMNS: Final = (
    "events that wait",
    "published a second",
    "CPU ms an event",
    "share of a core while they wait",
    "process MiB more",
    "store MiB",
    "CPU ms an event, delivered",
)


def peak() -> float:
    """Return the peak of the memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_OF_MIB


def size_of(folder: str) -> float:
    """Return the size of the files in a folder in MiB, 0 if there is none."""
    files = Path(folder).iterdir() if folder else ()
    return sum(path.stat().st_size for path in files) / KIB_OF_MIB / KIB_OF_MIB


async def wait_and_return(count: int, store: str, watch: float) -> tuple[float, ...]:
    """Publish `count` events while the network is down, watch them wait, and deliver them.

    `store` is a folder, or empty for a store in memory. Returns a row without its first column.
    """
    ledger = SimulatedLedger(SimulatedNetwork(NETWORK))
    adapters: dict[str, InsideAdapter] = {}
    rows = open_store(f"sqlite:{store}/rows.db") if store else MemoryStore()
    engine = Engine(Rules((NETWORK,), "bench"), rows, adapters, Poster())
    adapters[NETWORK] = InsideAdapter(
        ledger, MemoryStore(), lambda url, notices: deliver(engine, url, notices)
    )
    await engine.start()
    await until(lambda: engine.reached[NETWORK].answered_at > 0)
    ledger.network.up = False
    limit = asyncio.Semaphore(AT_ONCE)

    async def publish(first: int) -> None:
        async with limit:
            for number in range(first, count, AT_ONCE):
                await engine.tell(Publish(*event_of(number, number)))

    memory = peak()
    begun = time.perf_counter()
    cpu = time.process_time()
    await asyncio.gather(*(publish(first) for first in range(AT_ONCE)))
    filled = time.perf_counter() - begun
    filling = time.process_time() - cpu

    cpu = time.process_time()
    begun = time.perf_counter()
    await asyncio.sleep(watch)
    share = (time.process_time() - cpu) / (time.perf_counter() - begun)
    grown = peak() - memory
    stored = size_of(store)

    cpu = time.process_time()
    ledger.network.up = True
    await until(lambda: len(ledger.network.log) == count, LONGEST)
    delivering = time.process_time() - cpu
    await adapters[NETWORK].close()
    await engine.stop()
    return (
        count / filled,
        1e3 * filling / count,
        share,
        grown,
        stored,
        1e3 * delivering / count,
    )


def row(count: int, store: str, watch: float) -> Iterator[float]:
    """Yield the row of `count` events."""
    tune_collector()
    yield count
    yield from asyncio.run(wait_and_return(count, store, watch))


if __name__ == "__main__":
    prepare_streams()
    parser = argparse.ArgumentParser(prog="python -m bench.waiting", description=__doc__)
    parser.add_argument("counts", metavar="COUNT", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument(
        "--sqlite", action="store_true", help="keep the rows in SQLite, in a folder of its own"
    )
    parser.add_argument("--watch", type=float, default=60.0, metavar="SECONDS")
    given = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---" * len(COLUMNS) + "|")
    for size in given.counts:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            place = folder if given.sqlite else ""
            figures = in_a_child(lambda: row(size, place, given.watch))  # noqa: B023  # called at once
        print(f"| {' | '.join(map(shown, figures))} |", flush=True)
