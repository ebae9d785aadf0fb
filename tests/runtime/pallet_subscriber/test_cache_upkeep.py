"""PS-60 to PS-62 and PS-69: what a cache holds, how it is kept, how it goes."""

import pytest
from support.page_verifier import cost, verifier
from support.world import Relay, Subscriber, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, ParaId
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import STALE_ROWS_A_BLOCK

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
