"""`pubsub_*`: what the network publishes, delivers and refuses, alike on every path (ND-25)."""

from dataclasses import replace
from types import SimpleNamespace

from support.node.nodes import Client, Running, served, serving, story

from pubsub_emulator.node.chain import journal
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec
from pubsub_emulator.runtime.parachain.block import Candidate

NOWHERE = "0x" + "11" * 32


@served(2000)
async def test_publishers_and_entries_are_those_of_the_relay_state(
    node: Running, client: Client
) -> None:
    zero = await (await node.connect()).call("chain_getBlockHash", 0)
    await client.call("pubsub_publish", 1000, "price", "0x2a", 9)
    await node.step(3)
    best = await (await node.connect()).call("chain_getBlockHash")
    found = await client.call("pubsub_publishers")
    trie = node.server.live.network.relay.state.children[derive_child_key(ParaId(1000))]
    assert (found["at"], found["number"]) == (best, 4)
    assert found["publishers"] == [
        {
            "para": 1000,
            "system": True,
            "manager": None,
            "deposit": None,
            "keys": len(trie),
            "bytes": sum(32 + len(PublishedEntry.decode(value).value) for _, value in trie.items()),
            "childRoot": f"0x{trie.root().hex()}",
        }
    ]
    key = key_from_data(b"price")
    raw = trie.get(key)
    assert raw is not None
    assert await client.call("pubsub_entry", 1000, "price") == {
        "at": best,
        "publisher": 1000,
        "key": f"0x{key.hex()}",
        "value": "0x2a",
        "ttl": 9,
        "whenInserted": 3,
        "entryHash": f"0x{blake2_256(raw).hex()}",
        "ttlState": {"ValidFor": 8},
    }
    assert await client.call("pubsub_entry", 1000, f"0x{key.hex()}", zero) is None
    assert await client.call("pubsub_entry", 1000, "price", NOWHERE) is None
    assert await client.call("pubsub_publishers", NOWHERE) is None
    assert (await client.call("pubsub_publishers", zero))["publishers"] == []


@served()
async def test_subscriptions_say_what_was_delivered_last(node: Running, client: Client) -> None:
    await node.step(4)
    found = await client.call("pubsub_subscriptions", 2000)
    assert (found["specVersion"], found["cache"], found["cursor"]) == (1, "slots", None)
    (item,) = found["items"]
    assert item["publisher"] == 1000
    assert item["disabled"] is None
    child = node.server.live.network.relay.state.child_root(derive_child_key(ParaId(1000)))
    assert item["processedRoot"] == f"0x{child.hex()}" if child else None
    assert [row["ttlState"] for row in item["keys"]] == ["Infinite"] * 4
    early = await client.call(
        "pubsub_subscriptions", 2000, await client.call("chain_getBlockHash", 1)
    )
    assert early["number"] == 1
    assert [row["entryHash"] for row in early["items"][0]["keys"]] == [None] * 4
    para = await node.connect(2000)
    by_para = await client.call(
        "pubsub_subscriptions", 2000, await para.call("chain_getBlockHash", 1)
    )
    assert by_para == early
    assert await client.call("pubsub_subscriptions", 7) is None
    assert await client.call("pubsub_subscriptions", 2000, NOWHERE) is None


@served()
async def test_new_subscriptions_are_a_new_version_and_several_may_be_under_way(
    node: Running, client: Client
) -> None:
    wanted = [{"publisher": 1000, "keys": ["a", "b"]}]
    assert await client.call("pubsub_setSubscriptions", 2000, wanted) == {"specVersion": 2}
    assert await client.call("pubsub_setSubscriptions", 2000, []) == {"specVersion": 3}
    await node.step(3)
    assert (await client.call("pubsub_subscriptions", 2000))["specVersion"] == 3
    assert await client.call("pubsub_setSubscriptions", 2000, wanted) == {"specVersion": 4}
    for bad, code in (
        ([{"publisher": 7, "keys": []}], 1),
        ([{"publisher": 1000}], -32602),
        ("x", -32602),
    ):
        await client.refused(code, "pubsub_setSubscriptions", 2000, bad)


@served()
async def test_the_ledger_of_a_block_adds_up(node: Running, client: Client) -> None:
    await node.step(2)
    para = await node.connect(2000)
    found = await client.call("pubsub_ledger", 2000)
    assert found["block"] == await para.call("chain_getBlockHash")
    assert found["used"] + found["unused"] == found["budget"]
    (mine,) = found["publishers"]
    parts = (
        found["staticBytes"] + mine["topPathBytes"] + mine["childNodeBytes"] + mine["valueBytes"]
    )
    assert parts == found["proofBytes"]
    assert (await client.call("pubsub_ledger", 2000, await para.call("chain_getBlockHash", 1)))[
        "number"
    ] == 1
    assert await client.call("pubsub_ledger", 2000, NOWHERE) is None
    assert (
        await client.call("pubsub_ledger", 2000, await para.call("chain_getBlockHash", 0)) is None
    )
    assert await client.call("pubsub_ledger", 7) is None


@served()
async def test_a_cheat_is_refused_with_evidence_and_honesty_returns(
    node: Running, client: Client
) -> None:
    judged = await client.call("pubsub_subscribeCandidates", 2000)
    assert await client.call("pubsub_cheat", 2000, ["omit-node"]) == {"collator": 1, "collators": 2}
    await node.step(2)
    found = await client.event(judged)
    assert (found["status"], found["verdict"], found["strategy"]) == (
        "rejected",
        "OmittedBelowBudget",
        "omit-node",
    )
    whole = await client.call("pubsub_candidate", found["hash"])
    assert found.items() <= whole.items()
    assert whole["evidence"][0]["verdict"] == "OmittedBelowBudget"
    assert f"0x{Candidate.decode(bytes.fromhex(whole['bytes'][2:])).hash().hex()}" == found["hash"]
    listed = await client.call("pubsub_candidates", 2000, found["includedAt"])
    assert [each["status"] for each in listed] == ["rejected", "included"]
    relay = await client.call("chain_getBlockHash", found["includedAt"])
    assert await client.call("pubsub_candidates", 2000, relay) == listed
    assert await client.call("pubsub_honest", 2000) == {"collators": 2}
    await node.step(2)
    assert {event["status"] for event in (await client.settled(judged))[-2:]} == {"included"}
    for params in ((2000, ["no-such"]), (2000, []), (2000, ["omit-node"], 3), (7, ["omit-node"])):
        await client.refused(1, "pubsub_cheat", *params)
    assert await client.call("pubsub_candidate", NOWHERE) is None
    assert await client.call("pubsub_candidates", 2000, 99) is None


@served(1000)
async def test_deliveries_pass_a_filter(node: Running, client: Client) -> None:
    key = "0x" + (await client.call("pubsub_subscriptions", 2000))["items"][0]["keys"][0]["key"][2:]
    every = await client.call("pubsub_subscribeDeliveries")
    one = await client.call(
        "pubsub_subscribeDeliveries", {"para": 2000, "publisher": 1000, "key": key}
    )
    none = await client.call("pubsub_subscribeDeliveries", {"publisher": 5})
    await node.step(3)
    events = await client.settled(every)
    assert len(events) == 4
    assert await client.settled(one) == [event for event in events if event["key"] == key]
    assert await client.settled(none) == []
    assert {(event["kind"], event["ttlState"], event["failed"]) for event in events} == {
        ("updated", "Infinite", False)
    }
    assert await client.call("pubsub_unsubscribeDeliveries", one) is True
    assert await client.call("pubsub_unsubscribeCandidates", every) is False
    await client.refused("-32602", "pubsub_subscribeDeliveries", {"colour": 1})


@served()
async def test_what_cannot_be_published_is_code_1_and_leaves_nothing_behind(
    node: Running, client: Client
) -> None:
    await client.call("pubsub_publish", 1000, "fine", "0x01")
    await client.refused("1: there is no parachain 7", "pubsub_publish", 7, "k", "0x")
    await client.refused(
        "1: a message with this publish alone has",
        "pubsub_publish",
        1000,
        "k",
        "0x" + "00" * 70_000,
    )
    await node.step(3)
    assert (await client.call("pubsub_entry", 1000, "fine"))["value"] == "0x01"
    assert await client.call("pubsub_entry", 1000, "k") is None


@served()
async def test_recorded_deliveries_of_a_block_equal_those_reported_live(
    node: Running, client: Client
) -> None:
    name = await client.call("pubsub_subscribeDeliveries")
    await node.step(4)
    told = await client.settled(name)
    assert told
    asked = [await client.call("pubsub_deliveries", None, at) for at in range(1, 6)]
    assert [each for found in asked for each in found] == told
    assert (
        await client.call("pubsub_deliveries", 2000, told[0]["includedAt"])
        == asked[told[0]["includedAt"] - 1]
    )
    assert await client.call("pubsub_deliveries", 1000, told[0]["includedAt"]) == []
    relay = await client.call("chain_getBlockHash", told[0]["includedAt"])
    assert await client.call("pubsub_deliveries", None, relay) == asked[told[0]["includedAt"] - 1]
    every = await client.call("pubsub_candidates", None, 1)
    assert {each["para"] for each in every} == {1000, 2000}
    for nothing in ((None, 99), (7, 2), (None, NOWHERE)):
        assert await client.call("pubsub_deliveries", *nothing) is None
        assert await client.call("pubsub_candidates", *nothing) is None


@served()
async def test_collators_are_told_with_what_they_try(client: Client) -> None:
    await client.call("pubsub_cheat", 2000, ["omit-node", "stale-root"], 2, 0.5)
    first, second = await client.call("pubsub_collators", 2000)
    assert (first["collator"], first["strategies"]) == (1, [])
    assert (second["collator"], second["strategies"], second["rate"]) == (
        2,
        ["omit-node", "stale-root"],
        0.5,
    )
    assert await client.call("pubsub_collators", 7) is None


@story
async def test_keys_are_deleted_and_delivered_again_as_governance_orders() -> None:
    """A journal holds both: what was asked for is an action."""
    lines: list[str] = []
    written = SimpleNamespace(
        action=lambda action: lines.append(journal.action_line(action)), step=lambda _moment: None
    )
    async with serving(journal=written) as node:  # type: ignore[arg-type]  # a journal in memory
        client = await node.connect()
        await node.step(3)
        deliveries = await client.call("pubsub_subscribeDeliveries")
        await client.call("pubsub_order", 2000, "redeliver", 1000)
        await node.step(4)
        assert [each["kind"] for each in await client.settled(deliveries)] == ["updated"] * 4
        keys = [
            row["key"]
            for row in (await client.call("pubsub_subscriptions", 2000))["items"][0]["keys"]
        ]
        await client.call("pubsub_delete", 1000, keys[:1])
        await node.step(3)
        (removed,) = await client.settled(deliveries)
        assert (removed["kind"], removed["key"], removed["value"]) == ("removed", keys[0], None)
        assert sum('"delete"' in line for line in lines) == 1
        assert sum('"downward"' in line for line in lines) == 1
        for method, params, code in (
            ("pubsub_order", (2000, "nonsense", 1000), -32602),
            ("pubsub_order", (7, "redeliver", 1000), 1),
            ("pubsub_delete", (1000, []), 1),
            ("pubsub_delete", (7, ["a"]), 1),
        ):
            await client.refused(code, method, *params)


@served()
async def test_a_runtime_follows_the_newest_one_and_waits_for_its_block(
    node: Running, client: Client
) -> None:
    newest = await client.call("pubsub_runtime", 2000)
    assert newest["inForce"] is True
    spec = decode_spec(bytes.fromhex(newest["code"][2:]))
    newer = replace(spec, spec_version=spec.spec_version + 1, max_cache_bytes=5_000_000)
    code = "0x" + newer.encode().hex()
    assert await client.call("pubsub_setRuntime", 2000, code) == {"specVersion": newer.spec_version}
    assert await client.call("pubsub_runtime", 2000) == {"code": code, "inForce": False}
    for wrong, why in (
        (newer, "does not follow"),
        (
            replace(newer, spec_version=newer.spec_version + 1, para_id=ParaId(1000)),
            "must have the same id",
        ),
        (
            replace(newer, spec_version=newer.spec_version + 1, accounts=False),
            "cannot change whether the chain has accounts",
        ),
        (
            replace(newer, spec_version=newer.spec_version + 1, handler="gone"),
            "unknown handler 'gone'",
        ),
    ):
        await client.refused(f"^1: .*{why}", "pubsub_setRuntime", 2000, "0x" + wrong.encode().hex())
    await client.refused(r"^1: ", "pubsub_setRuntime", 2000, "0x00")
    await node.step(3)
    assert await client.call("pubsub_runtime", 2000) == {"code": code, "inForce": True}


@served()
async def test_storage_is_set_with_the_next_relay_block(node: Running, client: Client) -> None:
    await client.call("pubsub_setStorage", None, [["0x1234", "0xabcd"]])
    await client.call("pubsub_setStorage", 2000, [["0x5678", "0x01"]])
    assert await client.call("state_getStorage", "0x1234") is None
    await node.step(3)
    assert await client.call("state_getStorage", "0x1234") == "0xabcd"
    assert await (await node.connect(2000)).call("state_getStorage", "0x5678") == "0x01"


@served()
async def test_a_relay_block_tells_what_was_built_refused_and_failed(
    node: Running, client: Client
) -> None:
    await client.call("pubsub_cheat", 2000, ["omit-node"], None, 1)
    await client.call("pubsub_publish", 1000, "big", "0x" + "00" * 3000)
    await client.call("pubsub_publish", 1000, "1000/0", "0x01")
    await node.step(6)
    blocks = [await client.call("pubsub_block", number) for number in range(2, 8)]
    moments = [node.server.timeline.moment(number) for number in range(2, 8)]
    for block, moment in zip(blocks, moments, strict=True):
        assert moment is not None
        assert block["hash"] == f"0x{moment.relay.hash.hex()}"
        assert [each["hash"] for each in block["blocks"]] == [
            f"0x{record.candidate.hash().hex()}" for record in moment.records
        ]
    refused = [each for block in blocks for each in block["blocks"] if each["verdict"] is not None]
    assert refused
    assert all(
        each["evidence"] and each["strategy"] == "omit-node" and not each["delivered"]
        for each in refused
    )
    [failure] = [each for block in blocks for each in block["failures"]]
    assert (failure["para"], failure["instruction"]) == (1000, 1)
    assert "ValueTooLong" in failure["why"] or "2048" in failure["why"]
