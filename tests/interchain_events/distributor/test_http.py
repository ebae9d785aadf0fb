"""The HTTP interface of a distributor (ID-10 to ID-13, ID-42), over real sockets."""

import asyncio
import json

import pytest
from support.distributor.stage import NODE, Json, Stage, played, until

from interchain_events.distributor.simulation.stories import event_of


@played()
async def test_scenarios_1_5_6_7_publications_over_http(made: Stage) -> None:
    event_id, event = event_of(1)
    status, body, _ = await made.ask("POST", "/api/v2/publishEvent", json=event.body())
    assert (status, type(body)) == (201, int)
    assert [ledger.network.count(event_id) for ledger in made.ledgers.values()] == [1, 1]
    wish = {"Prefer": "return=representation"}
    status, body, headers = await made.ask(
        "POST", "/api/v1/publishEvent", json=event.body(), headers=wish
    )
    assert (status, body["globalId"], headers["Preference-Applied"]) == (
        200,
        event_id,
        "return=representation",
    )
    assert {each["name"]: each["state"] in {"published", "seen"} for each in body["networks"]} == {
        "a": True,
        "b": True,
    }
    other = {**event.body(), "entityId": "0x" + "9" * 64}
    status, body, headers = await made.ask("POST", "/api/v2/publishEvent", json=other)
    assert (status, body["type"], headers["Content-Type"]) == (
        409,
        "urn:ied:conflict",
        "application/problem+json; charset=utf-8",
    )
    status, body, _ = await made.ask(
        "POST", "/api/v2/publishEvent", json={**event.body(), "dataLocation": "http://h/"}
    )
    assert (status, body["type"]) == (400, "urn:ied:hl-missing")
    status, body, _ = await made.ask("GET", f"/api/v2/publications/{event_id}")
    assert (status, body["globalId"]) == (200, event_id)
    status, body, _ = await made.ask("GET", "/api/v2/publications/none")
    assert (status, body["type"]) == (404, "urn:ied:not-found")


@played()
async def test_scenario_11_26_a_stranger_s_event_is_replicated_and_notified_once(
    made: Stage,
) -> None:
    secret = "whsec_" + "A" * 32
    status, body = await made.subscribe(secret=secret)
    assert status == 201
    assert body["networks"] == [{"name": "a", "success": True}, {"name": "b", "success": True}]
    event_id, event = event_of(1)
    made.ledgers["a"].append(event)
    await until(lambda: bool(made.inbox.got) and made.ledgers["b"].network.has(event_id))
    await asyncio.sleep(0.3)
    assert len(made.inbox.got) == 1
    headers, told = made.inbox.got[0]
    assert (told["id"], told["entityIDHash"], told["publisherAddress"]) == (
        0,
        event.entity,
        event.iss,
    )
    assert "network" not in told
    assert headers["webhook-id"].startswith("msg_")
    assert headers["webhook-signature"].startswith("v1,")
    status, again = await made.subscribe(secret=secret)
    assert (status, again["subscriptionId"]) == (200, body["subscriptionId"])
    status, found, _ = await made.ask("GET", "/api/v2/subscribe")
    assert (status, [each["subscriptionId"] for each in found]) == (200, [body["subscriptionId"]])
    assert "secret" not in json.dumps(found)
    status, found, headers = await made.ask("GET", "/api/v2/events", params={"all": "true"})
    assert (status, [each["id"] for each in found]) == (200, [0])
    status, found, _ = await made.ask(
        "GET", "/api/v2/events", params={"all": "true", "after": headers["IED-Next"]}
    )
    assert (status, found) == (200, [])
    assert (await made.ask("DELETE", f"/api/v2/subscribe/{body['subscriptionId']}"))[0] == 204
    assert (await made.ask("DELETE", f"/api/v2/subscribe/{body['subscriptionId']}"))[0] == 404


@played()
async def test_scenario_35_a_notification_without_the_key_is_refused(made: Stage) -> None:
    event_id, event = event_of(1)
    notice = made.ledgers["a"].network.append(event, 1_700_000_000_000)
    assert notice is not None
    for path, named, status in (
        ("/internal/eventNotification/a/wrong", {"network": "a"}, 401),
        ("/internal/eventNotification/none/wrong", {}, 404),
        ("/internal/desmosNotification/a/none/wrong", {}, 401),
        ("/internal/eventNotification/b/wrong", {"network": "a"}, 401),
    ):
        assert (await made.ask("POST", path, json={**notice.body(), **named}))[0] == status
    assert not made.ledgers["b"].network.has(event_id)


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://169.254.169.254/latest", "private_endpoints = true"),
        ("http://127.0.0.1/x", "private_endpoints = true"),
        ("http://localhost:8099/x", "private_endpoints = true"),
        ("http://[::1]/x", "private_endpoints = true"),
        ("http://[::ffff:10.0.0.1]/x", "private_endpoints = true"),
        ("http://2130706433/x", "2130706433 is neither a name nor an address of four numbers"),
        ("http://127.1/x", "127.1 is neither"),
        ("http://0177.0.0.1/x", "0177.0.0.1 is neither"),
        ("ftp://n.example/x", "http or https"),
        ("http://user:secret@n.example/", "no user, password or fragment"),
        ("https://n.example/dlt", None),
    ],
)
@played(private_endpoints=False)
async def test_scenario_34_a_private_endpoint_is_refused(
    made: Stage, endpoint: str, why: str | None
) -> None:
    status, body, _ = await made.ask(
        "POST", "/api/v2/subscribe/all", json={"notificationEndpoint": endpoint}
    )
    assert status == (201 if why is None else 400)
    assert why is None or why in body["detail"]


@played()
async def test_id11_a_publication_for_another_receiver_is_refused(made: Stage) -> None:
    adapter = made.adapters["a"]
    number = 0
    for url, own in (
        (made.url, [made.url, made.url + "/"]),
        (adapter, [NODE, NODE + "/", adapter]),
    ):
        for receiver in (*own, None, "ws://other", "", 7, [NODE]):
            number += 1
            body = {**event_of(number, number)[1].body(), "rpcAddress": receiver}
            async with made.http.post(f"{url}/api/v2/publishEvent", json=body) as response:
                good = receiver in own or receiver is None
                assert response.status == (201 if good else 400), (url, receiver)
                assert good or (await response.json())["type"] == "urn:ied:wrong-receiver"


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ({"data": b"{}"}, 415, "not-json"),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400, "not-json"),
        (
            {"data": b'{"eventType": NaN}', "headers": {"Content-Type": "application/json"}},
            400,
            "not-json",
        ),
        (
            {"data": b'{"a": 1, "a": 2}', "headers": {"Content-Type": "application/json"}},
            400,
            "not-json",
        ),
        ({"data": b"[" * 60_000, "headers": {"Content-Type": "application/json"}}, 400, "not-json"),
        (
            {"data": b"x" * 70_000, "headers": {"Content-Type": "application/json"}},
            413,
            "too-large",
        ),
        ({"json": {"eventType": "x"}}, 400, "bad-event"),
        ({"json": {**event_of(1)[1].body(), "rpcAddress": "http://other"}}, 400, "wrong-receiver"),
        ({"data": b"a.b.c", "headers": {"Content-Type": "application/jwt"}}, 415, "no-jwt"),
    ],
)
@played()
async def test_id12_bad_requests_have_one_clear_problem(
    made: Stage, how: Json, status: int, code: str
) -> None:
    found, body, _ = await made.ask("POST", "/api/v2/publishEvent", **how)
    assert (found, body["type"]) == (status, f"urn:ied:{code}")


@played()
async def test_scenario_4_refusals_are_dead_letters_that_can_be_redriven(made: Stage) -> None:
    for ledger in made.ledgers.values():
        ledger.network.refuses = "BadGlobalId"
    event_id, event = event_of(1)
    status, body, _ = await made.ask("POST", "/api/v2/publishEvent", json=event.body())
    assert (status, body["type"]) == (422, "urn:ied:refused")
    status, letters, _ = await made.ask("GET", "/api/v2/dead-letters")
    assert (status, {each["network"] for each in letters}) == (200, {"a", "b"})
    for ledger in made.ledgers.values():
        ledger.network.refuses = ""
    for letter in letters:
        assert (await made.ask("POST", f"/api/v2/dead-letters/{letter['letterId']}/redrive"))[
            0
        ] == 202
    await until(lambda: all(ledger.network.has(event_id) for ledger in made.ledgers.values()))
    assert (await made.ask("GET", "/api/v2/dead-letters"))[1] == []
    assert (await made.ask("POST", "/api/v2/dead-letters/none/redrive"))[0] == 404


@played()
async def test_operations_answer(made: Stage) -> None:
    await made.ask("POST", "/api/v2/publishEvent", json=event_of(1)[1].body())
    status, body, _ = await made.ask("GET", "/health")
    assert (status, body["status"]) == (200, "UP")
    assert (await made.ask("GET", "/livez"))[0] == 200
    status, text, _ = await made.ask("GET", "/metrics")
    assert status == 200
    assert 'ied_calls_total{network="a",outcome="yes"} 1' in text
    assert "ied_backlog " in text
    status, body, _ = await made.ask("GET", "/openapi.json")
    assert body["openapi"] == "3.1.0"
    for path in ("/", "/docs"):
        assert "POST   /api/v2/publishEvent " in (await made.ask("GET", path))[1]
    assert (await made.ask("GET", "/nothing"))[0] == 404
    assert (await made.ask("PUT", "/health"))[0] == 405
