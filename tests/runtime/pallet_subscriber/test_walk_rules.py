"""PS-40 to PS-45: in which order the walk goes, what it reads, what that costs."""

from support.page_verifier import INFO_ROW, cost
from support.world import ME, PLENTY, Relay, Subscriber, each_policy, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import publisher_root_key
from pubsub_emulator.primitives.storage_keys import hrmp_ingress_channel_index
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST
from pubsub_emulator.trie import Trie, read_proof


def at(subscriber: Subscriber, para: int, key: bytes) -> None:
    """Put the cursor on an item."""
    items.PROCESSING_CURSOR.put(subscriber.storage, (ParaId(para), PubsubKey(key)))


# PS-40


@each_policy
def test_publishers_go_by_id_so_system_ones_first_and_keys_bytewise(policy: str) -> None:
    """PS-40, B47, B62, D keys_sorted_within_publisher, D non_system_randomized: no order is random here."""
    keys = numbered(6)
    subs = {3000: keys, 999: keys[::-1], 2000: keys, 1999: keys}
    subscriber = Subscriber(make_spec(subs, cache=policy))
    relay = Relay(1, {para: filled(keys) for para in subs})
    assert subscriber.block(relay).items == [(para, key) for para in (999, 1999, 2000, 3000) for key in sorted(keys)]


def test_without_a_cursor_the_walk_begins_with_the_lowest_publisher_be_it_number_nought() -> None:
    """PS-40."""
    subscriber = Subscriber(make_spec({1: numbered(1), 0: numbered(1)}))
    assert list(subscriber.plan(Relay(1)).publishers) == [0, 1]


@each_policy
def test_the_walk_starts_at_the_cursor_and_wraps_round_to_it(policy: str) -> None:
    """PS-40, B55, D cursor_wrap_around."""
    keys = numbered(4)
    everything = [(para, key) for para in (1000, 1001, 1002) for key in keys]
    for start in range(len(everything)):
        subscriber = Subscriber(make_spec(dict.fromkeys((1000, 1001, 1002), keys), cache=policy))
        at(subscriber, *everything[start])
        relay = Relay(1, {para: filled(keys) for para in (1000, 1001, 1002)})
        assert subscriber.block(relay).items == everything[start:] + everything[:start]
        assert subscriber.cursor is None
        assert set(subscriber.roots) == {1000, 1001, 1002}


def test_a_stop_outranks_the_preference_for_system_publishers() -> None:
    """PS-40, defect 11: kept on purpose, for a system publisher that rewrites everything must not starve the others."""
    keys = numbered(20)
    subscriber = Subscriber(make_spec({1000: keys, 2000: keys}, cache="none"))
    relay = Relay(1, {1000: filled(keys), 2000: filled(keys)})
    first = subscriber.block(relay, budget=9000)
    assert first.cursor is not None
    rest = subscriber.block(relay, budget=9000)
    assert rest.items[0] == first.cursor
    assert not set(first.items) & set(rest.items)


@each_policy
def test_a_cursor_on_an_item_no_longer_subscribed_means_the_next_item(policy: str) -> None:
    """PS-40, PS-63, D cursor_with_subscription_change, defect 12: the next item in order, never index 0."""
    keys = numbered(6)
    relay = Relay(1, {para: filled(keys) for para in (1000, 1001)})
    for cursor, first in (
        ((1000, keys[2]), (1000, keys[3])),  # that very key is gone
        ((1000, b"\xff" * 32), (1001, keys[0])),  # beyond the last key of its publisher
        ((1000, b"\x00" * 32), (1000, keys[0])),
        ((999, keys[5]), (1000, keys[0])),  # the whole publisher is gone
        ((1002, keys[0]), (1000, keys[1])),  # beyond the last publisher
    ):
        wanted = [key for key in keys if key != cursor[1]]
        subscriber = Subscriber(make_spec({1000: wanted, 1001: wanted}, cache=policy))
        at(subscriber, *cursor)
        order = subscriber.block(relay).items
        assert order[0] == first
        assert len(order) == len(set(order)) == 2 * len(wanted)


def test_alternating_subscriptions_starve_no_item() -> None:
    """Defect 12: while the key set flips each block, the cursor still gets round."""
    keys = numbered(24)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes"))
    relay = Relay(1, {1000: filled(keys)})
    seen: set[bytes] = set()
    for flip in range(12):
        subscriber.upgrade(subscriptions={1000: keys if flip % 2 else keys[:2] + keys[3:]})
        seen.update(subscriber.block(relay, budget=9000).keys)
    assert seen == set(keys)


# PS-41, PS-42


@each_policy
def test_an_unchanged_root_is_proven_by_its_top_path_and_nothing_of_the_trie_is_read(policy: str) -> None:
    """PS-41, B4, B61, D unchanged_subtree_skipped, D cache_survives_no_changes."""
    keys = numbered(10)
    subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
    publishers = {1000: filled(keys)}
    subscriber.block(Relay(1, publishers))
    before = subscriber.cached(1000), subscriber.slots(1000), subscriber.roots
    step = subscriber.block(relay := Relay(2, publishers))
    assert step.deliveries == ()
    assert step.plan.publishers[ParaId(1000)].unchanged
    assert step.plan.publishers[ParaId(1000)].child_node_bytes == 0
    key = publisher_root_key(ParaId(1000))
    assert read_proof(relay.root, step.plan.proof(), [key])[key] == relay.child_roots[1000]
    assert relay.child_roots[1000] not in step.plan.taken
    assert (subscriber.cached(1000), subscriber.slots(1000), subscriber.roots) == before


@each_policy
def test_an_absent_publisher_is_proven_so_and_stands_for_the_empty_trie(policy: str) -> None:
    """PS-42, B17, B67, B68: never present means nothing is delivered, and the root counts as any other."""
    keys = numbered(10)
    subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
    step = subscriber.block(relay := Relay(1))
    assert step.deliveries == ()
    assert step.cursor is None
    assert subscriber.roots == {1000: EMPTY_TRIE_ROOT}
    key = publisher_root_key(ParaId(1000))
    assert read_proof(relay.root, step.plan.proof(), [key])[key] is None
    again = subscriber.block(Relay(2)).plan.publishers[ParaId(1000)]
    assert again.unchanged
    assert again.row_charges == 0


@each_policy
def test_what_a_vanished_publisher_had_delivered_is_removed_item_by_item(policy: str) -> None:
    """PS-42, PS-64, D deregister while subscribers active."""
    keys = numbered(10)
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache=policy))
    subscriber.block(Relay(1, {1000: filled(keys[:7]), 1001: filled(keys)}))
    step = subscriber.block(Relay(2, {1001: filled(keys)}))
    assert [(d.key, d.kind) for d in step.deliveries] == [(key, "removed") for key in keys[:7]]
    gone = step.plan.publishers[ParaId(1000)]
    assert gone.child_node_bytes == gone.value_bytes == 0
    assert gone.row_charges == (10 * ROW_COST if policy != "slots" else ROW_COST + 10 * 40)
    assert subscriber.cached(1000) == {}
    assert {para for para, _ in subscriber.last()} == {1001}
    subscriber.block(Relay(3))
    assert subscriber.delivered_rows() == 0


def test_the_cache_of_an_absent_publisher_goes_at_once_even_when_the_walk_stops_before_its_end() -> None:
    """PS-42: "its cache is dropped at once", not only when every item was visited."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes"))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    assert subscriber.cached(1000)
    step = subscriber.block(Relay(2), budget=6000)
    assert step.cursor is not None
    assert 0 < len(step.deliveries) < 40
    assert subscriber.cached(1000) == {}
    assert subscriber.roots == {}
    rest = subscriber.block(Relay(3))
    assert [d.kind for d in (*step.deliveries, *rest.deliveries)] == ["removed"] * 40
    assert subscriber.roots == {1000: EMPTY_TRIE_ROOT}


# PS-43 to PS-45


def test_what_a_first_walk_is_charged_adds_up_to_nodes_values_rows_and_maps() -> None:
    """PS-43, PS-45, B50, defect 19: whole nodes are charged, with their length prefixes."""
    keys = numbered(30)
    for policy in ("none", "nodes"):
        subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
        relay = Relay(1, {1000: filled(keys)})
        walked = subscriber.plan(relay)
        statics = {blake2_256(n) for n in static_nodes(relay)}
        nodes = sum(cost(node) for node_hash, node in walked.taken.items() if node_hash not in statics)
        assert walked.used == 2 * ROW_COST + 30 * ROW_COST + nodes
        share = walked.publishers[ParaId(1000)]
        assert share.top_path_bytes + share.child_node_bytes + share.value_bytes == nodes
        assert walked.static_bytes == sum(cost(node) for node in static_nodes(relay))


@each_policy
def test_what_a_publisher_is_charged_adds_up_when_the_walk_comes_back_to_it(policy: str) -> None:
    """PS-40, PS-45: from the cursor to the last key, and at the end of the round from the first key to the cursor."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache=policy))
    contents = filled(keys)
    subscriber.block(Relay(1, {1000: contents, 1001: contents}))
    split = next(i for i in range(20, 40) if keys[i - 1][0] >> 4 == keys[i][0] >> 4)  # with a node above both stretches
    at(subscriber, 1000, keys[split])
    walked = subscriber.plan(Relay(2, {1000: contents | filled(keys[:3], b"x"), 1001: filled(keys, b"w")}))
    assert walked.cursor is None
    shares = walked.publishers.values()
    nodes = sum(share.top_path_bytes + share.child_node_bytes + share.value_bytes for share in shares)
    assert nodes == sum(cost(node) for node in walked.taken.values()) - walked.static_bytes
    assert all(share.top_path_bytes > 0 for share in shares)
    rows = sum(share.row_charges + share.cache.charges for share in shares)
    assert walked.used == walked.map_charges + nodes + rows
    if policy == "nodes":
        for share in shares:
            cached = [
                cost(node) + ROW_COST for node_hash, node in share.visited.items() if node_hash not in walked.taken
            ]
            assert share.cache.charges == INFO_ROW + sum(cached), "no node is charged twice"


def test_static_keys_are_read_out_of_inline_nodes_too() -> None:
    """PS-44: a short list of channels stands in the branch above it."""
    values = {hrmp_ingress_channel_index(ParaId(para)): b"\x04" + (77).to_bytes(4, "little") for para in (ME, ME + 1)}
    relay = Relay(1, top=values)
    assert sum(value in node for node in relay.nodes.values() for value in values.values()) == 2, "one node holds both"
    assert list(Subscriber(make_spec()).plan(relay).statics.hrmp_heads) == [77]


def static_nodes(relay: Relay) -> list[bytes]:
    return list(Subscriber(make_spec()).plan(relay).taken.values())


def test_a_node_that_two_publishers_share_is_charged_once_and_cached_under_both() -> None:
    """PS-43: whoever took it, and only in this block."""
    keys = numbered(12)
    shared = {key: entry(b"the same everywhere" * 3) for key in keys}
    alone = Subscriber(make_spec({1000: keys}, cache="nodes"))
    alone.block(Relay(1, {1000: shared}))
    both = Subscriber(make_spec({1000: keys, 1001: keys}, cache="nodes"))
    step = both.block(Relay(1, {1000: shared, 1001: shared}))
    first, second = step.plan.publishers.values()
    assert (second.child_node_bytes, second.value_bytes) == (0, 0)
    assert second.row_charges == first.row_charges == 12 * ROW_COST
    assert second.cache.charges == 0
    assert both.cached(1000) == both.cached(1001) == alone.cached(1000) != {}


def test_a_node_paid_for_by_another_publisher_out_of_its_cache_is_not_free() -> None:
    """PS-43: free is what was taken from the proof; a cached node only to the para that paid for it."""
    keys = numbered(12)
    shared = {key: entry(b"the same everywhere" * 3) for key in keys}
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache="nodes"))
    subscriber.block(Relay(1, {1000: shared, 1001: shared}))
    changed = shared | {keys[0]: entry(b"new" * 20)}
    step = subscriber.block(Relay(2, {1000: changed, 1001: changed}))
    first, second = step.plan.publishers.values()
    assert first.child_node_bytes > 0
    assert second.child_node_bytes == 0
    assert first.cache.charges == second.cache.charges > INFO_ROW


def test_a_cached_node_is_charged_its_cost_and_a_row_once_in_a_block() -> None:
    """PS-43."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes"))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    cached = subscriber.cached(1000)
    step = subscriber.block(relay := Relay(2, {1000: filled(keys) | {keys[7]: entry(b"new" * 20)}}))
    hits = {h: node for h, node in cached.items() if h in relay.nodes}
    share = step.plan.publishers[ParaId(1000)]
    assert share.cache.charges == INFO_ROW + sum(cost(node) + ROW_COST for node in hits.values())
    assert share.cache.saved == sum(map(cost, hits.values()))
    assert not set(hits) & set(step.plan.taken)
    assert step.keys == [keys[7]]


def test_cache_reads_that_are_not_metered_cost_nothing() -> None:
    """PS-43: `meter_cache_reads = false` is the design as it was written, for comparison."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes", meter_cache_reads=False))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    share = subscriber.block(Relay(2, {1000: filled(keys) | {keys[7]: entry()}})).plan.publishers[ParaId(1000)]
    assert share.cache.charges == 0
    assert share.cache.saved > 0
    assert make_spec().meter_cache_reads


@each_policy
def test_absence_is_proven_by_the_path_to_the_divergence(policy: str) -> None:
    """PS-43, B17: an absent key has its path read, charged and cached like any other."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys[1::2]}, cache=policy))
    relay = Relay(1, {1000: filled(keys[::2])})
    step = subscriber.block(relay)
    assert step.deliveries == ()
    assert step.plan.publishers[ParaId(1000)].child_node_bytes > 0
    assert subscriber.roots == {1000: relay.child_roots[1000]}
    found = read_proof(relay.child_roots[1000], step.plan.proof(), keys[1::2])
    assert set(found.values()) == {None}
    if policy == "nodes":
        assert set(subscriber.cached(1000)) < set(step.plan.taken)


def test_static_keys_come_first_and_cost_the_budget_nothing() -> None:
    """PS-44."""
    top = {key: bytes([i]) * 50 for i, key in enumerate(fixed_keys(ME)) if i not in {4, 5}}
    relay = Relay(1, {1000: filled(numbered(3))}, top=top)
    nothing = Subscriber(make_spec())
    walked = nothing.plan(relay, budget=0)
    assert walked.cursor is None
    assert walked.used == walked.map_charges == 2 * ROW_COST
    assert {*map(blake2_256, top.values())} <= {*walked.taken}  # detached values too
    assert walked.statics.values == dict.fromkeys(fixed_keys(ME)) | top
    more = Subscriber(make_spec({1000: numbered(3)})).plan(relay)
    assert list(more.taken)[: len(walked.taken)] == list(walked.taken)
    assert more.static_bytes == sum(map(cost, walked.taken.values()))


def test_the_pre_state_maps_are_charged_their_length_and_a_row_each_before_the_walk() -> None:
    """PS-45."""
    keys = numbered(2)
    paras = range(1000, 1100)
    subscriber = Subscriber(make_spec(dict.fromkeys(paras, keys)))
    relay = Relay(1, {para: filled(keys) for para in paras})
    assert subscriber.block(relay).plan.map_charges == 2 * ROW_COST
    assert subscriber.plan(relay).map_charges == 2 * (ROW_COST + 2 + 100 * 36)


@each_policy
def test_a_value_is_not_read_when_the_leaf_names_the_hash_last_delivered(policy: str) -> None:
    """PS-45, B3, D value_change_detected: a changed leaf brings its value, and only that value."""
    keys = numbered(30)
    subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    subscriber.call("clear_publisher_cache", 1000)
    changed = filled(keys) | {keys[3]: entry(b"\x22" * 100)}
    step = subscriber.block(Relay(2, {1000: changed}))
    new = entry(b"\x22" * 100).encode()
    assert [(d.key, d.value) for d in step.deliveries] == [(keys[3], b"\x22" * 100)]
    assert step.plan.publishers[ParaId(1000)].value_bytes == cost(new)
    old_values = {blake2_256(e.encode()) for e in filled(keys).values() if not isinstance(e, bytes)}
    assert not old_values & set(step.plan.taken)


def test_detached_values_are_never_cached() -> None:
    """PS-45, D external_data_not_cached, defect 15."""
    keys = numbered(20)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes"))
    step = subscriber.block(Relay(1, {1000: filled(keys)}))
    values = {blake2_256(e.encode()) for e in filled(keys).values() if not isinstance(e, bytes)}
    assert values < set(step.plan.taken)
    assert not values & set(subscriber.cached(1000))


def test_a_value_that_is_the_bytes_of_a_cached_node_still_comes_from_the_proof() -> None:
    """PS-45: a value passed off as a node poisons nothing, for values are never looked up in the cache."""
    keys = numbered(8)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes"))
    relay = Relay(1, {1000: filled(keys)})
    subscriber.block(relay)
    root_node = relay.nodes[relay.child_roots[1000]]  # type: ignore[index]
    assert root_node in subscriber.cached(1000).values()
    step = subscriber.block(Relay(2, {1000: filled(keys) | {keys[0]: root_node}}))
    assert blake2_256(root_node) in step.plan.taken
    assert step.plan.publishers[ParaId(1000)].value_bytes == cost(root_node)
    assert subscriber.disabled == {1000: "Undecodable"}
    assert step.deliveries == ()


def test_each_item_walked_reads_its_row_once_present_or_absent() -> None:
    """PS-45."""
    keys = numbered(25)
    for policy, rows in (("none", 25 * ROW_COST), ("nodes", 25 * ROW_COST), ("slots", 2 * ROW_COST)):
        subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
        step = subscriber.block(Relay(1, {1000: filled(keys[:9])}))
        assert step.plan.publishers[ParaId(1000)].row_charges == rows


@each_policy
def test_a_branch_where_a_key_ends_holds_nothing_of_it(policy: str) -> None:
    """PS-54: no publisher has keys of more than 32 bytes, but nothing is too strange to be walked."""
    keys = [PubsubKey(b"k" * 31 + last) for last in (b"\x00", b"\x01")]
    trie = Trie.from_entries(
        [(keys[0], entry().encode()), *((keys[1] + more, b"x" * 40) for more in (b"\x10", b"\x20"))]
    )
    nodes: dict[Hash, bytes] = {}
    trie.prove([*keys, keys[1] + b"\x10"], nodes)
    relay = Relay(1, raw_roots={1000: trie.root()}, extra=nodes.values())
    assert Subscriber(make_spec({1000: keys}, cache=policy)).block(relay).keys == keys[:1]


@each_policy
def test_a_branch_as_long_as_one_of_hashes_is_read_as_what_it_is(policy: str) -> None:
    """PS-54: no honest trie has an inline child longer than a hash, and the codec accepts it."""
    key = PubsubKey(b"\x01" + b"k" * 31)
    value = entry(b"").encode()
    leaf = bytes((0x40 | 62,)) + key[1:] + bytes((len(value) << 2,)) + value
    other = bytes(64 - len(leaf))
    children = b"".join(bytes((len(child) << 2,)) + child for child in (leaf, other))
    branch = b"\x80\x06\x00" + children
    assert len(branch) == 3 + 2 * 33
    root = b"\x80\x01\x00\x80" + blake2_256(branch)
    relay = Relay(1, raw_roots={1000: blake2_256(root)}, extra=(root, branch))
    assert Subscriber(make_spec({1000: [key]}, cache=policy)).block(relay).keys == [key]


@each_policy
def test_inline_and_detached_entries_are_delivered_alike(policy: str) -> None:
    """PS-45, B65, B66: an entry stands in its leaf up to a value of 23 bytes, and 32 or 33 are both outside."""
    keys = numbered(5)
    values = [b"x" * n for n in (0, 23, 24, 32, 33)]
    subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
    relay = Relay(1, {1000: {key: entry(value) for key, value in zip(keys, values, strict=True)}})
    step = subscriber.block(relay)
    assert [d.value for d in step.deliveries] == values
    outside = [v for v in values if blake2_256(entry(v).encode()) in step.plan.taken]
    assert outside == values[2:]
    assert subscriber.block(Relay(2, {1000: {k: entry(v, 1) for k, v in zip(keys, values, strict=True)}})).keys == keys


@each_policy
def test_the_chain_walks_a_pruned_proof_exactly_as_the_collator_walked_everything(policy: str) -> None:
    """PS-52, B54, B45, B49, B58, D prune_verify_same_cursor, D prune_no_state_changes, defect 10."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache=policy))
    relay = Relay(1, {1000: filled(keys), 1001: filled(keys)})
    before = subscriber.storage.state.root()
    for budget in (0, 3000, 9000, 20_000, PLENTY):
        mine = subscriber.plan(relay, budget)
        chain = subscriber.plan(relay, budget, {blake2_256(node): node for node in mine.proof()})
        assert chain.missing is None
        assert (chain.used, chain.cursor, list(chain.taken)) == (mine.used, mine.cursor, list(mine.taken))
        assert chain.changes == mine.changes
        assert subscriber.storage.commit() == before
        assert subscriber.calls.calls == []
