"""Extrinsics from submission to finality, by the old methods and the new ones (ND-12 to ND-16,
ND-21).
"""

import pytest
from support.node.nodes import ALICE, Client, Running, served, transfer
from support.runtime.accounts import call

from pubsub_emulator.node.server.options import Build
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.ss58 import encode_address
from pubsub_emulator.runtime.framework.origin import Root

CHAINS = pytest.mark.parametrize("chain", [None, 2000])


@CHAINS
@served(finality=1)
async def test_a_watched_extrinsic_is_reported_in_old_and_new_protocols(
    node: Running, client: Client, chain: int | None
) -> None:
    raw, address = transfer(node, chain), encode_address(ALICE.account)
    old = await client.call("author_submitAndWatchExtrinsic", raw)
    assert await client.call("author_pendingExtrinsics") == [raw]
    assert await client.call("system_accountNextIndex", address) == 1
    new = await client.call("transactionWatch_v1_submitAndWatch", transfer(node, chain, nonce=1))
    await node.step(2)
    assert await client.call("author_pendingExtrinsics") == []
    block = await client.call("chain_getBlockHash", 3)
    assert raw in (await client.call("chain_getBlock", block))["block"]["extrinsics"]
    assert await client.settled(old) == ["ready", {"inBlock": block}, {"finalized": block}]
    assert await client.settled(new) == [
        {"event": "validated"},
        {"event": "bestChainBlockIncluded", "block": {"hash": block, "index": 2}},
        {"event": "finalized", "block": {"hash": block, "index": 2}},
    ]
    assert await client.call("author_unwatchExtrinsic", old) is False
    assert await client.call("account_nextIndex", address) == 2
    for bad in (raw, "0x00", "0x"):
        refused = await client.call("transactionWatch_v1_submitAndWatch", bad)
        assert (await client.event(refused))["event"] == "invalid"
    await client.refused("-32602", "transactionWatch_v1_submitAndWatch", "zz")


@served()
async def test_refusals_have_a_substrate_nodes_codes(node: Running, client: Client) -> None:
    raw = transfer(node, None)
    assert (
        await client.call("author_submitExtrinsic", raw)
        == f"0x{blake2_256(bytes.fromhex(raw[2:])).hex()}"
    )
    for bad, code in (
        (raw, 1013),
        (transfer(node, None, 6), 1014),
        ("0x00", 1001),
        (raw[:-2], 1001),
    ):
        await client.refused(code, "author_submitExtrinsic", bad)
    await node.step()
    refused = await client.refused("1010: Invalid Transaction", "author_submitExtrinsic", raw)
    assert refused.data == "Transaction is outdated"
    await client.refused("-32602", "system_accountNextIndex", "5Bad")


@served()
async def test_fees_are_told_beforehand(node: Running, client: Client) -> None:
    raw = transfer(node, None)
    info = await client.call("payment_queryInfo", raw)
    details = (await client.call("payment_queryFeeDetails", raw))["inclusionFee"]
    assert info["class"] == "normal"
    assert int(info["partialFee"]) == sum(int(part, 16) for part in details.values())
    await client.refused(2, "payment_queryInfo", "0x00")
    assert await client.call("system_dryRun", raw) == "0x0000"
    assert (await client.call("system_dryRun", transfer(node, None, 10**30))).startswith("0x0001")
    await client.refused(2, "system_dryRun", "0x00")


@served(build=Build.INSTANT)
async def test_an_extrinsic_that_is_ready_has_a_block_built(node: Running) -> None:
    for chain in (None, 1000):
        client = await node.connect(chain)
        name = await client.call("author_submitAndWatchExtrinsic", transfer(node, chain))
        events = [await client.event(name) for _ in range(3)]
        assert events[0] == "ready"
    assert node.server.timeline.newest.number <= 3


@served()
async def test_one_extrinsic_a_step_in_single_mode(node: Running, client: Client) -> None:
    for nonce in range(3):
        await client.call("author_submitExtrinsic", transfer(node, None, nonce=nonce))
    heads = await client.call("chain_subscribeNewHeads")
    await client.call("dev_setBlockBuildMode", "Instant")
    for _ in range(4):
        await client.event(heads)
    blocks = await client.call("chain_getBlockHash", [2, 3, 4])
    sizes = [
        len((await client.call("chain_getBlock", block))["block"]["extrinsics"]) for block in blocks
    ]
    assert sizes == [2, 2, 2]


@served(finality=5)
async def test_a_rewind_retracts_what_is_watched_and_it_waits_again(
    node: Running, client: Client
) -> None:
    """ND-8."""
    await node.step(2)
    old = await client.call("author_submitAndWatchExtrinsic", transfer(node, None))
    new = await client.call("transactionWatch_v1_submitAndWatch", transfer(node, None, nonce=1))
    await node.step()
    block = await client.call("chain_getBlockHash")
    await client.call("dev_setHead", -1)
    assert await client.settled(old) == ["ready", {"inBlock": block}, {"retracted": block}, "ready"]
    assert [event["event"] for event in await client.settled(new)] == [
        "validated",
        "bestChainBlockIncluded",
        "bestChainBlockIncluded",
        "validated",
    ]
    assert len(await client.call("author_pendingExtrinsics")) == 2
    await node.step()
    assert (await client.settled(old))[-1] == {"inBlock": await client.call("chain_getBlockHash")}


@served(2000)
async def test_transactions_of_a_new_block_are_taken_all_or_none(
    node: Running, client: Client
) -> None:
    good, bad = transfer(node, 2000), transfer(node, 2000, nonce=0, amount=7)
    await client.refused("1: Priority is too low", "dev_newBlock", {"transactions": [good, bad]})
    assert await client.call("author_pendingExtrinsics") == []
    block = await client.call("dev_newBlock", {"transactions": [good]})
    assert good in (await client.call("chain_getBlock", block))["block"]["extrinsics"]


@served()
async def test_a_broadcast_is_tried_with_each_block_until_it_is_stopped(
    node: Running, client: Client
) -> None:
    early = transfer(node, None, nonce=0)
    name = await client.call("transaction_v1_broadcast", early)
    invalid = [await client.call("transaction_v1_broadcast", "0x00") for _ in range(15)]
    assert None not in invalid
    assert await client.call("transaction_v1_broadcast", early) is None
    await node.step()
    assert early in (await client.call("chain_getBlock"))["block"]["extrinsics"]
    assert await client.call("transaction_v1_stop", name) is None
    await client.refused("-32602", "transaction_v1_stop", name)


@CHAINS
@served()
async def test_storage_is_set_by_root_on_either_kind_of_chain(
    node: Running, chain: int | None
) -> None:
    """ND-24: roots stay true, for the block itself has it."""
    client = await node.connect(chain)
    block = await client.call("dev_setStorage", [["0x1234", "0xabcd"]])
    assert await client.call("state_getStorage", "0x1234") == "0xabcd"
    assert block == await client.call("chain_getBlockHash")
    await client.call("dev_setStorage", [["0x1234", None]])
    assert await client.call("state_getStorage", "0x1234") is None
    account = {"nonce": 7, "consumers": 0, "providers": 1, "sufficients": 0}
    data = {"free": 77, "reserved": 0, "frozen": 0, "flags": 0}
    address = encode_address(bytes(31) + b"\x07")
    await client.call(
        "dev_setStorage", {"System": {"Account": [[[address], {**account, "data": data}]]}}
    )
    assert await client.call("system_accountNextIndex", address) == 7
    await client.refused(
        "1: child tries are not written",
        "dev_setStorage",
        [["0x" + b":child_storage:default:x".hex(), "0x00"]],
    )
    await client.refused(
        "1: this chain has no item System", "dev_setStorage", {"System": {"Nothing": 1}}
    )
    await node.step(2)


@CHAINS
@served()
async def test_roots_own_call_from_a_client_is_refused(
    node: Running, client: Client, chain: int | None
) -> None:
    """Scenario 38: what the emulator itself puts into blocks, bare, nobody else may."""
    net = node.server.live.network
    inner = call(net, chain, "System", "set_storage", [(b"\x12\x34", b"\x56")])
    bare = call(net, chain, "Utility", "dispatch_as", Root(), inner)
    before = (await client.call("chain_getHeader"))["stateRoot"]
    for version in (4, 5):
        raw = f"0x{encode_bytes(bytes((version,)) + bare.encoded).hex()}"
        refused = await client.refused(
            "1011: Unknown Transaction Validity", "author_submitExtrinsic", raw
        )
        assert refused.data == '"NoUnsignedValidator"'
    assert await client.call("author_pendingExtrinsics") == []
    assert (await client.call("chain_getHeader"))["stateRoot"] == before
    await node.step(3)
    assert await client.call("state_getStorage", "0x1234") is None
