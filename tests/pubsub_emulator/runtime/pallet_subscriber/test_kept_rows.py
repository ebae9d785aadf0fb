"""PS-60 to PS-62 and PS-69: what a cache holds, how it goes; slots; the rows of what was
delivered.
"""

import random
from dataclasses import replace

import pytest
from support.runtime.page_verifier import cost, verifier
from support.runtime.world import (
    PLENTY,
    Relay,
    Subscriber,
    each_policy,
    entry,
    filled,
    make_spec,
    numbered,
)

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import (
    EMPTY_TRIE_ROOT,
    Hash,
    ParaId,
    PubsubKey,
    RelayBlockNumber,
)
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import STALE_ROWS_A_BLOCK
from pubsub_emulator.runtime.pallet_subscriber.cache.slots import layout_of, leaf_reference
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, key_set_hash
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.trie.codec import HASHED_LEAF, node_head, pack

P = ParaId(1000)


def paths(relay: Relay, para: int, keys: list[bytes]) -> set[bytes]:
    """The hashes of the child-trie nodes on the paths of these keys, values aside."""
    page, out = verifier(), set()
    for key in keys:
        kind, ref, depth = page.CHILD, relay.child_roots[para], 0
        while kind in {page.CHILD, page.INLINE}:
            if kind == page.CHILD:
                out.add(ref)
            kind, ref, depth = page.step(
                relay.nodes[ref] if kind == page.CHILD else ref, key.hex(), depth
            )  # type: ignore[index]
    return out


def nodes_of(keys: list[bytes], **changes: object) -> Subscriber:
    return Subscriber(make_spec({1000: keys}, cache="nodes", **changes))  # type: ignore[arg-type]


def test_abandoned_rows_go_slowly_and_are_never_live_ps62_defect_17_defect_18() -> None:
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
    """PS-62: a multiple of the hundred must not leave it listed, for then the next live rows would
    be removed.
    """
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
    assert (
        subscriber.cached(1000)
        == cached
        == {h: live.nodes[h] for h in paths(live, 1000, numbered(3))}
    )  # type: ignore[index]


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


@pytest.mark.parametrize(
    ("waiting", "kept"),
    [
        ([P], True),
        ([P, P], False),
        ([P, 1001, 1001], True),
    ],
)
def test_nothing_new_is_cached_while_two_generations_wait_to_be_removed(
    waiting: list[ParaId], kept: bool
) -> None:
    """PS-62: or a publisher whose cache is dropped again and again would fill the state."""
    subscriber = nodes_of(numbered(3))
    items.STALE_CACHES.put(
        subscriber.storage, [(para, generation) for generation, para in enumerate(waiting)]
    )
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
    read = [
        key
        for key in subscriber.storage.recorded or {}
        if key.startswith(items.CACHED_TRIE_NODES.prefix)
    ]
    subscriber.storage.recorded = None
    assert read == []


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


def keys_of(count: int, free: int, seed: int = 0) -> tuple[PubsubKey, ...]:
    """So many keys that differ in their last `free` bytes, among a few byte values."""
    draw = random.Random(seed)
    return tuple(
        sorted(
            {
                PubsubKey(bytes(32 - free) + bytes(draw.choices(b"\x00\x01\x10\x11\xf0", k=free)))
                for _ in range(count)
            }
        )
    )


SETS = [
    (),
    keys_of(1, 32),
    keys_of(5, 1),
    keys_of(40, 2),
    keys_of(60, 3),
    keys_of(60, 32),
    keys_of(90, 4),
    keys_of(7, 6),
    keys_of(6, 9),
]


def below(keys: tuple[PubsubKey, ...], prefix: str) -> list[int]:
    return [at for at, key in enumerate(keys) if key.hex().startswith(prefix)]


@pytest.mark.parametrize("keys", SETS, ids=len)
def test_a_row_stands_where_six_keys_part_with_slots_by_nibble(
    keys: tuple[PubsubKey, ...],
) -> None:
    wanted = {}
    for prefix in {key.hex()[:depth] for key in keys for depth in range(64)}:
        nibbles = sorted({keys[at].hex()[len(prefix)] for at in below(keys, prefix)})
        if len(below(keys, prefix)) >= 6 and len(nibbles) > 1:
            suffix = bytes((len(prefix),)) + bytes.fromhex(prefix + "0" * (len(prefix) % 2))
            for place, nibble in enumerate(nibbles):
                wanted[prefix + nibble] = (
                    suffix,
                    len(nibbles),
                    place,
                    below(keys, prefix + nibble),
                )
    layout = layout_of(keys)
    found = {}
    for slot in layout.slots:
        at = list(range(slot.low, slot.high))
        found[keys[slot.low].hex()[: slot.depth]] = (*layout.rows[slot.row], slot.place, at)
    assert found == wanted
    assert len(layout.slots) == len(wanted)
    for key, path in zip(keys, layout.paths, strict=True):
        assert {
            depth: keys[layout.slots[index].low].hex()[:depth] for depth, index in path.items()
        } == {depth: key.hex()[:depth] for depth in range(1, 65) if key.hex()[:depth] in wanted}
        assert list(path) == sorted(path), "shallowest first"


@pytest.mark.parametrize("keys", SETS, ids=len)
def test_a_key_is_alone_after_the_last_nibble_that_it_shares(
    keys: tuple[PubsubKey, ...],
) -> None:
    alone = tuple(
        next(d for d in range(65) if below(keys, key.hex()[:d]) == [at])
        for at, key in enumerate(keys)
    )
    assert layout_of(keys).alone == alone


@pytest.mark.parametrize("depth", range(65))
def test_a_leaf_is_identified_by_its_entrys_hash_wherever_it_starts(depth: int) -> None:
    key, entry_hash = bytes(range(0x71, 0x91)), Hash(b"e" * 32)
    leaf = node_head(HASHED_LEAF, 64 - depth) + pack(key.hex()[depth:]) + entry_hash
    assert leaf_reference(key, depth, entry_hash) == blake2_256(leaf)


Q = ParaId(1001)
ROW = LastDelivered(Hash(b"h" * 32), 7, RelayBlockNumber(8))


def test_publishers_whose_keys_are_one_object_have_rows_of_their_own() -> None:
    keys = tuple(numbered(3))
    spec = replace(make_spec(), subscriptions={P: keys, Q: keys})
    storage = Storage(State())
    delivered.put(storage, spec, P, keys[1], ROW)
    assert delivered.get(storage, spec, Q, keys[1]) is None
    assert delivered.get(storage, spec, P, keys[1]) == ROW


def test_a_packed_row_is_stored_under_its_key_sets_mark_and_number() -> None:
    keys = tuple(numbered(2 * delivered.PACK + 1))
    spec = replace(make_spec(), subscriptions={P: keys})
    storage = Storage(State())
    delivered.put(storage, spec, P, keys[delivered.PACK + 2], ROW)
    delivered.put(storage, spec, P, keys[-1], ROW)
    place = items.LAST_DELIVERED_PACKED.prefix_for(P) + key_set_hash(keys)[:8]
    cell = b"h" * 32 + bytes((7, 0, 0, 0)) + bytes((8, 0, 0, 0))
    assert dict(storage.iter_prefix(items.LAST_DELIVERED_PACKED.prefix)) == {
        place + bytes((1, 0, 0, 0)): bytes(80) + cell + bytes(13 * 40),
        place + bytes((2, 0, 0, 0)): cell,
    }


@each_policy
def test_nothing_is_known_of_keys_that_are_not_subscribed(policy: str) -> None:
    below, known, between, last, above = numbered(5)
    spec = make_spec({P: [known, last]}, cache=policy)
    storage = Storage(State())
    for key in (known, last):
        delivered.put(storage, spec, P, key, ROW)
    found = {
        key: delivered.get(storage, spec, P, key) for key in (below, known, between, last, above)
    }
    assert found == {below: None, known: ROW, between: None, last: ROW, above: None}


@each_policy
def test_rows_are_forgotten_by_their_keys_and_none_is_read(policy: str) -> None:
    """PS-45: to look for rows would be to read them."""
    keys = tuple(numbered(40))
    storage = Storage(State())
    for key in keys:
        delivered.put(storage, make_spec({P: keys}, cache=policy), P, key, ROW)
    storage.commit()
    storage.start_recording()
    delivered.clear(storage, P, keys)
    assert storage.recorded == {}
    assert not dict(storage.iter_prefix(b""))


@each_policy
def test_a_row_asked_for_twice_is_charged_once(policy: str) -> None:
    """PS-45: the hash of a leaf is looked up first, then the entry that it stands for."""
    keys = numbered(3)
    spec = make_spec({P: keys}, cache=policy)
    storage = Storage(State())
    delivered.put(storage, spec, P, keys[1], ROW)
    meter = Meter(spec, {}, PLENTY)
    reader = SubscriberView(storage, spec).delivered(meter, P, tuple(keys))
    assert (reader.read(1), reader.read(1)) == (ROW.entry_hash, ROW.entry_hash)
    assert reader.charges == meter.used == ROW_COST + (3 * 40 if policy == "slots" else 0)
