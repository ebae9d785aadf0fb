"""The new JSON-RPC methods, `chainHead_v1`, `archive_v1`, `chainSpec_v1`, as their specification
has them (ND-22).
"""

import json
from collections.abc import Coroutine
from typing import Any

import pytest
from support.node.nodes import Client, Running, served

from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.node.rpc import chain_head
from pubsub_emulator.node.rpc.dispatch import RpcAnswer
from pubsub_emulator.node.rpc.session import RpcSession, RpcSubscription
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.storage import State

NOWHERE = "0x" + "11" * 32
CHILD = f"0x{derive_child_key(ParaId(1000)).hex()}"
NUMBER = f"0x{system.NUMBER.key.hex()}"


def hexed(data: bytes) -> str:
    return f"0x{data.hex()}"


def newest(node: Running) -> State:
    return node.server.live.network.relay.state


async def followed(client: Client, *, runtime: bool = True) -> tuple[str, list[Any]]:
    name = await client.call("chainHead_v1_follow", runtime)
    return name, await client.settled(name)


# chainHead


@served()
async def test_a_follow_begins_with_final_blocks_and_tells_of_each_new_one(
    node: Running, client: Client
) -> None:
    name, events = await followed(client)
    zero, one = await client.call("chain_getBlockHash", [0, 1])
    assert [event["event"] for event in events] == ["initialized", "bestBlockChanged"]
    assert events[0]["finalizedBlockHashes"] == [zero, one]
    assert events[0]["finalizedBlockRuntime"]["spec"]["specName"] == "pubsub-relay"
    assert isinstance(events[0]["finalizedBlockRuntime"]["spec"]["apis"], dict)
    await node.step()
    two = await client.call("chain_getBlockHash", 2)
    assert await client.settled(name) == [
        {"event": "newBlock", "blockHash": two, "parentBlockHash": one, "newRuntime": None},
        {"event": "bestBlockChanged", "bestBlockHash": two},
        {"event": "finalized", "finalizedBlockHashes": [two], "prunedBlockHashes": []},
    ]


@served(finality=2)
async def test_a_follow_tells_of_blocks_not_final_and_no_runtime_unasked(
    node: Running, client: Client
) -> None:
    await node.step(20)
    _, events = await followed(client, runtime=False)
    assert [event["event"] for event in events] == [
        "initialized",
        "newBlock",
        "newBlock",
        "bestBlockChanged",
    ]
    assert len(events[0]["finalizedBlockHashes"]) == 16
    assert "finalizedBlockRuntime" not in events[0]
    assert "newRuntime" not in events[1]
    assert events[1]["parentBlockHash"] == events[0]["finalizedBlockHashes"][-1]


@served(2000)
async def test_a_new_runtime_is_reported_with_the_block_that_has_it(
    node: Running, client: Client
) -> None:
    name, _ = await followed(client)
    await client.call("pubsub_setSubscriptions", 2000, [])
    await node.step(3)
    runtimes = [
        event["newRuntime"] for event in await client.settled(name) if event["event"] == "newBlock"
    ]
    assert [each and each["spec"]["specVersion"] for each in runtimes] == [None, 2, None]


@served(history=3)
async def test_pinned_blocks_outlive_the_window_and_go_when_unpinned(
    node: Running, client: Client
) -> None:
    """ND-6."""
    name, events = await followed(client)
    first = events[0]["finalizedBlockHashes"][1]
    await node.step(6)
    header = await client.call("chainHead_v1_header", name, first)
    assert blake2_256(bytes.fromhex(header[2:])).hex() == first[2:]
    assert await client.call("state_getStorage", NUMBER, first) == "0x01000000"
    await client.call("chainHead_v1_unpin", name, first)
    await client.refused("-32801", "chainHead_v1_header", name, first)
    await client.refused("4003", "state_getStorage", NUMBER, first)


@served()
async def test_unpinning_is_all_or_nothing(client: Client) -> None:
    name, events = await followed(client)
    zero, one = events[0]["finalizedBlockHashes"]
    await client.refused("-32804", "chainHead_v1_unpin", name, [zero, zero])
    await client.refused("-32801", "chainHead_v1_unpin", name, [zero, NOWHERE])
    assert await client.call("chainHead_v1_unpin", name, [zero, one]) is None
    assert await client.call("chainHead_v1_unpin", "dead", zero) is None


@served()
async def test_operations_answer_with_their_id_first(client: Client) -> None:
    name, events = await followed(client)
    block = events[0]["finalizedBlockHashes"][1]
    started = await client.call("chainHead_v1_body", name, block)
    assert started["result"] == "started"
    assert await client.event(name) == {
        "event": "operationBodyDone",
        "operationId": started["operationId"],
        "value": (await client.call("chain_getBlock", block))["block"]["extrinsics"],
    }
    items = [
        {"key": NUMBER, "type": "value"},
        {"key": NUMBER, "type": "hash"},
        {"key": "0x00", "type": "value"},
        {"key": "0x", "type": "closestDescendantMerkleValue"},
    ]
    started = await client.call("chainHead_v1_storage", name, block, items, None)
    assert started["discardedItems"] == 0
    found = await client.event(name)
    root = (await client.call("chain_getHeader", block))["stateRoot"]
    assert found["items"] == [
        {"key": NUMBER, "value": "0x01000000"},
        {"key": NUMBER, "hash": hexed(blake2_256(bytes((1, 0, 0, 0))))},
        {"key": "0x", "closestDescendantMerkleValue": root},
    ]
    assert (await client.event(name))["event"] == "operationStorageDone"
    started = await client.call("chainHead_v1_call", name, block, "Core_nothing", "0x")
    failed = await client.event(name)
    assert failed["event"] == "operationError"
    assert "Core_nothing" in failed["error"]


@served()
async def test_listings_come_in_pages_that_wait_to_be_continued(
    node: Running, client: Client
) -> None:
    for at in range(300):
        await client.call("pubsub_publish", 1000, f"key {at}", "0x00")
    await node.step(7)
    name, events = await followed(client)
    block = events[-1]["bestBlockHash"]
    items = [{"key": "0x", "type": "descendantsHashes"}]
    started = await client.call("chainHead_v1_storage", name, block, items, CHILD)
    first = await client.event(name)
    assert len(first["items"]) == 256
    assert (await client.event(name))["event"] == "operationWaitingForContinue"
    await client.refused("-32801", "chainHead_v1_body", name, NOWHERE)
    assert await client.settled(name) == []
    await client.call("chainHead_v1_continue", name, started["operationId"])
    rest = await client.event(name)
    assert (await client.event(name))["event"] == "operationStorageDone"
    trie = newest(node).children[derive_child_key(ParaId(1000))]
    assert first["items"] + rest["items"] == [
        {"key": hexed(key), "hash": hexed(blake2_256(value))} for key, value in trie.items()
    ]
    again = await client.call("chainHead_v1_storage", name, block, items, CHILD)
    await client.event(name)
    await client.event(name)
    await client.call("chainHead_v1_stopOperation", name, again["operationId"])
    assert await client.call("chainHead_v1_continue", name, again["operationId"]) is None
    assert await client.settled(name) == []


@served()
async def test_a_follow_has_sixteen_operations_and_a_connection_four_follows(
    client: Client,
) -> None:
    name, events = await followed(client, runtime=False)
    block = events[-1]["bestBlockHash"]
    await client.refused("-32802", "chainHead_v1_call", name, block, "Core_version", "0x")
    items = [{"key": NUMBER, "type": "value"}] * 20
    assert (await client.call("chainHead_v1_storage", name, block, items))["discardedItems"] == 4
    for _ in range(3):
        await client.call("chainHead_v1_follow", False)
    await client.refused("-32800", "chainHead_v1_follow", False)
    assert await client.call("chainHead_v1_unfollow", name) is None
    assert await client.call("chainHead_v1_storage", name, block, items) == {
        "result": "limitReached"
    }
    assert await client.call("chainHead_v1_body", name, block) == {"result": "limitReached"}
    assert await client.call("chainHead_v1_header", name, block) is None
    await client.call("chainHead_v1_follow", False)


class Paper:
    """An outlet that writes down what is sent, and runs nothing that is spawned."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def event(self, _subscription: RpcSubscription, text: str) -> None:
        self.sent.append(text)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        work.close()

    async def room(self) -> None:
        raise NotImplementedError


@served()
async def test_an_operation_that_waits_for_nothing_cannot_be_continued(node: Running) -> None:
    paper = Paper()
    session = RpcSession("x", paper)

    def call(method: str, *params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = node.server.dispatcher.handle(json.dumps(request), RELAY, session)
        assert isinstance(answer, RpcAnswer)
        session.release(answer.opened or [])
        return json.loads(answer.text or "")

    name = call("chainHead_v1_follow", False)["result"]
    block = hexed(node.server.timeline.views[RELAY].best.hash)
    operation = call("chainHead_v1_body", name, block)["result"]["operationId"]
    assert call("chainHead_v1_continue", name, operation)["error"]["code"] == -32803
    assert call("chainHead_v1_continue", name, "another")["result"] is None
    assert len(paper.sent) == 2
    session.close()


@served()
async def test_a_follow_ends_at_too_many_pins(
    node: Running, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chain_head.MOST_PINS == 512
    monkeypatch.setattr(chain_head, "MOST_PINS", 12)
    name, _ = await followed(client, runtime=False)
    await node.step(12)
    events = await client.settled(name)
    assert events[-1] == {"event": "stop"}
    assert len([event for event in events if event["event"] == "newBlock"]) == 11
    assert await client.call("chainHead_v1_header", name, NOWHERE) is None


async def _listed(client: Client, name: str, *params: Any) -> list[Any]:
    """All items of a storage operation that needs one page."""
    await client.call("chainHead_v1_storage", name, *params)
    items: list[Any] = []
    while (event := await client.event(name))["event"] != "operationStorageDone":
        items += event["items"]
    return items


@served()
async def test_a_child_trie_with_the_prefix_is_another_one(node: Running, client: Client) -> None:
    """UP-20, as `get_storage_non_queryable_key` in sc-rpc-spec-v2's tests."""
    await node.step(3)
    name, events = await followed(client)
    block = events[-1]["bestBlockHash"]
    trie = newest(node).children[derive_child_key(ParaId(1000))]
    key = hexed(next(trie.keys()))
    prefixed = hexed(publisher_root_key(ParaId(1000)))
    for kind in ("value", "hash", "closestDescendantMerkleValue", "descendantsValues"):
        items = [{"key": key, "type": kind}]
        assert len(await _listed(client, name, block, items, CHILD)) == 1
        assert await _listed(client, name, block, items, prefixed) == []
        opened = await client.call("archive_v1_storage", block, items, prefixed)
        assert (await client.event(opened))["event"] == "storageDone"
    items = [{"returnType": "hash", "childTrieKey": prefixed, "key": "0x"}]
    assert await diff(
        client, block, items, hexed(node.server.live.network.relay.blocks[0].header.hash())
    ) == [{"event": "storageDiffDone"}]


@served()
async def test_a_listing_of_chain_head_has_no_start_key(node: Running, client: Client) -> None:
    await node.step(3)
    name, events = await followed(client)
    block = events[-1]["bestBlockHash"]
    whole = await _listed(client, name, block, [{"key": "0x", "type": "descendantsHashes"}], CHILD)
    assert len(whole) == 4
    for start in (whole[1]["key"], "0x", "no digits"):
        items = [{"key": "0x", "type": "descendantsHashes", "paginationStartKey": start}]
        assert await _listed(client, name, block, items, CHILD) == whole
    items = [{"key": NUMBER, "type": "value", "paginationStartKey": NUMBER}]
    assert len(await _listed(client, name, block, items)) == 1
    bad = [{"key": "0x", "type": "descendantsHashes", "paginationStartKey": 7}]
    await client.refused("-32602", "chainHead_v1_storage", name, block, bad, CHILD)


# archive


@served(finality=1)
async def test_the_archive_knows_blocks_by_hash_and_height(node: Running, client: Client) -> None:
    await node.step(2)
    best = node.server.timeline.views[RELAY].best
    assert await client.call("archive_v1_finalizedHeight") == best.number - 1
    assert await client.call("archive_v1_genesisHash") == await client.call("chain_getBlockHash", 0)
    assert await client.call("archive_v1_hashByHeight", best.number) == [hexed(best.hash)]
    assert await client.call("archive_v1_hashByHeight", 99) == []
    assert await client.call("archive_v1_header", hexed(best.hash)) == hexed(best.header.encode())
    assert await client.call("archive_v1_body", hexed(best.hash)) == [
        hexed(each) for each in best.body
    ]
    failed = await client.call("archive_v1_call", hexed(best.hash), "Core_nothing", "0x")
    assert failed["success"] is False
    for method, more in (("header", ()), ("body", ()), ("call", ("Core_version", "0x"))):
        assert await client.call(f"archive_v1_{method}", NOWHERE, *more) is None


@served()
async def test_archive_storage_comes_as_events_and_ends(node: Running, client: Client) -> None:
    await node.step(3)
    block = await client.call("chain_getBlockHash")
    key = next(newest(node).children[derive_child_key(ParaId(1000))].keys())
    items = [
        {"key": hexed(key), "type": "value"},
        {"key": "0x", "type": "descendantsHashes", "paginationStartKey": hexed(key)},
    ]
    name = await client.call("archive_v1_storage", block, items, CHILD)
    events = []
    while not events or events[-1]["event"] == "storage":
        events.append(await client.event(name))
    assert [event["event"] for event in events] == ["storage"] * 4 + ["storageDone"]
    assert events[0]["childTrieKey"] == CHILD
    assert [event["key"] for event in events[1:4]] == sorted(event["key"] for event in events[1:4])
    assert hexed(key) not in [event["key"] for event in events[1:4]]
    lost = await client.call("archive_v1_storage", NOWHERE, items)
    assert (await client.event(lost))["event"] == "storageError"
    for bad in (
        {"key": "0x", "type": "all"},
        {"key": "0x", "type": "value", "paginationStartKey": "0x"},
    ):
        await client.refused("-32602", "archive_v1_storage", block, [bad])


async def diff(client: Client, *params: Any) -> list[Any]:
    name = await client.call("archive_v1_storageDiff", *params)
    events = []
    while not events or events[-1]["event"] == "storageDiff":
        events.append(await client.event(name))
    return events


@served()
async def test_a_storage_difference_is_the_states_difference(node: Running, client: Client) -> None:
    await node.step(2)
    relay = node.server.live.network.relay
    two, three = relay.block(2), relay.block(3)
    assert two is not None
    assert three is not None
    block = hexed(three.header.hash())
    events = await diff(client, block)
    assert events.pop() == {"event": "storageDiffDone"}
    expected = list(two.state.top.differences(three.state.top))
    assert [event["key"] for event in events] == [hexed(key) for key, _, _ in expected]
    kinds = [
        "added" if was is None else "deleted" if now is None else "modified"
        for _, was, now in expected
    ]
    assert [event["type"] for event in events] == kinds
    assert [event.get("value") for event in events] == [
        None if now is None else hexed(now) for _, _, now in expected
    ]
    root = hexed(publisher_root_key(ParaId(1000)))
    assert any(
        event["key"] == root
        for event in await diff(client, block, None, hexed(relay.blocks[0].header.hash()))
    )
    items = [{"returnType": "hash", "childTrieKey": CHILD, "key": "0x"}]
    child = await diff(client, hexed(two.header.hash()), items)
    assert [event["type"] for event in child[:-1]] == ["added"] * 4
    assert all("hash" in event and event["childTrieKey"] == CHILD for event in child[:-1])


@served()
async def test_a_storage_difference_to_what_is_no_ancestor_is_an_error_event(
    node: Running, client: Client
) -> None:
    await node.step(2)
    two, three = await client.call("chain_getBlockHash", [2, 3])
    for params in ((two, None, three), (NOWHERE,), (three, None, NOWHERE)):
        assert [event["event"] for event in await diff(client, *params)] == ["storageDiffError"]
    assert await client.call("archive_v1_stopStorageDiff", "gone") is None


@served(2000)
async def test_the_chain_spec_names_the_chain(client: Client) -> None:
    assert await client.call("chainSpec_v1_chainName") == await client.call("system_chain")
    assert await client.call("chainSpec_v1_genesisHash") == await client.call(
        "chain_getBlockHash", 0
    )
    assert (await client.call("chainSpec_v1_properties"))["ss58Format"] == 42
