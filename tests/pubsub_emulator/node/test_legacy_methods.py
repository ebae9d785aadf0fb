"""The methods that polkadot-js, substrate-interface and others use, against the states that they
speak of (ND-21).
"""

from support.node.nodes import Client, Running, served

from pubsub_emulator.emulator.scenario.model import published_key
from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.trie import read_child_proof, read_proof

KEY = published_key(ParaId(1000), 0)
CHILD = f"0x{publisher_root_key(ParaId(1000)).hex()}"
NOWHERE = "0x" + "11" * 32


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


@served()
async def test_heads_blocks_and_hashes_are_those_of_the_network(
    node: Running, client: Client
) -> None:
    await node.step(4)
    chain = node.server.live.network.relay
    assert await client.call("chain_getBlockHash") == f"0x{chain.header.hash().hex()}"
    assert await client.call("chain_getFinalizedHead") == f"0x{chain.header.hash().hex()}"
    header = await client.call("chain_getHeader")
    assert header["number"] == "0x5"
    assert header["stateRoot"] == f"0x{chain.header.state_root.hex()}"
    assert header["parentHash"] == await client.call("chain_getBlockHash", 4)
    zero, one, missing = await client.call("chain_getBlockHash", [0, "0x1", 99])
    assert (zero, missing) == (await client.call("chain_getHead", 0), None)
    block = (await client.call("chain_getBlock", one))["block"]
    assert block["header"]["parentHash"] == zero
    assert len(block["extrinsics"]) == 1
    assert await client.call("chain_getHeader", NOWHERE) is None
    assert await client.call("chain_getBlock", NOWHERE) is None


@served(2000, finality=2)
async def test_a_parachain_is_best_where_it_is_included_and_final_with_it(
    node: Running, client: Client
) -> None:
    """ND-7."""
    await node.step(3)
    views = node.server.timeline.views
    best, final = views[ParaId(2000)].best, views[ParaId(2000)].final
    assert best.relay_number == views[RELAY].best.number
    assert final.relay_number == views[RELAY].best.number - 2
    assert await client.call("chain_getBlockHash") == f"0x{best.hash.hex()}"
    assert await client.call("chain_getFinalizedHead") == f"0x{final.hash.hex()}"


@served()
async def test_storage_is_read_at_any_kept_block(node: Running, client: Client) -> None:
    await node.step(3)
    key = f"0x{system.NUMBER.key.hex()}"
    first = await client.call("chain_getBlockHash", 1)
    assert await client.call("state_getStorage", key) == "0x04000000"
    assert await client.call("state_getStorageAt", key, first) == "0x01000000"
    assert (
        await client.call("state_getStorageHash", key)
        == f"0x{blake2_256(bytes((4, 0, 0, 0))).hex()}"
    )
    assert await client.call("state_getStorageSize", key) == 4
    assert await client.call("state_getStorage", "0x00") is None
    assert await client.call("state_getStorageHash", "0x00") is None
    assert await client.call("state_getStorageSize", "0x00") is None
    assert await client.call("state_queryStorageAt", [key, "0x00"], first) == [
        {"block": first, "changes": [[key, "0x01000000"], ["0x00", None]]}
    ]


@served()
async def test_keys_come_in_pages_in_order(node: Running, client: Client) -> None:
    every = await client.call("state_getKeys", "")
    paged: list[str] = []
    while page := await client.call("state_getKeysPaged", "0x", 7, paged[-1] if paged else None):
        paged += page
    assert paged == every == sorted(every)
    assert every == [f"0x{key.hex()}" for key in node.server.live.network.relay.state.top.keys()]  # noqa: SIM118  # a trie is no dict
    await client.refused(
        r"4002: count exceeds maximum value. value: 1001, max: 1000",
        "state_getKeysPaged",
        "0x",
        1001,
    )


@served()
async def test_a_range_of_blocks_gives_what_changed_in_each(node: Running, client: Client) -> None:
    await node.step(3)
    key, still = f"0x{system.NUMBER.key.hex()}", "0x00"
    first, last = await client.call("chain_getBlockHash", [2, 4])
    found = await client.call("state_queryStorage", [key, still], first, last)
    assert [each["changes"] for each in found] == [
        [[key, "0x02000000"], [still, None]],
        [[key, "0x03000000"]],
        [[key, "0x04000000"]],
    ]
    await client.refused(
        r"4001: Cannot resolve a block range", "state_queryStorage", [key], last, first
    )


@served()
async def test_a_read_proof_proves_values_and_absences(client: Client) -> None:
    key = system.NUMBER.key
    found = await client.call("state_getReadProof", [f"0x{key.hex()}", "0x00"])
    header = await client.call("chain_getHeader", found["at"])
    opened = read_proof(
        raw(header["stateRoot"]), map(raw, found["proof"]), [key, b"\x00"], exact=True
    )
    assert opened == {key: bytes((1, 0, 0, 0)), b"\x00": None}


@served()
async def test_child_tries_are_read_and_proven_by_their_prefixed_key(
    node: Running, client: Client
) -> None:
    await node.step(3)
    trie = node.server.live.network.relay.state.children[derive_child_key(ParaId(1000))]
    keys = [f"0x{key.hex()}" for key in trie.keys()]  # noqa: SIM118  # a trie is no dict
    assert await client.call("childstate_getKeys", CHILD, "0x") == keys
    assert await client.call("childstate_getKeysPaged", CHILD, "0x", 2, keys[0]) == keys[1:3]
    value = await client.call("childstate_getStorage", CHILD, keys[0])
    assert PublishedEntry.decode(raw(value)).when_inserted == 2
    assert (
        await client.call("childstate_getStorageHash", CHILD, keys[0])
        == f"0x{blake2_256(raw(value)).hex()}"
    )
    assert await client.call("childstate_getStorageSize", CHILD, keys[0]) == len(raw(value))
    assert await client.call("childstate_getStorageEntries", CHILD, [keys[0], "0x00"]) == [
        value,
        None,
    ]
    found = await client.call("state_getChildReadProof", CHILD, [keys[0]])
    root = raw((await client.call("chain_getHeader", found["at"]))["stateRoot"])
    opened = read_child_proof(
        root, map(raw, found["proof"]), derive_child_key(ParaId(1000)), [raw(keys[0])], exact=True
    )
    assert opened == {raw(keys[0]): raw(value)}
    for method in ("childstate_getStorage", "childstate_getStorageSize"):
        await client.refused(
            "4003: Client error: Invalid child storage key", method, "0x00", keys[0]
        )


@served(history=3)
async def test_an_unknown_block_is_4003_and_a_forgotten_one_says_so(
    node: Running, client: Client
) -> None:
    first = await client.call("chain_getBlockHash", 1)
    zero = await client.call("chain_getBlockHash", 0)
    await node.step(5)
    await client.refused(
        f"4003: Client error: UnknownBlock: State already discarded for {first}",
        "state_getStorage",
        "0x00",
        first,
    )
    unknown = f"4003: Client error: UnknownBlock: Header was not found in the database: {NOWHERE}"
    await client.refused(unknown, "state_getStorage", "0x00", NOWHERE)
    four = await client.call("chain_getBlockHash", 4)
    assert await client.call("chain_getBlockHash", [1, 3, 4]) == [None, None, four]
    assert await client.call("chain_getHeader", zero) is not None


@served(finality=1)
async def test_head_subscriptions_give_the_present_head_then_each_in_order(
    node: Running, client: Client
) -> None:
    heads = await client.call("chain_subscribeNewHeads")
    every = await client.call("chain_subscribeAllHeads")
    final = await client.call("chain_subscribeFinalisedHeads")
    await node.step(3)
    await client.call("system_chain")
    numbers = {
        name: [int(event["number"], 16) for event in client.events[name]]
        for name in (heads, every, final)
    }
    assert numbers == {heads: [2, 3, 4, 5], every: [2, 3, 4, 5], final: [1, 2, 3, 4]}
    assert await client.call("chain_unsubscribeAllHeads", heads) is False
    assert await client.call("chain_unsubscribeNewHead", heads) is True
    assert await client.call("chain_unsubscribeNewHead", heads) is False
    await node.step()
    assert [event["number"] for event in await client.settled(heads)] == [
        "0x2",
        "0x3",
        "0x4",
        "0x5",
    ]


@served()
async def test_storage_subscriptions_give_all_keys_then_what_each_block_changes(
    node: Running, client: Client
) -> None:
    key, still = f"0x{system.NUMBER.key.hex()}", "0x00"
    name = await client.call("state_subscribeStorage", [key, still])
    quiet = await client.call("state_subscribeStorage", [still])
    await node.step(2)
    events = await client.settled(name)
    assert [event["changes"] for event in events] == [
        [[key, "0x01000000"], [still, None]],
        [[key, "0x02000000"]],
        [[key, "0x03000000"]],
    ]
    assert events[2]["block"] == await client.call("chain_getBlockHash", 3)
    assert len(await client.settled(quiet)) == 1


@served(2000)
async def test_the_runtime_version_is_told_again_when_it_changes(
    node: Running, client: Client
) -> None:
    name = await client.call("state_subscribeRuntimeVersion")
    before = await client.call("state_getRuntimeVersion")
    await client.call("pubsub_setSubscriptions", 2000, [{"publisher": 1000, "keys": ["another"]}])
    await node.step(3)
    versions = [event["specVersion"] for event in await client.settled(name)]
    assert versions == [before["specVersion"], before["specVersion"] + 1]
    assert (await client.call("chain_getRuntimeVersion"))["specVersion"] == versions[-1]


@served()
async def test_parameters_come_by_place_or_by_name_and_are_checked(
    node: Running, client: Client
) -> None:
    key = f"0x{system.NUMBER.key.hex()}"
    answer = await node.post(
        {"jsonrpc": "2.0", "id": "a", "method": "state_getStorage", "params": {"key": key}}
    )
    assert answer == {"jsonrpc": "2.0", "id": "a", "result": "0x01000000"}
    best = (await client.call("chain_getBlockHash")).removeprefix("0x")
    assert (
        await client.call("state_getStorage", key.removeprefix("0x"), best) == "0x01000000"
    )  # or without the prefix
    version = await client.call("state_call", "Core_version", "")
    assert await client.call("state_call", "Core_version", "0x") == version
    for bad in (
        [],
        [1],
        ["0x0"],
        ["0x 00"],
        ["0x0x"],
        ["zz"],
        [key, "0x00"],
        [key, None, 3],
        {"kee": key},
        "x",
    ):
        found = await node.post(
            {"jsonrpc": "2.0", "id": 1, "method": "state_getStorage", "params": bad}
        )
        assert found["error"]["code"] == -32602, (bad, found)
    await client.refused("-32601", "state_nothing")


@served()
async def test_the_node_says_what_it_is(node: Running, client: Client) -> None:
    names = (await client.call("rpc_methods"))["methods"]
    assert names == sorted(names)
    assert {"state_getStorageAt", "dev_newBlock", "chain_subscribeNewHead"} <= set(names)
    assert await client.call("system_health") == {
        "peers": 0,
        "isSyncing": False,
        "shouldHavePeers": False,
    }
    assert await client.call("system_chainType") == "Development"
    assert (await client.call("system_properties"))["tokenSymbol"] == "UNIT"
    by_post = (await node.post({"jsonrpc": "2.0", "id": 1, "method": "rpc_methods"}))["result"][
        "methods"
    ]
    assert "chain_subscribeNewHead" not in by_post
    await client.refused(
        "Exported method Core_nothing is not found", "state_call", "Core_nothing", "0x"
    )
