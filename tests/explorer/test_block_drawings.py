"""Proofs of a run's blocks as drawn, against what walk, collator and verdict say of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.explorer import Explored

from pubsub_emulator.collator.author import full_proof
from pubsub_emulator.explorer.block_tree import _Reach, draw_block
from pubsub_emulator.explorer.recorder import walk_again
from pubsub_emulator.explorer.tree import Drawn, Fate, Shape
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.cache import Cache
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, PublisherPlan
from pubsub_emulator.runtime.parachain.block import Verdict


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
        aside = (Shape.STUB, Shape.AGAIN)
        drawn = Counter(place.hash for place in places if place.data is not None and place.shape not in aside)
        for node in set(block.candidate.inherent.proof):
            assert drawn[blake2_256(node)] == 1


def test_a_valid_block_draws_as_proven_what_its_walk_took_and_nothing_is_unused(explored: Explored) -> None:
    for at, block in enumerate(explored.told.blocks):
        if block.outcome is None:
            continue
        places = drawing(explored, at)
        assert of_fate(places, Fate.STATIC, Fate.PROVEN) == set(block.outcome.plan.taken)
        assert not of_fate(places, Fate.UNUSED, Fate.MISSING)


def test_a_refused_block_draws_as_proven_what_reading_it_again_takes(explored: Explored) -> None:
    for at, block in enumerate(explored.told.blocks):
        walked = walk_again(block, explored.told.before[at])
        if block.refusal is not None and walked is not None:
            assert of_fate(drawing(explored, at), Fate.STATIC, Fate.PROVEN) == set(walked.plan.taken)


def test_static_nodes_are_those_that_a_collator_collects_for_the_static_keys(explored: Explored) -> None:
    for at, block in enumerate(explored.told.blocks):
        relay = explored.simulation.network.relay.access(block.candidate.inherent.relay_parent_number)
        if block.outcome is None or relay is None:
            continue
        spec = runtime_spec(Storage(explored.told.before[at]))
        assert of_fate(drawing(explored, at), Fate.STATIC) == set(full_proof(relay, spec).static_nodes)


def test_nodes_from_the_cache_are_drawn_as_remembered(explored: Explored) -> None:
    seen = 0
    for at, block in enumerate(explored.told.blocks):
        if block.outcome is None:
            continue
        plan = block.outcome.plan
        cached = {name for each in plan.publishers.values() for name in each.visited if name not in plan.taken}
        drawn = {place.hash for place in drawing(explored, at) if place.fate is Fate.REMEMBERED and place.data}
        assert drawn == cached
        seen += len(cached)
    assert seen > 20


def test_what_a_stopped_walk_left_is_told_from_what_it_skipped(explored: Explored) -> None:
    stopped = [
        at
        for at, block in enumerate(explored.told.blocks)
        if block.outcome is not None and block.outcome.plan.cursor is not None
    ]
    assert stopped
    assert any(of_fate(drawing(explored, at), Fate.WAITING) for at in stopped)
    for at, block in enumerate(explored.told.blocks):
        if block.outcome is not None and at not in stopped:
            assert not of_fate(drawing(explored, at), Fate.WAITING)


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
    st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
    st.integers(1, 4),
    st.data(),
)
def test_a_walk_came_by_what_lies_between_start_and_stop(paras: list[int], keys: int, data: st.DataObject) -> None:
    each_keys = tuple(PubsubKey(bytes((number,)) * 32) for number in range(keys))
    items = [(ParaId(para), key) for para in sorted(paras) for key in each_keys]
    start, stop = data.draw(st.sampled_from(items)), data.draw(st.sampled_from(items))
    turned = items[items.index(start) :] + items[: items.index(start)]
    visited = turned[: turned.index(stop)]
    plan = Plan(0, {}, cursor=stop)
    publisher = PublisherPlan(data.draw(st.sampled_from(items))[0], each_keys, object.__new__(Cache))
    low = data.draw(st.integers(0, keys - 1))
    high = data.draw(st.integers(low + 1, keys))
    expected = all((publisher.para, key) in visited for key in each_keys[low:high])
    assert _Reach(plan, start).visited(publisher, low, high) == expected
