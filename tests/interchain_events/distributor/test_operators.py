"""What operators see: causes, log lines, figures and the status page (ID-10, ID-41)."""

import asyncio
import contextlib
import email.utils
import logging
import re
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.distributor.stage import Stage, another, free_port, play, played, stage, until
from support.plumbing.pages import ROOT

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.continuity import EPOCHS
from interchain_events.distributor.core.messages import Note, Post, Posted, Subscribe, reply_of
from interchain_events.distributor.core.rules import MOST_INDEX_BYTES, MOST_SUBSCRIPTIONS, Rules
from interchain_events.distributor.event import Notice
from interchain_events.distributor.service import engine, http
from interchain_events.distributor.service.config import Config
from interchain_events.distributor.service.notes import log_note
from interchain_events.distributor.service.poster import MOST_RETRY_AFTER, Poster
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.service.standing import MOST_CAUSES, MOST_DOWN, Party, Standing
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.distributor.simulation.world import World
from pubsub_emulator.files.settings import SettingsError

ID, EVENT = event_of(1)
HTML = {"Accept": "text/html"}


def post(endpoint: str) -> Post:
    return Post(
        "s",
        ID,
        endpoint,
        secret=None,
        webhook="msg_1",
        notice=Notice(1, 1, EVENT, ID, "0x"),
        before=0,
    )


# Causes and log lines


def test_a_party_is_logged_once_going_down_and_once_coming_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "pubsub.distributor")
    standing = Standing()
    standing.answered(Party.ADAPTER, "a")
    for cause in ("connection refused", "connection refused", "status 500"):
        standing.failed(Party.ADAPTER, "a", cause)
    assert standing.cause(Party.ADAPTER, "a") == "status 500"
    for _ in range(2):
        standing.answered(Party.ADAPTER, "a")
    assert standing.cause(Party.ADAPTER, "a") == ""
    assert [record.getMessage() for record in caplog.records] == [
        "an adapter is down",
        "an adapter is back",
    ]
    assert caplog.records[0].__dict__["fields"] == {
        "adapter": "a",
        "error": "connection refused",
    }


def test_each_further_cause_of_the_store_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pubsub.distributor")
    standing = Standing()
    for number in (1, 2, 1, 2, *range(3, 3 + MOST_CAUSES)):
        standing.failed(Party.STORE, "store", f"cause {number}")
    standing.answered(Party.STORE, "store")
    standing.failed(Party.STORE, "store", "cause 1")
    logged = [
        (record.getMessage(), record.__dict__["fields"].get("error")) for record in caplog.records
    ]
    still = [("the store is still down", f"cause {number}") for number in range(2, MOST_CAUSES + 1)]
    down = ("the store is down", "cause 1")
    assert logged == [down, *still, ("the store is back", None), down]


@pytest.mark.parametrize(
    ("note", "level", "fields"),
    [
        (
            Note("rewind", "a", "", "9 to 4"),
            "WARNING",
            {
                "network": "a",
                "detail": "the last number was 9, and of those only numbers up to 4 are left",
            },
        ),
        (
            Note("rewind", "a", "e", "4 has another event"),
            "WARNING",
            {"network": "a", "id": "e", "detail": "number 4 has another event"},
        ),
        (Note("gap", "a", "7"), "WARNING", {"network": "a", "number": "7"}),
        (
            Note("quarantine", "a", "7", "hl-missing"),
            "WARNING",
            {"network": "a", "number": "7", "detail": "hl-missing"},
        ),
        (Note("conflict", "publish", "e"), "WARNING", {"id": "e"}),
        (Note("conflict", "a", "e"), "WARNING", {"network": "a", "id": "e"}),
        (Note("revoked", "a", "e", "1"), "WARNING", {"network": "a", "id": "e"}),
        (
            Note("revoked", "a", "e", "2"),
            "WARNING",
            {"network": "a", "id": "e", "detail": "accepted 2 times"},
        ),
        (Note("alarm", "a", "e"), "ERROR", {"network": "a", "id": "e"}),
        (
            Note("dead-letter", "n:a", "e", "400 bad"),
            "WARNING",
            {"target": "n:a", "id": "e", "detail": "400 bad"},
        ),
        (Note("subscription-ended", "s"), "INFO", {"subscription": "s"}),
    ],
)
def test_a_note_is_logged_in_words_with_its_kind(
    note: Note, level: str, fields: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pubsub.distributor")
    log_note(note)
    [record] = caplog.records
    assert (record.levelname, " " in record.getMessage()) == (level, True)
    logged = {name: value for name, value in record.__dict__["fields"].items() if value}
    assert logged == {**fields, "kind": note.kind}


def test_every_note_of_the_state_machine_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pubsub.distributor")
    core = ROOT / "interchain_events" / "distributor" / "core"
    texts = [path.read_text("utf-8") for path in core.glob("*.py")]
    kinds = {kind for text in texts for kind in re.findall(r'turn\.note\("([a-z-]+)"', text)}
    assert len(kinds) == 12
    for kind in kinds:
        log_note(Note(kind, "a"))
    # The engine logs the loss of a store itself.
    assert {record.__dict__["fields"]["kind"] for record in caplog.records} == kinds - {
        "store-lost"
    }


@played()
async def test_that_an_adapter_takes_no_subscription_is_logged_once(made: Stage) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("pubsub.distributor")
    logger.addHandler(handler)
    try:
        for network in ("a", "a", "b", "a"):
            made.engine._begin_effect(Note("no-hook", network))
    finally:
        logger.removeHandler(handler)
    assert len([line for line in lines if "no subscription to all events" in line]) == 2
    assert made.engine.metrics.value("notes", kind="no-hook") == 4


@played()
async def test_acceptances_that_were_untrue_are_a_check_in_words(made: Stage) -> None:
    made.engine.store.transact(lambda tx: tx.put(rows.ALARMS, "a|untrue-yes", "e:1: 3 times"))
    _, body, _ = await made.ask("GET", "/health")
    assert body["checks"][-1] == {
        "name": "acceptances of a",
        "status": "DEGRADED",
        "cause": "the adapter accepted e:1 3 times, and the network does not have it",
    }


def test_strangers_cannot_fill_the_memory_of_who_is_down() -> None:
    standing = Standing()
    for number in range(MOST_DOWN + 10):
        standing.failed(Party.SUBSCRIBER, f"s{number}", "status 500")
    assert len(standing.names(Party.SUBSCRIBER)) == MOST_DOWN
    assert standing.cause(Party.SUBSCRIBER, "s0") == ""
    standing.forget(Party.SUBSCRIBER, f"s{MOST_DOWN}")
    assert len(standing.names(Party.SUBSCRIBER)) == MOST_DOWN - 1


async def _away(tmp_path: Path) -> AsyncIterator[Stage]:
    """A distributor of which one adapter is not there at all."""
    async with stage(tmp_path) as made:
        urls = {**made.adapters, "away": f"http://127.0.0.1:{free_port()}"}
        async with another(tmp_path, urls) as found:
            made.url = found.url
            made.engine = found.engine
            yield made


def test_an_adapter_that_is_not_there_is_named_with_its_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pubsub.distributor")

    async def run() -> None:
        async with contextlib.asynccontextmanager(_away)(tmp_path) as made:
            await until(lambda: made.engine.reached["away"].failed_at > 0)
            status, body, _ = await made.ask("GET", "/health")
            assert (status, body["status"]) == (200, "DEGRADED")
            checks = {check["name"]: check for check in body["checks"]}
            assert checks["adapter away"]["cause"] == "connection refused"
            assert "cause" not in checks["adapter a"]
            how = {"json": EVENT.body(), "headers": {"Prefer": "return=representation"}}
            status, body, _ = await made.ask("POST", "/api/v2/publishEvent", **how)
            states = {each["name"]: each for each in body["networks"]}
            assert states["away"]["error"] == "connection refused"
            text = (await made.ask("GET", "/metrics"))[1]
            assert 'ied_adapter_up{network="away"} 0.0' in text
            assert 'ied_adapter_up{network="a"} 1.0' in text
            assert 'ied_waiting_events{network="away"} 1' in text
            assert 'ied_oldest_event_seconds{network="away"}' in text

    asyncio.run(run())
    downs = [
        record.__dict__["fields"]
        for record in caplog.records
        if record.getMessage() == "an adapter is down"
    ]
    assert downs == [{"adapter": "away", "error": "connection refused"}]


@played()
async def test_a_subscriber_that_is_away_is_counted_and_logged(
    made: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pubsub.distributor")
    nobody = f"http://127.0.0.1:{free_port()}/in"
    _, body = await made.subscribe(nobody)
    await made.publish()
    name = body["subscriptionId"]
    standing = made.engine.standing
    await until(lambda: standing.cause(Party.SUBSCRIBER, name) == "connection refused")
    text = (await made.ask("GET", "/metrics"))[1]
    assert "ied_subscribers_down 1" in text
    assert "ied_waiting_notifications 1" in text
    assert "ied_store_up 1.0" in text
    fields = [
        record.__dict__["fields"]
        for record in caplog.records
        if record.getMessage() == "a subscriber is down"
    ]
    assert fields == [{"subscriber": name, "error": "connection refused"}]


# The status page


@played()
async def test_browsers_get_the_status_page_and_other_clients_the_calls(
    made: Stage,
) -> None:
    await made.subscribe(made.inbox_url + "?<script>alert(1)</script>")
    status, page, headers = await made.ask("GET", "/", headers=HTML)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "<script" not in page
    for words in ("<h2>Networks</h2>", ">a</td>", ">b</td>", "&lt;script&gt;", ">answers</span>"):
        assert words in page
    assert 'http-equiv="refresh"' not in page
    again = (await made.ask("GET", "/?refresh", headers=HTML))[1]
    assert '<meta http-equiv="refresh" content="5">' in again
    for path, how in (("/", {}), ("/docs", {"headers": HTML})):
        assert "POST   /api/v2/publishEvent " in (await made.ask("GET", path, **how))[1]


@played(
    access={"tokens": [{"name": "t", "sha256": "0" * 64, "rights": ["read"]}]},
)
async def test_the_status_page_shows_no_endpoints_if_callers_need_tokens(made: Stage) -> None:
    status, page, _ = await made.ask("GET", "/", headers=HTML)
    assert status == 200
    assert "A token with the right <code>read</code> is needed" in page
    assert (await made.ask("GET", "/metrics"))[0] == 401


# Delivery


@contextlib.asynccontextmanager
async def receiver(handler: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/in", handler)
    async with served(app, "127.0.0.1", 0) as url:
        yield f"{url}/in"


def test_a_connection_that_the_receiver_is_closing_costs_no_attempt() -> None:
    """The receiver answers once on each connection and closes it just as the next request comes."""
    heads: list[bytes] = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for is_first in (True, False):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
            if not is_first:
                break
            heads.append(head)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        writer.transport.abort()

    async def run() -> list[int | None]:
        server = await asyncio.start_server(once, "127.0.0.1", 0)
        poster = Poster(private=True)
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
        found = [(await poster.post(post(endpoint))).status for _ in range(4)]
        await poster.close()
        server.close()
        return found

    assert asyncio.run(run()) == [200] * 4
    assert len(heads) == 4


def test_a_receiver_that_always_closes_is_given_up_after_the_second_request() -> None:
    asked: list[int] = []

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        asked.append(1)
        writer.transport.abort()

    async def run() -> tuple[int | None, str]:
        server = await asyncio.start_server(close, "127.0.0.1", 0)
        poster = Poster(private=True)
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
        sent = await poster.post(post(endpoint))
        await poster.close()
        server.close()
        return sent.status, sent.cause

    status, cause = asyncio.run(run())
    assert (status, len(asked)) == (None, 2)
    assert cause


SOON = "in 3,000 seconds, as a date"


@pytest.mark.parametrize(
    ("status", "header", "least", "most"),
    [
        (503, "120", 120_000, 120_000),
        (429, "0", 0, 0),
        (200, "120", 0, 0),
        (503, "soon", 0, 0),
        (503, "-5", 0, 0),
        (503, "9" * 4000, 1000 * MOST_RETRY_AFTER, 1000 * MOST_RETRY_AFTER),
        (503, SOON, 2_000_000, 3_000_000),
        (503, "Mon, 01 Jan 2001 00:00:00 GMT", 0, 0),
        (503, "Mon, 01 Jan 99999 00:00:00 GMT", 0, 0),
    ],
    ids=[
        "seconds",
        "zero",
        "of a success",
        "no number",
        "negative",
        "many digits",
        "a date",
        "a date gone by",
        "a date beyond all",
    ],
)
def test_retry_after_is_read(status: int, header: str, least: int, most: int) -> None:
    async def answer(_request: web.Request) -> web.Response:
        # A date is made when it is sent: tests may wait for an hour after they were collected.
        text = email.utils.formatdate(time.time() + 3_000, usegmt=True)
        value = text if header == SOON else header
        return web.Response(status=status, headers={"Retry-After": value})

    async def run() -> int:
        poster = Poster(private=True)
        async with receiver(answer) as endpoint:
            sent = await poster.post(post(endpoint))
        await poster.close()
        assert sent.status == status
        return sent.retry_after

    assert least <= asyncio.run(run()) <= most


# Settings


def config(**fields: Any) -> Config:
    return Config.model_validate(
        {
            "public_url": "http://127.0.0.1:8090",
            "adapters": {"a": {"url": "http://127.0.0.1:8081"}},
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),
        ({"port": 9000}, "has port 8090, but the distributor listens on port 9000"),
        ({"port": 0}, ""),
        ({"public_url": "https://ied.example", "port": 9000}, ""),
        ({"public_url": "http://localhost", "port": 9000}, "has port 80,"),
        ({"public_url": "http://localhost:9000/path", "port": 9000}, ""),
        ({"public_url": "https://10.1.2.3", "host": "10.1.2.3"}, "has port 443,"),
    ],
)
def test_a_public_url_with_another_port_is_a_warning(fields: dict[str, Any], words: str) -> None:
    misfit = config(**fields).port_misfit()
    assert words in misfit
    assert bool(words) == bool(misfit)


def test_signed_only_needs_keys() -> None:
    with pytest.raises((ValueError, SettingsError), match="signed_only"):
        config(signed_only=True)


@played(signed_only=True, events={"check": False})
async def test_signed_only_refuses_publications_in_plain_json(made: Stage) -> None:
    status, body, _ = await made.ask("POST", "/api/v2/publishEvent", json=EVENT.body())
    assert (status, body["type"]) == (415, "urn:ied:not-signed")
    assert made.counts(1) == [0, 0]


@played()
async def test_two_values_of_hl_are_named(made: Stage) -> None:
    fields = {**EVENT.body(), "dataLocation": "https://node.example/e?hl=a&hl=b"}
    status, body, _ = await made.ask("POST", "/api/v2/publishEvent", json=fields)
    assert (status, body["type"]) == (400, "urn:ied:hl-repeated")
    assert body["detail"] == "dataLocation: the query has two or more values of hl"


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        (0, 2_000),
        (5_000, 5_000),
        (600_000, 600_000),
        (10**9, 3_600_000),
    ],
)
def test_a_subscriber_may_ask_for_more_time_up_to_the_longest_wait(asked: int, wait: int) -> None:
    world = World(1, {"a": SimulatedNetwork("a"), "b": SimulatedNetwork("b")}, rules=Rules((), ""))
    world.start()
    world.run(500)
    name, _ = world.subscribe("https://desmos.example/0")
    world.endpoints["https://desmos.example/0"].status = 503
    world.publish_on("a", EVENT)
    target = rows.to_subscription(name)
    world.run_until(lambda: world.posts[name, ID] > 0, 10_000)
    world.tell(world.processes[0], Posted(name, ID, 503, "", asked))
    job = rows.get_job(world.look(), target, ID)
    assert job is not None
    assert wait <= job.due - world.now <= wait + wait // 10


# Limits in pieces and in bytes


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"most_subscriptions": 2}, "the limit of 2 subscriptions is reached"),
        ({"most_index_bytes": 300}, "types and metadata of all subscriptions exceed 300 bytes"),
    ],
)
def test_subscriptions_are_bounded_in_number_and_in_bytes(
    tmp_path: Path, rules: dict[str, int], words: str
) -> None:
    async def full(made: Stage) -> None:
        answers = [await made.subscribe(eventTypes=[f"{'T' * 60}{number}"]) for number in range(4)]
        assert [status for status, _ in answers] == [201, 201, 429, 429]
        assert answers[2][1]["type"] == "urn:ied:too-many"
        assert answers[2][1]["detail"] == words
        # An equal subscription is no further one.
        assert (await made.subscribe(eventTypes=["T" * 60 + "0"]))[0] == 200
        name = answers[0][1]["subscriptionId"]
        assert (await made.ask("DELETE", f"/api/v2/subscribe/{name}"))[0] == 204
        assert (await made.subscribe(eventTypes=["T" * 60 + "9"]))[0] == 201

    play(tmp_path, full, rules)


@pytest.mark.parametrize(
    "index",
    [
        [("s", ["T"], [], 1)] * MOST_SUBSCRIPTIONS,
        [("s", ["T" * (MOST_INDEX_BYTES // 100)], [], 1)] * 100,
    ],
    ids=("as many as may be", "as long as may be"),
)
def test_a_full_index_of_subscriptions_takes_no_more(
    index: list[tuple[str, list[str], list[str], int]],
) -> None:
    world = World(1)
    world.start()
    world.run(500)
    world.store.transact(lambda tx: rows.put_index(tx, index))
    request = Subscribe(("*",), (), "https://desmos.example/0", None, "name", "key")
    found = world.tell(world.processes[0], request)
    assert found is not None
    assert reply_of(found[0]).code == "too-many"
    assert rows.get_interest(world.look(), "name") is None


@played()
async def test_a_query_reads_so_many_pages_of_a_network_and_no_more(
    made: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 7):
        made.ledgers["a"].network.append(event_of(number, number)[1], 1_700_000_000_000)
    monkeypatch.setattr(http, "MOST_PAGES", 4)
    assert (await made.ask("GET", "/api/v2/events?limit=2"))[0] == 200
    monkeypatch.setattr(http, "MOST_PAGES", 3)
    status, body, _ = await made.ask("GET", "/api/v2/events?limit=2")
    assert (status, body["type"]) == (422, "urn:ied:too-many")


@played()
async def test_a_query_reads_so_many_bytes_of_a_network_and_no_more(
    made: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 7):
        made.ledgers["a"].network.append(event_of(number, number)[1], 1_700_000_000_000)
    one = len(event_of(1)[1].data_location)
    status, body, _ = await made.ask("GET", "/api/v2/events?limit=2")
    assert (status, len(body)) == (200, 2)
    monkeypatch.setattr(http, "MOST_EVENT_BYTES", 3 * one)
    status, body, _ = await made.ask("GET", "/api/v2/events?limit=2")
    assert (status, body["type"]) == (422, "urn:ied:too-many")


# A store that loses rows under a running distributor


def test_an_idle_distributor_notices_an_emptied_store_and_publishes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is due in an empty store, so that nothing else would make the process look at it."""
    monkeypatch.setattr(engine, "LOOK_AT_STORE_SECONDS", 0.1)

    async def emptied(made: Stage) -> None:
        assert await made.publish(1) == 201
        await until(lambda: made.counts(1) == [1, 1])
        # Answers and notifications of this publication must not make the process look.
        await asyncio.sleep(0.5)
        with contextlib.closing(sqlite3.connect(tmp_path / "ied.db")) as connection, connection:
            connection.execute("DELETE FROM once_places")
        await until(lambda: made.engine.losses == 1)
        assert await made.publish(2) == 202
        await until(lambda: made.counts(2) == [1, 1])
        assert made.counts(1) == [1, 1]
        text = (await made.ask("GET", "/metrics"))[1]
        assert "ied_store_losses 1" in text

    play(tmp_path, emptied, {"call_timeout": 200})


def test_another_distributors_store_makes_it_down_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LOOK_AT_STORE_SECONDS", 0.1)

    async def swapped(made: Stage) -> None:
        with contextlib.closing(sqlite3.connect(tmp_path / "ied.db")) as connection, connection:
            connection.execute(
                "UPDATE once_places SET value = '[\"1-other\"]' WHERE key = ?", (EPOCHS,)
            )
        await until(lambda: bool(made.engine.standing.cause(Party.STORE, "store")))
        status, body, _ = await made.ask("GET", "/health")
        assert (status, body["status"]) == (503, "DOWN")
        assert "restart the distributor" in body["checks"][0]["cause"]
        assert (await made.ask("POST", "/api/v2/publishEvent", json=EVENT.body()))[0] == 503
        assert made.counts(1) == [0, 0]

    play(tmp_path, swapped)


@played(origins=["http://localhost:3000"])
async def test_pages_of_named_origins_call_the_distributor_and_no_others(made: Stage) -> None:
    for origin, status in (
        (None, 201),
        ("http://localhost:3000", 200),
        ("http://localhost:3001", 403),
        ("https://evil.example", 403),
    ):
        headers = {} if origin is None else {"Origin": origin}
        answer = await made.ask("POST", "/api/v2/publishEvent", json=EVENT.body(), headers=headers)
        assert answer[0] == status, origin
        allowed = answer[2].get("Access-Control-Allow-Origin")
        assert allowed == (origin if status == 200 else None)
    # A browser sends this without asking the server first, as a form could.
    path = "/api/v2/dead-letters/a/redrive"
    for origin, status in (("http://localhost:3001", 403), ("http://localhost:3000", 404)):
        assert (await made.ask("POST", path, headers={"Origin": origin}))[0] == status


def test_an_origin_in_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="not a web origin such as http://localhost:3000"):
        config(origins=["http://localhost:3000/"])
