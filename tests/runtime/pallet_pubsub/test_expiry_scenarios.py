"""Upstream scenarios of the broadcaster pallet about expiry (A43, A47 to A49), under both policies."""

from support.pallet_pubsub.world import ALICE, MOCK, NOTHING_LEFT, World, both_policies, name, numbered

from pubsub_emulator.primitives.types import U32_MAX, ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.expiry import least_weight
from pubsub_emulator.runtime.pallet_pubsub.storage import TtlScanCursor

A = name("a")


@both_policies
def test_a47_an_entry_lives_to_the_last_block_before_its_expiry_ps13_ps16(policy: TtlPolicy) -> None:
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
def test_a43_the_largest_ttl_is_stored_as_it_is_and_neither_wraps_nor_stops_the_sweep_ps13(policy: TtlPolicy) -> None:
    """Defect 25, where row A43 never sweeps; defect 26: a ttl of 0 lives for ever, so a cap would protect nothing."""
    world = World(MOCK, now=U32_MAX - 1, ttl_policy=policy)
    world.publish(1000, A, ttl=U32_MAX)
    world.publish(1000, name("b"), ttl=1)
    assert world.ttl(1000, A) == (U32_MAX, U32_MAX - 1)
    for _ in range(2):
        world.at(U32_MAX).idle()
        assert world.keys(1000) == [A]
    world.try_state()


@both_policies
def test_a48_with_little_weight_a_part_is_done_and_the_rest_follows_ps15(policy: TtlPolicy) -> None:
    """Row A48 cannot fail as it stands: it asks for a rest only if there is a cursor. Here the counts are exact."""
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
