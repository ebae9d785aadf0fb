"""PS-50, PS-51 and PS-55: what may be used, where the walk stops, and that it always gets on."""

import random
from functools import lru_cache

import pytest
from support.page_verifier import cost
from support.world import Relay, Subscriber, each_policy, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import entry_length, node_cost
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MIN_BUDGET,
    ROW_COST,
    ImpossibleConfig,
    integrity_test,
    largest_structure,
)

RESERVE = 600 + ROW_COST
"""What the stop rule keeps free when values are short."""


def short(subs: dict[int, list[bytes]], **changes: object) -> Subscriber:
    return Subscriber(make_spec(subs, max_value_length=256, **changes))  # type: ignore[arg-type]


# PS-50


def test_the_budget_is_what_messages_leave_and_never_under_a_mebibyte() -> None:
    """PS-50."""
    spec = make_spec()
    assert spec.allowed_pov == 10 * 1024 * 1024 * 85 // 100
    assert spec.budget(0) == spec.allowed_pov
    assert spec.budget(2) == spec.allowed_pov - 2
    assert spec.budget(spec.allowed_pov - MIN_BUDGET) == MIN_BUDGET
    assert spec.budget(spec.allowed_pov - MIN_BUDGET - 1) == MIN_BUDGET + 1
    assert spec.budget(spec.allowed_pov) == spec.budget(2 * spec.allowed_pov) == MIN_BUDGET == 1_048_576


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
def test_a_configuration_that_cannot_work_is_refused_with_figures(changes: dict[str, object], reason: str) -> None:
    """PS-50, PS-62."""
    with pytest.raises(ImpossibleConfig, match=reason) as refused:
        integrity_test(make_spec(**changes))  # type: ignore[arg-type]
    assert any(character.isdigit() for character in str(refused.value))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_pov_size": 5 * 2**20, "reserve_minimum": True},
        {"cache": "nodes", "max_cache_bytes": largest_structure(1024)},
        {"cache": "none", "max_cache_bytes": 0},
        {"max_trie_depth": None},
    ],
)
def test_what_can_work_is_accepted(changes: dict[str, object]) -> None:
    """PS-50, PS-62."""
    spec = make_spec(**changes)  # type: ignore[arg-type]
    integrity_test(spec)
    if spec.reserve_minimum:
        assert spec.allowed_pov == 5 * 2**20 * 85 // 100 - MIN_BUDGET


def test_the_largest_structure_bounds_every_trie_and_stays_under_what_the_rules_promise() -> None:
    """PS-62: under 0.67 MB with charges for 1,024 keys."""
    keys = 1024
    assert largest_structure(keys) + (2 * keys - 1) * ROW_COST + keys * ROW_COST < 670_000
    dice = random.Random(5)
    for shape in range(12):
        texts = set()
        while len(texts) < 40:  # keys that part late and early, in all mixtures
            prefix = bytes(dice.choices((0, 1, 16), k=dice.randrange(32)))
            texts.add(
                (prefix + dice.randbytes(32))[:32] if shape % 2 else (prefix + bytes(32))[:31] + dice.randbytes(1)
            )
        relay = Relay(1, {1000: {key: entry(b"v" * 60) for key in texts}})
        subscriber = Subscriber(make_spec({1000: texts}, cache="nodes", max_trie_depth=None))
        subscriber.block(relay)
        assert sum(map(cost, subscriber.cached(1000).values())) <= largest_structure(40)


# PS-51


def test_max_item_cost_covers_a_branch_and_the_largest_entry() -> None:
    """PS-51: 2,060 bytes at the defaults, 600 at least; under `slots` at least a packed row."""
    assert make_spec().max_item_cost == 2060 == node_cost(entry_length(2048))
    assert make_spec(max_value_length=10, cache="nodes").max_item_cost == 600
    assert make_spec(max_value_length=10, cache="none").max_item_cost == 600
    assert make_spec(max_value_length=10, cache="slots").max_item_cost == 16 * 40
    assert node_cost(entry_length(1 << 16)) == make_spec(max_value_length=1 << 16).max_item_cost


@each_policy
def test_the_walk_stops_exactly_when_less_than_one_item_and_a_row_is_left(policy: str) -> None:
    """PS-51, D missing_node_at_limit_valid: one byte decides."""
    keys = numbered(20)
    relay = Relay(1, {1000: filled(keys)})
    subscriber = short({1000: keys}, cache=policy)
    maps = subscriber.plan(relay).map_charges
    reserve = subscriber.spec.max_item_cost + ROW_COST
    none = subscriber.plan(relay, maps + reserve - 1)
    assert (none.used, none.cursor) == (maps, (1000, keys[0]))
    one = subscriber.plan(relay, maps + reserve)
    assert one.used > maps
    assert one.cursor == (1000, keys[0])
    needed = subscriber.plan(relay).used
    last = list(subscriber.plan(relay).taken.values())[-1]
    before_last = needed - cost(last)
    assert subscriber.plan(relay, before_last + reserve).cursor is None
    assert subscriber.plan(relay, before_last + reserve - 1).cursor == (1000, keys[-1])


@each_policy
def test_a_budget_of_nothing_takes_only_the_static_keys_and_points_at_the_first_item(policy: str) -> None:
    """PS-51, B41, B42, B52, B53, B64, D incomplete_at_budget_limit: nothing is delivered, the cursor is set."""
    keys = numbered(5)
    relay = Relay(1, {1000: filled(keys)})
    for budget in (0, 1, 300):
        subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
        step = subscriber.block(relay, budget)
        assert step.deliveries == ()
        assert subscriber.cursor == (1000, keys[0])
        assert subscriber.roots == {}
        assert sum(map(cost, step.plan.taken.values())) == step.plan.static_bytes


@each_policy
def test_a_large_budget_delivers_everything_at_once(policy: str) -> None:
    """PS-51, B40, B51, D exact_budget_processes_all, D cursor_cleared_on_complete."""
    keys = numbered(10)
    relay = Relay(1, {1000: filled(keys)})
    subscriber = Subscriber(make_spec({1000: keys}, cache=policy))
    exact = subscriber.plan(relay).used + subscriber.spec.max_item_cost + ROW_COST
    items.PROCESSING_CURSOR.put(subscriber.storage, (ParaId(1000), keys[3]))
    step = subscriber.block(relay, exact)
    assert sorted(step.keys) == keys
    assert subscriber.cursor is None


@each_policy
def test_a_small_budget_delivers_the_first_items_and_the_next_block_goes_on(policy: str) -> None:
    """PS-51, B46, B56, D small_budget_processes_partial, D budget_exhausted_between_keys."""
    keys = numbered(10)
    relay = Relay(1, {1000: filled(keys)})
    subscriber = short({1000: keys}, cache=policy)
    two = next(b for b in range(1000, 9000, 10) if len(subscriber.plan(relay, b).changes) == 2)
    assert subscriber.block(relay, two).keys == keys[:2]
    assert subscriber.cursor == (1000, keys[2])
    assert subscriber.block(relay).keys == keys[2:]
    assert subscriber.cursor is None


@each_policy
def test_a_stop_in_the_middle_of_a_path_resumes_at_that_item(policy: str) -> None:
    """PS-51, PS-60, D budget_exhausted_mid_key: what the cut-off item had read stays in the proof."""
    near = [b"\x11" * n + bytes(32 - n) for n in range(32)]
    relay = Relay(1, {1000: filled(near)})
    subscriber = short({1000: near}, cache=policy, max_trie_depth=None)
    for budget in range(1100, 4000, 37):
        walked = subscriber.plan(relay, budget)
        assert walked.cursor is not None
        assert walked.used <= budget
        assert len(walked.changes) == sorted(near).index(walked.cursor[1])


@each_policy
def test_a_stop_between_publishers_leaves_the_first_complete(policy: str) -> None:
    """PS-51, PS-61, D budget_exhausted_between_publishers."""
    keys = numbered(10)
    relay = Relay(1, {1000: filled(keys), 1001: filled(keys)})
    subscriber = short({1000: keys, 1001: keys}, cache=policy)
    budget = next(b for b in range(2000, 20_000, 10) if len(subscriber.plan(relay, b).changes) == 10)
    step = subscriber.block(relay, budget)
    assert step.cursor == (1001, keys[0])
    assert subscriber.roots == {1000: relay.child_roots[1000]}


@each_policy
def test_no_more_than_the_budget_is_ever_used(policy: str) -> None:
    """PS-51, D consumed_weight_never_exceeds_limit, D meter_state_consistent_after_incomplete, defect 20."""
    keys = numbered(40)
    subscriber = Subscriber(make_spec({1000: keys, 1001: keys}, cache=policy))
    publishers = {1000: filled(keys, b"v" * 2000), 1001: filled(keys, b"w" * 10)}
    for number in range(1, 12):
        publishers[1000][keys[number]] = entry(b"n" * 2048, 0, number)
        relay = Relay(number, publishers)
        for budget in (2500, 5000, 20_011, 40_000):
            assert subscriber.plan(relay, budget).used <= budget
        subscriber.block(relay, 13_000 + number)


def test_reading_the_row_that_counts_a_cache_cannot_push_a_walk_over_its_budget() -> None:
    """PS-51: that row is read under the stop rule's reserve, and the node after it under a reserve of its own."""
    keys = numbered(60)
    subscriber = short({1000: keys}, cache="nodes")
    subscriber.block(Relay(1, {1000: filled(keys)}))
    relay = Relay(2, {1000: filled(keys) | {keys[0]: entry(b"x" * 100)}})
    full = subscriber.plan(relay)
    for budget in range(full.map_charges + RESERVE, full.used + RESERVE, 67):
        assert subscriber.plan(relay, budget).used <= budget


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


def test_the_stop_rule_never_looks_at_the_node_not_yet_read() -> None:
    """PS-51, D missing_node_below_limit_invalid: with each node left out, the walk misses it where it would take it."""
    keys = numbered(15)
    relay = Relay(1, {1000: filled(keys), 1001: filled(keys[:5])})
    subscriber = short({1000: keys, 1001: keys}, cache="nodes")
    walked = subscriber.plan(relay, 7000)
    assert walked.cursor is not None
    for left_out in walked.taken:
        rest = {h: node for h, node in walked.taken.items() if h != left_out}
        cut = subscriber.plan(relay, 7000, rest)
        assert cut.missing is not None
        assert cut.missing.node_hash == left_out
        assert cut.cursor is None


# PS-55


def bound(walked_bytes: int, charges: int, reserve: int, budget: int, overhead: int) -> int:
    """Blocks within which all is delivered."""
    spendable = budget - reserve - overhead
    return max(1, -(-(walked_bytes + charges) // spendable))


@lru_cache
def ten_thousand() -> tuple[list[PubsubKey], range, Relay]:
    """250 keys of each of 40 publishers."""
    keys, paras = numbered(250), range(1000, 1040)
    return keys, paras, Relay(1, {para: filled(keys, b"%d" % para * 10) for para in paras})


@each_policy
def test_ten_thousand_keys_over_many_publishers_are_caught_up_within_the_bound(policy: str) -> None:
    """PS-55: constant state is delivered in max(1, ceil((S + n * ROW_COST) / E)) blocks."""
    keys, paras, relay = ten_thousand()
    subscriber = Subscriber(make_spec(dict.fromkeys(paras, keys), cache=policy))
    whole = subscriber.plan(relay)
    shares = whole.publishers.values()
    size = sum(share.child_node_bytes + share.value_bytes for share in shares)
    top = sum(share.top_path_bytes for share in shares)
    maps = 2 * (ROW_COST + 2 + 36 * 40)
    path = 6 * (566 + ROW_COST) + 12 + ROW_COST  # deepest path here, with cache charges
    extra = 40 * (12 + ROW_COST) + (10_000 // 16 + 40) * (640 + ROW_COST) * (policy == "slots")
    budget = MIN_BUDGET
    most = bound(size, 10_000 * ROW_COST + extra, 2060 + ROW_COST, budget, top + maps + path)
    seen: dict[tuple[int, bytes], int] = {}
    blocks = 0
    while not blocks or subscriber.cursor is not None:
        blocks += 1
        for item in subscriber.block(relay, budget).items:
            seen[item] = seen.get(item, 0) + 1
    assert blocks <= most + 1
    assert len(seen) == 10_000
    assert set(seen.values()) == {1}
    settle = subscriber.block(relay)
    assert settle.deliveries == ()
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


@each_policy
def test_at_least_one_item_is_resolved_in_each_block_even_of_the_smallest_budget_that_can(policy: str) -> None:
    """PS-55: no livelock while the trie changes under the walk."""
    keys = numbered(12)
    subscriber = short({1000: keys}, cache=policy)
    last = None
    for number in range(1, 30):
        relay = Relay(number, {1000: filled(keys, b"%d" % number * 50, number)})
        step = subscriber.block(relay, 3600)
        assert step.deliveries
        assert step.cursor != last or step.cursor is None
        last = step.cursor
