"""A replica of a scenario in a thread of this process, whose rounds go on all the time."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.port.server import Port, serve
from pubsub_emulator.icrc72.scenario import Run
from pubsub_emulator.icrc72.scenario_file import parse
from pubsub_emulator.serving.guard import LOCAL

SCENARIO = """
subnets = 2
rounds = 1000000
broadcasters = [0, 1]

[[publisher]]
name = "prices"
subnet = 0
namespace = "org.example.price"
until = 100
every = 5
replay = true

[[subscriber]]
name = "desk"
subnet = 1
pattern = "org.example.price"
"""


class Replica(NamedTuple):
    """The address, and who is there."""

    url: str
    port: Port
    who: dict[str, Principal]


@contextmanager
def replica(change: Callable[[Run], None] = lambda _run: None, begin: int = 150) -> Iterator[Replica]:
    """The scenario with what `change` changes, from round `begin` on."""
    run = Run(parse(SCENARIO, "replica"), genesis=time.time_ns())
    change(run)
    port, ready, ended = Port(run, LOCAL), threading.Event(), threading.Event()
    bound: list[str] = []
    for _ in range(begin):
        run.step()

    async def going() -> None:
        async with serve(port, LOCAL, 0) as (host, number):
            bound.append(f"http://{host}:{number}")
            ready.set()
            while not ended.is_set():
                run.step()
                await asyncio.sleep(0.002)

    thread = threading.Thread(target=lambda: asyncio.run(going()))
    thread.start()
    try:
        assert ready.wait(60)
        yield Replica(bound[0], port, run.who)
    finally:
        ended.set()
        thread.join()
