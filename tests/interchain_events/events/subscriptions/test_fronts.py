"""The service behind its two fronts, over real sockets (EV-20 to EV-26)."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from support.events.blocks import block_hash, counted, make_block
from support.plumbing.told import Told, alone, told
from support.prism.prism_chain import until

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events import EventService, SqlRegistry
from interchain_events.events.filters.algebra import ANY
from interchain_events.events.log.sql_store import SqlStore
from interchain_events.events.log.store import Head
from interchain_events.events.protocol import events_pb2 as pb
from interchain_events.events.rows import Block
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers
from interchain_events.events.subscriptions.rpc import NAME, serve_grpc
from interchain_events.events.subscriptions.sse import serve_http
from interchain_events.events.subscriptions.streams import Limits
from pubsub_emulator.primitives.hashing import token_hash
from pubsub_emulator.serving.body import read_body
from pubsub_emulator.serving.guard import LOCAL, Names

QUICK = Limits(heartbeat_seconds=0.1, streams_per_client=3, streams=3)


@dataclass
class Http:
    """A client of a running HTTP front."""

    url: str
    session: aiohttp.ClientSession
    service: EventService

    @property
    def place(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    async def slow(self, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that asked for events and is read when somebody reads it."""
        reader, writer = await asyncio.open_connection(*self.place, limit=1_000)
        head = "GET /events HTTP/1.1\r\nHost: localhost\r\n"
        writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        return reader, writer

    async def subscribe(self, *filters: dict[str, Any], **more: object) -> tuple[str, str]:
        async with self.session.post(
            f"{self.url}/subscriptions", json={"filters": filters, **more}
        ) as answer:
            assert answer.status == 201, await answer.text()
            body = await answer.json()
        return body["token"], body["after"]

    async def events(self, token: str, count: int, **more: Any) -> list[dict[str, Any]]:
        """So many events, each with its cursor; a bare heartbeat counts as `{"cursor": …}` where
        `beats`.
        """
        beats = more.pop("beats", False)
        found: list[dict[str, Any]] = []
        async with aclosing(self.stream(token, **more)) as events:
            async for event in events:
                if beats or event.get("event"):
                    found.append(event)
                if len(found) >= count or event.get("event") == "end":
                    break
        return found

    async def stream(
        self, token: str, headers: dict[str, str] | None = None, **query: str
    ) -> AsyncGenerator[dict]:
        sent = {"Authorization": f"Bearer {token}", **(headers or {})}
        async with self.session.get(f"{self.url}/events", headers=sent, params=query) as answer:
            assert answer.status == 200, await answer.text()
            event: dict[str, Any] = {}
            async for line in answer.content:
                text = line.decode().rstrip("\n")
                if text.startswith("id: "):
                    event["cursor"] = text[4:]
                elif text.startswith("event: "):
                    event["event"] = text[7:]
                elif text.startswith("data: "):
                    event["data"] = json.loads(text[6:])
                elif not text and event:
                    yield event
                    event = {}


@asynccontextmanager
async def serving(
    store: SqlStore, limits: Limits = QUICK, callers: Callers = EVERYBODY, names: Names = LOCAL
) -> AsyncIterator[Http]:
    registry = SqlRegistry(store.database, per_client=5)
    async with (
        EventService(store, registry, limits) as service,
        serve_http(service, names, 0, callers) as (host, port),
        aiohttp.ClientSession() as session,
    ):
        yield Http(f"http://{host}:{port}", session, service)
        service.stop()


def over_http(
    *logged: Block,
    on: str = "log",
    limits: Limits = QUICK,
    callers: Callers = EVERYBODY,
    names: Names = LOCAL,
) -> Callable[[Told], Callable[..., None]]:
    """Tests of a service over the log of a fixture, which has some blocks already."""

    def play(log: SqlStore, story: Callable[[Http], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(30), serving(log, limits, callers, names) as http:
                await story(http)

        for block in logged:
            log.append([block])
        asyncio.run(main())

    return told(play, on)


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["data"]["seq"] for event in events]


@over_http(counted(1, 3), names=Names(origins=("http://localhost:3000",)))
async def test_ev_25_a_page_of_a_named_origin_reads_a_stream(http: Http) -> None:
    token, _ = await http.subscribe({"kind": "Test.*"}, after="start")
    for origin, status in (("http://localhost:3000", 200), ("http://localhost:3001", 403)):
        sent = {"Origin": origin}
        url = f"{http.url}/events?token={token}&after=start"
        async with http.session.get(url, headers=sent) as answer:
            assert answer.status == status
            allowed = answer.headers.get("Access-Control-Allow-Origin")
            assert allowed == (origin if status == 200 else None)


@over_http(counted(1, 3), counted(2, 3), on="any_log")
async def test_ev_21_catch_up_and_tail_have_no_seam(http: Http, any_log: SqlStore) -> None:
    token, _ = await http.subscribe({"kind": "Test.*"}, after="start")
    reading = asyncio.create_task(http.events(token, 12))
    await asyncio.sleep(0.2)
    await asyncio.to_thread(any_log.append, [counted(3, 3), counted(4, 3)])
    assert numbers(await reading) == list(range(1, 13))


@over_http(counted(1, 3), on="any_log")
async def test_ev_21_what_a_stream_starts_with(http: Http, any_log: SqlStore) -> None:
    token, after = await http.subscribe({"any": True})
    await asyncio.to_thread(any_log.append, [counted(2, 2)])
    assert numbers(await http.events(token, 2)) == [4, 5]  # its lower bound
    events = await http.events(token, 5, after="start")
    assert numbers(events) == [1, 2, 3, 4, 5]
    assert numbers(await http.events(token, 2, after=after)) == [4, 5]
    assert numbers(await http.events(token, 1, headers={"Last-Event-ID": events[1]["cursor"]})) == [
        3
    ]
    assert events[0]["data"] | {"id": ""} == {
        "seq": 1,
        "anchor": 1,
        "chain": None,
        "block": 1,
        "index": 0,
        "kind": "Test.Counted",
        "id": "",
        "time": 6000,
        "fields": {"n": 1000},
    }


@over_http(counted(1, 1))
async def test_ev_22_heartbeats_move_the_cursor(http: Http, log: SqlStore) -> None:
    token, _ = await http.subscribe({"kind": "Rare.One"})
    await asyncio.to_thread(log.append, [counted(2, 50)])
    beats = await http.events(token, 3, beats=True)
    assert all("event" not in beat for beat in beats)
    await asyncio.to_thread(log.append, [make_block(3, [("Rare.One", {})])])
    reads = http.service.counts["catch_up_reads"]
    events = await http.events(token, 1, headers={"Last-Event-ID": beats[-1]["cursor"]})
    assert numbers(events) == [52]
    assert (
        http.service.counts["catch_up_reads"] <= reads + 2
    )  # one more where the row comes between


@over_http(counted(1, 150))
async def test_batches_come_where_they_were_asked_for(http: Http) -> None:
    token, _ = await http.subscribe({"any": True}, after="start", batches=True)
    events = await http.events(token, 2)
    assert [len(event["data"]) for event in events] == [100, 50]


@over_http(counted(1, 2), counted(2, 2), on="any_log")
async def test_ev_3_a_rewind_ends_streams_beyond_it_and_says_where_to_resume(
    http: Http, any_log: SqlStore
) -> None:
    token, _ = await http.subscribe({"any": True}, after="start")
    reading = asyncio.create_task(http.events(token, 9))
    await asyncio.sleep(0.3)
    await asyncio.to_thread(any_log.rewind, 1)
    events = await reading
    assert numbers(events[:-1]) == [1, 2, 3, 4]
    assert events[-1]["data"]["reason"] == "abandoned"
    other = make_block(2, [("Other.Thing", {})], branch=1, parent=block_hash(1))
    await asyncio.to_thread(any_log.append, [other])
    resumed = await http.events(token, 1, headers={"Last-Event-ID": events[-1]["cursor"]})
    assert [(event["data"]["seq"], event["data"]["kind"]) for event in resumed] == [
        (3, "Other.Thing")
    ]
    sent = {"Authorization": f"Bearer {token}", "Last-Event-ID": events[3]["cursor"]}
    async with http.session.get(f"{http.url}/events", headers=sent) as answer:
        assert answer.status == 410
        assert (await answer.json())["after"] == events[-1]["cursor"]


def test_ev_20_a_subscription_from_now_on_is_made_while_blocks_are_taken_back(
    log: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append([counted(1, 2), counted(2, 2)])
    service = EventService(log, SqlRegistry(log.database))
    head = log.head()

    def head_before_a_rewind() -> Head:
        log.rewind(1)
        return head

    monkeypatch.setattr(log, "head", head_before_a_rewind)
    _, after = asyncio.run(service.subscribe([ANY], "me"))
    assert service.cursor(after) == (0, 4)


@over_http(on="any_log")
async def test_ev_24_a_cancelled_token_is_as_unknown_as_any_other(http: Http) -> None:
    token, _ = await http.subscribe({"any": True})
    reading = asyncio.create_task(http.events(token, 1))
    await asyncio.sleep(0.2)
    headers = {"Authorization": f"Bearer {token}"}
    async with http.session.delete(f"{http.url}/subscriptions", headers=headers) as answer:
        assert answer.status == 204
    assert [event["data"]["reason"] for event in await reading] == ["cancelled"]
    answers = []
    for name in (token, "never-there", ""):
        async with http.session.get(
            f"{http.url}/events", headers={"Authorization": f"Bearer {name}"}
        ) as answer:
            answers.append((answer.status, answer.content_type, await answer.text()))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][:2] == (404, "application/problem+json")


@over_http()
async def test_ev_25_limits_are_refused_with_their_names(http: Http, log: SqlStore) -> None:
    token, _ = await http.subscribe({"any": True})
    for _ in range(4):
        await http.subscribe({"any": True})
    async with http.session.post(f"{http.url}/subscriptions", json={"filters": []}) as answer:
        assert (answer.status, "5 subscriptions" in await answer.text()) == (429, True)
    streams = [asyncio.create_task(http.events(token, 1)) for _ in range(3)]
    await asyncio.sleep(0.3)
    async with http.session.get(
        f"{http.url}/events", headers={"Authorization": f"Bearer {token}"}
    ) as answer:
        assert (answer.status, "3 open streams" in await answer.text()) == (429, True)
    await asyncio.to_thread(log.append, [counted(1, 1)])
    assert [numbers(await stream) for stream in streams] == [[1]] * 3
    assert http.service.open_streams in range(4)


BAD = (
    (b"{", "not JSON"),
    (b"[" * 100_000, "nest deeper than 64"),
    (b"[]", "JSON object with `filters`"),
    (b'{"filters": [{"kind": 1}]}', "filters[0]"),
    (b'{"filters": [{"kind": "' + b"x" * 100_000 + b'"}]}', "filters[0]: a kind is written"),
    (b'{"filters": [{"field": "a", "op": "' + b"x" * 100_000 + b'", "value": 1}]}', "filters[0]"),
    (b'{"filters": [], "after": 5}', "`after` must be a cursor"),
    (b'{"filters": [], "after": "xx"}', "damaged"),
    (b'{"filters": [], "more": 5}', "JSON object with `filters`"),
    (b'{"filters": [], "x": "' + b" " * 2_000_000 + b'"}', "Too Large"),
)


@over_http()
async def test_bad_requests_get_a_problem_that_names_the_place(http: Http) -> None:
    made = {"Content-Type": "application/json"}
    for body, words in BAD:
        async with http.session.post(
            f"{http.url}/subscriptions", data=io.BytesIO(body), headers=made
        ) as answer:
            assert (answer.status in {400, 413}, answer.content_type) == (
                True,
                "application/problem+json",
            ), words
            detail = (await answer.json())["detail"]
            assert words in detail
            assert len(detail) < 300


@over_http()
async def test_a_body_that_never_ends_is_given_up(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_body, "__defaults__", (0.05,))

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    made = {"Content-Type": "application/json"}
    async with http.session.post(f"{http.url}/subscriptions", data=never(), headers=made) as answer:
        assert answer.status == 408


@over_http(counted(1, 3))
async def test_ev_25_health_and_metrics(http: Http) -> None:
    token, _ = await http.subscribe({"any": True}, after="start")
    await http.events(token, 3)
    async with http.session.get(f"{http.url}/health") as answer:
        assert (answer.status, await answer.json()) == (200, {"available": True, "seq": 3})
    async with http.session.get(f"{http.url}/metrics") as answer:
        text = await answer.text()
    assert "pubsub_events_rows_total 3" in text
    assert "# TYPE pubsub_events_streams gauge" in text
    async with http.session.get(f"{http.url}/nowhere") as answer:
        assert (answer.status, answer.content_type) == (404, "application/problem+json")


@alone
async def test_ev_26_shutdown_ends_streams_with_a_resumable_status(log: SqlStore) -> None:
    log.append([counted(1, 3)])
    async with serving(log) as http:
        token, _ = await http.subscribe({"any": True}, after="start")
        reading = asyncio.create_task(http.events(token, 9))
        await asyncio.sleep(0.2)
        http.service.stop()
        events = await reading
        assert events[-1]["data"]["reason"] == "shutdown"
    async with serving(log) as http:
        await asyncio.to_thread(log.append, [counted(2, 1)])
        assert numbers(
            await http.events(token, 1, headers={"Last-Event-ID": events[-2]["cursor"]})
        ) == [4]


@over_http(counted(1, 3))
async def test_a_database_that_goes_away_and_comes_back_loses_nothing(
    http: Http, log: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = await http.subscribe({"any": True}, after="start")
    reading = asyncio.create_task(http.events(token, 6))
    await asyncio.sleep(0.2)
    for method in ("transaction", "select"):
        monkeypatch.setattr(log.database, method, _gone)
    await asyncio.sleep(0.5)
    async with http.session.get(f"{http.url}/health") as answer:
        assert answer.status == 503
    async with http.session.post(f"{http.url}/subscriptions", json={"filters": []}) as answer:
        assert answer.status == 503
    monkeypatch.undo()
    await asyncio.to_thread(log.append, [counted(2, 3)])
    assert numbers(await reading) == [1, 2, 3, 4, 5, 6]


def _gone(*_given: object, **_options: object) -> None:
    raise StoreUnavailable("events.db: gone")


@over_http(callers=Callers({token_hash("one"): "one", token_hash("two"): "two"}))
async def test_callers_with_tokens_have_each_their_own_limits(http: Http) -> None:
    async def made(authorization: str) -> int:
        headers = {"Authorization": authorization}
        url = f"{http.url}/subscriptions"
        async with http.session.post(
            url, json={"filters": [{"any": True}]}, headers=headers
        ) as answer:
            return answer.status

    assert [await made("Bearer one") for _ in range(6)] == [201] * 5 + [429]
    assert await made("Bearer two") == 201
    assert [await made(each) for each in ("", "Bearer x", "Basic one")] == [401] * 3


@over_http(callers=Callers({token_hash("one"): "one"}))
async def test_a_token_that_is_not_utf_8_is_as_unknown_as_any_other(http: Http) -> None:
    lines = (b"GET /events", b"DELETE /subscriptions", b"POST /subscriptions")
    for line, token in product(lines, (b"\xff\xfe", b"\xed\xa0\x80", b"\xc3\xa9", b"")):
        reader, writer = await asyncio.open_connection(*http.place)
        head = (
            b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
            b" 14\r\n"
        )
        sent = b"" if line.startswith(b"GET") else b'{"filters":[]}'
        length = b"14" if sent else b"0"
        head = head.replace(b"14", length)
        writer.write(line + head + b"Authorization: Bearer " + token + b"\r\n\r\n" + sent)
        status = (await reader.readline()).split()[1]
        assert status == (b"401" if line.startswith(b"POST") else b"404")
        writer.close()


@alone
async def test_a_stream_that_nobody_reads_ends_with_its_connection(log: SqlStore) -> None:
    for number in range(1, 31):
        log.append([make_block(number, [("Test.Wide", {"text": "x" * 20_000}) for _ in range(50)])])
    async with serving(
        log, Limits(heartbeat_seconds=0.1, unread_seconds=0.2, streams_per_client=1)
    ) as http:
        token, _ = await http.subscribe({"any": True}, after="start")
        _, writer = await http.slow(token)
        await until(lambda: http.service.open_streams)
        await until(lambda: not http.service.open_streams)
        writer.close()


# gRPC


@alone
async def test_grpc_speaks_of_the_same_subscriptions(any_log: SqlStore) -> None:
    any_log.append([counted(1, 3)])
    async with (
        asyncio.timeout(30),
        EventService(any_log, SqlRegistry(any_log.database), QUICK) as service,
        serve_grpc(service, "127.0.0.1", 0) as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        await _talk(channel, any_log)
        await _refusals(channel)


def _method(
    channel: grpc.aio.Channel, name: str, request: Any, answer: Any, kind: str = "unary_unary"
) -> Any:
    make = getattr(channel, kind)
    return make(f"/{NAME}/{name}", request.SerializeToString, answer.FromString)


async def _talk(channel: grpc.aio.Channel, log: SqlStore) -> None:
    subscribe = _method(channel, "Subscribe", pb.SubscribeRequest, pb.SubscribeResponse)
    stream = _method(channel, "Stream", pb.StreamRequest, pb.EventsMessage, "unary_stream")
    cancel = _method(channel, "Cancel", pb.CancelRequest, pb.CancelResponse)
    made = await subscribe(
        pb.SubscribeRequest(filters_json='[{"any": true}]', after="start", batches=True)
    )
    call = stream(pb.StreamRequest(token=made.token))
    first = await call.read()
    assert [event.seq for event in first.events] == [1, 2, 3]
    assert (first.events[0].HasField("chain"), first.events[0].fields_json) == (False, '{"n":1000}')
    await asyncio.to_thread(log.append, [counted(2, 1)])
    while not (second := await call.read()).events:
        pass
    assert [event.seq for event in second.events] == [4]
    await asyncio.to_thread(log.rewind, 1)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _drain(call)
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
    after = dict(caught.value.trailing_metadata())["after"]
    call = stream(pb.StreamRequest(token=made.token, after=after))
    assert not (await call.read()).events
    await cancel(pb.CancelRequest(token=made.token))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _drain(call)
    assert caught.value.code() is grpc.StatusCode.CANCELLED


async def _drain(call: Any) -> None:
    while await call.read():
        pass


async def _refusals(channel: grpc.aio.Channel) -> None:
    subscribe = _method(channel, "Subscribe", pb.SubscribeRequest, pb.SubscribeResponse)
    stream = _method(channel, "Stream", pb.StreamRequest, pb.EventsMessage, "unary_stream")
    for request, words in (
        (pb.SubscribeRequest(), "not JSON"),
        (pb.SubscribeRequest(filters_json="[5]"), "object"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await subscribe(request)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert words in (caught.value.details() or "")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream(pb.StreamRequest(token="x" * 9)).read()
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@over_http(counted(1, 1), limits=Limits(heartbeat_seconds=0.1, bound=50))
async def test_ev_23_a_client_that_does_not_read_costs_its_bound_and_loses_nothing(
    http: Http, log: SqlStore
) -> None:
    token, _ = await http.subscribe({"any": True})
    reader, writer = await http.slow(token)
    quick = asyncio.create_task(http.events(token, 3_000))
    await asyncio.sleep(0.3)
    for number in range(2, 32):
        wide = [("Test.Wide", {"n": at, "text": "x" * 2_000}) for at in range(100)]
        await asyncio.to_thread(log.append, [make_block(number, wide)])
        assert http.service.waiting_rows <= 2 * 50
    assert numbers(await quick) == list(range(2, 3_002))
    slow: list[int] = []
    text = b""
    while len(slow) < 3_000:
        text += await reader.read(65_536)
        *lines, text = text.split(b"\n")
        slow += [json.loads(line[6:])["seq"] for line in lines if line.startswith(b"data: ")]
    assert slow == list(range(2, 3_002))
    writer.close()
