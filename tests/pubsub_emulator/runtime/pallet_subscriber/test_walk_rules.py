"""PS-40 to PS-45, PS-50 to PS-55: the walk's order, what it reads, what that costs, where it stops,
that it gets on.
"""

import random

import pytest
from support.runtime.page_verifier import INFO_ROW, cost
from support.runtime.world import (
    ME,
    Relay,
    Subscriber,
    each_policy,
    entry,
    filled,
    make_spec,
    numbered,
)

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import entry_length, node_cost
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG, hrmp_ingress_channel_index
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MIN_BUDGET,
    ROW_COST,
    ImpossibleConfig,
    integrity_test,
    largest_structure,
)
from pubsub_emulator.runtime.pallet_subscriber.meter import Cut, Meter, NeededNode, Stopped
from pubsub_emulator.trie import Trie


def at(subscriber: Subscriber, para: int, key: bytes) -> None:
    """Put the cursor on an item."""
    items.PROCESSING_CURSOR.put(subscriber.storage, (ParaId(para), PubsubKey(key)))


def test_without_a_cursor_the_walk_begins_with_the_lowest_publisher_even_0_ps40() -> None:
    subscriber = Subscriber(make_spec({1: numbered(1), 0: numbered(1)}))
    assert list(subscriber.plan(Relay(1)).publishers) == [0, 1]


@each_policy
def test_a_publishers_charges_add_up_when_the_walk_returns_to_it(policy: str) -> None:
    """PS-40, PS-45: from the cursor to the last key, and at the end of the round from the first key
    to the cursor.
    """
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache=policy))
    contents = filled(keys)
    subscriber.block(Relay(1, {1000: contents, 1001: contents}))
    split = next(
        i for i in range(20, 40) if keys[i - 1][0] >> 4 == keys[i][0] >> 4
    )  # with a node above both stretches
    at(subscriber, 1000, keys[split])
    walked = subscriber.plan(
        Relay(2, {1000: contents | filled(keys[:3], b"x"), 1001: filled(keys, b"w")})
    )
    assert walked.cursor is None
    shares = walked.publishers.values()
    nodes = sum(
        share.top_path_bytes + share.child_node_bytes + share.value_bytes for share in shares
    )
    assert nodes == sum(cost(node) for node in walked.taken.values()) - walked.static_bytes
    assert all(share.top_path_bytes > 0 for share in shares)
    rows = sum(share.row_charges + share.cache.charges for share in shares)
    assert walked.used == walked.map_charges + nodes + rows
    if policy == "nodes":
        for share in shares:
            cached = [
                cost(node) + ROW_COST
                for node_hash, node in share.visited.items()
                if node_hash not in walked.taken
            ]
            assert share.cache.charges == INFO_ROW + sum(cached), "no node is charged twice"


def test_static_keys_are_read_out_of_inline_nodes_too() -> None:
    """PS-44: a short list of channels stands in the branch above it."""
    values = {
        hrmp_ingress_channel_index(ParaId(para)): b"\x04" + (77).to_bytes(4, "little")
        for para in (ME, ME + 1)
    }
    relay = Relay(1, top=values)
    assert sum(value in node for node in relay.nodes.values() for value in values.values()) == 2, (
        "one node holds both"
    )
    assert list(Subscriber(make_spec()).plan(relay).statics.hrmp_heads) == [77]


def test_cache_reads_that_are_not_metered_cost_nothing() -> None:
    """PS-43: `meter_cache_reads = false` is the design as it was written, for comparison."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys}, cache="nodes", meter_cache_reads=False))
    subscriber.block(Relay(1, {1000: filled(keys)}))
    share = subscriber.block(Relay(2, {1000: filled(keys) | {keys[7]: entry()}})).plan.publishers[
        ParaId(1000)
    ]
    assert share.cache.charges == 0
    assert share.cache.saved > 0
    assert make_spec().meter_cache_reads


def test_static_keys_come_first_and_cost_the_budget_nothing_ps44() -> None:
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


def test_a_value_equal_to_a_cached_node_still_comes_from_the_proof() -> None:
    """PS-45: a value passed off as a node poisons nothing, for values are never looked up in the
    cache.
    """
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
    """PS-54: no publisher has keys of more than 32 bytes, but nothing is too strange to be
    walked.
    """
    keys = [PubsubKey(b"k" * 31 + last) for last in (b"\x00", b"\x01")]
    trie = Trie.from_entries(
        [(keys[0], entry().encode()), *((keys[1] + more, b"x" * 40) for more in (b"\x10", b"\x20"))]
    )
    nodes: dict[Hash, bytes] = {}
    trie.prove([*keys, keys[1] + b"\x10"], nodes)
    relay = Relay(1, raw_roots={1000: trie.root()}, extra=nodes.values())
    assert Subscriber(make_spec({1000: keys}, cache=policy)).block(relay).keys == keys[:1]


KEYS = numbered(3)
CONFIG = b"c" * 40
CONTENTS = filled(KEYS[1:], b"w" * 40) | {KEYS[0]: entry(b"v" * 40)}
RELAY = Relay(1, {1000: CONTENTS}, top={ACTIVE_CONFIG: CONFIG})
VALUE = entry(b"v" * 40).encode()


@pytest.mark.parametrize(
    ("name", "key", "depth"),
    [
        (blake2_256(CONFIG), ACTIVE_CONFIG, 2 * len(ACTIVE_CONFIG)),
        (RELAY.child_roots[1000], KEYS[0], 0),
        (blake2_256(VALUE), KEYS[0], 64),
    ],
    ids=["value of a static key", "child root", "value of an item"],
)
def test_a_missing_node_is_named_with_its_key_and_where_it_starts(
    name: Hash, key: bytes, depth: int
) -> None:
    subscriber = Subscriber(make_spec({1000: KEYS}))
    nodes = {at: node for at, node in RELAY.nodes.items() if at != name}
    assert subscriber.plan(RELAY, nodes=nodes).missing == NeededNode(name, key, depth)


def test_a_publisher_that_cannot_be_read_is_not_called_unchanged() -> None:
    share = (
        Subscriber(make_spec({1000: KEYS}))
        .plan(Relay(1, raw_roots={1000: b"short"}))
        .publishers[ParaId(1000)]
    )
    assert share.disabled is not None
    assert not share.unchanged


def test_a_missing_root_starts_at_the_first_nibble() -> None:
    subscriber = Subscriber(make_spec({1000: KEYS}))
    walked = subscriber.plan(RELAY, nodes={})
    missing = walked.missing
    assert missing is not None
    assert (walked.used, walked.map_charges, walked.static_bytes) == (0, 0, 0)
    assert (missing.node_hash, missing.depth) == (RELAY.root, 0)


def test_ps_52_a_node_that_is_not_there_is_charged_nothing() -> None:
    meter = Meter(make_spec(), {}, 1_048_576)
    with pytest.raises(Cut) as cut:
        meter.read(blake2_256(b""), b"key", 3)
    assert (meter.used, cut.value.missing.depth) == (0, 3)


def test_ps51_the_last_byte_of_the_budget_may_be_charged_but_not_more() -> None:
    """Collator and chain stop at the same byte, whether they ask before a charge or after it."""
    meter = Meter(make_spec(), {}, 1_048_576)
    room = meter.room()
    assert room == 1_048_576 - make_spec().max_item_cost - ROW_COST
    assert meter.has_room(room)
    assert not meter.has_room(room + 1)
    meter.used = room
    meter.check()
    assert meter.has_room(0)
    assert (meter.room(), meter.has_room(1)) == (0, False)
    with pytest.raises(Cut):  # the read is allowed, so the node is looked for
        meter.read(blake2_256(b""), b"key", 3)
    meter.used = room + 1
    assert (meter.room(), meter.has_room(0)) == (0, False)
    with pytest.raises(Stopped):
        meter.check()
    with pytest.raises(Stopped):
        meter.read(blake2_256(b""), b"key", 3)


@pytest.mark.parametrize("length", [0, 63, 64, 16_383, 16_384, 70_000])
def test_a_node_is_charged_its_length_and_the_prefix_of_its_length(length: int) -> None:
    """PS-43: the walk has a short way to this figure, which must not part from it where the prefix
    grows.
    """
    node = b"n" * length
    name = blake2_256(node)
    meter = Meter(make_spec(), {name: node}, 1_048_576)
    assert meter.read(name, b"key", 0) == node
    assert meter.used == len(scale.encode_bytes(node)) == node_cost(length)
    assert meter.taken == {name: node}


RESERVE = 600 + ROW_COST
"""What the stop rule keeps free when values are short."""


def short(subs: dict[int, list[bytes]], **changes: object) -> Subscriber:
    return Subscriber(make_spec(subs, max_value_length=256, **changes))  # type: ignore[arg-type]


def test_the_budget_is_what_messages_leave_and_never_under_a_mebibyte_ps50() -> None:
    spec = make_spec()
    assert spec.allowed_pov == 10 * 1024 * 1024 * 85 // 100
    assert spec.budget(0) == spec.allowed_pov
    assert spec.budget(2) == spec.allowed_pov - 2
    assert spec.budget(spec.allowed_pov - MIN_BUDGET) == MIN_BUDGET
    assert spec.budget(spec.allowed_pov - MIN_BUDGET - 1) == MIN_BUDGET + 1
    assert (
        spec.budget(spec.allowed_pov)
        == spec.budget(2 * spec.allowed_pov)
        == MIN_BUDGET
        == 1_048_576
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"max_pov_size": 5 * 2**20}, "reserve_minimum"),
        ({"max_pov_size": 5 * 2**20 + 2**20, "reserve_minimum": False}, "reserve_minimum"),
        ({"max_pov_size": 2**20, "reserve_minimum": True}, "no room"),
        ({"cache": "nodes", "max_cache_bytes": largest_structure(1024) - 1}, "max_cache_bytes"),
        ({"cache": "nodes", "max_stored_keys": 2000}, "never complete"),
        ({"max_value_length": 900_000}, "never complete"),
        ({"max_trie_depth": 4000}, "never complete"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_with_figures(
    changes: dict[str, object], reason: str
) -> None:
    """PS-50, PS-62."""
    with pytest.raises(ImpossibleConfig, match=reason) as refused:
        integrity_test(make_spec(**changes))  # type: ignore[arg-type]
    assert any(character.isdigit() for character in str(refused.value))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {},
            id="shipped",
        ),
        pytest.param(
            {"max_pov_size": 5 * 2**20, "reserve_minimum": True},
            id="reserved minimum",
        ),
        pytest.param(
            {"cache": "nodes", "max_cache_bytes": largest_structure(1024)},
            id="node cache",
        ),
        pytest.param(
            {"cache": "none", "max_cache_bytes": 0},
            id="no cache",
        ),
        pytest.param(
            {"max_trie_depth": None},
            id="no depth limit",
        ),
    ],
)
def test_what_can_work_is_accepted_ps50_ps62(changes: dict[str, object]) -> None:
    spec = make_spec(**changes)  # type: ignore[arg-type]
    integrity_test(spec)
    if spec.reserve_minimum:
        assert spec.allowed_pov == 5 * 2**20 * 85 // 100 - MIN_BUDGET


def test_the_largest_structure_bounds_every_trie_within_the_promised_size() -> None:
    """PS-62: under 0.67 MB with charges for 1,024 keys."""
    keys = 1024
    assert largest_structure(keys) + (2 * keys - 1) * ROW_COST + keys * ROW_COST < 670_000
    dice = random.Random(5)
    for shape in range(12):
        texts = set()
        while len(texts) < 40:  # keys that part late and early, in all mixtures
            prefix = bytes(dice.choices((0, 1, 16), k=dice.randrange(32)))
            texts.add(
                (prefix + dice.randbytes(32))[:32]
                if shape % 2
                else (prefix + bytes(32))[:31] + dice.randbytes(1)
            )
        relay = Relay(1, {1000: {key: entry(b"v" * 60) for key in texts}})
        subscriber = Subscriber(make_spec({1000: texts}, cache="nodes", max_trie_depth=None))
        subscriber.block(relay)
        assert sum(map(cost, subscriber.cached(1000).values())) <= largest_structure(40)


def test_max_item_cost_covers_a_branch_and_the_largest_entry() -> None:
    """PS-51: 2,060 bytes at the defaults, 600 at least; under `slots` at least a packed row."""
    assert make_spec().max_item_cost == 2060 == node_cost(entry_length(2048))
    assert make_spec(max_value_length=10, cache="nodes").max_item_cost == 600
    assert make_spec(max_value_length=10, cache="none").max_item_cost == 600
    assert make_spec(max_value_length=10, cache="slots").max_item_cost == 16 * 40
    assert node_cost(entry_length(1 << 16)) == make_spec(max_value_length=1 << 16).max_item_cost


def test_a_node_larger_than_the_reserve_is_read_whole_and_charged_whole() -> None:
    """PS-51: the relay chain's limits were raised; the collator may not leave it out."""
    keys = numbered(3)
    subscriber = short({1000: keys}, cache="none")
    big = entry(b"b" * 50_000)
    relay = Relay(1, {1000: filled(keys) | {keys[1]: big}})
    small = Relay(1, {1000: filled(keys)})
    needed = subscriber.plan(small).used
    walked = subscriber.plan(relay, needed + RESERVE)
    assert blake2_256(big.encode()) in walked.taken
    assert walked.used > walked.budget
    assert walked.cursor == (1000, keys[2])


@each_policy
def test_thousands_of_keys_over_many_publishers_are_caught_up_within_the_bound(policy: str) -> None:
    """PS-55: constant state is delivered in max(1, ceil((S + n * ROW_COST) / E)) blocks."""
    keys, paras, budget = numbered(250), range(1000, 1010), MIN_BUDGET // 4
    relay = Relay(1, {para: filled(keys, b"%d" % para * 10) for para in paras})
    subscriber = Subscriber(make_spec(dict.fromkeys(paras, keys), cache=policy))
    shares = subscriber.plan(relay).publishers.values()
    size = sum(share.child_node_bytes + share.value_bytes for share in shares)
    overhead = sum(share.top_path_bytes for share in shares) + 2 * (ROW_COST + 2 + 36 * 10)
    overhead += (
        6 * (566 + ROW_COST) + 12 + ROW_COST
    )  # the deepest path here, with the charges of a cache
    rows = (
        2500 * ROW_COST
        + 10 * (12 + ROW_COST)
        + (2500 // 16 + 10) * (640 + ROW_COST) * (policy == "slots")
    )
    most = -(-(size + rows) // (budget - 2060 - ROW_COST - overhead))
    seen: list[tuple[int, bytes]] = []
    blocks = 0
    while not blocks or subscriber.cursor is not None:
        blocks += 1
        seen += subscriber.block(relay, budget).items
    assert 1 < blocks <= most + 1
    assert len(seen) == len(set(seen)) == 2500
    assert subscriber.block(relay).deliveries == ()
    assert set(subscriber.roots) == set(paras)


@each_policy
def test_a_publisher_that_rewrites_everything_each_block_starves_nobody(policy: str) -> None:
    """PS-55, D publisher_rapid_changes, defect 8: overload neither hides nor repeats an item."""
    keys = numbered(60)
    quiet = numbered(20, 100)
    publishers = {1000: filled(keys), 2000: filled(quiet)}
    subscriber = short({1000: keys, 2000: quiet}, cache=policy)
    seen: dict[bytes, int] = {}
    visited: dict[bytes, int] = {}
    for number in range(1, 40):
        publishers[1000] = filled(keys, b"%d" % number * 60, number)
        step = subscriber.block(Relay(number, publishers), 9000)
        for publisher, key in step.items:
            visited[key] = number
            if publisher == 2000:
                seen[key] = seen.get(key, 0) + 1
    assert seen == dict.fromkeys(quiet, 1)
    assert set(visited) == set(keys) | set(quiet)
    assert min(visited[key] for key in keys) > 39 - 20
