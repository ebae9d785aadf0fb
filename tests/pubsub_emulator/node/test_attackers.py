"""What strangers try below JSON-RPC, and requests that ask for too much: their own connection ends
at most (ND-31).
"""

import asyncio
import gzip
import json
import logging
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from support.node.nodes import HANDSHAKE, Client, Running, served, serving, story

from pubsub_emulator.node.chain.block import Moment
from pubsub_emulator.node.rpc.dispatch import RequestLimits
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.node.rpc.session import MOST_KEYS
from pubsub_emulator.node.server.options import Serving
from pubsub_emulator.runtime.framework import system

NUMBER = f"0x{system.NUMBER.key.hex()}"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def raw(node: Running) -> Stream:
    """A socket that has said nothing yet."""
    return await asyncio.open_connection("127.0.0.1", node.port)


async def said(node: Running, data: bytes) -> bytes:
    """All that the node says to some bytes, up to the end of the connection."""
    reader, writer = await raw(node)
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def frame(
    opcode: int, data: bytes, *, last: bool = True, reserved: int = 0, masked: bool = True
) -> bytes:
    """A frame of a client, masked with zeros; `data` of less than 126 bytes."""
    head = bytes(((0x80 if last else 0) | reserved | opcode, (0x80 if masked else 0) | len(data)))
    return head + (bytes(4) if masked else b"") + data


async def is_well(client: Client) -> bool:
    """Whether a client is served as ever."""
    return bool(await client.call("system_chainType") == "Development")


# Frames


@story
async def test_frames_that_are_none_end_their_own_connection() -> None:
    huge = b"\x81\xff" + (1 << 62).to_bytes(8, "big") + bytes(4) + b"abc"
    negative = b"\x81\xff" + ((1 << 63) + 5).to_bytes(8, "big") + bytes(4) + b"abc"
    frames = {
        "a compressed one, which nobody agreed to": frame(
            1, b"\xaa\x56\x2a\x2e\x29\xca\xcc\x4b", reserved=0x40
        ),
        "an opcode that does not exist": frame(3, b""),
        "a ping of more than 125 bytes": b"\x89\xfe" + (200).to_bytes(2, "big") + bytes(204),
        "a ping in pieces": frame(9, b"", last=False),
        "four exbibytes": huge,
        "a negative length": negative,
        "the rest of a message that was not begun": frame(0, b"abc"),
        "a message within a message": frame(1, b"a", last=False) + frame(1, b"b"),
        "text that is no UTF-8": frame(1, b"\xff\xfe"),
    }
    async with serving() as node:
        witness = await node.connect()
        for name, data in frames.items():
            head, _, rest = (await said(node, HANDSHAKE + b"\r\n" + data)).partition(b"\r\n\r\n")
            assert b"101 Switching" in head, name
            assert rest[:1] == b"\x88", name
            assert 1002 <= int.from_bytes(rest[2:4], "big") <= 1009, name
            assert await is_well(witness)
        while len(node.server.connections) > 1:  # noqa: ASYNC110  # the server has no such event
            await asyncio.sleep(0.01)


@served()
async def test_compression_is_not_agreed_to(node: Running) -> None:
    """Ten bytes that become a gibibyte are ten bytes (ND-1)."""
    offered = HANDSHAKE + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n" + frame(8, b"")
    head = (await said(node, offered)).lower()
    assert b"101 switching" in head
    assert b"extensions" not in head
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    body = gzip.compress(b" " * 50_000_000)
    async with node.http.post(node.http_url(), data=body, headers=headers) as response:
        assert response.status == 415
    assert await is_well(await node.connect())


@served()
async def test_endless_empty_pieces_and_pings_without_a_reader_harm_nobody(
    node: Running,
) -> None:
    witness = await node.connect()
    streams = [await raw(node) for _ in range(2)]
    for (_, writer), data in zip(
        streams, (frame(0, b"", last=False), frame(9, b"x" * 125)), strict=True
    ):
        first = frame(1, b"", last=False) if data[0] == 0 else b""
        writer.write(HANDSHAKE + b"\r\n" + first + data * 20_000)
    for _ in range(20):
        assert await is_well(witness)
        await node.step()
    for _, writer in streams:
        writer.transport.abort()


# Sockets


@served(serving=Serving(sockets=20))
async def test_more_sockets_than_there_is_room_for_are_told_so(node: Running) -> None:
    witness = await node.connect()
    silent = [await raw(node) for _ in range(30)]
    turned_away = [await asyncio.wait_for(reader.read(), 20) for reader, _ in silent[-8:]]
    assert all(each.startswith(b"HTTP/1.1 503 ") for each in turned_away)
    assert await is_well(witness)
    for _, writer in silent:
        writer.transport.abort()
    newcomer = None
    while newcomer is None:
        try:
            newcomer = await node.connect()
        except aiohttp.WSServerHandshakeError:
            await asyncio.sleep(0.01)  # the sockets are leaving
    assert await is_well(newcomer)


@served(serving=Serving(patience=0.3))
async def test_sockets_that_say_nothing_or_never_finish_are_closed(node: Running) -> None:
    """Slow loris: no head, half a head, half a handshake, half a body."""
    witness = await node.connect()
    post = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
        b" 99\r\n\r\n{"
    )
    found = await asyncio.gather(
        *(said(node, data) for data in (b"", b"GET / HT", HANDSHAKE, post))
    )
    assert found[:3] == [b"", b"", b""]
    assert found[3].startswith(b"HTTP/1.1 408 ")
    assert await is_well(witness)


@served(serving=Serving(connections=10))
async def test_a_burst_of_handshakes_does_not_pass_the_limit_of_connections(node: Running) -> None:

    async def join() -> tuple[bytes, Stream]:
        stream = await raw(node)
        stream[1].write(HANDSHAKE + b"\r\n")
        return (await stream[0].readexactly(12))[-3:], stream

    joined = await asyncio.gather(*(join() for _ in range(40)))
    assert Counter(status for status, _ in joined) == {b"101": 10, b"503": 30}
    for _, (_, writer) in joined:
        writer.transport.abort()


@served()
async def test_what_is_no_http_is_answered_and_fills_no_log(
    node: Running, caplog: pytest.LogCaptureFixture
) -> None:
    for data in (
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding:"
            b" chunked\r\n\r\n0\r\n\r\n"
        ),
    ):
        with caplog.at_level(logging.INFO):
            assert b" 400 " in (await said(node, data))[:20], data[:40]
    assert caplog.text == ""


# Pages


@served()
async def test_a_page_that_takes_long_is_drawn_once_for_all(
    node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def explore(node: RpcNode, moments: Sequence[Moment]) -> str:
        drawn.append(f"{node.network.number} of {len(moments)}")
        return drawn[-1]

    monkeypatch.setattr(node.server, "_pages", SimpleNamespace(explore=explore))

    async def text() -> str:
        async with node.http.get(f"{node.http_url()}explorer") as response:
            return await response.text()

    assert set(await asyncio.gather(*(text() for _ in range(20)))) == {"1 of 2"}
    await node.step()
    assert await text() == "2 of 3"
    assert drawn == ["1 of 2", "2 of 3"]


# Requests that ask for too much


@served()
async def test_a_request_of_too_many_values_is_refused_before_it_is_read(
    node: Running,
) -> None:
    witness, client = await node.connect(), await node.connect()
    for params in (["0x"] * 200_000, [[[]] * 70_000], [{"a": 1}] * 100_000):
        request = {"jsonrpc": "2.0", "id": 1, "method": "state_getReadProof", "params": params}
        await client.socket.send_str(json.dumps(request))
        answer = await client.message()
        assert answer["error"]["code"] == -32007
        assert answer["error"]["data"] == "Exceeded max limit of 131072 values"
        assert await is_well(witness)
    assert await is_well(client)


@served()
async def test_a_block_number_has_no_more_digits_than_a_hash(client: Client) -> None:
    assert await client.call("chain_getBlockHash", "0x" + "1".zfill(64)) == await client.call(
        "chain_getBlockHash", 1
    )
    for method in ("chain_getBlockHash", "pubsub_block"):
        await client.refused("-32602", method, "0x" + "1".zfill(65))


@served()
async def test_many_keys_are_answered_as_few_are(node: Running, client: Client) -> None:
    """What is read piece by piece is the same to the byte, those that nobody has included."""
    await node.step(3)
    keys = await client.call("state_getKeysPaged", "0x", 1000)
    absent = [f"0x{at:08x}" for at in range(2_000)]
    some = await client.call("state_queryStorageAt", keys)
    many = await client.call("state_queryStorageAt", [*keys, *absent])
    assert many[0]["changes"] == [*some[0]["changes"], *([key, None] for key in absent)]
    short = await client.call("state_getReadProof", keys)
    long = await client.call("state_getReadProof", keys * 30)
    assert long == short
    child = "0x3a6368696c645f73746f726167653a64656661756c743a707562737562e8030000"
    inner = await client.call("childstate_getKeys", child, "0x")
    assert inner
    entries = await client.call("childstate_getStorageEntries", child, inner)
    assert await client.call("childstate_getStorageEntries", child, inner * 500) == entries * 500
    proof = await client.call("state_getChildReadProof", child, inner)
    assert await client.call("state_getChildReadProof", child, inner * 500) == proof


@served()
async def test_storage_subscriptions_of_a_connection_hold_so_many_keys(
    node: Running, client: Client
) -> None:
    half = [f"0x{at:08x}" for at in range(MOST_KEYS // 2)]
    name = await client.call("state_subscribeStorage", half)
    await client.call("state_subscribeStorage", half)
    await client.refused("-32006", "state_subscribeStorage", [NUMBER])
    await client.call("state_unsubscribeStorage", name)
    number = await client.call("state_subscribeStorage", [NUMBER])
    await node.step()
    assert (await client.settled(number))[-1]["changes"] == [[NUMBER, "0x02000000"]]


@served(serving=Serving(queued_bytes=4000))
async def test_an_event_that_fits_no_queue_ends_its_own_connection(node: Running) -> None:
    """It was tried again and again for ever once, and nobody was served any more."""
    witness, greedy = await node.connect(), await node.connect()
    await greedy.send("state_subscribeStorage", [f"0x{at:08x}" for at in range(1000)])
    with pytest.raises(ConnectionError, match="1009"):
        _ = [await greedy.message() for _ in range(100)]
    await node.step(2)
    assert await is_well(witness)


@served(serving=Serving(queued_bytes=4000))
async def test_events_that_fit_no_queue_together_come_one_after_another(
    node: Running, client: Client
) -> None:
    keys = [NUMBER, *(f"0x{at:08x}" for at in range(100))]
    names = [await client.call("state_subscribeStorage", keys) for _ in range(8)]
    await node.step(5)
    while len(client.events) < 8 or any(
        each[-1]["changes"][0][1] != "0x06000000" for each in client.events.values()
    ):
        await is_well(client)
    assert set(client.events) == set(names)


# Numbers and texts as they are


@served(serving=Serving(request=RequestLimits()))
async def test_numbers_beyond_64_bits_and_halves_of_surrogates_are_what_they_are(
    client: Client,
) -> None:
    for marker in (10**40, -(10**20), 2**64, "\ud800", "é", "\x00"):
        request = {"jsonrpc": "2.0", "id": marker, "method": "system_chainType"}
        await client.socket.send_str(json.dumps(request))
        assert (await client.message())["id"] == marker
        await client.socket.send_str(json.dumps([request, request]))
        answers: Any = await client.message()
        assert [each["id"] for each in answers] == [marker, marker]
    for marker in ("1.5", "1e2", "1e400", "true", "[]", "{}", "NaN"):
        await client.socket.send_str(
            f'{{"jsonrpc":"2.0","id":{marker},"method":"system_chainType"}}'
        )
        assert (await client.message())["error"]["code"] in {-32600, -32700}, marker
    issued = 10**24 + 1
    await client.call("dev_setStorage", {"Balances": {"TotalIssuance": issued}})
    key = "0xc2261276cc9d1f8598ea4b6a74b15c2f57c875e4cff74148e4628f264b974c80"
    assert await client.call("state_getStorage", key) == "0x" + issued.to_bytes(16, "little").hex()
    twice = '{"jsonrpc":"2.0","id":1,"id":2,"method":"nope","method":"system_chainType"}'
    await client.socket.send_str(twice)
    assert await client.message() == {"jsonrpc": "2.0", "id": 2, "result": "Development"}


# The end


@story
async def test_a_node_that_ends_while_clients_build_ends_without_a_complaint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The step under way is finished, what waits for its turn is refused, and nobody is left to say
    so in a log.
    """
    with caplog.at_level(logging.WARNING):
        async with serving() as node:
            clients = [await node.connect() for _ in range(4)]
            for each in clients:
                await each.send("dev_newBlock", {"count": 100})
                await each.send("pubsub_publish", 1000, "k", "0x00")
            while node.server.timeline.newest.number < 3:  # noqa: ASYNC110  # the server has no such event
                await asyncio.sleep(0.01)
            await node.server.producer.close()
            built = node.server.timeline.newest.number
            for method, params in (
                ("dev_newBlock", ()),
                ("dev_setHead", (1,)),
                ("pubsub_publish", (1000, "k", "0x00")),
            ):
                await (await node.connect()).refused("-32603", method, *params)
            assert node.server.timeline.newest.number == built < 100
    assert caplog.text == ""
