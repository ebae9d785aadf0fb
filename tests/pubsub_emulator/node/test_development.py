"""`dev_*`: blocks on request, time, rewinds and snapshots; the network goes back whole (ND-8,
ND-24).
"""

import pytest
from support.node.nodes import Client, Running, served, serving, story

from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.node.rpc import pubsub_branches
from pubsub_emulator.node.rpc.dev import MOST_UNDOS, MOST_WORDS
from pubsub_emulator.node.rpc.pubsub_branches import LONGEST_NAME
from pubsub_emulator.node.server.options import Build
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.relay.babe import CURRENT_SLOT

NUMBER = f"0x{system.NUMBER.key.hex()}"
SLOT = f"0x{CURRENT_SLOT.key.hex()}"


@served()
async def test_new_blocks_are_built_on_request_on_either_kind_of_chain(node: Running) -> None:
    relay, para = await node.connect(), await node.connect(1000)
    name = await relay.call("dev_newBlock", {"count": 3})
    assert name == await relay.call("chain_getBlockHash", 4)
    assert await relay.call("dev_newBlock", {"to": 6}) == await relay.call("chain_getBlockHash", 6)
    assert await relay.call("dev_newBlock") == await relay.call("chain_getBlockHash", 7)
    before = int((await para.call("chain_getHeader"))["number"], 16)
    assert await para.call("dev_newBlock", {"count": 2}) == await para.call(
        "chain_getBlockHash", before + 2
    )
    for bad, code in (
        ({"count": 1001}, 1),
        ({"to": 2}, 1),
        ({"count": 1, "to": 9}, 1),
        ({"blocks": 1}, -32602),
    ):
        await relay.refused(code, "dev_newBlock", bad)
    await para.refused(
        "1: ump goes to the relay chain", "dev_newBlock", {"ump": {"1000": ["0x00"]}}
    )
    await relay.refused(
        "1: dmp and hrmp go to a parachain", "dev_newBlock", {"dmp": [{"msg": "0x00"}]}
    )


@served()
async def test_messages_are_sent_the_true_way(node: Running) -> None:
    relay, para = await node.connect(), await node.connect(2000)
    await relay.call("dev_newBlock", {"count": 3, "ump": {"1000": ["0xffff"]}})
    failed = [
        event
        for moment in node.server.timeline.moments()
        for event in every_runtime().stored_events(
            node.server.live.network.relay.storage().__class__(moment.relay.state)
        )
        if type(event.event).__name__ == "ProcessingFailed"
    ]
    assert len(failed) == 1
    await para.call("dev_newBlock", {"count": 2, "dmp": [{"sentAt": 1, "msg": "0xabcd"}]})
    inbound = [
        record.candidate.inherent.messages.downward
        for moment in node.server.timeline.moments()
        for record in moment.records
        if record.chain == 2000
    ]
    assert [messages[0].msg for messages in inbound if messages] == [b"\xab\xcd"]
    await relay.refused("1: there is no parachain 7", "dev_newBlock", {"ump": {"7": ["0x00"]}})


@served(dev=False)
async def test_without_dev_nothing_changes_the_network(client: Client) -> None:
    names = (await client.call("rpc_methods"))["methods"]
    assert not [name for name in names if name.startswith("dev_")]
    for method, params in (
        ("dev_newBlock", ()),
        ("pubsub_publish", (1000, "k", "0x00")),
        ("pubsub_honest", (1,)),
    ):
        await client.refused("-32601", method, *params)


@served()
async def test_time_moves_forward_with_the_next_block(client: Client) -> None:
    now = (
        int.from_bytes(bytes.fromhex((await client.call("state_getStorage", SLOT))[2:]), "little")
        * 6000
    )
    assert await client.call("dev_timeTravel", now + 60_001) == now + 60_000
    await client.call("dev_newBlock")
    slot = int.from_bytes(
        bytes.fromhex((await client.call("state_getStorage", SLOT))[2:]), "little"
    )
    assert slot * 6000 == now + 60_000
    assert await client.call("dev_timeTravel", "1970-04-01T00:00:00Z") == 7_776_000_000
    await client.refused("time only goes forward", "dev_timeTravel", 0)
    await client.refused("-32602", "dev_timeTravel", "tomorrow")


@served()
async def test_going_back_takes_every_chain_along_and_old_blocks_stay_readable(
    node: Running,
) -> None:
    relay, para = await node.connect(), await node.connect(2000)
    await node.step(6)
    left, left_para = (
        await relay.call("chain_getBlockHash", 7),
        await para.call("chain_getBlockHash"),
    )
    target = await relay.call("chain_getBlockHash", 3)
    assert await relay.call("dev_setHead", target) == target
    assert await relay.call("chain_getBlockHash") == target
    assert await relay.call("chain_getFinalizedHead") == target
    assert await relay.call("archive_v1_finalizedHeight") == 3
    assert await relay.call("chain_getBlockHash", 7) is None
    assert await relay.call("archive_v1_hashByHeight", 7) == []
    assert await relay.call("state_getStorage", NUMBER, left) == "0x07000000"
    assert await para.call("chain_getHeader", left_para) is not None
    assert await para.call("chain_getBlockHash") != left_para
    await node.step(4)
    assert await relay.call("chain_getBlockHash", 7) == left
    assert await relay.call("dev_setHead", -2) == await relay.call("chain_getBlockHash", 5)
    await relay.refused("1: block .* is unknown", "dev_setHead", 0)
    await relay.refused("1: block .* is unknown", "dev_setHead", 99)


@served()
async def test_a_parachains_block_goes_back_to_the_relay_block_that_included_it(
    node: Running,
) -> None:
    para = await node.connect(2000)
    await node.step(5)
    view = node.server.timeline.views[ParaId(2000)]
    block = view.at_height(view.best.number - 2)
    assert block is not None
    await para.call("dev_setHead", f"0x{block.hash.hex()}")
    assert node.server.timeline.newest.number == block.relay_number
    assert await para.call("chain_getBlockHash") == f"0x{block.hash.hex()}"


@served()
async def test_subscriptions_hear_of_a_rewind(node: Running, client: Client) -> None:
    """Follows stop, heads get the new head, storage gets what differs, once (ND-8)."""
    await node.step(3)
    follow = await client.call("chainHead_v1_follow", False)
    heads = await client.call("chain_subscribeNewHeads")
    final = await client.call("chain_subscribeFinalizedHeads")
    storage = await client.call("state_subscribeStorage", [NUMBER, "0x00"])
    await client.call("system_chain")
    client.events.clear()
    target = await client.call("dev_setHead", 2)
    assert [event["event"] for event in await client.settled(follow)] == ["stop"]
    assert [event["number"] for event in await client.settled(heads)] == ["0x2"]
    assert [event["number"] for event in await client.settled(final)] == ["0x2"]
    assert await client.settled(storage) == [{"block": target, "changes": [[NUMBER, "0x02000000"]]}]
    again = await client.call("chainHead_v1_follow", False)
    assert (await client.event(again))["finalizedBlockHashes"] == [target]


@served()
async def test_a_snapshot_is_used_once_and_same_inputs_give_same_blocks(
    client: Client,
) -> None:
    """ND-5."""
    await client.call("pubsub_publish", 1000, "asked before", "0x01")
    first = await client.call("dev_snapshot")
    later = await client.call("dev_snapshot")

    async def five() -> list[str]:
        await client.call("dev_newBlock", {"count": 2})
        await client.call("pubsub_publish", 1000, "asked after", "0x02")
        await client.call("dev_newBlock", {"count": 3})
        found: list[str] = await client.call("chain_getBlockHash", [2, 3, 4, 5, 6])
        return found

    once = await five()
    assert await client.call("dev_revert", first) is True
    assert await client.call("chain_getBlockHash", 2) is None
    assert await five() == once
    assert await client.call("dev_revert", first) is False
    assert await client.call("dev_revert", later) is False
    assert await client.call("dev_snapshot") not in {first, later}


@served()
async def test_everybody_can_undo_the_newest_moments_that_have_labels(
    node: Running,
) -> None:
    client, other = await node.connect(), await node.connect()
    unnamed = await client.call("dev_snapshot")
    names = [await client.call("dev_snapshot", f"{at}" * 100) for at in range(MOST_UNDOS + 1)]
    found = await other.call("pubsub_undos")
    assert [each["id"] for each in found] == names[1:]
    assert found[-1] == {"id": names[-1], "what": f"{MOST_UNDOS}" * (MOST_WORDS // 2), "at": 1}
    assert await client.call("dev_forget", names[0]) is False
    assert await client.call("dev_forget", unnamed) is True


@served()
async def test_a_snapshot_on_an_abandoned_line_can_be_restored(
    node: Running, client: Client
) -> None:
    await node.step(3)
    kept, best = await client.call("dev_snapshot"), await client.call("chain_getBlockHash")
    await client.call("dev_setHead", 2)
    await client.call("pubsub_publish", 1000, "elsewhere", "0x01")
    await node.step(4)
    assert await client.call("chain_getBlockHash", 4) != best
    assert await client.call("dev_revert", kept) is True
    assert await client.call("chain_getBlockHash") == best
    assert (await client.call("chain_getBlockHash", [1, 2, 3, 4]))[-1] == best


@story
async def test_each_line_of_blocks_has_observers_of_its_own() -> None:
    lines: list[Summary] = []

    def observers(_epoch: int) -> list[Summary]:
        lines.append(Summary())
        return lines[-1:]

    async with serving(observers=observers) as node:
        await node.step(4)
        await node.server.producer.rewind(node.server.timeline.moments()[2])
        await node.step(2)
        assert [line.relay_blocks for line in lines] == [5, 4]


@served(build=Build.MANUAL)
async def test_the_mode_of_building_is_changed_while_running(client: Client) -> None:
    await client.call("pubsub_publish", 1000, "k", "0x00")
    assert await client.call("chain_getBlockHash", 2) is None
    heads = await client.call("chain_subscribeNewHeads")
    await client.event(heads)
    assert await client.call("dev_setBlockBuildMode", "Batch") is None
    assert (await client.event(heads))["number"] == "0x2"  # what was asked for before is built now
    await client.call("pubsub_publish", 1000, "k", "0x01")
    assert (await client.event(heads))["number"] == "0x3"
    await client.call("dev_setBlockBuildMode", "Manual")
    await client.call("pubsub_publish", 1000, "k", "0x02")
    assert await client.settled(heads) == []
    await client.refused("1: blocks are built in the modes", "dev_setBlockBuildMode", "Always")


@served(build=Build.INTERVAL, interval=20)
async def test_blocks_come_by_the_clock_in_interval_mode(client: Client) -> None:
    heads = await client.call("chain_subscribeNewHeads")
    numbers = [int((await client.event(heads))["number"], 16) for _ in range(4)]
    assert numbers == list(range(numbers[0], numbers[0] + 4))


@served(build=Build.INSTANT, settle=3)
async def test_settling_builds_more_steps_after_each_on_demand(
    node: Running, client: Client
) -> None:
    heads = await client.call("chain_subscribeNewHeads")
    delivered = await client.call("pubsub_subscribeDeliveries", {"publisher": 1000})
    await client.call("pubsub_setSubscriptions", 2000, [{"publisher": 1000, "keys": ["price"]}])
    for _ in range(5):
        await client.event(heads)
    await client.call("pubsub_publish", 1000, "price", "0x2a")
    while (found := await client.event(delivered))["value"] != "0x2a":
        pass
    assert (found["kind"], found["blocksSincePublished"]) == ("updated", 1)
    assert node.server.timeline.newest.number <= 9


@served(finality=3)
async def test_every_chain_has_a_final_first_block_before_the_node_listens(node: Running) -> None:
    """ND-4."""
    assert all(view.final.number >= 1 for view in node.server.timeline.views.values())
    assert node.server.timeline.views[RELAY].best.number == node.server.producer.floor


@served()
async def test_a_development_proof_names_its_root(client: Client) -> None:
    found = await client.call("dev_getReadProof", [NUMBER])
    assert found["stateRoot"] == (await client.call("chain_getHeader", found["at"]))["stateRoot"]
    assert found["proof"]


async def _branches(client: Client) -> tuple[str, list[tuple[str, int]]]:
    found = await client.call("pubsub_branches")
    return found["name"], [(each["name"], each["number"]) for each in found["others"]]


@served()
async def test_branches_are_left_and_returned_to_by_their_names(
    node: Running, client: Client
) -> None:
    other = await node.connect()
    await node.step(3)
    best = await client.call("chain_getBlockHash")
    assert await _branches(client) == ("main", [])
    assert await client.call("pubsub_fork", " second ", 2) == await client.call(
        "chain_getBlockHash", 2
    )
    assert await _branches(other) == ("second", [("main", 4)])
    await client.call("pubsub_publish", 1000, "elsewhere", "0x01")
    await node.step(4)
    elsewhere = await client.call("chain_getBlockHash")
    assert elsewhere != best
    assert await client.call("pubsub_fork", "third", elsewhere) == elsewhere
    assert await _branches(other) == ("third", [("main", 4), ("second", 6)])
    [main, second] = (await other.call("pubsub_branches"))["others"]
    assert (main["hash"], second["hash"]) == (best, elsewhere)
    assert await client.call("pubsub_switch", "main") == best
    assert await _branches(other) == ("main", [("second", 6), ("third", 6)])
    assert await client.call("pubsub_switch", "second") == elsewhere
    assert await _branches(other) == ("second", [("third", 6), ("main", 4)])


@served()
async def test_branches_have_names_of_their_own_and_a_limit(
    node: Running, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.step(2)
    await client.call("pubsub_fork", "x" * LONGEST_NAME, 2)
    for name in ("main", "x" * LONGEST_NAME):
        await client.refused(1, "pubsub_fork", name, 2)
    for name in ("", " ", "x" * (LONGEST_NAME + 1), 7):
        await client.refused(-32602, "pubsub_fork", name, 2)
    await client.refused(1, "pubsub_switch", "nowhere")
    await client.refused(1, "pubsub_fork", "from no block", 99)
    assert await _branches(client) == ("x" * LONGEST_NAME, [("main", 3)])
    monkeypatch.setattr(pubsub_branches, "MOST_BRANCHES", 2)
    await client.call("pubsub_fork", "second", 2)
    await client.refused(1, "pubsub_fork", "third", 2)
    await client.call("pubsub_switch", "main")
    assert len((await _branches(client))[1]) == 2
