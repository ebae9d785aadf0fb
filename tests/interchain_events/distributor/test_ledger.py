"""Ledgers of networks: whether an id is in the log is looked up, however long the log is."""

from support.plumbing.told import alone

from interchain_events.distributor.adapter.inside import InsideAdapter
from interchain_events.distributor.adapter.ledger import Ledger, Published, SimulatedLedger
from interchain_events.distributor.core.messages import LogPage, No, Unknown
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.adapters import ProbeAnswer
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of

KNOWN, EVENT = event_of(1)
ABSENT, _ = event_of(2)


class _Chain(Ledger):
    """The log of a chain, which notes how much of it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_up = True
        self.limits: list[int] = []

    async def publish(self, event: Event) -> Published | No | Unknown:
        raise NotImplementedError

    async def read(self, after: int, limit: int) -> LogPage | None:
        self.limits.append(limit)
        return await super().read(after, limit) if self.is_up else None

    def include(self) -> None:
        self._grow([Notice(1, 7, EVENT, id=KNOWN, signer="")])

    def revert(self) -> None:
        self._shrink(0)


async def _deliver(_endpoint: str, notices: list[Notice]) -> list[bool]:
    return [True for _ in notices]


@alone
async def test_an_id_is_looked_up_without_reading_the_log() -> None:
    chain = _Chain()
    adapter = InsideAdapter(chain, MemoryStore(), _deliver)
    assert await adapter.probe(KNOWN, 0, "") == ProbeAnswer(there=False)
    chain.include()
    assert await adapter.probe(KNOWN, 0, "") == ProbeAnswer(there=True)
    assert await adapter.probe(ABSENT, 0, "") == ProbeAnswer(there=False)
    chain.revert()
    assert await adapter.probe(KNOWN, 0, "") == ProbeAnswer(there=False)
    assert set(chain.limits) == {1}


@alone
async def test_a_silent_chain_leaves_open_whether_it_has_an_id() -> None:
    chain = _Chain()
    chain.include()
    chain.is_up = False
    assert await chain.has(KNOWN) is None


@alone
async def test_a_simulated_network_knows_its_ids_after_a_rewind() -> None:
    network = SimulatedNetwork("a")
    ledger = SimulatedLedger(network)
    ledger.append(EVENT)
    assert (await ledger.has(KNOWN), await ledger.has(ABSENT)) == (True, False)
    network.up = False
    assert await ledger.has(KNOWN) is None
    network.up = True
    network.log.clear()
    assert await ledger.has(KNOWN) is False
