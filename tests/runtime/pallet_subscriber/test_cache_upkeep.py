"""PS-60 to PS-62 and PS-69: what a cache holds, how it is kept, how it goes."""

import pytest
from support.page_verifier import cost, verifier
from support.world import PLENTY, Chain, Relay, Subscriber, each_policy, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, ParaId
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import STALE_ROWS_A_BLOCK
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST

P = ParaId(1000)


def paths(relay: Relay, para: int, keys: list[bytes]) -> set[bytes]:
    """The hashes of the child-trie nodes on the paths of these keys, values aside."""
    page, out = verifier(), set()
    for key in keys:
        kind, ref, depth = page.CHILD, relay.child_roots[para], 0
        while kind in {page.CHILD, page.INLINE}:
            if kind == page.CHILD:
                out.add(ref)
            kind, ref, depth = page.step(relay.nodes[ref] if kind == page.CHILD else ref, key.hex(), depth)  # type: ignore[index]
    return out


def nodes_of(keys: list[bytes], **changes: object) -> Subscriber:
    return Subscriber(make_spec({1000: keys}, cache="nodes", **changes))  # type: ignore[arg-type]


def test_a_completed_publishers_cache_is_the_union_of_its_paths_no_more_no_less() -> None:
    """PS-62, B48, B59, defect 14: whatever is added, changed or removed."""
    keys = numbered(40)
    wanted = keys[::2]
    subscriber = nodes_of(wanted)
    contents = filled(keys)
    for number, change in enumerate((None, 0, 2, 7, 11, 30)):
        if change is not None:
            contents[keys[change]] = entry(b"%d" % number * 30)
        if number > 3:
            del contents[keys[number]]
        relay = Relay(number + 1, {1000: contents})
        subscriber.block(relay)
        assert set(subscriber.cached(1000)) == paths(relay, 1000, wanted)
        info = items.CACHE_INFO.get(subscriber.storage, P)
        assert (info.generation, info.nodes, info.bytes) == (
            0,  # whatever left the paths was found and removed
            len(subscriber.cached(1000)),
            sum(map(cost, subscriber.cached(1000).values())),
        )
        assert subscriber.roots == {1000: relay.child_roots[1000]}


def test_nodes_of_an_item_that_the_stop_cut_short_are_cached() -> None:
    """PS-60: progress survives, or a long path could be started for ever and never ended."""
    keys = numbered(40)
    subscriber = nodes_of(keys, max_value_length=256)
    relay = Relay(1, {1000: filled(keys)})
    first = subscriber.block(relay, 5000)
    assert first.cursor is not None
    walked = first.plan.publishers[P].visited
    assert set(subscriber.cached(1000)) == set(walked) != set()
    again = subscriber.block(relay, 5000)
    assert not set(walked) & set(again.plan.taken)
    assert subscriber.roots == {}


def test_while_incomplete_old_and_new_nodes_stay_together() -> None:
    """PS-62."""
    keys = numbered(40)
    subscriber = nodes_of(keys, max_value_length=256)
    subscriber.block(Relay(1, {1000: filled(keys)}))
    old = set(subscriber.cached(1000))
    step = subscriber.block(Relay(2, {1000: filled(keys, b"w" * 40)}), 6000)
    assert step.cursor is not None
    assert set(subscriber.cached(1000)) == old | set(step.plan.publishers[P].visited)
    assert subscriber.roots == {}


def test_a_publisher_that_outgrows_its_cache_loses_nodes_and_root_and_keeps_what_was_delivered() -> None:
    """PS-62, defect 16: counted after this block's nodes, to the byte."""
    keys = numbered(40)
    relay = Relay(1, {1000: filled(keys)})
    probe = nodes_of(keys, max_value_length=256)
    probe.block(relay, 6000)
    size = sum(map(cost, probe.cached(1000).values()))
    for limit, kept in ((size, True), (size - 1, False)):
        subscriber = nodes_of(keys, max_value_length=256, max_cache_bytes=limit)
        step = subscriber.block(relay, 6000)
        assert bool(subscriber.cached(1000)) is kept
        assert subscriber.roots == {}
        assert len(subscriber.last()) == len(step.deliveries) > 0
        subscriber.block(relay)
        assert subscriber.block(relay).deliveries == ()


def test_a_publisher_that_never_completes_holds_no_more_than_the_limit() -> None:
    """PS-62: old nodes of ever new roots do not pile up."""
    keys = numbered(60)
    subscriber = nodes_of(keys, max_value_length=256, max_cache_bytes=20_000)
    for number in range(1, 30):
        subscriber.block(Relay(number, {1000: filled(keys, b"%d" % number * 30)}), 7000)
        assert sum(map(cost, subscriber.cached(1000).values())) <= 20_000


def test_a_node_that_came_free_of_another_publishers_walk_is_never_read_to_be_counted() -> None:
    """PS-43, PS-62: nobody charged a look at the cache, so its size is an upper bound until the publisher completes."""
    keys = numbered(60)
    shared = {key: entry(b"the same everywhere" * 3 + key) for key in keys}
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache="nodes"))
    subscriber.block(Relay(1, {1001: shared}))
    relay = Relay(2, {1000: shared, 1001: shared | {keys[-1]: entry(b"new" * 30)}})
    step = subscriber.block(relay, subscriber.plan(relay).used + subscriber.spec.max_item_cost)
    assert step.cursor is not None
    assert step.cursor[0] == 1001
    cached = subscriber.cached(1001)
    info = items.CACHE_INFO.get(subscriber.storage, ParaId(1001))
    assert info.nodes > len(cached)
    assert info.bytes > sum(map(cost, cached.values()))
    while step.cursor is not None:
        step = subscriber.block(relay)
    cached = subscriber.cached(1001)
    info = items.CACHE_INFO.get(subscriber.storage, ParaId(1001))
    assert (info.nodes, info.bytes) == (len(cached), sum(map(cost, cached.values())))


def test_a_change_on_top_of_a_complete_cache_removes_just_what_left_the_paths() -> None:
    """PS-62: no generation is abandoned, so rows do not pile up however long a publisher changes a key a block."""
    keys = numbered(200)
    subscriber = nodes_of(keys)
    published = filled(keys)
    subscriber.block(Relay(1, {1000: published}))
    for number in range(2, 12):
        published = published | {keys[number * 7 % len(keys)]: entry(b"changed %d" % number * 5)}
        subscriber.block(Relay(number, {1000: published}))
        assert subscriber.cache_rows() == len(subscriber.cached(1000))
        assert items.STALE_CACHES.get(subscriber.storage) == []
        assert items.CACHE_INFO.get(subscriber.storage, ParaId(1000)).generation == 0


# Generations


def test_abandoned_rows_go_at_most_a_hundred_a_block_and_are_never_read_as_live() -> None:
    """PS-62, defect 17, defect 18."""
    keys = numbered(250)
    subscriber = nodes_of(keys)
    relay = Relay(1, {1000: filled(keys)})
    subscriber.block(relay)
    rows = subscriber.cache_rows()
    assert rows > 250
    assert STALE_ROWS_A_BLOCK == 100
    subscriber.call("clear_publisher_cache", 1000)
    assert subscriber.cached(1000) == {}
    assert subscriber.cache_rows() == rows
    subscriber.upgrade(subscriptions={})
    left = rows
    while left:
        subscriber.block(relay)
        assert subscriber.cache_rows() == max(left - STALE_ROWS_A_BLOCK, 0)
        left = subscriber.cache_rows()
    subscriber.block(relay)
    assert [key for key in subscriber.entries() if key != items.LAST_RELAY_PARENT.key] == []


@pytest.mark.parametrize("rows", [99, 100, 101, 200])
def test_a_generation_is_forgotten_once_its_rows_are_gone_whatever_their_number(rows: int) -> None:
    """PS-62: a multiple of the hundred must not leave it listed, for then the next live rows would be removed."""
    subscriber = nodes_of(numbered(3))
    for number in range(rows):
        items.CACHED_TRIE_NODES.insert(subscriber.storage, (P, 0), bytes((number,)) * 32, b"old")  # type: ignore[arg-type]
    items.CACHE_INFO.insert(subscriber.storage, P, items.CacheInfo(0, rows, 4 * rows))
    items.PROCESSED_ROOTS.put(subscriber.storage, {P: EMPTY_TRIE_ROOT})
    subscriber.storage.commit()
    assert subscriber.call("clear_publisher_cache", 1000).ok
    relay = Relay(1)
    for _ in range(4):
        subscriber.block(relay)
    assert items.STALE_CACHES.get(subscriber.storage) == []
    assert items.STALE_CACHES.key not in subscriber.entries()
    live = Relay(2, {1000: filled(numbered(3))})
    subscriber.block(live)
    cached = subscriber.cached(1000)
    for number in range(3, 6):
        subscriber.block(Relay(number, {1000: filled(numbered(3))}))
    assert subscriber.cached(1000) == cached == {h: live.nodes[h] for h in paths(live, 1000, numbered(3))}  # type: ignore[index]


def test_generations_are_not_counted_anew_while_one_of_them_still_waits() -> None:
    """PS-62: or a live generation would bear the number of one that is being removed."""
    keys = numbered(120)
    subscriber = nodes_of(keys)
    relay = Relay(1, {1000: filled(keys)})
    for _ in range(2):
        subscriber.block(relay)
        assert 100 < len(subscriber.cached(1000)) < 200
        subscriber.call("clear_publisher_cache", 1000)
    while items.STALE_CACHES.get(subscriber.storage) != [(P, 1)]:
        assert items.CACHE_INFO.get(subscriber.storage, P).generation == 2
        subscriber.block(Relay(2))
    assert items.CACHE_INFO.get(subscriber.storage, P).generation == 2
    for _ in range(5):
        subscriber.block(relay)
    assert len(subscriber.cached(1000)) == subscriber.cache_rows() > 100


@pytest.mark.parametrize(("waiting", "kept"), [([P], True), ([P, P], False), ([P, 1001, 1001], True)])
def test_nothing_new_is_cached_while_two_generations_wait_to_be_removed(waiting: list[ParaId], kept: bool) -> None:
    """PS-62: or a publisher whose cache is dropped again and again would fill the state."""
    subscriber = nodes_of(numbered(3))
    items.STALE_CACHES.put(subscriber.storage, [(para, generation) for generation, para in enumerate(waiting)])
    items.CACHE_INFO.insert(subscriber.storage, P, items.CacheInfo(len(waiting)))
    subscriber.storage.commit()
    relay = Relay(1, {1000: filled(numbered(3))})
    subscriber.block(relay)
    assert set(subscriber.cached(1000)) == (paths(relay, 1000, numbered(3)) if kept else set())


def test_a_publisher_of_which_nothing_is_cached_has_no_row_that_counts() -> None:
    subscriber = nodes_of(numbered(3))
    subscriber.block(Relay(1))
    assert not dict(subscriber.storage.iter_prefix(items.CACHE_INFO.prefix))


def test_a_cached_node_that_is_gone_costs_a_generation_and_no_more() -> None:
    """PS-62: what is cached cannot be told from what was counted, so it is given up."""
    keys = numbered(40)
    subscriber = nodes_of(keys)
    contents = filled(keys)
    before = Relay(1, {1000: contents})
    subscriber.block(before)
    relay = Relay(2, {1000: contents | {keys[7]: entry(b"w" * 40)}})
    gone = paths(before, 1000, [keys[7]]) - paths(before, 1000, keys[:7] + keys[8:])
    for node_hash in gone:
        items.CACHED_TRIE_NODES.remove(subscriber.storage, (P, 0), node_hash)  # type: ignore[arg-type]
    subscriber.storage.commit()
    subscriber.block(relay)
    assert items.CACHE_INFO.get(subscriber.storage, P).generation == 1
    assert subscriber.roots == {1000: relay.child_roots[1000]}
    assert set(subscriber.cached(1000)) == paths(relay, 1000, keys)


def test_clearing_costs_a_few_writes_however_large_the_cache() -> None:
    """PS-62, defect 18: dropping counts a generation up and reads none of its rows."""
    keys = numbered(250)
    subscriber = nodes_of(keys)
    subscriber.block(Relay(1, {1000: filled(keys)}))
    subscriber.storage.start_recording()
    subscriber.call("clear_publisher_cache", 1000)
    read = [key for key in subscriber.storage.recorded or {} if key.startswith(items.CACHED_TRIE_NODES.prefix)]
    subscriber.storage.recorded = None
    assert read == []


# Slots


def test_slots_leave_all_unread_that_did_not_change() -> None:
    """PS-69, D cache_reduces_proof_size: one changed key of many costs one path and its rows."""
    keys = numbered(600)
    contents = filled(keys)
    costs = {}
    for policy in ("none", "nodes", "slots"):
        subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
        subscriber.block(Relay(1, {1000: contents}))
        step = subscriber.block(Relay(2, {1000: contents | {keys[300]: entry(b"new" * 20)}}))
        assert step.keys == [keys[300]]
        taken = sum(map(cost, step.plan.taken.values())) - step.plan.static_bytes
        costs[policy] = (taken, step.plan.used)
        if policy == "nodes":
            assert step.plan.publishers[P].cache.saved > 0
    assert costs["nodes"][0] < costs["none"][0] / 10
    assert costs["slots"][0] < costs["none"][0] / 10
    assert costs["slots"][1] < costs["none"][1] / 20


def test_a_slot_vouches_for_no_item_beyond_the_stretch_being_walked() -> None:
    """PS-40, PS-69: with the cursor inside what a slot covers, both halves are counted once, and the walk completes."""
    keys = numbered(60)
    for start in range(1, 60, 7):
        subscriber = Subscriber(make_spec({1000: keys}, cache="slots"))
        contents = filled(keys)
        subscriber.block(Relay(1, {1000: contents}))
        items.PROCESSING_CURSOR.put(subscriber.storage, (P, keys[start]))
        relay = Relay(2, {1000: contents | {keys[0]: entry(b"new" * 20)}})
        step = subscriber.block(relay)
        assert step.keys == [keys[0]]
        assert step.plan.publishers[P].resolved == 60
        assert subscriber.roots == {1000: relay.child_roots[1000]}


@each_policy
def test_a_root_that_goes_from_a_to_b_and_back_hides_nothing(policy: str) -> None:
    """PS-61: met under B and not completed, a publisher loses its processed root."""
    keys = numbered(30)
    a, b = filled(keys), filled(keys[5:], b"other" * 9)
    subscriber = Subscriber(make_spec({1000: keys}, cache=policy, max_value_length=256))
    subscriber.block(Relay(1, {1000: a}))
    for number, state in enumerate((b, a, b, b, a), 2):
        relay = Relay(number, {1000: state})
        step = subscriber.block(relay, 5000)
        assert step.cursor is not None
        assert subscriber.roots == {}
    for number in range(10, 30):
        subscriber.block(Relay(number, {1000: a}), 9000 if number < 29 else PLENTY)
    have = {key: value for _, key, value, _ in subscriber.calls.calls}  # the last call of each key
    assert have == {key: e.value for key, e in a.items() if not isinstance(e, bytes)}
    assert subscriber.roots == {1000: Relay(9, {1000: a}).child_roots[1000]}


@each_policy
def test_only_a_publisher_not_met_keeps_its_old_root(policy: str) -> None:
    """PS-61."""
    keys = numbered(30)
    publishers = {1000: filled(keys), 1001: filled(keys, b"w" * 40), 1002: filled(keys, b"x" * 40)}
    subscriber = Subscriber(make_spec(dict.fromkeys(publishers, keys), cache=policy, max_value_length=256))
    old = Relay(1, publishers)
    subscriber.block(old)
    new = Relay(2, {para: filled(keys, b"%d" % para * 12) for para in publishers})
    whole = next(
        budget
        for budget in range(5000, 40_000, 50)
        if ParaId(1001) in subscriber.plan(new, budget).publishers and subscriber.plan(new, budget).cursor[0] == 1001  # type: ignore[index]
    )
    step = subscriber.block(new, whole + 1500)
    assert step.cursor is not None
    assert step.cursor[0] == 1001
    assert subscriber.roots == {1000: new.child_roots[1000], 1002: old.child_roots[1002]}


@each_policy
def test_roots_of_unchanged_publishers_are_kept_beside_those_that_changed(policy: str) -> None:
    """PS-61, B15, B16, B57, defect 7, defect 9: no flapping, and any number of publishers at once."""
    keys = numbered(2)
    paras = range(1000, 2100)
    publishers = {para: filled(keys, b"%d" % para) for para in paras}
    chain = Chain(make_spec(dict.fromkeys(paras, keys), cache=policy))
    assert len(chain.step(Relay(1, publishers)).deliveries) == 2200
    publishers[1500] = filled(keys, b"new")
    changed = chain.step(Relay(2, publishers))
    assert [d.publisher for d in changed.deliveries] == [1500, 1500]
    for number in (3, 4):
        assert chain.step(Relay(number, publishers)).deliveries == ()


def test_a_slot_vouches_for_what_stands_inline_as_for_what_is_hashed() -> None:
    """PS-69: the reference of an inline node is its hash."""
    keys = [b"k" * 31 + bytes((last,)) for last in range(32)]
    subscriber = Subscriber(make_spec({1000: keys}, cache="slots"))
    contents = {keys[0]: entry(b"a"), keys[20]: entry(b"b")}
    relay = Relay(1, {1000: contents})
    subscriber.block(relay)
    assert relay.child_roots[1000] in relay.nodes
    assert sum(b"k" * 29 in node for node in relay.nodes.values()) == 1, "both leaves stand in the root"
    share = subscriber.block(Relay(2, {1000: contents | {keys[0]: entry(b"c")}})).plan.publishers[P]
    assert share.resolved == 32
    rows = 2 * ROW_COST + 2 * 32 + 16 * 32  # of the slots
    assert (share.cache.charges, share.row_charges) == (rows, ROW_COST + 640), "the second sixteen stay unread"


def test_what_is_known_to_be_empty_is_not_looked_up_again_when_the_walk_goes_on() -> None:
    """PS-69: where a publisher has nothing left, the slots of what was removed already vouch for it."""
    keys = numbered(160)
    subscriber = Subscriber(make_spec({1000: keys}, cache="slots"))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    empty = Relay(2)
    first = subscriber.block(empty, 7000)
    assert first.cursor is not None
    assert keys.index(first.cursor[1]) == 80
    share = subscriber.block(empty).plan.publishers[P]
    assert share.resolved == 160
    assert share.row_charges == (10 - 80 // 16) * (ROW_COST + 640)
    assert subscriber.last() == {}
