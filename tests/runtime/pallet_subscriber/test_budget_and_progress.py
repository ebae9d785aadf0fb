"""PS-50, PS-51 and PS-55: what may be used, where the walk stops, and that it always gets on."""

import random

import pytest
from support.page_verifier import cost
from support.world import Relay, Subscriber, each_policy, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import entry_length, node_cost
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


# PS-55


@each_policy
def test_thousands_of_keys_over_many_publishers_are_caught_up_within_the_bound(policy: str) -> None:
    """PS-55: constant state is delivered in max(1, ceil((S + n * ROW_COST) / E)) blocks."""
    keys, paras, budget = numbered(250), range(1000, 1010), MIN_BUDGET // 4
    relay = Relay(1, {para: filled(keys, b"%d" % para * 10) for para in paras})
    subscriber = Subscriber(make_spec(dict.fromkeys(paras, keys), cache=policy))
    shares = subscriber.plan(relay).publishers.values()
    size = sum(share.child_node_bytes + share.value_bytes for share in shares)
    overhead = sum(share.top_path_bytes for share in shares) + 2 * (ROW_COST + 2 + 36 * 10)
    overhead += 6 * (566 + ROW_COST) + 12 + ROW_COST  # the deepest path here, with the charges of a cache
    rows = 2500 * ROW_COST + 10 * (12 + ROW_COST) + (2500 // 16 + 10) * (640 + ROW_COST) * (policy == "slots")
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
