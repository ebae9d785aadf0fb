"""What a sweep takes is what it did, to the last access; how late it is with thousands of rows
(PS-15, PS-19).
"""

import pytest
from support.runtime.pallet_pubsub.world import MOCK, World, both_policies, name, numbered

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_MAX, Weight
from pubsub_emulator.runtime.framework.executive import BlockWeights, Executive
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import (
    Config,
    GenesisPublisher,
    TtlPolicy,
    genesis_rows,
    weights,
)
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.expiry import sweep
from pubsub_emulator.runtime.pallet_pubsub.scan import Lap
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    ExpiryIndex,
    TtlLapMark,
    TtlScanCursor,
    rows_of,
)

FIRST, SECOND = sorted((1000, 1001), key=lambda para: rows_of(ParaId(para)).ttl_prefix)


def rows(policy: TtlPolicy, first: int, second: int, ttl: int = 10**6, **limits: int) -> World:
    world = World(MOCK, ttl_policy=policy)
    for para, count in ((FIRST, first), (SECOND, second)):
        for key in numbered(count):
            world.publish(para, key, b"", ttl)
    limited = World(MOCK, ttl_policy=policy, **limits)
    limited.storage = world.storage
    return limited


def test_a_scan_takes_its_rows_its_publishers_and_its_expiries() -> None:
    world = rows(TtlPolicy.SCAN, 6, 2, ttl=1)
    world.publish(SECOND, name("long"), b"", 10**6)
    done = sweep(world.config, world.storage, 2, WEIGHT_MAX)
    assert (done.examined, done.expired) == (9, 8)
    # nine rows; after the end the one that is left is read again and known; publishers are entered
    # three times
    found = weights.examine_row() * 10 + weights.enter_publisher() * 3
    assert done.weight == weights.on_idle_base() + found + weights.expire_key(world.config) * 8


def test_leaving_a_publisher_early_costs_one_row_and_one_mark() -> None:
    for many in (10, 45):
        world = rows(TtlPolicy.SCAN, many, 3, max_stored_keys=5, max_ttl_scans_per_idle=8)
        done = sweep(world.config, world.storage, 2, WEIGHT_MAX)
        assert done.examined == 8
        found = (
            weights.examine_row() * 9 + weights.enter_publisher() * 2 + weights.leave_publisher()
        )
        assert done.weight == weights.on_idle_base() + found


def test_resuming_a_publisher_at_its_mark_costs_one_row_and_the_mark() -> None:
    world = rows(TtlPolicy.SCAN, 6, 0, max_ttl_scans_per_idle=4)
    order = sorted(numbered(6), key=rows_of(ParaId(FIRST)).ttl_row)
    TtlLapMark.insert(world.storage, ParaId(FIRST), order[1])
    done = sweep(world.config, world.storage, 2, WEIGHT_MAX)
    assert done.examined == 4
    found = weights.examine_row() * 4 + weights.enter_publisher() + weights.resume_publisher()
    assert done.weight == weights.on_idle_base() + found


def test_the_index_takes_one_row_beyond_what_is_due() -> None:
    world = rows(TtlPolicy.EXPIRY_INDEX, 6, 2, ttl=1)
    world.publish(SECOND, name("long"), b"", 10**6)
    done = sweep(world.config, world.storage, 2, WEIGHT_MAX)
    assert (done.examined, done.expired) == (8, 8)
    expected = (
        weights.on_idle_base() + weights.examine_row() * 9 + weights.expire_key(world.config) * 8
    )
    assert done.weight == expected


@pytest.mark.parametrize("visits", [1, 2, 5])
@pytest.mark.parametrize("due", [True, False])
def test_at_its_most_expensive_a_scan_stays_within_what_it_is_given(visits: int, due: bool) -> None:
    """Every row a publisher left and another taken up at its mark: the step that the limit is
    reckoned with.
    """
    for given in range(1, 40):
        world = rows(TtlPolicy.SCAN, 12, 12, ttl=1 if due else 10**6, max_stored_keys=visits)
        limit = Weight(given * 10**8 + 3 * 10**8, given * 3000 + 5000)
        for now in range(2, 6):
            done = sweep(world.config, world.storage, now, limit)
            assert done.weight.all_lte(limit)


@pytest.mark.parametrize("scans", [1, 2, 3, 5])
def test_a_publisher_resumed_at_its_mark_continues_within_one_sweep_ps18(
    scans: int,
) -> None:
    """12 rows, 5 visits a lap: whatever the size of a sweep, rows are met in the same order."""
    world = rows(TtlPolicy.SCAN, 12, 1)
    order = sorted(numbered(12), key=rows_of(ParaId(FIRST)).ttl_row)
    laps = [*order[:5], "other", *order[5:10], "other", *order[10:], "other", *order[:5], "other"]
    met: list[object] = []
    while len(met) < len(laps):
        lap = Lap(world.storage, 5)
        this_lap = set[tuple[int, bytes]]()
        for _ in range(scans):
            row = lap.next()
            if (
                row is None or (row.para, row.key) in this_lap
            ):  # met again: what was passed over comes after it
                break
            this_lap.add((row.para, row.key))
            met.append(row.key if row.para == FIRST else "other")
        lap.save()
    assert met[: len(laps)] == laps


@both_policies
def test_a_publisher_that_goes_leaves_no_mark_and_no_index_row(policy: TtlPolicy) -> None:
    world = rows(policy, 12, 1, max_stored_keys=5)
    sweep(world.config, world.storage, 2, WEIGHT_MAX)
    if policy is TtlPolicy.SCAN:
        TtlLapMark.insert(world.storage, ParaId(FIRST), numbered(1)[0])
    world.force_deregister(FIRST)
    assert not TtlLapMark.contains(world.storage, ParaId(FIRST))
    assert sum(1 for _ in ExpiryIndex.rows(world.storage)) == (
        1 if policy is TtlPolicy.EXPIRY_INDEX else 0
    )
    world.try_state()


def test_expiry_gets_what_calls_leave_and_a_full_block_puts_it_off_ps15() -> None:
    world = World(MOCK)
    world.publish(1000, name("a"), ttl=1)
    sweep = weights.on_idle_base() + weights.expire_key(world.config) * 4
    tight = Executive([world.balances, world.pallet], BlockWeights(max_block=sweep, normal=sweep))
    tight.build_block(world.storage, 2, Hash(bytes(32)))
    assert world.keys(1000) == []
    world.publish(1000, name("a"), ttl=1)
    full = Executive(
        [world.balances, world.pallet], BlockWeights(max_block=Weight(10**8, 1000), normal=Weight())
    )
    full.build_block(world.storage, 3, Hash(bytes(32)))
    assert world.keys(1000) == [name("a")]
    block = tight.build_block(world.storage, 4, Hash(bytes(32)))
    assert [record.event for record in block.events] == [KeyExpired(ParaId(1000), name("a"))]
    assert block.events[0].encode().startswith(b"\x01\x65\x03"), (
        "in finalization, pallet 101, variant 3"
    )


ROWS, PER_PUBLISHER = 2000, 250
KEYS = numbered(PER_PUBLISHER)


def loaded(
    policy: TtlPolicy, lifetime_of: list[int], scans: int = 250
) -> tuple[World, dict[tuple[int, bytes], int]]:
    """A world at block 0 with these lifetimes published, and when each entry is due."""
    config = Config(ttl_policy=policy, max_ttl_scans_per_idle=scans)
    due: dict[tuple[int, bytes], int] = {}
    publishers: dict[ParaId, list[tuple[PubsubKey, PublishedEntry]]] = {}
    for i, ttl in enumerate(lifetime_of):
        para, key = ParaId(i // PER_PUBLISHER), KEYS[i % PER_PUBLISHER]
        publishers.setdefault(para, []).append(
            (key, PublishedEntry(b"v", ttl, RelayBlockNumber(0)))
        )
        due[para, key] = ttl
    world = World(config)
    genesis = {para: GenesisPublisher(entries) for para, entries in publishers.items()}
    world.storage = Storage(State.from_entries(*genesis_rows(config, genesis)))
    return world, due


def lags(world: World, due: dict[tuple[int, bytes], int], blocks: int, first: int = 1) -> list[int]:
    """How late each entry went, over this many blocks."""
    out = []
    for number in range(first, first + blocks):
        world.at(number).idle()
        for event in world.events():
            assert isinstance(event, KeyExpired)
            out.append(number - due.pop((event.publisher, event.key)))
        world.root()
    return out


def test_a_scan_is_late_by_at_most_one_lap_of_the_table_ps19() -> None:
    world, due = loaded(TtlPolicy.SCAN, [1 + i * 7919 % 40 for i in range(ROWS)])
    late = lags(world, due, 40 + 8)
    assert due == {}
    assert 0 <= min(late) < max(late) <= ROWS // 250
    world.try_state()


def test_a_scans_lag_follows_the_table_and_not_the_due_rows_ps19() -> None:
    world, due = loaded(
        TtlPolicy.SCAN, [5 if i % 100 == 0 else 10**6 for i in range(ROWS)], scans=50
    )
    late = lags(world, due, 5 + 41)
    assert len(late) == 20
    assert max(late) <= ROWS // 50
    assert max(late) > ROWS // 100


@both_policies
def test_a_change_of_policy_loses_no_expiry_ps19(policy: TtlPolicy) -> None:
    world, _ = loaded(policy, [1 + i % 3 for i in range(600)], scans=50)
    world.at(1).idle()
    other = next(each for each in TtlPolicy if each is not policy)
    changed = World(Config(ttl_policy=other))
    changed.storage = world.storage
    if policy is TtlPolicy.SCAN:
        TtlLapMark.insert(world.storage, ParaId(0), KEYS[0])
        assert TtlScanCursor.exists(world.storage)
    assert changed.pallet.on_runtime_upgrade(changed.storage).all_lte(WEIGHT_MAX)
    changed.try_state()
    if policy is TtlPolicy.SCAN:
        assert not TtlScanCursor.exists(world.storage)
        assert not TtlLapMark.contains(world.storage, ParaId(0))
    before = changed.root()
    changed.pallet.on_runtime_upgrade(changed.storage)
    assert changed.root() == before
    changed.at(3)
    while sweep(changed.config, changed.storage, RelayBlockNumber(3), WEIGHT_MAX).expired:
        pass
    assert changed.ttl_rows() == 0
    changed.try_state()
