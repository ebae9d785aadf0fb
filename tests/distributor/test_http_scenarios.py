"""Scenarios of section 8 over real HTTP; those of interface and access are in the files beside this one (ID-3)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import redis
from support.distributor import Stage, another, played, stage, until
from support.told import alone

from pubsub_emulator.distributor.simulation.stories import event_of

QUICK: dict[str, Any] = {"call_timeout": 0.4}


@played(**QUICK)
async def test_scenarios_2_3_10_adapters_that_are_down_get_it_later(made: Stage) -> None:
    made.ledgers["a"].network.up = False
    assert await made.publish(1) == 201
    made.ledgers["b"].network.up = False
    assert (await made.ask("POST", "/api/v2/publishEvent", json=event_of(2, 2)[1].body()))[:2] == (202, 0)
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


@played(**QUICK)
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
    wish = {"eventTypes": ["*"], "metadata": ["prd"], "notificationEndpoint": made.inbox_url}
    assert (await made.ask("POST", "/api/v2/subscribe", json=wish))[0] == 201
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
async def test_scenarios_13_31_37_replicas_a_restart_and_an_emptied_store(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, store=redis_url) as made:
        shared = {"store": redis_url, "public_url": made.url}
        async with another(tmp_path, made.adapters, **shared) as replica:
            for number in range(1, 11):
                made.ledgers["a" if number % 2 else "b"].append(event_of(number, number)[1])
                body = event_of(number + 100, number)[1].body()
                async with made.http.post(f"{replica.url}/api/v2/publishEvent", json=body) as answer:
                    assert answer.status == 201
            await until(lambda: all(made.counts(number) == [1, 1] for number in range(1, 11)))
        client = redis.Redis.from_url(redis_url)
        assert client.scard("publishedEvents:a") == 20
        client.flushall()
        async with another(tmp_path, made.adapters, **shared) as replica:
            await until(lambda: client.scard("publishedEvents:a") == client.scard("publishedEvents:b") == 20)
            await asyncio.sleep(1)
            assert replica.engine.metrics.value("calls", network="a", outcome="yes") == 0
            assert [len(ledger.network.log) for ledger in made.ledgers.values()] == [20, 20]
        client.close()


@pytest.mark.xdist_group("databases")
def test_scenario_36_a_store_that_is_down_is_503_and_health_says_so(tmp_path: Path) -> None:
    from support.redis_server import running_redis  # noqa: PLC0415  # a server of its own, to be stopped

    async def what(url: str, stop: Any) -> None:
        async with stage(tmp_path, store=url) as made:
            stop()
            for method, path in (("POST", "publishEvent"), ("GET", "dead-letters"), ("GET", "subscribe")):
                how = {"json": event_of(1)[1].body()} if method == "POST" else {}
                status, body, _ = await made.ask(method, f"/api/v2/{path}", **how)
                assert (status, body["type"]) == (503, "urn:ied:store-down")
            status, body, _ = await made.ask("GET", "/health")
            assert (status, body["status"]) == (503, "DOWN")
            assert (await made.ask("GET", "/livez"))[0] == 200
            assert made.counts(1) == [0, 0]

    with running_redis() as server:
        asyncio.run(what(server.url, server.stop))
