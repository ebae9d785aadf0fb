"""The page of a run as a file: it holds what the network told, escapes all names, and is the same every time."""

import re

from support.explorer import Explored

from pubsub_emulator.explorer.words import with_names
from pubsub_emulator.primitives.hashing import blake2_256


def test_candidates_stand_in_the_index_as_they_were_told(explored: Explored) -> None:
    index = explored.page.index
    assert len(index["candidates"]) == len(explored.told.blocks)
    for row, block in zip(index["candidates"], explored.told.blocks, strict=True):
        header, inherent = block.candidate.header, block.candidate.inherent
        assert row[:4] == [block.chain, header.number, block.included_at, inherent.relay_parent_number]
        assert row[5] == (None if block.refusal is None else block.refusal.verdict.value)
        assert row[6] == block.candidate.hash().hex()
        assert (None if row[7] is None else index["strategies"][row[7]]) == block.strategy
        assert row[8] == len(inherent.proof)
        deliveries = () if block.outcome is None else block.outcome.deliveries
        found = [index["keys"][key][:2] for key in row[12]]
        assert found == [[each.publisher, each.key.hex()] for each in deliveries]
    assert [(row["number"], row["hash"]) for row in index["relay"]] == [
        (each.number, each.hash.hex()) for each in explored.told.relay
    ]


def test_blocks_have_their_roots_parents_and_messages(explored: Explored) -> None:
    newest = {chain["id"]: chain["first"] for chain in explored.page.index["chains"]}
    messages = 0
    for detail, block in zip(explored.page.details(), explored.told.blocks, strict=True):
        header, inherent = block.candidate.header, block.candidate.inherent
        assert detail["root"] == header.state_root.hex()
        assert detail["relayRoot"] == inherent.relay_parent_storage_root.hex()
        assert (detail["parent"] or newest[block.chain]) == header.parent_hash.hex()
        horizontal = sum(len(each) for _, each in inherent.messages.horizontal)
        assert detail["messages"] == [len(inherent.messages.downward), horizontal]
        messages += bool(horizontal and inherent.messages.downward)
        if block.outcome is not None:
            newest[block.chain] = block.candidate.hash().hex()
    assert messages > 2


def test_ledgers_are_those_of_the_blocks(explored: Explored) -> None:
    for detail, block in zip(explored.page.details(), explored.told.blocks, strict=True):
        if block.outcome is None:
            continue
        ledger, shown = block.outcome.ledger, detail["ledger"]
        assert (shown["budget"], shown["used"], shown["messages"]) == (
            ledger.budget,
            ledger.used,
            ledger.messages_bytes,
        )
        assert (shown["static"], shown["maps"], shown["proof"]) == (
            ledger.static_bytes,
            ledger.map_charges,
            ledger.proof_bytes,
        )
        assert (shown["ownState"], shown["cacheState"]) == (ledger.own_state_bytes, ledger.cache_state_bytes)
        assert shown["full"] == ledger.static_bytes + sum(size for _, size in block.unpruned)
        assert [row[0] for row in shown["publishers"]] == [each.para for each in ledger.publishers]
        counted = shown["maps"] + sum(sum(row[2:7]) for row in shown["publishers"])
        assert counted == ledger.used


def test_a_refused_block_has_the_ledger_of_its_proof_as_far_as_that_is_read(explored: Explored) -> None:
    refused = [
        (detail, block)
        for detail, block in zip(explored.page.details(), explored.told.blocks, strict=True)
        if block.refusal is not None
    ]
    for detail, block in refused:
        assert (detail["ledger"] is None) == (block.relay_storage_root is None)
        assert [row[:2] for row in detail["evidence"]] == [
            [each.verdict.value, with_names(each.detail, explored.names)]
            for each in block.refusal.evidence  # type: ignore[union-attr]  # refused
        ]
    told = " ".join(words for detail, _ in refused for _, words, _ in detail["evidence"])
    assert re.search(r"on the way to key \d+/\d+, at nibble", told)  # no hash where the name is known
    assert "on the way to root of child trie" in told
    read = [detail for detail, _ in refused if detail["ledger"] is not None and detail["ledger"]["proof"]]
    assert len(read) > 5


def test_deliveries_and_events_are_those_of_the_blocks(explored: Explored) -> None:
    for detail, block in zip(explored.page.details(), explored.told.blocks, strict=True):
        if block.outcome is None:
            continue
        sizes = [None if each.value is None else len(each.value) for each in block.outcome.deliveries]
        assert [row[1] for row in detail["deliveries"]] == sizes
        assert len(detail["events"]) == len(block.outcome.events)


def test_every_node_drawn_stands_in_the_page_under_its_hash(explored: Explored) -> None:
    for detail, block in zip(explored.page.details(), explored.told.blocks, strict=True):
        shapes, numbers = detail["drawing"]["shapes"], detail["nodes"]
        assert len(shapes) == len(numbers)
        found = {bytes.fromhex(explored.page.node(number)[0]) for number in numbers if number >= 0}
        assert {bytes(blake2_256(node)) for node in block.candidate.inherent.proof} <= found
    for name, length, kept in (explored.page.node(at) for at in range(len(explored.recorder.nodes))):
        data = bytes.fromhex(kept)
        assert length == 0 or len(data) == min(length, 32) or blake2_256(data).hex() == name


def test_the_relay_chain_publishes_what_is_later_delivered(explored: Explored) -> None:
    published: set[int] = set()
    by_block = {row["number"]: row["keys"] for row in explored.page.index["relay"]}
    reached = 0
    for row in (row for row in explored.page.index["candidates"] if row[5] is None):
        while reached <= row[3]:
            published |= set(by_block[reached])
            reached += 1
        assert set(row[12]) <= published


def test_a_page_asks_for_nothing(explored: Explored) -> None:
    assert "default-src 'none'" in explored.text
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9]+\.[a-z]", explored.text.split("<!--", 1)[0])
    assert not re.findall(r"@import|url\(", explored.text)
