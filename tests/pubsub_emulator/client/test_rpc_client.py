"""The JSON-RPC client against servers that answer, lie, and go away."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from support.client.chain_metadata import metadata_of_chains
from support.node.nodes import serving, story
from support.plumbing.web import served

from pubsub_emulator.client import rpc as rpc_module
from pubsub_emulator.client.decode import decode
from pubsub_emulator.client.errors import (
    BadAnswer,
    ClientError,
    NodeRefused,
    NodeUnavailable,
    UnknownBlock,
)
from pubsub_emulator.client.metadata import Array, Metadata, Tuple, Type, parse_metadata
from pubsub_emulator.client.node import SubstrateNode, decode_events
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.serving.listening import listening

Talk = Callable[[web.WebSocketResponse, dict[str, Any]], Awaitable[None]]


@asynccontextmanager
async def speaking(talk: Talk) -> AsyncIterator[str]:
    """A server that does what `talk` says with each request; its WebSocket URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await talk(socket, json.loads(message.data))
        return socket

    app = web.Application()
    app.router.add_get("/", handle)
    async with listening(app, "127.0.0.1", 0, 0.1) as (_, port):
        yield f"ws://127.0.0.1:{port}"


async def answer(socket: web.WebSocketResponse, request: dict[str, Any], result: object) -> None:
    await socket.send_str(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


@story
async def test_storage_is_decoded_by_the_metadata_of_its_block() -> None:
    async with serving() as node, connect(node.urls[None]) as rpc:
        await node.step(2)
        chain = SubstrateNode(rpc)
        head = await chain.finalized_head()
        number = (await chain.header(head)).number
        assert await chain.item(head, "System", "Number") == number
        account = await rpc.call(
            "state_getKeysPaged",
            "0x26aa394eea5630e07c48ae0c9558cef7b99d880ec681799c0cf30e8886371da9",
            1,
        )
        who = bytes.fromhex(account[0][2:])[-32:]
        found = await chain.item(head, "System", "Account", who)
        assert found["data"]["free"] > 0
        assert await chain.item(head, "System", "Account", bytes(32)) is None
        for pallet, name, keys in (
            ("Nope", "X", ()),
            ("System", "Nope", ()),
            ("System", "Account", ()),
        ):
            with pytest.raises(BadAnswer, match=f"{pallet}.{name}"):
                await chain.item(head, pallet, name, *keys)
        with pytest.raises(UnknownBlock, match="no block 0x1111"):
            await chain.header(b"\x11" * 32)
        with pytest.raises(NodeRefused, match="nope: Method not found") as caught:
            await rpc.call("nope")
        assert caught.value.code == -32601


@story
async def test_an_answer_over_http_is_bounded_as_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc_module, "MAX_MESSAGE", 1 << 20)
    document = {"jsonrpc": "2.0", "id": 1, "result": "x" * ((1 << 20) - 100)}

    async def pack(request: web.Request) -> web.Response:
        text = json.dumps({**document, "id": (await request.json())["id"]})
        if (await request.json())["method"] == "much":
            text += " " * (1 << 20)
        return web.Response(body=gzip.compress(text.encode()), headers={"Content-Encoding": "gzip"})

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/", pack)
    async with served(app) as url, connect(url) as rpc:
        assert await rpc.call("little") == document["result"]
        with pytest.raises(BadAnswer, match="an answer of more than 1,048,576 bytes"):
            await rpc.call("much")


@story
async def test_unread_notifications_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_module, "MAX_MESSAGE", 10_000)

    async def talk(socket: web.WebSocketResponse, request: dict[str, Any]) -> None:
        await answer(socket, request, "s")
        for _ in range(20):
            said = {"subscription": "s", "result": "x" * 900}
            await socket.send_str(json.dumps({"jsonrpc": "2.0", "method": "m", "params": said}))

    async with speaking(talk) as url, connect(url) as rpc, rpc.subscribe("m", "u") as found:
        await asyncio.sleep(0.1)
        with pytest.raises(NodeUnavailable, match="10,000 bytes of notifications"):
            async for _ in found:
                pass


@story
async def test_a_subscription_with_too_many_notifications_ends_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc_module, "MAX_WAITING", 2)
    monkeypatch.setattr(rpc_module, "MAX_MESSAGE", 1000)
    ended: list[object] = []

    async def talk(socket: web.WebSocketResponse, request: dict[str, Any]) -> None:
        if request["method"] == "u":
            ended.append(request["params"])
        await answer(socket, request, "s")
        if request["method"] == "m":
            for number in range(5):
                content = {"subscription": "s", "result": number}
                document = {"jsonrpc": "2.0", "method": "m", "params": content}
                await socket.send_str(json.dumps(document))

    async with speaking(talk) as url, connect(url) as rpc:
        for _ in range(10):
            async with rpc.subscribe("m", "u") as numbers:
                await rpc.call("ping")
                assert await anext(numbers) == 1
                with pytest.raises(NodeUnavailable, match="more than 2 notifications wait"):
                    await anext(numbers)
    assert ended == [["s"]] * 10


@story
async def test_a_connection_that_is_lost_is_made_again() -> None:
    seen: list[str] = []

    async def talk(socket: web.WebSocketResponse, request: dict[str, Any]) -> None:
        seen.append(request["method"])
        if request["method"] == "die":
            await socket.close()
        else:
            await answer(socket, request, request["params"])

    async with speaking(talk) as url, connect(url) as rpc:
        assert await rpc.call("echo", 1, "x") == [1, "x"]
        with pytest.raises(NodeUnavailable, match=r"die|closed"):
            await rpc.call("die")
        assert await rpc.call("echo", 2) == [2]
    assert seen == ["echo", "die", "echo"]


@story
async def test_a_notification_that_overtakes_its_answer_is_not_lost() -> None:
    async def talk(socket: web.WebSocketResponse, request: dict[str, Any]) -> None:
        note = {
            "jsonrpc": "2.0",
            "method": "n",
            "params": {"subscription": "s", "result": request["method"]},
        }
        await socket.send_str(json.dumps(note))
        await answer(socket, request, "s")
        await socket.send_str(
            json.dumps(note | {"params": {"subscription": "s", "result": "second"}})
        )
        if request["method"] == "follow_and_die":
            await socket.close()

    async with speaking(talk) as url, connect(url) as rpc:
        async with rpc.subscribe("follow", "unfollow") as notes:
            assert [await anext(aiter(notes)), await anext(aiter(notes))] == ["follow", "second"]
        async with rpc.subscribe("follow_and_die", "unfollow") as notes:
            with pytest.raises(NodeUnavailable):
                _ = [note async for note in notes]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"id": 1}', "neither result nor error"),
        ('{"id": 1, "error": 5}', "not an object"),
    ],
)
def test_what_is_no_answer_is_refused(raw: str, words: str) -> None:
    async def talk(socket: web.WebSocketResponse, _request: dict[str, Any]) -> None:
        await socket.send_str(raw)

    async def main() -> None:
        async with speaking(talk) as url, connect(url, answer_seconds=5) as rpc:
            with pytest.raises(ClientError, match=words) as caught:
                await rpc.call("x")
            assert str(caught.value).count(url) == 1

    asyncio.run(main())


@story
async def test_no_answer_in_time_is_said_so() -> None:
    async def talk(_socket: web.WebSocketResponse, _request: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    async with speaking(talk) as url, connect(url, answer_seconds=0.2) as rpc:
        with pytest.raises(NodeUnavailable, match="x: no answer in time"):
            await rpc.call("x")


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(ClientError, match="ftp://x: a node's URL"):
        connect("ftp://x")


@pytest.mark.parametrize(
    "raw", [b"", b"meta", b"meta\x0f", b"meta\x0e", b"meta\x0e\x04\x00\xff", b"atem\x0e"]
)
def test_metadata_that_cannot_be_read_is_refused(raw: bytes) -> None:
    with pytest.raises(BadAnswer, match="metadata"):
        parse_metadata(raw)


@pytest.mark.parametrize(
    "raw", [b"", b"\x04", b"\x04\x00", b"\x04\x02\xff\x00", b"\x00\x00", b"\xfe\xff\xff\xff"]
)
def test_events_that_do_not_decode_are_refused(raw: bytes) -> None:
    metadata = parse_metadata(metadata_of_chains()["relay"])
    with pytest.raises((ScaleError, BadAnswer)):
        decode_events(metadata, raw)
    with pytest.raises((ScaleError, BadAnswer)):
        decode(metadata, 10**6, raw)


@pytest.mark.parametrize(
    "types",
    [
        pytest.param(
            {0: Array(1, 1 << 32)},
            id="a long array",
        ),
        pytest.param(
            {at: Tuple((at + 1, at + 1)) for at in range(100)},
            id="a wide tree",
        ),
    ],
)
def test_types_without_bytes_cannot_stand_for_any_number_of_values(types: dict[int, Type]) -> None:
    metadata = Metadata({1: Tuple(()), **types, 100: Tuple(())}, {}, {}, 0)
    with pytest.raises(BadAnswer, match="far more values than there are bytes"):
        decode(metadata, 0, b"")


def test_a_length_beyond_the_metadata_is_refused_at_once() -> None:
    whole = metadata_of_chains()["relay"]
    for cut in (6, 100, len(whole) - 1):
        with pytest.raises(BadAnswer, match=r"wanted at offset|exceeds the"):
            parse_metadata(whole[:cut])
