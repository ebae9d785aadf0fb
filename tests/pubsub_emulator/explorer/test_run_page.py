"""The page of a run as a file: it holds what the network told, escapes all names, and is the same
every time.
"""

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.explorer.run_page import Explored

from pubsub_emulator.collator.author import full_proof
from pubsub_emulator.explorer.block_tree import _Reach, draw_block
from pubsub_emulator.explorer.recorder import walk_again
from pubsub_emulator.explorer.tree import Drawn, Fate, PlaceShape
from pubsub_emulator.explorer.words import with_names
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.cache import Cache
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, PublisherPlan
from pubsub_emulator.runtime.parachain.block import Verdict


def test_candidates_stand_in_the_index_as_they_were_told(explored: Explored) -> None:
    index = explored.page.index
    assert len(index["candidates"]) == len(explored.told.blocks)
    for row, block in zip(index["candidates"], explored.told.blocks, strict=True):
        header, inherent = block.candidate.header, block.candidate.inherent
        assert row[:4] == [
            block.chain,
            header.number,
            block.included_at,
            inherent.relay_parent_number,
        ]
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
    for detail, block in explored.details():
        header, inherent = block.candidate.header, block.candidate.inherent
        assert detail["root"] == header.state_root.hex()
        assert detail["relayRoot"] == inherent.relay_parent_storage_root.hex()
        assert (detail["parent"] or newest[block.chain]) == header.parent_hash.hex()
        full = len(inherent.messages.downward) + sum(
            len(each) for _, each in inherent.messages.horizontal
        )
        assert detail["messages"] == full + inherent.messages.hashed_count == len(detail["inbound"])
        assert len(detail["descendants"]) == len(inherent.descendants)
        messages += bool(inherent.messages.horizontal and inherent.messages.downward)
        if block.outcome is not None:
            newest[block.chain] = block.candidate.hash().hex()
    assert messages > 2


def test_ledgers_deliveries_and_events_are_those_of_the_blocks(explored: Explored) -> None:
    for detail, outcome, at in explored.accepted():
        ledger, shown = outcome.ledger, detail["ledger"]
        assert (shown["budget"], shown["used"], shown["messages"]) == (
            ledger.budget,
            ledger.used,
            ledger.messages_bytes,
        )
        sizes = (ledger.static_bytes, ledger.map_charges, ledger.proof_bytes)
        assert (shown["static"], shown["maps"], shown["proof"]) == sizes
        assert (shown["ownState"], shown["cacheState"]) == (
            ledger.own_state_bytes,
            ledger.cache_state_bytes,
        )
        assert shown["full"] == ledger.static_bytes + sum(
            size for _, size in explored.told.blocks[at].unpruned
        )
        assert [row[0] for row in shown["publishers"]] == [each.para for each in ledger.publishers]
        assert shown["maps"] + sum(sum(row[2:7]) for row in shown["publishers"]) == ledger.used
        values = [each.value for each in outcome.deliveries]
        assert [row[1] for row in detail["deliveries"]] == [
            None if each is None else len(each) for each in values
        ]
        assert len(detail["events"]) == len(outcome.events)


def test_a_refused_block_has_its_proofs_ledger_as_far_as_read(
    explored: Explored,
) -> None:
    refused = []
    for detail, block in explored.details():
        if block.refusal is not None:
            refused.append(detail)
            assert (detail["ledger"] is None) == (block.relay_storage_root is None)
            evidence = [
                [each.verdict.value, with_names(each.detail, explored.names)]
                for each in block.refusal.evidence
            ]
            assert [row[:2] for row in detail["evidence"]] == evidence
    told = " ".join(words for detail in refused for _, words, _ in detail["evidence"])
    assert re.search(
        r"on the way to key \d+/\d+, at nibble", told
    )  # no hash where the name is known
    assert "on the way to root of child trie" in told
    read = [
        detail for detail in refused if detail["ledger"] is not None and detail["ledger"]["proof"]
    ]
    assert len(read) > 5


def test_every_node_drawn_stands_in_the_page_under_its_hash(explored: Explored) -> None:
    for detail, block in explored.details():
        shapes, numbers = detail["drawing"]["shapes"], detail["nodes"]
        assert len(shapes) == len(numbers)
        found = {bytes.fromhex(explored.page.node(number)[0]) for number in numbers if number >= 0}
        assert {bytes(blake2_256(node)) for node in block.candidate.inherent.proof} <= found
    for name, length, kept in (
        explored.page.node(at) for at in range(len(explored.recorder.nodes))
    ):
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
    assert "script-src 'sha256-" in explored.text
    assert not re.findall(
        r"(?:https?:)?//(?!www\.w3\.org/(?:2000/svg|1999/xhtml|1998/Math/MathML)\b)[a-z0-9]+\.[a-z]",
        explored.text.split("<!--", 1)[0],
    )
    assert not re.findall(r"@import|url\(", explored.text)


# Proofs of a run's blocks as drawn, against what walk, collator and verdict say of them.


def drawing(run: Explored, at: int) -> list[Drawn]:
    block = run.told.blocks[at]
    walked = walk_again(block, run.told.before[at])
    trees = draw_block(block, walked and walked.plan, run.names, walked and walked.start)
    return [place for tree in trees for place in tree.preorder()]


def of_fate(places: list[Drawn], *fates: Fate) -> set[Hash]:
    return {place.hash for place in places if place.fate in fates and place.hash is not None}


def test_every_node_of_every_proof_is_drawn_once(explored: Explored) -> None:
    for at, block in enumerate(explored.told.blocks):
        places = drawing(explored, at)
        aside = (PlaceShape.STUB, PlaceShape.AGAIN)
        drawn = Counter(
            place.hash for place in places if place.data is not None and place.shape not in aside
        )
        for node in set(block.candidate.inherent.proof):
            assert drawn[blake2_256(node)] == 1


def test_a_valid_block_draws_its_walks_nodes_as_proven_and_none_unused(
    explored: Explored,
) -> None:
    for _, outcome, at in explored.accepted():
        places = drawing(explored, at)
        assert of_fate(places, Fate.STATIC, Fate.PROVEN) == set(outcome.plan.taken)
        assert not of_fate(places, Fate.UNUSED, Fate.MISSING)
        assert outcome.plan.cursor is not None or not of_fate(places, Fate.WAITING)


def test_a_refused_block_draws_as_proven_what_reading_it_again_takes(explored: Explored) -> None:
    for at, block in enumerate(explored.told.blocks):
        walked = walk_again(block, explored.told.before[at])
        if block.refusal is not None and walked is not None:
            assert of_fate(drawing(explored, at), Fate.STATIC, Fate.PROVEN) == set(
                walked.plan.taken
            )


def test_static_nodes_are_those_that_a_collator_collects_for_the_static_keys(
    explored: Explored,
) -> None:
    for at, block in enumerate(explored.told.blocks):
        relay = explored.simulation.network.relay.access(
            block.candidate.inherent.relay_parent_number
        )
        if block.outcome is None or relay is None:
            continue
        spec = runtime_spec(Storage(explored.told.before[at]))
        assert of_fate(drawing(explored, at), Fate.STATIC) == set(
            full_proof(relay, spec).static_nodes
        )


def test_nodes_from_the_cache_are_drawn_as_remembered(explored: Explored) -> None:
    seen = 0
    for _, outcome, at in explored.accepted():
        plan = outcome.plan
        cached = {
            name
            for each in plan.publishers.values()
            for name in each.visited
            if name not in plan.taken
        }
        drawn = {
            place.hash
            for place in drawing(explored, at)
            if place.fate is Fate.REMEMBERED and place.data
        }
        assert drawn == cached
        seen += len(cached)
    assert seen > 20


def test_what_a_stopped_walk_left_is_told_from_what_it_skipped(explored: Explored) -> None:
    stopped = [at for _, outcome, at in explored.accepted() if outcome.plan.cursor is not None]
    assert any(of_fate(drawing(explored, at), Fate.WAITING) for at in stopped)


def test_evidence_is_drawn_in_red(explored: Explored) -> None:
    seen = Counter[Verdict]()
    for at, block in enumerate(explored.told.blocks):
        for offence in () if block.refusal is None else block.refusal.evidence:
            places = drawing(explored, at)
            if offence.verdict is Verdict.UNUSED_NODES:
                assert of_fate(places, Fate.UNUSED) == set(map(Hash, offence.subject))
            elif offence.verdict is Verdict.OMITTED_BELOW_BUDGET:
                assert of_fate(places, Fate.MISSING) == {Hash(offence.subject[0])}
            else:
                continue
            seen[offence.verdict] += 1
    assert seen[Verdict.UNUSED_NODES] > 2
    assert seen[Verdict.OMITTED_BELOW_BUDGET] > 2


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), st.integers(1, 4), st.data()
)
def test_a_walk_came_by_what_lies_between_start_and_stop(
    paras: list[int], keys: int, data: st.DataObject
) -> None:
    each_keys = tuple(PubsubKey(bytes((number,)) * 32) for number in range(keys))
    items = [(ParaId(para), key) for para in sorted(paras) for key in each_keys]
    start, stop = data.draw(st.sampled_from(items)), data.draw(st.sampled_from(items))
    turned = items[items.index(start) :] + items[: items.index(start)]
    visited = turned[: turned.index(stop)]
    plan = Plan(0, {}, cursor=stop)
    publisher = PublisherPlan(
        data.draw(st.sampled_from(items))[0], each_keys, object.__new__(Cache)
    )
    low = data.draw(st.integers(0, keys - 1))
    high = data.draw(st.integers(low + 1, keys))
    expected = all((publisher.para, key) in visited for key in each_keys[low:high])
    assert _Reach(plan, start).visited(publisher, low, high) == expected
