"""Limits, slow and hostile clients: whatever one does ends at most its own connection (ND-2, ND-3,
ND-28 to ND-31).
"""

import asyncio
import json
import logging
import socket
import threading
import time
from contextlib import closing
from typing import Any

import aiohttp
import pytest
from support.node.nodes import ALICE, HANDSHAKE, Client, Running, served, serving, story
from support.runtime.accounts import call, signed

from pubsub_emulator.node.pool import MOST_EXTRINSIC
from pubsub_emulator.node.rpc import legacy_state
from pubsub_emulator.node.rpc.author import SHORT
from pubsub_emulator.node.rpc.dispatch import RequestLimits
from pubsub_emulator.node.rpc.legacy_state import MOST_ARGUMENTS
from pubsub_emulator.node.server.beside import LATE, Beside
from pubsub_emulator.node.server.connection import Connection
from pubsub_emulator.node.server.options import BadOption, Options, Serving
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.serving.listening import CannotListen

NUMBER = f"0x{system.NUMBER.key.hex()}"


async def answered(node: Running, text: str | bytes) -> Any:
    """What a message of any bytes is answered with; a second client is none the wiser."""
    witness = await node.connect()
    client = await node.connect()
    if isinstance(text, str):
        await client.socket.send_str(text)
    else:
        await client.socket.send_bytes(text)
    message = await client.message()
    assert await witness.call("system_chainType") == "Development"
    assert await client.call("system_chainType") == "Development"
    return message


def code(message: Any) -> int:
    found: int = message["error"]["code"]
    return found


@served()
async def test_hostile_json_is_answered_and_does_no_harm(node: Running) -> None:
    for text in (
        "",
        "{",
        "nonsense",
        "[1,",
        '{"a":NaN}',
        "[" * 100_000,
        '{"a":' * 70 + "1" + "}" * 70,
        "9" * 9999,
    ):
        assert code(await answered(node, text)) == -32700, text[:40]
    assert code(await answered(node, b"\xff\xfe")) == -32700
    deep = "[" * 62 + "]" * 62
    shallow = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "system_chain", "params": [json.loads(deep)]}
    )
    assert code(await answered(node, shallow)) == -32602
    quoted = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "system_name", "params": [], "x": "[" * 500}
    )
    assert (await answered(node, quoted))["result"]
    for request in (
        1,
        "x",
        None,
        [],
        {},
        {"id": 1},
        {"jsonrpc": "2.0", "id": [], "method": "a"},
        {"method": 1},
    ):
        assert code(await answered(node, json.dumps(request))) == -32600, request
    surrogate = await answered(node, '{"jsonrpc":"2.0","id":"\\ud800","method":"system_chain"}')
    assert surrogate["id"] == "\ud800"


@served()
async def test_a_notification_is_not_answered(node: Running, client: Client) -> None:
    await client.socket.send_str('{"jsonrpc":"2.0","method":"system_chain"}')
    assert await client.call("system_chainType") == "Development"
    async with node.http.post(
        node.http_url(), json={"jsonrpc": "2.0", "method": "system_chain"}
    ) as response:
        assert response.status == 204


@served(serving=Serving(request=RequestLimits(batch=5)))
async def test_batches_are_answered_in_order_up_to_their_limit(node: Running) -> None:
    one = {"jsonrpc": "2.0", "id": 1, "method": "chain_getBlockHash", "params": [0]}
    found = await node.post([one, {**one, "id": 2, "method": "nope"}, 7, {**one, "id": "x"}])
    assert [each["id"] for each in found] == [1, 2, None, "x"]
    assert code(await node.post([one] * 6)) == -32010
    assert code(await node.post([])) == -32600


@served(serving=Serving(request=RequestLimits(bytes=2000)))
async def test_what_is_too_big_is_refused_by_its_code(node: Running, client: Client) -> None:
    await client.socket.send_str(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": ["x" * 2500]})
    )
    assert code(await asyncio.wait_for(client.message(), 5)) == -32007
    await client.refused("-32008", "rpc_methods")
    assert (
        code(await node.post([{"jsonrpc": "2.0", "id": 1, "method": "chain_getBlock"}] * 9))
        == -32011
    )
    async with node.http.post(node.http_url(), json=["x" * 4000]) as response:
        assert response.status == 413
        assert code(await response.json()) == -32007
    assert await client.call("system_chainType") == "Development"


@served(serving=Serving(subscriptions=3, connections=3))
async def test_connections_and_nodes_have_limited_numbers_of_subscriptions(
    node: Running, client: Client
) -> None:
    names = [await client.call("state_subscribeStorage", [NUMBER]) for _ in range(3)]
    for method, params in (
        ("chain_subscribeNewHeads", ()),
        ("archive_v1_storageDiff", ("0x" + "00" * 32,)),
    ):
        await client.refused("-32006", method, *params)
    await client.call("state_unsubscribeStorage", names[0])
    await client.call("chain_subscribeNewHeads")
    await node.connect()
    third = await node.connect()
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await node.connect()
    assert refused.value.status == 503
    async with node.http.post(node.http_url(), json={}) as response:
        assert response.status == 503
    await third.socket.close()
    assert (await (await node.connect()).call("system_chainType")) == "Development"


@served()
async def test_a_defect_of_a_method_is_an_internal_error_and_logged(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:

    def broken(*_args: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(legacy_state, "_changes", broken)
    with caplog.at_level(logging.ERROR):
        await client.refused("-32603", "state_queryStorageAt", [NUMBER])
    assert "state_queryStorageAt failed" in caplog.text
    assert await client.call("system_chainType") == "Development"


# Slow clients


class Deaf:
    """A client that subscribes and then never reads: a raw socket with a small buffer."""

    def __init__(self, node: Running) -> None:
        self.raw = socket.socket()
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.raw.connect(("127.0.0.1", node.port))
        self.raw.sendall(HANDSHAKE + b"\r\n")

    def send(self, method: str, *params: Any) -> None:
        text = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        ).encode()
        assert len(text) < 126
        self.raw.sendall(bytes((0x81, 0x80 | len(text))) + bytes(4) + text)


async def deafen(node: Running, count: int) -> list[Connection]:
    """Wait for so many connections, and let the system buffer next to nothing of what is sent to
    them.
    """
    while len(node.server.connections) < count:  # noqa: ASYNC110  # the server has no such event
        await asyncio.sleep(0.01)
    found = list(node.server.connections)
    for each in found:
        transport = each.request.transport
        assert transport is not None
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        transport.set_write_buffer_limits(high=4096)
    return found


SMALL = Serving(queued=8, queued_bytes=1 << 20)


@served(serving=SMALL, history=64)
async def test_a_deaf_client_with_heads_keeps_its_connection_and_gets_the_newest(
    node: Running,
) -> None:
    deaf = Deaf(node)
    (slow,) = await deafen(node, 1)
    witness = await node.connect()
    for _ in range(12):
        deaf.send("chain_subscribeNewHeads")
    heads = await witness.call("chain_subscribeNewHeads")
    await node.step(60)
    assert len(await witness.settled(heads)) == 61
    assert slow in node.server.connections
    assert slow.waiting == 8
    deaf.raw.setblocking(False)
    seen = b""
    for _ in range(400):
        try:
            seen += deaf.raw.recv(1 << 16)
        except BlockingIOError:
            await asyncio.sleep(0.01)
        if b'"number":"0x3d"' in seen and not slow.waiting:
            break
    assert b'"number":"0x3d"' in seen
    deaf.raw.close()


@served(serving=SMALL, history=64)
async def test_a_deaf_client_with_a_follow_gets_stop_and_others_are_closed(
    node: Running,
) -> None:
    followed, delivered = Deaf(node), Deaf(node)
    await deafen(node, 2)
    witness = await node.connect()
    for _ in range(4):
        followed.send("chainHead_v1_follow", False)
    for _ in range(3):
        delivered.send("pubsub_subscribeCandidates")
    heads = await witness.call("chain_subscribeNewHeads")
    assert len(node.server.connections) == 3
    for _ in range(300):
        await node.step(10)
        await asyncio.sleep(0)
        follows = [
            sub for each in node.server.connections for sub in each.session.subscriptions.values()
        ]
        if len(node.server.connections) == 2 and len(follows) == 1:
            break
        await asyncio.sleep(0.05)  # a connection that is closed leaves with a turn of the loop
    assert len(node.server.connections) == 2
    assert not any(each.session.subscriptions for each in node.server.connections if each.waiting)
    assert [int(event["number"], 16) for event in await witness.settled(heads)] == list(
        range(1, node.server.timeline.newest.number + 1)
    )
    followed.raw.close()
    delivered.raw.close()


LONG = Serving(queued_bytes=1 << 20)


@served(serving=LONG)
async def test_a_deaf_client_that_asks_for_much_is_served_call_by_call(
    node: Running,
) -> None:
    """What waits for it is one answer, however many it asked for."""
    deaf = Deaf(node)
    (slow,) = await deafen(node, 1)
    witness = await node.connect()
    keys = await witness.call("state_getKeysPaged", "0x", 1000)
    sizes = {key: await witness.call("state_getStorageSize", key) or 0 for key in keys[:50]}
    longest = max(sizes, key=sizes.__getitem__)
    wanted = [longest] * (2_000_000 // (2 * sizes[longest] + 80))
    text = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "state_queryStorageAt", "params": [wanted]}
    ).encode()
    frame = bytes((0x81, 0xFF)) + len(text).to_bytes(8, "big") + bytes(4) + text
    for _ in range(8):
        await asyncio.to_thread(deaf.raw.settimeout, 0.2)
        try:
            await asyncio.to_thread(deaf.raw.sendall, frame)
        except TimeoutError:
            break
    for _ in range(20):
        assert await witness.call("system_chainType") == "Development"
        await asyncio.sleep(0.01)
    assert slow.waiting <= 1
    deaf.raw.close()


@served()
async def test_calls_that_compute_run_beside_the_loop_and_take_bounded_input(
    node: Running, monkeypatch: Any
) -> None:
    busy, witness = await node.connect(), await node.connect()
    release = threading.Event()
    entered = threading.Event()
    call = legacy_state.api.call

    def slow(block: Any, name: str, data: bytes) -> bytes:
        entered.set()
        assert release.wait(30)
        return call(block, name, data)

    monkeypatch.setattr(legacy_state.api, "call", slow)
    number = await busy.send("state_call", "Core_version", "0x")
    while not entered.is_set():
        assert await witness.call("system_chainType") == "Development"
    assert await witness.call("system_chainType") == "Development"
    release.set()
    assert (await busy.read())["id"] == number
    long = "0x" + "00" * (MOST_ARGUMENTS + 1)
    await witness.refused("4003", "state_call", "Core_version", long)
    extrinsic = "0x" + "00" * (MOST_EXTRINSIC + 1)
    for method in ("author_submitExtrinsic", "payment_queryInfo", "system_dryRun"):
        refused = await witness.refused(": ", method, extrinsic)
        assert str(MOST_EXTRINSIC) in f"{refused.message} {refused.data}"


@served()
async def test_a_long_extrinsic_is_checked_beside_the_loop_and_then_taken(
    node: Running, client: Client
) -> None:
    net = node.server.live.network
    raw = signed(net, None, call(net, None, "System", "remark", bytes(2 * SHORT)), ALICE)
    name = await client.call("author_submitExtrinsic", f"0x{raw.hex()}")
    await client.refused("1013", "author_submitExtrinsic", f"0x{raw.hex()}")
    assert name == "0x" + blake2_256(raw).hex()
    assert await client.call("author_pendingExtrinsics") == [f"0x{raw.hex()}"]
    await client.refused("1010", "author_submitExtrinsic", f"0x{raw[:-1].hex()}02")
    watched = await client.call("transactionWatch_v1_submitAndWatch", f"0x{raw[:-1].hex()}01")
    assert (await client.event(watched))["event"] == "invalid"


@served()
async def test_a_client_that_vanishes_leaves_nothing_behind(node: Running) -> None:
    for _ in range(5):
        client = await node.connect()
        await client.call("chainHead_v1_follow", True)
        await client.call("chain_subscribeNewHeads")
        transport = client.socket.get_extra_info("socket")
        assert transport is not None
        client.socket._response.close()  # without a word
    await node.step(3)
    for _ in range(100):
        if not node.server.connections:
            break
        await asyncio.sleep(0.02)
    assert not node.server.connections
    assert not node.server.node.sessions
    assert not any(node.server.timeline._pins[None].values())


@served()
async def test_a_step_goes_on_when_whoever_asked_for_it_is_gone(node: Running) -> None:
    """No step is lost (ND-31)."""
    client, witness = await node.connect(), await node.connect()
    heads = await witness.call("chain_subscribeNewHeads")
    await client.send("dev_newBlock", {"count": 5})
    client.socket._response.close()
    await asyncio.sleep(0.2)
    await witness.call("dev_newBlock")
    numbers = [int(event["number"], 16) for event in await witness.settled(heads)]
    assert numbers == list(range(1, node.server.live.network.number + 1))
    assert node.server.timeline.newest.number == node.server.live.network.number


@served(serving=Serving(silence=0.1))
async def test_a_silent_follow_hears_its_best_block_again(client: Client) -> None:
    """ND-23."""
    name = await client.call("chainHead_v1_follow", False)
    events = [await client.event(name) for _ in range(4)]
    assert [event["event"] for event in events] == ["initialized"] + ["bestBlockChanged"] * 3
    assert events[1] == events[2] == events[3]


# Steps that fail


@served()
async def test_a_step_that_fails_is_made_again_without_what_was_asked_for(
    node: Running, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    simulation = node.server.live.simulation
    step = type(simulation).step

    def fails_with_news(this: Any) -> Any:
        if this.network.parachains[1000].publishes:
            raise ZeroDivisionError("senseless")
        return step(this)

    monkeypatch.setattr(type(simulation), "step", fails_with_news)
    await client.call("pubsub_publish", 1000, "k", "0x01")
    with caplog.at_level(logging.CRITICAL):
        await client.refused("1: the step failed and was repeated without", "dev_newBlock")
    assert node.server.timeline.newest.number == 2
    await client.call("dev_newBlock")
    assert await client.call("pubsub_entry", 1000, "k") is None


@served()
async def test_a_network_that_cannot_step_is_read_and_heals_by_a_rewind(
    node: Running, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await node.step(3)
    simulation = node.server.live.simulation
    step = type(simulation).step

    def fails_late(this: Any) -> Any:
        if this.network.number >= 4:
            raise ZeroDivisionError("senseless")
        return step(this)

    monkeypatch.setattr(type(simulation), "step", fails_late)
    with caplog.at_level(logging.CRITICAL):
        for _ in range(2):
            await client.refused("-32603", "dev_newBlock")
    assert await client.call("state_getStorage", NUMBER) == "0x04000000"
    await client.call("dev_setHead", 2)
    await client.call("dev_newBlock")
    assert await client.call("state_getStorage", NUMBER) == "0x03000000"


# Who may connect


@served()
async def test_requests_are_let_in_by_host_origin_type_and_path(node: Running) -> None:
    url, body = node.http_url(), {"jsonrpc": "2.0", "id": 1, "method": "system_chainType"}

    async def status(method: str, path: str = "", **more: Any) -> int:
        async with node.http.request(method, url + path, **more) as response:
            return response.status

    assert await status("POST", json=body) == 200
    for evil in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert await status("POST", json=body, headers=evil) == 403
        for path in ("", "metrics", "explorer"):
            assert await status("GET", path, headers=evil) in {403, 404}, path
    assert await status("POST", data="{}", headers={"Content-Type": "text/plain"}) == 415
    assert await status("GET") == 200
    assert await status("PUT", json=body) == 405
    assert await status("POST", "7", json=body) == 404
    headers = {"Origin": "https://polkadot.js.org", "Access-Control-Request-Method": "POST"}
    async with node.http.options(url, headers=headers) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == "https://polkadot.js.org"
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await node.connect(headers={"Origin": "https://evil.example"})


@served()
async def test_a_page_of_another_port_of_this_machine_cannot_change_the_network(
    node: Running,
) -> None:
    """Such a page is whatever a user runs on localhost: a site under development, a notebook."""
    url = node.http_url()
    change = {"jsonrpc": "2.0", "id": 1, "method": "dev_newBlock", "params": [{"count": 1}]}
    own = node.http_url().rstrip("/")
    other = f"http://127.0.0.1:{node.port + 1}"
    before = (await (await node.connect()).call("chain_getHeader"))["number"]

    async def status(method: str, headers: dict[str, str], **more: Any) -> int:
        async with node.http.request(method, url, headers=headers, **more) as response:
            return response.status

    for origin in (other, "http://localhost:3000", f"http://localhost.:{node.port}", "null"):
        assert await status("POST", {"Origin": origin}, json=change) == 403
        asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        assert await status("OPTIONS", asks) == 403
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await node.connect(headers={"Origin": origin})
    assert (await (await node.connect()).call("chain_getHeader"))["number"] == before
    assert await status("POST", {"Origin": own}, json=change) == 200
    page = await node.connect(headers={"Origin": own})
    assert (await page.call("chain_getHeader"))["number"] != before


@served(port_per_chain=True)
async def test_each_parachain_may_have_a_port_of_its_own(node: Running) -> None:
    by_port = [
        place for place in node.server.places if place.url.endswith("/") and place.chain is not None
    ]
    assert [place.chain for place in by_port] == [1000, 2000]
    for place in by_port:
        async with node.http.ws_connect(place.url) as socket_:
            found = await Client(socket_).call("system_chain")
        assert found == f"node parachain {place.chain}"


@served()
async def test_a_port_in_use_is_one_clear_error(node: Running) -> None:
    with pytest.raises(CannotListen, match=f"127.0.0.1 port {node.port}: it is in use; port 0"):
        async with serving(port=node.port):
            pass


def test_development_methods_are_not_for_everybody() -> None:
    with pytest.raises(BadOption, match="--unsafe-external"):
        Options(host="0.0.0.0", dev=True).check()  # noqa: S104  # refused
    Options(host="0.0.0.0", dev=True, unsafe_external=True).check()  # noqa: S104  # only checked


# Calls that compute leave the event loop its time


@story
async def test_a_late_loop_gets_as_much_time_as_the_call_took() -> None:
    """The next call waits for as long as the one before it computed."""
    beside = Beside(threads=1)
    computed, second = threading.Event(), threading.Event()

    def compute() -> str:
        time.sleep(0.5)
        computed.set()
        return "done"

    with closing(beside):
        first = asyncio.create_task(beside.run(compute))
        await asyncio.sleep(0)
        after = asyncio.create_task(beside.run(second.set))
        computed.wait()
        time.sleep(2 * LATE)  # noqa: ASYNC251  # the loop has other work
        assert await first == "done"
        await asyncio.sleep(0.05)
        assert not second.is_set()
        await after
        assert second.is_set()


@story
async def test_a_call_that_failed_gives_its_place_back() -> None:
    """As many failures as there are threads, and one more call."""
    with closing(Beside(threads=1)) as beside:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await beside.run(lambda: 1 // 0)
        assert await beside.run(lambda: 7) == 7
