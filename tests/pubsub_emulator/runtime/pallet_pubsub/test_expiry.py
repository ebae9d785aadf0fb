"""Expiry: what is due, where a sweep goes, what it takes (PS-13 to PS-19), with upstream's rows A43
and A47 to A49.
"""

import math
from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import example, given
from support.runtime.pallet_pubsub.world import (
    ALICE,
    MOCK,
    NOTHING_LEFT,
    World,
    both_policies,
    name,
    numbered,
)

from pubsub_emulator.primitives.types import U32_MAX, ParaId, PubsubKey
from pubsub_emulator.primitives.weights import WEIGHT_MAX, WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy, weights
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.expiry import Sweep, least_weight, sweep
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    ScanCursor,
    TtlData,
    TtlLapMark,
    TtlScanCursor,
    rows_of,
)

A = name("a")
LONG = 1_000_000


def in_scan_order(para: int, keys: list[PubsubKey]) -> list[PubsubKey]:
    return sorted(keys, key=rows_of(ParaId(para)).ttl_row)


def cursor(world: World) -> ScanCursor | None:
    return TtlScanCursor.get(world.storage)


def swept(world: World, remaining: Weight = WEIGHT_MAX) -> Sweep:
    return sweep(world.config, world.storage, world.now, remaining)


def expired(world: World) -> list[bytes]:
    return [event.key for event in world.events() if isinstance(event, KeyExpired)]


def with_rows(count: int, ttl: int = LONG, **changes: object) -> tuple[World, list[PubsubKey]]:
    world = World(MOCK, **changes)
    keys = in_scan_order(1000, numbered(count))
    for key in keys:
        world.publish(1000, key, b"", ttl)
    return world, keys


@both_policies
def test_a47_an_entry_lives_to_the_last_block_before_its_expiry_ps13_ps16(
    policy: TtlPolicy,
) -> None:
    """Defect 35: when all keys expired, nothing is left that stands in the way."""
    world = World(MOCK, now=100, ttl_policy=policy)
    world.register(2000)
    world.publish(2000, A, b"v", 50)
    world.at(149).idle()
    assert world.value(2000, A) == b"v"
    assert world.events() == []
    world.at(150).idle()
    assert world.everything(2000) == NOTHING_LEFT
    assert world.events() == [KeyExpired(ParaId(2000), A)]
    world.deregister(2000)
    assert world.held(ALICE) == 0
    world.try_state()


@both_policies
def test_a43_the_largest_ttl_neither_wraps_nor_stops_the_sweep_ps13(
    policy: TtlPolicy,
) -> None:
    """Defects 25 and 26: a ttl of 0 lives for ever, so a cap would protect nothing."""
    world = World(MOCK, now=U32_MAX - 1, ttl_policy=policy)
    world.publish(1000, name("a"), ttl=U32_MAX)
    world.publish(1000, name("b"), ttl=1)
    assert world.ttl(1000, name("a")) == (U32_MAX, U32_MAX - 1)
    for _ in range(2):
        world.at(U32_MAX).idle()
        assert world.keys(1000) == [name("a")]
    world.try_state()


@both_policies
def test_zero_weight_is_a_no_op_that_keeps_the_cursor_ps15(policy: TtlPolicy) -> None:
    world, _ = with_rows(5, ttl=1, max_ttl_scans_per_idle=2, ttl_policy=policy)
    world.idle()
    world.at(2)
    before = world.root()
    least = least_weight(world.config)
    for too_little in (
        WEIGHT_ZERO,
        Weight(least.ref_time - 1, 2**63),
        Weight(2**63, least.proof_size - 1),
    ):
        assert world.idle(too_little) == WEIGHT_ZERO
    assert world.root() == before
    assert world.count(1000) == 5


@both_policies
def test_a_sweep_never_takes_more_than_it_is_given_ps15(policy: TtlPolicy) -> None:
    for due in (True, False):
        for share in range(1, 40):
            world, _ = with_rows(30, ttl=1 if due else LONG, ttl_policy=policy)
            world.at(2)
            given = weights.expire_key(world.config) * share
            done = swept(world, given)
            assert done.weight.all_lte(given)
            assert done.expired == 30 - world.count(1000)
            if done.examined < 30 and due:
                assert (done.weight + least_weight(world.config)).any_gt(given)


@both_policies
def test_a_sweep_tells_how_long_an_entry_had_outlived_its_time(policy: TtlPolicy) -> None:
    world, _ = with_rows(3, ttl=4, ttl_policy=policy)
    assert swept(world.at(12)).lag == 12 - (1 + 4)


@both_policies
def test_a48_with_little_weight_a_part_is_done_and_the_rest_follows_ps15(policy: TtlPolicy) -> None:
    """Row A48 cannot fail as it stands: it asks for a rest only if there is a cursor.

    Here the counts are exact.
    """
    world = World(MOCK, now=100, ttl_policy=policy)
    for key in numbered(10):
        world.publish(1000, key, b"", 5)
    world.at(105)
    least = least_weight(world.config)
    for left in range(9, -1, -1):
        used = world.idle(least)
        assert used != WEIGHT_ZERO
        assert used.all_lte(least)
        assert world.count(1000) == world.ttl_rows() == left
        assert TtlScanCursor.exists(world.storage) == (policy is TtlPolicy.SCAN)


def test_a49_sweeps_resume_and_leave_neither_rows_nor_cursor() -> None:
    world = World(MOCK, now=100, max_ttl_scans_per_idle=3)
    for key in numbered(10):
        world.publish(1000, key, b"", 5)
    world.at(105)
    for left in (7, 4, 1, 0):
        world.idle()
        assert world.ttl_rows() == left
    world.idle()
    assert not TtlScanCursor.exists(world.storage)
    world.try_state()


def test_a_scan_follows_the_order_of_storage_keys_across_publishers_ps19() -> None:
    world = World(MOCK, max_ttl_scans_per_idle=1)
    rows = [(para, key) for para in (0, 7, 1000, 1001) for key in numbered(3)]
    for para, key in rows:
        world.publish(para, key, b"", 1)
    world.at(2)
    met = []
    for _ in rows:
        world.storage.log.clear()
        world.idle()
        (event,) = world.events()
        assert isinstance(event, KeyExpired)
        met.append((event.publisher, event.key))
    assert met == sorted(rows, key=lambda row: TtlData.key_for(ParaId(row[0]), row[1]))


def test_a_scan_resumes_strictly_after_the_last_row_and_wraps_once_ps19() -> None:
    world, keys = with_rows(5, max_ttl_scans_per_idle=3)
    positions = []
    for _ in range(4):
        assert swept(world).examined == 3
        last = cursor(world)
        assert last is not None
        positions.append((keys.index(last.key), last.visited))
    # rows 0 1 2 | 3 4 0 | 1 2 3 | 4 0 1, the visits of a lap counted from its first row
    assert positions == [(2, 3), (0, 1), (3, 4), (1, 2)]


def test_a_new_row_behind_the_cursor_is_met_in_the_next_lap_ps18() -> None:
    world = World(MOCK, max_ttl_scans_per_idle=2)
    order = in_scan_order(1000, numbered(6))
    for key in order[1:5]:
        world.publish(1000, key, b"", LONG)
    world.idle()  # met 1 and 2
    world.publish(1000, order[0], b"", 1)
    world.publish(1000, order[5], b"", 1)
    world.at(2)
    world.idle()  # 3 and 4
    assert expired(world) == []
    world.idle()  # 5 of this lap, 0 of the next
    assert expired(world) == [order[5], order[0]]


def test_deleting_the_row_under_the_cursor_moves_nothing_ps18() -> None:
    world, keys = with_rows(6, ttl=3, max_ttl_scans_per_idle=2)
    world.idle()
    world.force_delete(1000, [keys[1], keys[2]])
    world.at(4).idle()
    assert expired(world) == [keys[3], keys[4]]


def test_a_cursor_whose_publisher_is_gone_goes_on_where_it_stood_ps18() -> None:
    world, _ = with_rows(4, ttl=3, max_ttl_scans_per_idle=2)
    for key in numbered(3):
        world.publish(1001, key, b"", 3)
        world.publish(7, key, b"", 3)
    world.idle()
    last = cursor(world)
    assert last is not None
    world.force_deregister(last.para)
    world.at(4)
    while world.ttl_rows():
        before = world.ttl_rows()
        world.idle()
        assert world.ttl_rows() == before - min(2, before)
    world.try_state()


def test_defect_27_the_expiry_index_reads_due_rows_only_ps19() -> None:
    """`scan` keeps the design's order of storage keys and its lag; rows that live long delay nobody
    in the index.
    """
    config = replace(
        MOCK, max_total_storage_size=100_000, max_ttl_scans_per_idle=5, max_stored_keys=100
    )
    swept = {}
    for policy in TtlPolicy:
        world = World(config, now=1, ttl_policy=policy)
        for key in numbered(100):
            world.publish(1000, key, b"", 1_000_000)
        world.publish(1001, A, b"", 1)
        world.at(2)
        swept[policy] = 1
        while world.idle() and world.keys(1001):
            swept[policy] += 1
            world.at(world.now + 1)
    assert swept[TtlPolicy.EXPIRY_INDEX] == 1
    assert swept[TtlPolicy.SCAN] <= 101 // 5 + 1


def test_defect_28_a_full_number_of_sweeps_costs_no_empty_one_ps19() -> None:
    """6 rows, 3 a sweep: the third sweep wraps and examines rows instead of only clearing its
    cursor.
    """
    world = World(MOCK, now=1, max_ttl_scans_per_idle=3)
    for key in numbered(6):
        world.publish(1000, key, b"", 2)
    for number, left in ((1, 6), (1, 6), (3, 3), (3, 0)):
        world.at(number).idle()
        assert world.count(1000) == left


class Hostile:
    """A publisher that keeps the cursor with itself: rows just ahead of it, those behind deleted,
    every block.
    """

    def __init__(self, world: World, para: int) -> None:
        self.world = world
        self.para = para
        self.pool = in_scan_order(para, numbered(1500, first=10**6))

    def act(self) -> None:
        last = cursor(self.world)
        row = rows_of(ParaId(self.para)).ttl_row
        at = row(last.key) if last is not None and last.para == self.para else b""
        stored = self.world.keys(self.para)
        if stored:
            self.world.force_delete(self.para, stored)
        ahead = [key for key in self.pool if row(key) > at][: self.world.config.max_stored_keys]
        for key in ahead:
            self.world.publish(self.para, key, b"", LONG)


def next_to(para: int) -> tuple[int, int]:
    """Two system paras whose rows stand before and after those of `para`."""
    ids = sorted(range(200), key=lambda other: rows_of(ParaId(other)).ttl_prefix)
    at = ids.index(para)
    return ids[at - 1], ids[at + 1]


def test_inserting_ahead_of_the_cursor_delays_others_by_one_visit_per_lap_ps19() -> None:
    para = 50
    before, after = next_to(para)
    world = World(MOCK, max_stored_keys=10, max_ttl_scans_per_idle=4)
    hostile = Hostile(world, para)
    hostile.act()
    victims = [(other, key) for other in (before, after) for key in numbered(3)]
    for other, key in victims:
        world.publish(other, key, b"", 1)
    world.idle()
    world.at(2)
    laps = 0
    while any(world.keys(other) for other in (before, after)):
        hostile.act()
        world.idle()
        world.at(world.now + 1)
        laps += 1
        assert laps < 10, (
            "a lap of 10 + 6 rows, 4 a sweep, is over after 4 sweeps; two laps after 8"
        )
    assert laps <= 5
    world.try_state()


def test_a_mark_is_forgotten_with_the_rows_it_speaks_of() -> None:
    world, keys = with_rows(8, max_ttl_scans_per_idle=5)
    lowered = World(MOCK, max_stored_keys=2, max_ttl_scans_per_idle=2)
    lowered.storage = world.storage
    swept(lowered)
    swept(lowered)
    assert TtlLapMark.get(world.storage, ParaId(1000)) is None, (
        "one publisher: its next lap took it up at once"
    )
    world.publish(1001, name("other"), b"", LONG)
    for _ in range(6):
        swept(lowered)
        if TtlLapMark.contains(world.storage, ParaId(1000)):
            break
    assert TtlLapMark.contains(world.storage, ParaId(1000))
    world.try_state()
    world.force_delete(1000, keys)
    assert not TtlLapMark.contains(world.storage, ParaId(1000))
    world.try_state()


def test_a_mark_behind_the_last_row_starts_the_publisher_from_its_first() -> None:
    world, keys = with_rows(4, max_ttl_scans_per_idle=50)
    TtlLapMark.insert(world.storage, ParaId(1000), keys[-1])
    assert swept(world).examined == 4
    assert not TtlLapMark.contains(world.storage, ParaId(1000))


PUBLISHERS = (1, 2, 3, 1000)
rows_of_publishers = st.dictionaries(
    st.tuples(st.sampled_from(PUBLISHERS), st.integers(0, 5)),
    st.integers(1, 6),
    min_size=1,
    max_size=20,
)


@given(
    rows=rows_of_publishers,
    marks=st.dictionaries(st.sampled_from(PUBLISHERS), st.integers(0, 5)),
    start=st.none() | st.tuples(st.sampled_from(PUBLISHERS), st.integers(0, 5), st.integers(0, 3)),
    visits=st.integers(1, 6),
    now=st.integers(1, 8),
)
@example(  # one publisher is cut four times, and each time the row of the other is met again
    rows={(1, 0): 1, (1, 1): 1, (1, 2): 1, (1, 3): 1, (1, 4): 1, (2, 0): 2},
    marks={},
    start=None,
    visits=1,
    now=2,
)
def test_a_sweep_with_room_for_the_table_leaves_nothing_that_is_due(
    rows: dict[tuple[int, int], int],
    marks: dict[int, int],
    start: tuple[int, int, int] | None,
    visits: int,
    now: int,
) -> None:
    """PS-15, PS-18: wherever laps were cut before; room for each row, and once more for each lap of
    a publisher.
    """
    names = numbered(6)
    rows_by_publisher = Counter(para for para, _ in rows)
    laps = sum(math.ceil(count / visits) for count in rows_by_publisher.values())
    scans = len(rows) + laps
    world = World(MOCK, max_ttl_scans_per_idle=scans)
    for (para, key), ttl in rows.items():
        world.publish(para, names[key], b"", ttl)
    for para, key in marks.items():
        if any(owner == para for owner, _ in rows):
            TtlLapMark.insert(world.storage, ParaId(para), names[key])
    if start is not None:
        TtlScanCursor.put(world.storage, ScanCursor(ParaId(start[0]), names[start[1]], start[2]))
    small = World(MOCK, max_stored_keys=visits, max_ttl_scans_per_idle=scans)
    small.storage = world.storage
    before = len(expired(world))
    due = {(para, key) for (para, key), ttl in rows.items() if world.now + ttl <= now}
    found = sweep(small.config, small.storage, now, WEIGHT_MAX)
    assert found.expired == len(due) == len(expired(world)) - before
    assert {
        (para, key) for para, key in rows if names[key] in world.keys(para)
    } == rows.keys() - due
