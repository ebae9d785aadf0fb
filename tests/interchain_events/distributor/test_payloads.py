"""What adapters are sent, and what their notifications say about networks."""

import json
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from support.distributor.public_adapter import PublicAdapter
from support.distributor.stage import Stage, another, played, until
from support.plumbing.told import alone

from interchain_events.distributor.core import rows
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.simulation.stories import event_of


class Recording(PublicAdapter):
    """A public adapter that remembers the publications that it was sent."""

    def __init__(self, name: str, chain_id: str) -> None:
        super().__init__(name, chain_id)
        self.sent: list[dict[str, Any]] = []

    async def publish(self, request: web.Request) -> web.Response:
        self.sent.append(await request.json())
        return await super().publish(request)


@alone
async def test_id1_adapters_are_sent_the_payload_of_the_publication_and_no_network(
    tmp_path: Path,
) -> None:
    x, y = Recording("x", "2020"), Recording("y", "83886")
    body = event_of(1, 1)[1].body()
    stranger = event_of(2, 2)[1].body()
    async with (
        served(x.application(), "127.0.0.1", 0) as x_url,
        served(y.application(), "127.0.0.1", 0) as y_url,
        another(
            tmp_path,
            {},
            replication_delay=0,
            adapters={
                each.network.name: {"url": url, "profile": "legacy", "chain_id": each.chain_id}
                for each, url in ((x, x_url), (y, y_url))
            },
        ) as running,
        aiohttp.ClientSession() as http,
    ):
        await until(lambda: len(running.engine.store.rows("states")) == 2)
        url = f"{running.url}/api/v2/publishEvent"
        async with http.post(url, json={**body, "network": "x", "unknown": 1}) as answer:
            assert answer.status == 201, await answer.text()
        x.add(stranger, stranger["iss"])
        await until(lambda: len(y.sent) == 2)
    assert x.sent == [body]
    # The second was read from the log of x, whose adapter had appended its chain's id.
    assert y.sent == [body, stranger]
    assert [notice.event.metadata for notice in x.network.log] == [("sbx", "2020")] * 2
    assert [notice.event.metadata for notice in y.network.log] == [("sbx", "83886")] * 2


def _key(made: Stage, network: str) -> str:
    """Return the key of the webhooks of a network."""
    [text] = [text for name, text in made.engine.store.rows(rows.HOOKS) if name == network]
    return rows.Hooks(*json.loads(text)).key


@played()
async def test_id31_a_notification_names_its_network_or_none(made: Stage) -> None:
    await until(lambda: len(made.engine.store.rows(rows.HOOKS)) >= 2)
    path = f"/internal/eventNotification/b/{_key(made, 'b')}"
    for number, (named, status) in enumerate(
        (({"network": "a"}, 400), ({"network": "b"}, 200), ({}, 200)), 1
    ):
        event_id, event = event_of(number, number)
        notice = made.ledgers["b"].network.append(event, 1_700_000_000_000)
        assert notice is not None
        answer = await made.ask("POST", path, json={**notice.body(), **named})
        assert answer[0] == status, answer
        if status == 400:
            assert answer[1]["type"] == "urn:ied:wrong-network"
            assert "a notification of 'a' came to the address of 'b'" in answer[1]["detail"]
            continue
        state = (await made.ask("GET", f"/api/v2/publications/{event_id}"))[1]["networks"]
        assert {"name": "b", "state": "seen"} in state


@played()
async def test_id40_a_subscription_of_a_client_is_made_at_each_adapter(made: Stage) -> None:
    status, body = await made.subscribe()
    assert status == 201
    assert body["networks"] == [{"name": "a", "success": True}, {"name": "b", "success": True}]
    [own] = (await made.ask("GET", "/api/v2/subscribe"))[1]
    async with aiohttp.ClientSession() as http:
        for network, url in made.adapters.items():
            async with http.get(f"{url}/api/v2/subscribe") as answer:
                listed = await answer.json()
            address = f"/internal/desmosNotification/{network}/{body['subscriptionId']}/"
            [found] = [each for each in listed if address in each["notificationEndpoint"]]
            assert (found["eventTypes"], found["metadata"]) == (own["eventTypes"], own["metadata"])
