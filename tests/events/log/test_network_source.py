"""The log of an emulated network, by its observer (EV-1, EV-3, EV-4)."""

import pytest
from support.event_networks import OTHER, busy_network, run_busy

from pubsub_emulator.events.errors import AnotherChain, NotTheNextBlock
from pubsub_emulator.events.filters.algebra import Chain, Field, Kind
from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.events.log.sources.network import NetworkLog
from pubsub_emulator.events.rows import event_id
from pubsub_emulator.runtime.framework.pallet import Event


def test_ev_1_a_row_for_each_event_in_order() -> None:
    network, store = busy_network(), MemoryStore("net")
    told: list[tuple[int, int | None, Event]] = []
    with NetworkLog(network, store):
        for _ in range(6):
            network.publish(3000, OTHER, b"value")
            (step,) = network.step()
            told += [(step.number, None, event) for event in step.events]
            included = [record for record in step.records if record.outcome is not None]
            told += [(step.number, record.chain, each.event) for record in included for each in record.outcome.events]
    rows = store.read(0, 10**6).rows
    assert [(row.anchor, row.chain, row.kind) for row in rows] == [
        (anchor, chain, f"{event.PALLET}.{type(event).__name__}") for anchor, chain, event in told
    ]
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    published = store.read(0, 100, Kind("Broadcaster.DataPublished")).rows
    assert published
    assert published[0].fields == {"publisher": 3000, "key": "0x" + OTHER.hex(), "value_size": 5}
    relay = network.relay.block(published[0].anchor)
    assert relay is not None
    assert published[0].id == event_id(relay.header.hash(), published[0][4])
    assert published[0].time == (1_000_000 + published[0].anchor) * 6_000
    delivered = store.read(0, 100, Kind("Subscriber.*")).rows
    assert {row.chain for row in delivered} == {2000}
    assert store.read(0, 100, Field("origin.Ump.Para", "=", 3000)).rows


def test_ev_4_the_same_network_again_adds_nothing() -> None:
    store = MemoryStore("net")
    for _ in range(2):
        network = busy_network()
        with NetworkLog(network, store):
            run_busy(network)
        head = store.head()
    assert head == store.head()
    assert head.anchor == 12
    assert len(store.read(0, 10**6, Chain(2000)).rows) > 0


def test_ev_3_a_restored_network_takes_its_events_back() -> None:
    network, store = busy_network(), MemoryStore("net")
    with NetworkLog(network, store) as log:
        network.step(5)
        moment = network.snapshot()
        network.step(4)
        log.flush()
        before = store.head()
        network.restore(moment)
        network.publish(1000, OTHER, b"otherwise")
        network.step(2)
    after = store.head()
    assert (before.anchor, before.epoch, after.anchor, after.epoch) == (9, 0, 7, 1)
    assert store.common(0) is not None


def test_another_networks_log_is_refused() -> None:
    store = MemoryStore("net")
    with NetworkLog(busy_network(), store):
        pass
    other = busy_network()
    other.step(300)  # block 0 is no longer kept: its parent says that it does not belong here
    with NetworkLog(busy_network("events"), store) as log:
        log._network.step(1)
    with pytest.raises(NotTheNextBlock), NetworkLog(other, store):
        other.step(1)
    from pubsub_emulator.emulator.network.network import Network  # noqa: PLC0415

    with pytest.raises(AnotherChain):
        NetworkLog(Network.of(publishers=[1500], subscribers={}), store)
