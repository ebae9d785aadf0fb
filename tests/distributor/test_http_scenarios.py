"""Scenarios of section 8 over real HTTP; those of interface and access are in the files beside this one."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis
from aiohttp import web
from support.distributor import Stage, free_port, play, stage, until

from pubsub_emulator.eventplane.distributor.adapter.ledger import MemoryLedger
from pubsub_emulator.eventplane.distributor.event import Event
from pubsub_emulator.eventplane.distributor.service.config import Config
from pubsub_emulator.eventplane.distributor.service.serve import running, served
from pubsub_emulator.eventplane.distributor.simulation.network import Network
from pubsub_emulator.eventplane.distributor.simulation.stories import event_of

QUICK: dict[str, Any] = {"call_timeout": 0.4}


def counts(made: Stage, number: int) -> list[int]:
    return [ledger.network.count(event_of(number)[0]) for ledger in made.ledgers.values()]


async def publish(made: Stage, number: int = 1, entity: int = 0) -> int:
    return (await made.ask("POST", "/api/v2/publishEvent", json=event_of(number, entity)[1].body()))[0]


def test_scenarios_2_3_10_adapters_that_are_down_get_it_later(tmp_path: Path) -> None:
    async def what(made: Stage) -> None:
        made.ledgers["a"].network.up = False
        assert await publish(made, 1) == 201
        made.ledgers["b"].network.up = False
        assert (await made.ask("POST", "/api/v2/publishEvent", json=event_of(2, 2)[1].body()))[:2] == (202, 0)
        assert (counts(made, 1), counts(made, 2)) == ([0, 1], [0, 0])
        for ledger in made.ledgers.values():
            ledger.network.up = True
        await until(lambda: counts(made, 1) == [1, 1] and counts(made, 2) == [1, 1])

    play(tmp_path, what, **QUICK)


def test_scenarios_8_12_twenty_at_once_are_one_and_do_not_come_back(tmp_path: Path) -> None:
    async def what(made: Stage) -> None:
        found = await asyncio.gather(*(publish(made) for _ in range(20)))
        assert set(found) <= {200, 201}
        await asyncio.sleep(0.5)
        assert counts(made, 1) == [1, 1]
        text = (await made.ask("GET", "/metrics"))[1]
        assert text.count('outcome="yes"} 1') == 2

    play(tmp_path, what)


def test_scenario_9_a_slow_adapter_does_not_delay_the_other(tmp_path: Path) -> None:
    async def what(made: Stage) -> None:
        made.ledgers["a"].network.delay = 2_000
        asked = asyncio.create_task(publish(made))
        await until(lambda: counts(made, 1) == [0, 1])
        assert not asked.done()
        assert await asked == 201
        assert counts(made, 1) == [1, 1]

    play(tmp_path, what)


def test_scenario_18_the_deed_is_done_and_its_answer_lost(tmp_path: Path) -> None:
    async def what(made: Stage) -> None:
        made.ledgers["a"].network.unique = False
        made.ledgers["a"].network.mute = True
        assert await publish(made) == 201
        await asyncio.sleep(2.5)
        states = (await made.ask("GET", f"/api/v2/publications/{event_of(1)[0]}"))[1]["networks"]
        assert {each["state"] for each in states} <= {"published", "seen"}
        assert counts(made, 1) == [1, 1]

    play(tmp_path, what, **QUICK)


def test_scenarios_28_32_a_subscriber_of_one_environment_that_fails_once(tmp_path: Path) -> None:
    async def what(made: Stage) -> None:
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

    play(tmp_path, what)


@pytest.mark.xdist_group("databases")
def test_scenarios_13_31_37_replicas_a_restart_and_an_emptied_store(tmp_path: Path, redis_url: str) -> None:
    async def what() -> None:
        async with stage(tmp_path, store=redis_url) as made:
            fields = {
                "public_url": made.url,
                "port": free_port(),
                "store": redis_url,
                "adapters": {name: {"url": url} for name, url in made.adapters.items()},
                "private_endpoints": True,
            }
            async with running(Config.model_validate(fields), tmp_path) as replica:
                for number in range(1, 11):
                    made.ledgers["a" if number % 2 else "b"].append(event_of(number, number)[1])
                    body = event_of(number + 100, number)[1].body()
                    async with made.http.post(f"{replica.url}/api/v2/publishEvent", json=body) as answer:
                        assert answer.status == 201
                await until(lambda: all(counts(made, number) == [1, 1] for number in range(1, 11)))
            client = redis.Redis.from_url(redis_url)
            assert client.scard("publishedEvents:a") == 20
            client.flushall()
            async with running(Config.model_validate(fields), tmp_path) as replica:
                await until(lambda: client.scard("publishedEvents:a") == client.scard("publishedEvents:b") == 20)
                await asyncio.sleep(1)
                assert replica.engine.metrics.value("calls", network="a", outcome="yes") == 0
                assert [len(ledger.network.log) for ledger in made.ledgers.values()] == [20, 20]
            client.close()

    asyncio.run(what())


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
            assert counts(made, 1) == [0, 0]

    with running_redis() as server:
        asyncio.run(what(server.url, server.stop))


class PublicAdapter:
    """An adapter as public ones are: read by time, newest of an entity, appends to the metadata, a plain 400."""

    def __init__(self, network: Network, chain_id: str) -> None:
        self.ledger = MemoryLedger(network)
        self.chain_id = chain_id
        self.hooks: list[str] = []
        self.http: aiohttp.ClientSession | None = None

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/api/v1/publishEvent", self.publish)
        app.router.add_post("/api/v1/subscribe", self.subscribe)
        app.router.add_get("/api/v1/subscribe", self.list)
        app.router.add_get("/api/v1/events", self.events)
        return app

    async def publish(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not self.ledger.network.up:
            return web.Response(status=400, text="node away")
        body["relevantMetadata"].append(self.chain_id)
        await self.add(body)
        return web.json_response(1_705_401_561, status=201)

    async def add(self, body: dict[str, Any]) -> None:
        event = Event(
            body["eventType"], body["dataLocation"], tuple(body["relevantMetadata"]), body["entityId"],
            body["previousEntityHash"], body.get("iss"),
        )  # fmt: skip
        notice = self.ledger.append(event)
        assert notice is not None
        for hook in self.hooks:
            with contextlib.suppress(aiohttp.ClientError):
                assert self.http is not None
                async with self.http.post(hook, json=notice.body()):
                    pass

    async def subscribe(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["eventTypes"] != ["*"]:
            return web.Response(status=400)
        self.hooks.append(body["notificationEndpoint"])
        return web.Response(status=201)

    async def list(self, _request: web.Request) -> web.Response:
        return web.json_response([{"eventTypes": ["*"], "notificationEndpoint": hook} for hook in self.hooks])

    async def events(self, request: web.Request) -> web.Response:
        start, end = int(request.query["startDate"]), int(request.query["endDate"])
        newest = {
            notice.event.order: notice
            for notice in self.ledger.network.log
            if start <= notice.time * 1000 <= end and request.query["envM"] in notice.event.metadata
        }
        return web.json_response([notice.row() for notice in newest.values()])


def test_scenario_39_id1_public_adapters_are_served_by_profile_legacy(tmp_path: Path) -> None:
    async def what() -> None:
        async with contextlib.AsyncExitStack() as stack:
            session = await stack.enter_async_context(aiohttp.ClientSession())
            public = [PublicAdapter(Network("x"), "2020"), PublicAdapter(Network("y", unique=False), "")]
            adapters: dict[str, Any] = {}
            for each in public:
                each.http = session
                url = await stack.enter_async_context(served(each.application(), "127.0.0.1", 0))
                adapters[each.ledger.network.name] = {
                    "url": url, "profile": "legacy", "chain_id": each.chain_id, "environments": ["sbx"],
                }  # fmt: skip
            await public[0].add({**event_of(1, 1)[1].body(), "relevantMetadata": ["sbx", "2020"]})
            port = free_port()
            fields = {
                "public_url": f"http://127.0.0.1:{port}", "port": port, "adapters": adapters, "call_timeout": 0.5,
                "store": f"sqlite:{tmp_path / 'ied.db'}",
            }  # fmt: skip
            made = await stack.enter_async_context(running(Config.model_validate(fields), tmp_path))
            await until(lambda: all(len(each.hooks) == 1 for each in public))
            await until(lambda: len(public[1].ledger.network.log) == 1)
            await public[1].add({**event_of(2, 2)[1].body(), "relevantMetadata": ["sbx", ""]})
            await until(lambda: len(public[0].ledger.network.log) == 2)
            public[0].ledger.network.up = False
            async with session.post(f"{made.url}/api/v1/publishEvent", json=event_of(3, 3)[1].body()) as answer:
                assert answer.status == 201
            public[0].ledger.network.up = True
            await until(lambda: len(public[0].ledger.network.log) == 3)
            logs = [[notice.event.metadata for notice in each.ledger.network.log] for each in public]
            assert logs == [[("sbx", "2020")] * 3, [("sbx", "")] * 3]
            origin = {notice.event.iss for each in public for notice in each.ledger.network.log}
            assert origin == {event_of(1)[1].iss}
            assert [len(each.hooks) for each in public] == [1, 1]

    asyncio.run(what())
