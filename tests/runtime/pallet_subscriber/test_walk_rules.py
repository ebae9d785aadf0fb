"""PS-40 to PS-45: in which order the walk goes, what it reads, what that costs."""

from support.page_verifier import INFO_ROW, cost
from support.world import ME, Relay, Subscriber, each_policy, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import hrmp_ingress_channel_index
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST
from pubsub_emulator.trie import Trie


def at(subscriber: Subscriber, para: int, key: bytes) -> None:
    """Put the cursor on an item."""
    items.PROCESSING_CURSOR.put(subscriber.storage, (ParaId(para), PubsubKey(key)))


# PS-40


def test_without_a_cursor_the_walk_begins_with_the_lowest_publisher_be_it_number_nought() -> None:
    """PS-40."""
    subscriber = Subscriber(make_spec({1: numbered(1), 0: numbered(1)}))
    assert list(subscriber.plan(Relay(1)).publishers) == [0, 1]


# PS-41, PS-42


# PS-43 to PS-45


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


def test_cache_reads_that_are_not_metered_cost_nothing() -> None:
    """PS-43: `meter_cache_reads = false` is the design as it was written, for comparison."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes", meter_cache_reads=False))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    share = subscriber.block(Relay(2, {1000: filled(keys) | {keys[7]: entry()}})).plan.publishers[ParaId(1000)]
    assert share.cache.charges == 0
    assert share.cache.saved > 0
    assert make_spec().meter_cache_reads


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
