"""`dev_dryRun` and `dev_runBlock`: what would happen is what then happens, and nothing of it stays
(ND-24).
"""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.node.nodes import ALICE, BOB, Client, Running, served, transfer
from support.runtime.accounts import call

from pubsub_emulator.explorer.live import difference_page
from pubsub_emulator.node.types.delta import delta
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.ss58 import encode_address
from pubsub_emulator.runtime.parachain.governance import transact
from pubsub_emulator.xcm import Publish, encode

CHAINS = pytest.mark.parametrize("chain", [None, 2000], ids=["relay", "parachain"])
TO = encode_address(BOB.account)


@CHAINS
@served()
async def test_a_dry_run_tells_all_and_changes_nothing(
    node: Running, client: Client, chain: int | None
) -> None:
    node.server.node.draw = difference_page
    raw = transfer(node, chain, 777)
    before = await client.call("chain_getBlockHash")
    told = await client.call("dev_dryRun", {"extrinsic": raw})
    rows = await client.call("dev_dryRun", {"extrinsic": raw, "raw": True})
    page = await client.call("dev_dryRun", {"extrinsic": raw, "html": True})
    assert await client.call("chain_getBlockHash") == before
    assert await client.call("author_pendingExtrinsics") == []
    block = await client.call("dev_newBlock", {"transactions": [raw]})
    accounts = {
        key: value
        for key, value in rows
        if key.startswith("0x26aa394eea5630e07c48ae0c9558cef7b99d880e")
    }
    assert len(accounts) == 2
    for key, value in accounts.items():
        assert await client.call("state_getStorage", key, block) == value
    old, new = (told[side]["system"]["account"][TO]["data"]["free"] for side in ("old", "new"))
    assert int(new) == int(old) + 777
    assert told["delta"]["system"]["account"][TO] == {"data": {"free": [old, new]}}
    assert len(told["new"]["system"]["events"]) == 4  # fee, transfer, fee told, success
    assert "<script" not in page
    assert str(new) in page
    assert await client.call("dev_dryRun", {"extrinsic": raw, "at": before}) == told


@CHAINS
@served()
async def test_an_unsigned_call_is_tried_in_somebodys_name(
    node: Running, client: Client, chain: int | None
) -> None:
    what = call(
        node.server.live.network, chain, "Balances", "transfer_keep_alive", BOB.account, 777
    )
    address = encode_address(ALICE.account)
    unsigned = {"call": f"0x{what.encoded.hex()}", "address": address}
    told = await client.call("dev_dryRun", {"extrinsic": unsigned})
    assert told == await client.call("dev_dryRun", {"extrinsic": transfer(node, chain, 777)})
    await client.refused("1: ", "dev_dryRun", {"extrinsic": transfer(node, chain, nonce=9)})
    bad = transfer(node, chain)
    await client.refused(
        "1: ",
        "dev_dryRun",
        {"extrinsic": f"{bad[:120]}{'0' if bad[120] != '0' else '1'}{bad[121:]}"},
    )
    await client.refused("1: ", "dev_dryRun", {"extrinsic": {"call": "0xffff", "address": address}})
    for wrong in ({}, {"extrinsic": bad, "dmp": [{"msg": "0x00"}]}):
        await client.refused("1: one of extrinsic, ump, dmp and hrmp", "dev_dryRun", wrong)
    await client.refused(
        "1: this node draws no pages", "dev_dryRun", {"extrinsic": bad, "html": True}
    )
    await client.refused("-32602", "dev_dryRun", {"extrinsic": bad, "open": True})


@served()
async def test_messages_are_tried_on_a_branch_of_the_network(node: Running) -> None:
    relay, para = await node.connect(), await node.connect(2000)
    await node.step(2)
    heads = [await each.call("chain_getBlockHash") for each in (relay, para)]
    entry = key_from_data(b"tried")
    published = await relay.call(
        "dev_dryRun", {"ump": {"1000": [f"0x{encode((Publish(entry, b'7', 0),)).hex()}"]}}
    )
    counted = published["new"]["broadcaster"]["publishedKeys"]["1000"]
    assert counted == published["old"]["broadcaster"]["publishedKeys"]["1000"] + 1
    write = transact(bytes.fromhex("0004" + "04" + "0812340456"))  # set_storage([(1234, 56)])
    written = await para.call(
        "dev_dryRun", {"dmp": [{"sentAt": 1, "msg": f"0x{write.hex()}"}], "raw": True}
    )
    assert ["0x1234", "0x56"] in written
    assert [await each.call("chain_getBlockHash") for each in (relay, para)] == heads
    assert await relay.call("pubsub_entry", 1000, f"0x{entry.hex()}") is None
    await node.step()
    assert await para.call("state_getStorage", "0x1234") is None
    await para.refused(
        "1: the messages did not leave their senders",
        "dev_dryRun",
        {"hrmp": {"1000": [{"sentAt": 1, "data": "0x00"}]}},
    )
    await para.refused("1: ump goes to the relay chain", "dev_dryRun", {"ump": {"1000": ["0x00"]}})
    await relay.refused(
        "1: dmp and hrmp go to a parachain", "dev_dryRun", {"dmp": [{"msg": "0x00"}]}
    )


@CHAINS
@served()
async def test_a_block_that_is_run_again_has_the_same_state(
    node: Running, client: Client, chain: int | None
) -> None:
    await client.call("dev_newBlock", {"transactions": [transfer(node, chain)]})
    await client.call("dev_setStorage", [["0x1234", "0xab"]])
    best = int((await client.call("chain_getHeader"))["number"], 16)
    for number in range(1, best + 1):
        name = await client.call("chain_getBlockHash", number)
        block = (await client.call("chain_getBlock", name))["block"]
        found = await client.call(
            "dev_runBlock", {"block": block, "includeParsed": True, "includeBlockDetails": True}
        )
        assert found["stateRoot"] == block["header"]["stateRoot"]
        phases = [each["phase"] for each in found["phases"]]
        assert phases == ["Initialization", *range(len(block["extrinsics"])), "Finalization"]
        told: dict[str, str | None] = {}
        for phase in found["phases"]:
            told.update((row["raw"]["key"], row["raw"]["value"]) for row in phase["storageDiff"])
        for key, value in told.items():
            assert await client.call("state_getStorage", key, name) == value
        details = found["blockDetails"]
        assert len(details["extrinsics"]) == len(block["extrinsics"])
        assert all(each["success"] for each in details["extrinsics"])
        assert {"section": "system", "method": "number", "key": [], "value": number} in [
            row.get("parsed") for row in found["phases"][0]["storageDiff"]
        ]
    signers = [each["signer"] for each in details["extrinsics"]]
    assert signers == [None] * len(signers)


@CHAINS
@served()
async def test_a_block_that_cannot_be_run_says_why(
    node: Running, client: Client, chain: int | None
) -> None:
    await client.call("dev_newBlock", {"transactions": [transfer(node, chain)]})
    block = (await client.call("chain_getBlock"))["block"]
    header = block["header"]
    await client.refused(
        r"1: block .* does not follow",
        "dev_runBlock",
        {"block": {**block, "header": {**header, "number": "0x63"}}},
    )
    await client.refused(
        "4003",
        "dev_runBlock",
        {"block": {**block, "header": {**header, "parentHash": "0x" + 64 * "1"}}},
    )
    twice = {**block, "extrinsics": [*block["extrinsics"], block["extrinsics"][-1]]}
    await client.refused("1: InvalidTransaction", "dev_runBlock", {"block": twice})
    await client.refused("1: ", "dev_runBlock", {"block": {**block, "extrinsics": ["0x0405ff"]}})
    await client.refused("-32602", "dev_runBlock", {"block": {"header": header}})
    fewer = await client.call(
        "dev_runBlock", {"block": {**block, "extrinsics": block["extrinsics"][:1]}}
    )
    assert fewer["stateRoot"] != header["stateRoot"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("xyz", min_size=1, max_size=1), inner)
    ),
    max_leaves=12,
)


def patched(old: Any, change: Any) -> Any:
    """What jsondiffpatch makes of a value and a delta."""
    if change is None:
        return old
    if isinstance(change, list):
        return change[-1]
    if change.get("_t") != "a":
        out = dict(old)
        for name, each in change.items():
            if isinstance(each, list) and len(each) == 3:
                assert out.pop(name) == each[0]
            elif isinstance(each, list):
                assert len(each) == 1 or out[name] == each[0]
                out[name] = each[-1]
            else:
                out[name] = patched(out[name], each)
        return out
    items = list(old)
    for name in sorted(
        (name for name in change if name != "_t" and name[0] == "_"), key=lambda n: -int(n[1:])
    ):
        assert items.pop(int(name[1:])) == change[name][0]
    whole = [name for name in change if name[0] != "_" and isinstance(change[name], list)]
    for name in sorted(whole, key=int):
        items.insert(int(name), change[name][0])
    for name in change:
        if name[0] != "_" and name not in whole:
            items[int(name)] = patched(items[int(name)], change[name])
    return items


@given(JSON, JSON)
def test_a_delta_leads_from_one_value_to_the_other(old: Any, new: Any) -> None:
    found = delta(old, new)
    assert patched(deepcopy(old), found) == new
    assert (found is None) == (repr(old) == repr(new) or (old == new and not _mixes(old, new)))


def _mixes(old: Any, new: Any) -> bool:
    """Whether two equal values differ where JSON tells true from 1."""
    if isinstance(old, dict):
        return any(_mixes(old[name], new[name]) for name in old)
    if isinstance(old, list):
        return any(map(_mixes, old, new))
    return isinstance(old, bool) != isinstance(new, bool)


def test_a_page_of_a_dry_run_escapes_what_is_stored() -> None:
    shown = {
        "delta": {
            "a<b": ["<script>", {"x": 1}],
            "list": {"_t": "a", "_0": ["gone", 0, 0], "1": ["new"]},
        }
    }
    page = difference_page("<title>", shown)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<del><code>gone</code></del>" in page
    assert difference_page("t", {"delta": None}).count("Nothing would change") == 1
