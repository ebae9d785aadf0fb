"""Figures that nobody may get wrong by one: the integrity test, own state, what the runtime says of
itself.
"""

import re
from itertools import count

import pytest
from support.runtime.world import make_spec, numbered

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MIN_BUDGET,
    CachePolicy,
    ImpossibleConfig,
    RuntimeSpec,
    integrity_test,
    spec_codec,
)
from pubsub_emulator.runtime.pallet_subscriber.own_state import OwnState

STRUCTURE_A_KEY = 2 * 33 + 70 + 8
"""Bytes of a key in the largest trie: two references, a leaf's fixed part, and a branch's."""
LEAST = {"nodes": 600, "none": 600, "slots": 640}
"""The cost of one item when values are short."""


def charged(policy: str, keys: int, depth: int | None, publishers: int) -> int:
    """What walking one publisher of so many keys can be charged, as PS-50 and PS-62 put it
    together.
    """
    cached = 160 if policy == "nodes" else 0
    rows = (keys + 15) // 16 * 800 + keys * 72 if policy == "slots" else keys * 160
    complete = STRUCTURE_A_KEY * keys - 2 * 33 - 8 + (2 * keys - 1) * cached + rows
    above = 16 * 564 + (65 if depth is None else depth) * (564 + cached)
    maps = 2 * (165 + 36 * publishers)
    return complete + above + maps + LEAST[policy] + 160


@pytest.mark.parametrize("publishers", [0, 3])
@pytest.mark.parametrize("depth", [None, 16])
@pytest.mark.parametrize("policy", LEAST)
def test_the_integrity_test_adds_up_all_that_a_walk_can_be_charged(
    policy: str, depth: int | None, publishers: int
) -> None:
    """PS-50, PS-62: as many keys as fit are accepted and one more is refused, with the figure."""
    subscriptions = {1000 + at: numbered(1) for at in range(publishers)}

    def spec(keys: int) -> RuntimeSpec:
        more = {"max_trie_depth": depth, "max_value_length": 256, "max_cache_bytes": 1 << 30}
        return make_spec(subscriptions, cache=policy, max_stored_keys=keys, **more)

    keys = 1
    while charged(policy, keys + 1, depth, publishers) <= MIN_BUDGET:
        keys += 1
    integrity_test(spec(keys))
    with pytest.raises(ImpossibleConfig, match=r"it could never complete") as refused:
        integrity_test(spec(keys + 1))
    figure = re.search(r"charged (\d+) bytes", str(refused.value))
    assert figure is not None
    assert int(figure[1]) == charged(policy, keys + 1, depth, publishers)


def test_a_walk_that_is_charged_exactly_the_minimum_budget_completes() -> None:
    """PS-50: the longest value is the remainder.

    An entry has 4 bytes of length and 8 more, its node 4 of length.
    """
    keys = 1024
    left = MIN_BUDGET - charged("none", keys, 16, 0) + 600
    exact = make_spec(cache="none", max_stored_keys=keys, max_value_length=left - 16)
    assert exact.max_item_cost == left
    integrity_test(exact)
    with pytest.raises(ImpossibleConfig, match=rf"charged {MIN_BUDGET + 1} bytes"):
        integrity_test(make_spec(cache="none", max_stored_keys=keys, max_value_length=left - 15))


def test_reads_of_a_cache_that_are_not_metered_are_not_added_up() -> None:
    metered = make_spec(cache="nodes", max_stored_keys=2000, max_value_length=256)
    with pytest.raises(ImpossibleConfig, match=f"charged {charged('nodes', 2000, 16, 0)} bytes"):
        integrity_test(metered)
    integrity_test(
        make_spec(
            cache="nodes", max_stored_keys=2000, max_value_length=256, meter_cache_reads=False
        )
    )


@pytest.mark.parametrize("accounts", [False, True])
@pytest.mark.parametrize("reserved", [False, True])
def test_the_largest_block_has_room_for_static_keys_extrinsics_and_the_minimum(
    accounts: bool, reserved: bool
) -> None:
    """PS-50: 15 % of the block are beside the messages.

    Without accounts a reserved minimum needs none of it.
    """
    needed = 65_536
    if accounts:
        needed += 131_072
    if not reserved:
        needed += MIN_BUDGET
    if reserved and not accounts:
        needed = 0

    def fits(size: int) -> bool:
        messages = size * 85 // 100
        return size - messages >= needed and (messages > MIN_BUDGET or not reserved)

    nearly = max(needed * 20 // 3, MIN_BUDGET * 20 // 17) - 50
    assert not fits(nearly)
    size = next(size for size in count(nearly) if fits(size))
    integrity_test(make_spec(max_pov_size=size, accounts=accounts, reserve_minimum=reserved))
    with pytest.raises(ImpossibleConfig):
        integrity_test(
            make_spec(max_pov_size=size - 1, accounts=accounts, reserve_minimum=reserved)
        )


@pytest.mark.parametrize("rules", [b"", b"r" * 32])
@pytest.mark.parametrize("accounts", [False, True])
def test_a_runtime_is_read_back_with_its_accounts_and_its_rules(
    accounts: bool, rules: bytes
) -> None:
    spec = make_spec(
        {1000: numbered(2)}, accounts=accounts, rules=rules, handler="store", max_trie_depth=None
    )
    assert spec_codec.decode(spec_codec.encode(spec)) == spec


def test_the_constants_of_the_pallet_are_those_of_the_runtime() -> None:
    spec = make_spec(
        cache="nodes",
        meter_cache_reads=False,
        max_stored_keys=77,
        reserve_minimum=True,
        handler="store",
    )
    found = {each.name: each.value for each in SubscriberCalls(spec).constants()}
    assert found == {
        "MaxPovSize": scale.u32.encode(spec.max_pov_size),
        "ReserveMinimum": b"\x01",
        "CachePolicy": bytes([list(CachePolicy).index(CachePolicy.NODES)]),
        "MeterCacheReads": b"\x00",
        "MaxCacheBytes": scale.u32.encode(spec.max_cache_bytes),
        "MaxTrieDepth": scale.option(scale.u32).encode(16),
        "MaxValueLength": scale.u32.encode(spec.max_value_length),
        "MaxStoredKeys": scale.u32.encode(77),
        "Handler": b"\x14store",
        "HandlerWeight": (
            scale.compact.encode(spec.handler_weight.ref_time)
            + scale.compact.encode(spec.handler_weight.proof_size)
        ),
    }
    assert SubscriberCalls().constants() == ()


@pytest.mark.parametrize("first", ["other rows", "caches"])
def test_own_state_has_each_node_once_and_a_part_without_caches(
    first: str,
) -> None:
    """PS-45: whoever reads a node first, and in whatever pieces the keys come."""
    caches = [
        item.prefix for item in (items.CACHED_TRIE_NODES, items.CACHE_INFO, items.CACHE_SLOTS)
    ]
    mine = [bytes([at]) * 20 for at in range(30)]
    cached = [prefix + bytes([at]) * 20 for prefix in caches for at in range(10)]
    state = State.from_entries([(key, key * 3) for key in (*mine, *cached)] + [(CODE, b"c" * 500)])

    def cost(*keys: bytes) -> int:
        nodes: dict[Hash, bytes] = {}
        state.top.prove(keys, nodes)
        return sum(node_cost(len(node)) for node in nodes.values())

    pieces = [
        mine[:7],
        cached[:9],
        [CODE, mine[3]],
        [*mine[5:20], *cached[5:20]],
        cached,
        mine,
        [b"absent"],
    ]
    if first == "caches":
        pieces.insert(0, cached[:3])
    own = OwnState(state)
    seen: list[bytes] = []
    for piece in pieces:
        own.add(piece)
        seen += [key for key in piece if key != CODE]
        assert own.total == cost(*seen)
        assert own.without_cache == cost(
            *(key for key in seen if not key.startswith(tuple(caches)))
        )
    reading = OwnState(state)
    for at, key in enumerate(seen):
        assert reading.read(key) == state.top.get(key)
        assert reading.total == cost(*seen[: at + 1])
    assert reading.read(CODE) == b"c" * 500
    assert (reading.total, reading.without_cache) == (own.total, own.without_cache)
    copy = own.of(state)
    assert (copy.total, copy.without_cache, [*copy.keys()]) == (
        own.total,
        own.without_cache,
        [*own.keys()],
    )
    other = own.of(State.from_entries([(b"key", b"value")]))
    assert (other.total, [*other.keys()]) == (0, [])
