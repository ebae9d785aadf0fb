"""An adapter that hangs: it delays no other network, and its questions do not pile up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from support.plumbing.told import alone

from interchain_events.distributor.adapter.inside import InsideAdapter, deliver
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.core.messages import Answer, Publish, Unknown
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service import engine as engine_module
from interchain_events.distributor.service.engine import Engine, EngineSettings
from interchain_events.distributor.service.poster import Poster
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of

COUNT = engine_module.CONCURRENCY + engine_module.MOST_WAITING + 100


class _Hanging(InsideAdapter):
    """An adapter whose publications never end."""

    calls = 0

    async def publish(self, event: Event) -> Answer:  # noqa: ARG002  # it hangs on every event
        self.calls += 1
        await asyncio.Event().wait()
        return Unknown("never reached")


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  # the condition has no event to wait for
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _running() -> AsyncIterator[tuple[Engine, _Hanging, SimulatedLedger]]:
    """Run an engine with a network that hangs and one that answers."""
    ledgers = {name: SimulatedLedger(SimulatedNetwork(name)) for name in ("slow", "quick")}
    adapters: dict[str, InsideAdapter] = {}
    settings = EngineSettings(grace=0.1)
    engine = Engine(Rules(tuple(ledgers), "test"), MemoryStore(), adapters, Poster(), settings)

    async def post(endpoint: str, notices: list[Notice]) -> list[bool]:
        return await deliver(engine, endpoint, notices)

    hanging = _Hanging(ledgers["slow"], MemoryStore(), post)
    adapters |= {"slow": hanging, "quick": InsideAdapter(ledgers["quick"], MemoryStore(), post)}
    await engine.start()
    await _until(lambda: all(engine.reached[name].answered_at for name in ledgers))
    yield engine, hanging, ledgers["quick"]
    for adapter in adapters.values():
        await adapter.close()
    await engine.stop()


@alone
async def test_a_network_that_hangs_delays_no_other_network() -> None:
    async with _running() as (engine, hanging, quick):
        for number in range(COUNT):
            await engine.tell(Publish(*event_of(number, number)))
        await _until(lambda: len(quick.network.log) == COUNT)
        assert hanging.calls == engine_module.CONCURRENCY


@alone
async def test_work_for_a_network_that_hangs_is_bounded() -> None:
    async with _running() as (engine, _, _):
        for number in range(COUNT):
            await engine.tell(Publish(*event_of(number, number)))
        waiting = engine._limits["slow"].waiting
        assert waiting == engine_module.MOST_WAITING
        assert engine.metrics.value("postponed", network="slow") == 100
