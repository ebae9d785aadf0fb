"""A replica of a scenario in a thread of this process, whose rounds go on all the time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import NamedTuple

from support.plumbing.scenarios import scenario
from support.plumbing.told import beside

from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.port.server import Port, serve
from interchain_events.icrc72.scenario import Run
from interchain_events.icrc72.scenario_file import parse
from pubsub_emulator.serving.guard import LOCAL

SCENARIO = scenario("replica")


class Replica(NamedTuple):
    """The address, and who is there."""

    url: str
    port: Port
    who: dict[str, Principal]


def replica(
    change: Callable[[Run], None] = lambda _run: None, begin: int = 150
) -> AbstractContextManager[Replica]:
    """Run the scenario as a replica, changed by `change`, from round `begin` on."""
    run = Run(parse(SCENARIO, "replica"), genesis=time.time_ns())
    change(run)
    port = Port(run, LOCAL)
    for _ in range(begin):
        run.step()
    return beside(lambda: _going(port, run))


@asynccontextmanager
async def _going(port: Port, run: Run) -> AsyncIterator[Replica]:
    async def go_on() -> None:
        while True:
            run.step()
            await asyncio.sleep(0.002)

    async with serve(port, LOCAL, 0) as (host, number):
        going = asyncio.create_task(go_on())
        yield Replica(f"http://{host}:{number}", port, run.who)
        going.cancel()
