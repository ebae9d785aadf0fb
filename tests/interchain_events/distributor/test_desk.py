"""An adapter's deliveries: many at once, the events of one entity one after the other."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.distributor.stage import until
from support.plumbing.told import alone

from interchain_events.distributor.adapter import desk as desks
from interchain_events.distributor.adapter.desk import AT_ONCE, Desk, in_order
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.requests import SubscriptionRequest
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of

WANTED = SubscriptionRequest(("*",), (), "http://subscriber/in", None)


@given(entities=st.lists(st.integers(0, 40), max_size=120))
def test_a_group_has_each_entity_once_and_groups_are_in_order(entities: list[int]) -> None:
    network = SimulatedNetwork("a")
    notices = [
        network.append(event_of(number, entity)[1], 0) for number, entity in enumerate(entities, 1)
    ]
    told = [notice for notice in notices if notice is not None]
    groups = list(in_order(told))
    assert [notice for group in groups for notice in group] == told
    assert all(
        len({notice.event.order for notice in group}) == len(group) <= AT_ONCE for group in groups
    )
    for group, following in pairwise(groups):
        assert len(group) == AT_ONCE or following[0].event.order in {
            notice.event.order for notice in group
        }


@alone
async def test_a_slow_subscriber_has_many_notifications_in_flight_but_one_per_entity() -> None:
    under_way: list[str] = []
    most: list[int] = []
    got: list[int] = []

    async def post(_endpoint: str, notices: list[Notice]) -> list[bool]:
        assert not under_way
        under_way.extend(notice.event.order for notice in notices)
        assert len(set(under_way)) == len(under_way)
        most.append(len(under_way))
        for _ in range(3):
            await asyncio.sleep(0)
        under_way.clear()
        got.extend(notice.number for notice in notices)
        return [True] * len(notices)

    ledger = SimulatedLedger(SimulatedNetwork("a"))
    desk = Desk(ledger, MemoryStore(), post)
    await desk.subscribe(WANTED)
    for number in range(1, 91):
        ledger.append(event_of(number, number % 45)[1])
    await until(lambda: len(got) == 90)
    await desk.stop()
    assert sorted(got) == list(range(1, 91))
    assert max(most) == AT_ONCE


@alone
async def test_only_what_was_not_acknowledged_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(desks, "RETRY_SECONDS", 0)
    got: list[list[int]] = []

    async def post(_endpoint: str, notices: list[Notice]) -> list[bool]:
        got.append([notice.number for notice in notices])
        return [notice.number == 1 or (notice.number == 2 and len(got) == 2) for notice in notices]

    ledger = SimulatedLedger(SimulatedNetwork("a"))
    for number in (1, 2, 3):
        ledger.append(event_of(number, number)[1])
    store = MemoryStore()
    desk = Desk(ledger, store, post)
    name, _ = await desk.subscribe(WANTED)
    await desk.stop()
    store.transact(lambda tx: tx.put(desks.CURSORS, name, "0"))
    await desk.start()
    await until(lambda: desk.lost == 1)
    await desk.stop()
    assert got == [[1, 2, 3], [2, 3], [3]]


@alone
async def test_after_a_restart_only_what_was_under_way_is_told_again() -> None:
    got: list[int] = []
    stuck = asyncio.Event()

    async def post(_endpoint: str, notices: list[Notice]) -> list[bool]:
        got.extend(notice.number for notice in notices)
        if notices[-1].number == 4:
            await stuck.wait()
        return [True] * len(notices)

    ledger, store = SimulatedLedger(SimulatedNetwork("a")), MemoryStore()
    desk = Desk(ledger, store, post)
    await desk.subscribe(WANTED)
    for number, entity in enumerate((1, 2, 1, 3, 3), 1):
        ledger.append(event_of(number, entity)[1])
    await until(lambda: len(got) == 4)
    await desk.stop()
    assert got == [1, 2, 3, 4]  # 5 is of the entity of 4
    stuck.set()
    again = Desk(ledger, store, post)
    await again.start()
    await until(lambda: got[-1] == 5)
    await again.stop()
    assert got == [1, 2, 3, 4, 3, 4, 5]
