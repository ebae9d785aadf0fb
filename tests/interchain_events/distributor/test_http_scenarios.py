"""Scenarios of section 8 over real HTTP; those of interface and access are beside this one (ID-3,
ID-31, ID-41).
"""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web
from support.distributor.stage import Stage, another, changed_rules, played, stage, until
from support.plumbing.redis_server import running_redis
from support.plumbing.told import alone

from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of


@played(call_timeout=0.4)
async def test_scenarios_2_3_10_adapters_that_are_down_get_it_later(made: Stage) -> None:
    made.ledgers["a"].network.up = False
    assert await made.publish(1) == 201
    made.ledgers["b"].network.up = False
    assert (await made.ask("POST", "/api/v2/publishEvent", json=event_of(2, 2)[1].body()))[:2] == (
        202,
        0,
    )
    assert (made.counts(1), made.counts(2)) == ([0, 1], [0, 0])
    for ledger in made.ledgers.values():
        ledger.network.up = True
    await until(lambda: made.counts(1) == [1, 1] and made.counts(2) == [1, 1])


@played()
async def test_scenarios_8_12_twenty_at_once_are_one_and_do_not_come_back(made: Stage) -> None:
    found = await asyncio.gather(*(made.publish() for _ in range(20)))
    assert set(found) <= {200, 201}
    await asyncio.sleep(0.5)
    assert made.counts(1) == [1, 1]
    text = (await made.ask("GET", "/metrics"))[1]
    assert text.count('outcome="yes"} 1') == 2


@played()
async def test_scenario_9_a_slow_adapter_does_not_delay_the_other(made: Stage) -> None:
    made.ledgers["a"].network.delay = 2_000
    asked = asyncio.create_task(made.publish())
    await until(lambda: made.counts(1) == [0, 1])
    assert not asked.done()
    assert await asked == 201
    assert made.counts(1) == [1, 1]


@played(call_timeout=0.4)
async def test_scenario_18_the_deed_is_done_and_its_answer_lost(made: Stage) -> None:
    made.ledgers["a"].network.unique = False
    made.ledgers["a"].network.mute = True
    assert await made.publish() == 201
    await asyncio.sleep(2.5)
    states = (await made.ask("GET", f"/api/v2/publications/{event_of(1)[0]}"))[1]["networks"]
    assert {each["state"] for each in states} <= {"published", "seen"}
    assert made.counts(1) == [1, 1]


@played()
async def test_scenarios_28_32_a_subscriber_of_one_environment_that_fails_once(made: Stage) -> None:
    assert (await made.subscribe(metadata=["prd"]))[0] == 201
    made.inbox.status = 500
    for number, environment in enumerate(("sbx", "prd", "dev"), 1):
        made.ledgers["a"].append(event_of(number, number, environment=environment)[1])
    await until(lambda: len(made.inbox.got) == 1)
    made.inbox.status = 200
    await until(lambda: len(made.inbox.got) == 2)
    assert len({headers["webhook-id"] for headers, _ in made.inbox.got}) == 1
    assert {told["relevantMetadata"][0] for _, told in made.inbox.got} == {"prd"}


@pytest.mark.xdist_group("databases")
@alone
async def test_scenarios_13_31_37_replicas_a_restart_and_an_emptied_store(
    tmp_path: Path, redis_url: str
) -> None:
    async with stage(tmp_path, store=redis_url) as made:
        shared = {"store": redis_url, "public_url": made.url}
        async with another(tmp_path, made.adapters, **shared) as replica:
            for number in range(1, 11):
                made.ledgers["a" if number % 2 else "b"].append(event_of(number, number)[1])
                body = event_of(number + 100, number)[1].body()
                async with made.http.post(
                    f"{replica.url}/api/v2/publishEvent", json=body
                ) as answer:
                    assert answer.status == 201
            await until(lambda: all(made.counts(number) == [1, 1] for number in range(1, 11)))
        client = redis.Redis.from_url(redis_url)
        assert client.scard("publishedEvents:a") == 20
        client.flushall()
        async with another(tmp_path, made.adapters, **shared) as replica:
            await until(
                lambda: client.scard("publishedEvents:a") == client.scard("publishedEvents:b") == 20
            )
            await asyncio.sleep(1)
            assert replica.engine.metrics.value("calls", network="a", outcome="yes") == 0
            assert [len(ledger.network.log) for ledger in made.ledgers.values()] == [20, 20]
        client.close()


@pytest.mark.xdist_group("databases")
@alone
async def test_scenario_36_a_store_that_is_down_is_503_and_health_says_so(tmp_path: Path) -> None:
    with running_redis() as server:
        async with stage(tmp_path, store=server.url) as made:
            server.stop()
            for method, path in (
                ("POST", "publishEvent"),
                ("GET", "dead-letters"),
                ("GET", "subscribe"),
            ):
                how = {"json": event_of(1)[1].body()} if method == "POST" else {}
                status, body, _ = await made.ask(method, f"/api/v2/{path}", **how)
                assert (status, body["type"]) == (503, "urn:ied:store-down")
            status, body, _ = await made.ask("GET", "/health")
            assert (status, body["status"]) == (503, "DOWN")
            assert (await made.ask("GET", "/livez"))[0] == 200
            assert made.counts(1) == [0, 0]


# Scenarios 14 to 16, 19 to 25, 27, 29, 30, 33 and 38 over real HTTP; long times are shortened
# (ID-31, ID-41).


QUICK = {"silence": 300, "check_after": 300, "patience": 600}
"""Logs and subscriptions are looked at, and yeses checked, after a fraction of a second."""


def calls(made: Stage, network: str) -> int:
    """How many calls an adapter answered with a yes, as `/metrics` counts them."""
    return made.engine.metrics.value("calls", network=network, outcome="yes")


def silently(made: Stage, network: str, number: int, entity: int = 0) -> Notice:
    """A stranger publishes, and nobody is notified."""
    notice = made.ledgers[network].network.append(event_of(number, entity)[1], 1_700_000_000_000)
    assert notice is not None
    return notice


async def hooks(made: Stage, network: str) -> list[str]:
    """Endpoints that an adapter lists."""
    async with made.http.get(f"{made.adapters[network]}/api/v2/subscribe") as response:
        return [each["notificationEndpoint"] for each in await response.json()]


async def notify(made: Stage, network: str, notice: Notice) -> int:
    while not (endpoints := await hooks(made, network)):  # noqa: ASYNC110  # nobody tells of it
        await asyncio.sleep(0.05)
    async with made.http.post(endpoints[0], json={**notice.body(), "network": network}) as response:
        return response.status


@played()
async def test_scenario_14_events_of_both_networks_cross(made: Stage) -> None:
    await made.subscribed()
    made.ledgers["a"].append(event_of(1, 1)[1])
    made.ledgers["b"].append(event_of(2, 2)[1])
    await until(lambda: made.counts(1) == made.counts(2) == [1, 1])
    await until(lambda: calls(made, "a") == calls(made, "b") == 1)


@played()
async def test_scenario_15_a_lost_notification_is_found_with_the_next(made: Stage) -> None:
    silently(made, "a", 1, 1)
    assert await notify(made, "a", silently(made, "a", 2, 2)) == 200
    await until(lambda: made.counts(1) == made.counts(2) == [1, 1])


@played()
async def test_scenario_16_swapped_notifications_keep_the_order_of_the_log(made: Stage) -> None:
    first, second = silently(made, "a", 1), silently(made, "a", 2)
    assert await notify(made, "a", second) == await notify(made, "a", first) == 200
    await until(lambda: made.counts(1) == made.counts(2) == [1, 1])
    assert [notice.id for notice in made.ledgers["b"].network.log] == [first.id, second.id]


@played(rules=QUICK)
async def test_scenario_19_a_yes_that_is_a_lie_is_found_out(made: Stage) -> None:
    made.ledgers["a"].network.lies = True
    assert await made.publish() == 201
    assert made.counts(1) == [0, 1]
    made.ledgers["a"].network.lies = False
    await until(lambda: made.counts(1) == [1, 1])
    assert made.engine.metrics.value("notes", kind="revoked") >= 1


@alone
async def test_scenarios_20_21_22_23_networks_that_come_late_lack_nothing_and_have_one_subscription(
    tmp_path: Path,
) -> None:
    """A and B have x; C has nothing and is away at the start; then A, B and C come, and the process
    is restarted.
    """
    networks = (SimulatedNetwork("a"), SimulatedNetwork("b"), SimulatedNetwork("c", up=False))
    for network in networks[:2]:
        for number in range(1, 6):
            network.append(event_of(number, number % 2)[1], 1_700_000_000_000)
    with changed_rules(QUICK):
        await _come_late(tmp_path, networks)


async def _come_late(tmp_path: Path, networks: tuple[SimulatedNetwork, ...]) -> None:
    async with stage(tmp_path, networks) as made:
        made.ledgers["c"].network.up = True
        await until(lambda: len(networks[2].log) == 5)
        for entity in (0, 1):
            found = [
                int(each.id or "", 16)
                for each in networks[2].log
                if int(each.event.entity, 16) == entity
            ]
            assert found == sorted(found)
        await until(lambda: calls(made, "c") == 5)
        assert calls(made, "a") == calls(made, "b") == 0
        store = f"sqlite:{tmp_path / 'ied.db'}"
        async with another(tmp_path, made.adapters, store=store, public_url=made.url) as again:
            await until(lambda: all(again.engine.reached[name].answered_at for name in "abc"))
            await until(lambda: again.engine.metrics.value("inputs") > 20)
            for name in "abc":
                assert len(await hooks(made, name)) == 1


@played(rules=QUICK, networks=(SimulatedNetwork("a", up=False), SimulatedNetwork("b", up=False)))
async def test_scenario_21_no_adapter_is_up_at_the_start(made: Stage) -> None:
    silently(made, "a", 1)
    assert (await made.ask("GET", "/health"))[0] == 200
    for ledger in made.ledgers.values():
        ledger.network.up = True
    await until(lambda: made.counts(1) == [1, 1])
    made.ledgers["b"].append(event_of(2, 2)[1])
    await until(lambda: made.counts(2) == [1, 1])


@played()
async def test_scenario_24_a_notification_comes_before_the_yes(
    made: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapter of B answers late, after its network notified."""
    publish = made.ledgers["b"].publish

    async def late(event: Any) -> Any:
        answer = await publish(event)
        await asyncio.sleep(0.5)
        return answer

    monkeypatch.setattr(made.ledgers["b"], "publish", late)
    assert await made.publish() == 201
    await until(lambda: calls(made, "b") == 1)
    assert made.counts(1) == [1, 1]


@played(replication_delay=3)
async def test_scenario_25_each_event_waits_its_own_delay_and_is_published_only_elsewhere(
    made: Stage,
) -> None:
    await made.subscribed()
    made.ledgers["b"].append(event_of(2, 2)[1])
    made.ledgers["a"].append(event_of(1, 1)[1])
    made.ledgers["a"].append(event_of(2, 2)[1])
    await until(lambda: made.counts(1) == [1, 1])
    assert made.counts(2) == [1, 1]
    await until(lambda: calls(made, "b") == 1)
    assert calls(made, "a") == 0


@played()
async def test_scenarios_27_33_each_subscription_gets_its_own_and_an_equal_one_is_found(
    made: Stage,
) -> None:
    names = []
    for path, status in (("/in?one", 201), ("/in?two", 201), ("/in?one", 200)):
        found, body = await made.subscribe(made.inbox_url.replace("/in", path))
        assert found == status
        names.append(body["subscriptionId"])
    assert names[0] == names[2] != names[1]
    assert len((await made.ask("GET", "/api/v2/subscribe"))[1]) == 2
    assert await made.publish() == 201
    await until(lambda: len(made.inbox.got) == 2)
    assert len({headers["webhook-id"] for headers, _ in made.inbox.got}) == 2


@alone
async def test_scenario_38_two_distributors_that_share_one_network(tmp_path: Path) -> None:
    async with stage(tmp_path) as made, contextlib.AsyncExitStack() as stack:
        far = SimulatedLedger(SimulatedNetwork("c"))
        app = AdapterHttp("c", far, MemoryStore(), AccessRights(everyone=True)).application()
        url = await stack.enter_async_context(served(app, "127.0.0.1", 0))
        await stack.enter_async_context(another(tmp_path, {"b": made.adapters["b"], "c": url}))
        made.ledgers["a"].append(event_of(1)[1])
        await until(lambda: far.network.count(event_of(1)[0]) == 1)
        assert made.counts(1) == [1, 1]


@played(rules={"most_failures": 2})
async def test_scenario_29_a_dead_subscriber_is_a_dead_letter_and_redriven_one_post(
    made: Stage,
) -> None:
    made.inbox.status = 503
    assert (await made.subscribe())[0] == 201
    assert await made.publish() == 201
    letters: list[dict[str, Any]] = []
    while not letters:
        letters = (await made.ask("GET", "/api/v2/dead-letters"))[1]
        await asyncio.sleep(0.1)
    assert [(each["reason"], each["tries"]) for each in letters] == [("status 503", 2)]
    assert len(made.inbox.got) == 2
    made.inbox.status = 200
    assert (await made.ask("POST", f"/api/v2/dead-letters/{letters[0]['letterId']}/redrive"))[
        0
    ] == 202
    await until(lambda: len(made.inbox.got) == 3)
    assert (await made.ask("GET", "/api/v2/dead-letters"))[1] == []
    assert len({headers["webhook-id"] for headers, _ in made.inbox.got}) == 1


@alone
async def test_scenario_30_after_a_restart_it_posts_again_with_the_same_webhook_id(
    tmp_path: Path,
) -> None:
    networks = (SimulatedNetwork("a"), SimulatedNetwork("b"))
    got, gate = list[str](), asyncio.Event()

    async def take(request: web.Request) -> web.Response:
        got.append(request.headers["webhook-id"])
        await gate.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/in", take)
    with changed_rules({"post_timeout": 400}):
        async with served(app, "127.0.0.1", 0) as url:
            async with stage(tmp_path, networks, grace=0) as first:
                assert (await first.subscribe(f"{url}/in"))[0] == 201
                first.ledgers["a"].append(event_of(1)[1])
                await until(lambda: len(got) == 1)
            gate.set()
            async with stage(tmp_path, networks):
                await until(lambda: len(got) >= 2)
    assert len(set(got)) == 1
