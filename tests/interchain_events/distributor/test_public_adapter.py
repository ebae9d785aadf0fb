"""Public adapters as they are: their versions, their one thread, what they show, and what they
lose.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.distributor.public_adapter import PublicAdapter
from support.distributor.stage import another, stage, until
from support.plumbing.told import Told, alone, told

from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service import public
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.adapters import HttpAdapter, ProbeAnswer, Profile
from interchain_events.distributor.service.config import Config
from interchain_events.distributor.service.public import PublicAdapter as Client
from interchain_events.distributor.service.serve import Running, served
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of

TYPES = {"types": ["ProductOffering"], "metadata": ["sbx"]}


@dataclass
class Two:
    """A distributor over public adapters `x` and `y`."""

    x: PublicAdapter
    y: PublicAdapter
    running: Running
    http: aiohttp.ClientSession

    async def publish(self, number: int) -> int:
        body = event_of(number, number)[1].body()
        async with self.http.post(f"{self.running.url}/api/v2/publishEvent", json=body) as answer:
            return answer.status


def body(number: int, entity: int) -> dict[str, Any]:
    return event_of(number, entity)[1].body()


def ids(adapter: PublicAdapter) -> list[str | None]:
    return [notice.id for notice in adapter.network.log]


@contextlib.asynccontextmanager
async def two(
    tmp_path: Path, x: PublicAdapter, y: PublicAdapter, **more: Any
) -> AsyncIterator[Two]:
    async with contextlib.AsyncExitStack() as stack:
        adapters = {}
        for each in (x, y):
            url = await stack.enter_async_context(served(each.application(), "127.0.0.1", 0))
            adapters[each.network.name] = {
                "url": url,
                "profile": "legacy",
                "chain_id": each.chain_id,
                **each.settings,
            }
        more = {"subscriptions": TYPES, "replication_delay": 0, "adapters": adapters, **more}
        made = await stack.enter_async_context(another(tmp_path, {}, **more))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        await until(lambda: len(made.engine.store.rows("states")) == 2)
        yield Two(x, y, made, http)


def over_two(**more: Any) -> Callable[[Told], Callable[..., None]]:
    """Tests of a distributor with these settings over two public adapters."""

    async def run(tmp_path: Path, what: Callable[[Two], Awaitable[None]]) -> None:
        async with two(tmp_path, PublicAdapter("x"), PublicAdapter("y", ""), **more) as made:
            await until(lambda: all(each.everything for each in (made.x, made.y)))
            await what(made)

    return told(lambda tmp_path, what: asyncio.run(run(tmp_path, what)), "tmp_path")


@over_two(call_timeout=0.5)
async def test_scenario_39_id1_public_adapters_are_served_by_profile_legacy(made: Two) -> None:
    made.x.add(body(1, 1), event_of(1)[1].iss)
    made.y.add(body(2, 2), event_of(2)[1].iss)
    await until(lambda: len(made.x.network.log) == len(made.y.network.log) == 2)
    made.x.up = False
    assert await made.publish(3) == 201
    made.x.up = True
    await until(lambda: len(made.x.network.log) == 3)
    for each, metadata in ((made.x, ("sbx", "2020")), (made.y, ("sbx", ""))):
        assert [notice.event.metadata for notice in each.network.log] == [metadata] * 3
    assert {notice.event.iss for each in (made.x, made.y) for notice in each.network.log} == {
        event_of(1)[1].iss
    }
    assert made.x.deleted == made.y.deleted == 0, "they have no DELETE"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v1", "v1"),
        ("v2", "v2"),
        ("v1", "v2"),
        ("v2", "v1"),
    ],
)
@alone
async def test_id5_the_version_of_an_adapter_is_found_and_found_again(
    tmp_path: Path, before: str, after: str
) -> None:
    x, y = PublicAdapter("x", version=before), PublicAdapter("y")
    async with two(tmp_path, x, y, call_timeout=0.5) as made:
        await until(lambda: bool(x.everything))
        assert await made.publish(1) == 201
        x.version = after
        assert await made.publish(2) == 201
        await until(lambda: len(x.network.log) == len(y.network.log) == 2)


@alone
async def test_a_profile_that_does_not_fit_is_told_at_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    nothing = aiohttp.web.Application()
    async with (
        served(nothing, "127.0.0.1", 0) as nowhere,
        served(PublicAdapter("y").application(), "127.0.0.1", 0) as at,
        stage(
            tmp_path,
            adapters={
                "x": {"url": nowhere, "profile": "legacy"},
                "y": {"url": at},
                "z": {"url": "http://127.0.0.1:9"},
            },
            networks=(SimulatedNetwork("a", up=False),),
        ),
    ):
        await until(lambda: len(_misfits(caplog)) == 2)
    assert sorted(_misfits(caplog)) == [
        (
            "x",
            (
                f"{nowhere} is not a public adapter: /api/v2/subscribe has status 404,"
                " /api/v1/subscribe has status 404"
            ),
        ),
        ("y", f"{at} does not have this interface; for a public adapter set profile = 'legacy'"),
    ]


def _misfits(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [
        record.__dict__["fields"] for record in caplog.records if "does not fit" in record.message
    ]
    return [(fields["network"], fields["error"]) for fields in found]


@alone
async def test_id33_an_old_log_is_read_in_windows_that_the_adapter_can_answer(
    tmp_path: Path,
) -> None:
    """A read from 1970 would keep the adapter busy for 35 s, one of 90 days 0.3 s; a call may take
    0.1 s.
    """
    x, y = PublicAdapter("x"), PublicAdapter("y")
    x.step, x.settings = 2e-8, {"environments": ["sbx"]}
    x.network.append(event_of(1, 1)[1]._replace(metadata=("sbx", "2020")), 1_690_000_000_000)
    x.network.append(event_of(2, 2)[1]._replace(metadata=("sbx", "2020")), 1_750_000_000_000)
    async with two(tmp_path, x, y, call_timeout=0.1):
        await until(lambda: len(y.network.log) == 2)
    failing = Counter(x.asked).most_common(1)[0]
    assert failing[1] <= 2, "never the same again and again"


@alone
async def test_id33_windows_become_shorter_after_an_error(tmp_path: Path) -> None:
    """A search that outlasts the adapter's connection to its node ends with one, in time."""
    x, y = PublicAdapter("x"), PublicAdapter("y")
    x.step, x.idle, x.settings = 1e-9, 0.02, {"environments": ["sbx"]}
    x.network.append(event_of(1, 1)[1]._replace(metadata=("sbx", "")), 1_750_000_000_000)
    async with two(tmp_path, x, y):
        await until(lambda: len(y.network.log) == 1)
    assert Counter(x.asked).most_common(1)[0][1] <= 2, "never the same again and again"


@over_two()
async def test_id30_one_publication_at_a_time_goes_to_a_public_adapter(made: Two) -> None:
    assert set(await asyncio.gather(*(made.publish(number) for number in range(1, 25)))) <= {
        201,
        202,
    }
    await until(lambda: len(made.x.network.log) == len(made.y.network.log) == 24)
    assert made.x.refused == made.y.refused == 0
    assert sorted(map(str, ids(made.x))) == sorted(map(str, ids(made.y)))


@over_two()
async def test_id30_one_that_is_refused_for_ever_does_not_keep_the_others_waiting(
    made: Two,
) -> None:
    made.x.up = False
    assert await made.publish(1) == 201
    made.x.up = True
    assert [await made.publish(number) for number in range(2, 6)] == [201] * 4
    await until(lambda: len(made.x.network.log) >= 4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("apart", [0, 1])
@alone
async def test_id37_events_of_an_entity_keep_order(
    tmp_path: Path, apart: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notifications arrive in any order; if they are a second apart, also when the notifications
    are lost.
    """
    monkeypatch.setattr(public, "AROUND", 10_000)
    x, y = PublicAdapter("x", seed=seed), PublicAdapter("y")
    async with two(tmp_path, x, y):
        await until(lambda: bool(x.everything))
        x.notifies = not apart
        at = int(time.time())
        for number in range(1, 6):
            x.add(body(number, 7), event_of(1)[1].iss, at + apart * number)
        x.notifies = True
        x.add(body(6, 7), event_of(1)[1].iss, at + 7)
        await until(lambda: len(y.network.log) == 6, 90)
        assert ids(y) == ids(x)


class Shown(Client):
    """A client whose adapter is asked in this process."""

    def __init__(self, adapter: PublicAdapter) -> None:
        self._adapter = adapter
        self._reading = asyncio.Lock()

    async def _shown(self, start: int, end: int) -> dict[int, Notice]:
        return {notice.number: notice for notice in self._adapter.shown(start, end, "sbx")}


@given(
    log=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12),
    after=st.integers(0, 3),
)
def test_id33_what_is_hidden_is_found_unless_its_own_second_hides_it(
    log: list[tuple[int, int]], after: int
) -> None:
    async def run() -> None:
        adapter, now, last = PublicAdapter("x"), 1_700_000_000, {}
        for number, (seconds, entity) in enumerate(log, 1):
            now += seconds
            adapter.network.append(event_of(number, entity)[1], now * 1000)
            last[now, entity] = number
        found = await Shown(adapter)._between(1_700_000_000, now + 10, 0)
        assert set(found or {}) == set(last.values())
        partly = await Shown(adapter)._between(1_700_000_000, now + 10, after)
        assert {number for number in last.values() if number > after} <= set(partly or {})

    asyncio.run(run())


@pytest.mark.parametrize(
    ("earlier", "counts"),
    [
        (0, [1, 1, 3, 2, 5, 3, 7, 4]),
        (1, [2, 3, 2, 5, 3, 7, 4, 9]),
        (5, [6, 7, 8, 9, 10, 11, 6, 13]),
    ],
)
@alone
async def test_id30_the_end_of_a_short_log_hides_events_which_a_probe_tells(
    earlier: int, counts: list[int]
) -> None:
    """The counts are those that the functions of the real adapter at 3405d23 return."""
    for same, count in enumerate(counts, 1):
        adapter = PublicAdapter("x")
        adapter.stops_early = True
        times = [*range(1_700_000_000 - earlier, 1_700_000_000), *[1_700_000_000] * same]
        for number, second in enumerate(times):
            adapter.add(body(number, number), at=second)
        assert len(adapter.shown(0, 1_800_000_000, "sbx")) == count
        last = event_of(len(times) - 1)[0]
        place = await Shown(adapter).probe(last, 1_700_000_000, "")
        assert place == ProbeAnswer(there=count == len(times), last=1_700_000_000)


@given(
    log=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12),
    stops_early=st.booleans(),
    data=st.data(),
)
def test_id34_a_probe_takes_nothing_for_absent_that_is_there(
    log: list[tuple[int, int]], stops_early: bool, data: st.DataObject
) -> None:
    """What is absent is known as well, unless there are events in its second."""

    async def run() -> None:
        adapter = PublicAdapter("x")
        adapter.stops_early = stops_early
        second = 1_700_000_000
        seconds = []
        for number, (wait, entity) in enumerate(log):
            second += 2 * wait
            seconds.append(second)
            adapter.add(body(number, entity), at=second)
        number = data.draw(st.integers(0, len(log) - 1))
        event_id, event = event_of(number, log[number][1])
        place = await Shown(adapter).probe(event_id, second, event.order, seconds[number])
        assert place.there or place.hidden or place.last == seconds[number]
        unknown = await Shown(adapter).probe(event_id, second, event.order)
        assert unknown.there or unknown.hidden or unknown.last == seconds[number]
        absent = await Shown(adapter).probe("absent", 0, event.order, seconds[number] + 1)
        assert absent == ProbeAnswer(there=False, last=absent.last)

    asyncio.run(run())


@alone
async def test_id34_a_probe_of_an_entity_with_many_events_ends() -> None:
    adapter = PublicAdapter("x")
    for number in range(public.MOST_SPLITS + 3):
        adapter.add(body(number, 7), at=1_700_000_000 + number)
    order = event_of(0, 7)[1].order
    place = await Shown(adapter).probe("absent", 1_700_000_000, order, 1_600_000_000)
    assert place == ProbeAnswer(
        there=False, hidden=True, last=1_700_000_000 + public.MOST_SPLITS + 2
    )


@alone
async def test_id33_a_read_beside_another_is_not_made() -> None:
    adapter = Shown(PublicAdapter("x"))
    async with adapter._reading:
        assert await adapter.read(0, 1, 0) is None


@over_two()
async def test_id32_a_subscription_without_a_name_is_not_removed(made: Two) -> None:
    base = made.running.engine.rules.hook_url("x", "of an earlier store")
    made.x.interests.append(
        {"eventTypes": ["t"], "metadata": ["sbx"], "notificationEndpoint": base}
    )
    wish = {
        "eventTypes": ["ProductOffering"],
        "metadata": ["sbx"],
        "notificationEndpoint": "http://n.example/",
    }
    async with made.http.post(f"{made.running.url}/api/v2/subscribe", json=wish) as answer:
        name = (await answer.json())["subscriptionId"]
    async with made.http.delete(f"{made.running.url}/api/v2/subscribe/{name}") as answer:
        assert answer.status == 204
    before = made.x.listed
    await until(lambda: made.x.listed > before)
    assert await made.publish(1) == 201
    assert made.x.deleted == 0


@pytest.mark.parametrize("name", [".", "..", "...", "a/../b", "a/.", "a+b", "a@b:c", "~"])
@alone
async def test_id20_an_id_that_a_path_would_lose_is_probed_as_it_is(name: str) -> None:
    ledger = SimulatedLedger(SimulatedNetwork("a"))
    app = AdapterHttp("a", ledger, MemoryStore(), AccessRights(everyone=True)).application()
    async with served(app, "127.0.0.1", 0) as url, aiohttp.ClientSession() as session:
        adapter = HttpAdapter(url, Profile(), session)
        assert await adapter.probe(name, 0, "") == ProbeAnswer(there=False)
        ledger.append(event_of(1)[1]._replace(data_location=f"https://n.example/e?hl={name}"))
        assert await adapter.probe(name, 0, "") == ProbeAnswer(there=True)


def test_id35_networks_that_accept_ids_twice_are_awaited_unless_set_otherwise() -> None:
    fields = {
        "public_url": "http://127.0.0.1:1",
        "adapters": {
            "a": {"url": "http://127.0.0.1:2"},
            "b": {"url": "http://127.0.0.1:2", "profile": "legacy"},
            "c": {"url": "http://127.0.0.1:2", "unique": False},
            "d": {"url": "http://127.0.0.1:2", "profile": "legacy", "unique": True},
        },
    }
    for delay, expected in (
        ({}, [0, 15_000, 15_000, 0]),
        ({"replication_delay": 0}, [0] * 4),
        ({"replication_delay": 3}, [3_000] * 4),
    ):
        rules = Config.model_validate({**fields, **delay}).rules("me")
        assert [rules.delay(name) for name in "abcd"] == expected
