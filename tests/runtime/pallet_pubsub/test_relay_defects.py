"""Defects 27 to 36 found in the Rust attempt, relay side: each test names its entry and shows what we do."""

from dataclasses import replace

import pytest
from support.pallet_pubsub.world import ALICE, BOB, MOCK, NOTHING_LEFT, World, both_policies, name, numbered, parachain

from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.balances import Precision
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.pallet_pubsub import Config, Error, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import PublisherDeregistered
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT
from pubsub_emulator.runtime.pallet_pubsub.storage import CounterForRegisteredPublishers, RegisteredPublishers

A, B = name("a"), name("b")


def test_defect_27_the_expiry_index_reads_due_rows_only_ps19() -> None:
    """`scan` keeps the design's order of storage keys and its lag; rows that live long delay nobody in the index."""
    config = replace(MOCK, max_total_storage_size=100_000, max_ttl_scans_per_idle=5, max_stored_keys=100)
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
    """6 rows, 3 a sweep: the third sweep wraps and examines rows instead of only clearing its cursor."""
    world = World(MOCK, now=1, max_ttl_scans_per_idle=3)
    for key in numbered(6):
        world.publish(1000, key, b"", 2)
    world.idle()
    world.idle()
    assert world.count(1000) == 6
    world.at(3).idle()
    assert world.count(1000) == 3
    world.idle()
    assert world.count(1000) == 0


@both_policies
def test_defect_29_expiry_and_deletion_move_the_child_root_so_subscribers_can_see_them(policy: TtlPolicy) -> None:
    """That the subscriber then reports a removal is its own rule (PS-64)."""
    world = World(MOCK, now=1, ttl_policy=policy)
    for key in numbered(3):
        world.publish(1000, key, b"", 1)
    world.publish(1000, A)
    world.publish(1000, B)
    roots = [world.child_root(1000)]
    world.at(2).idle()
    roots.append(world.child_root(1000))
    world.delete(1000, [A], parachain(1000))
    roots.append(world.child_root(1000))
    assert len(set(roots)) == 3


def test_defect_31_nobody_registers_a_para_that_is_not_theirs() -> None:
    world = World()
    for para in (2000, 1000, 9999):
        world.refuses(Error.NotAuthorized, world.register, para, Signed(BOB))
        world.refuses(Error.NotAuthorized, world.register, para, parachain(3000))
    world.publish(1000, A)
    world.refuses(Error.NotAuthorized, world.delete, 1000, [A], Signed(BOB))
    world.register(2000, Signed(ALICE))


def test_defect_32_the_data_of_an_unregistered_system_para_can_be_deleted_in_every_way() -> None:
    def fresh() -> World:
        world = World()
        world.publish(1000, A, ttl=5)
        return world.at(2)

    world = fresh()
    world.delete(1000, [A], parachain(1000))
    assert world.everything(1000) == NOTHING_LEFT
    world = fresh()
    world.force_delete(1000, [A])
    assert world.everything(1000) == NOTHING_LEFT
    world = fresh()
    world.force_deregister(1000)
    assert world.everything(1000) == NOTHING_LEFT
    assert world.events() == [PublisherDeregistered(ParaId(1000))]
    world = fresh()
    world.pallet.on_offboard(world.storage, [ParaId(1000)])
    assert world.everything(1000) == NOTHING_LEFT
    world.refuses(Error.NotRegistered, world.deregister, 1000, parachain(1000))


def test_defect_33_registrations_are_counted_by_a_counter_not_by_iterating() -> None:
    """The cap is on registrations (PS-8); system paras that merely publish are as many as governance makes."""
    world = World(MOCK, max_publishers=2)
    for para in range(10):
        world.publish(para, A, b"")
    world.register(2000)
    world.force_register(5)
    assert CounterForRegisteredPublishers.get(world.storage) == 2
    world.refuses(Error.TooManyPublishers, world.register, 2001)
    world.storage.commit()
    world.storage.start_recording()
    with pytest.raises(ModuleError, match="TooManyPublishers"):
        world.pallet.register_publisher(world.storage, Signed(ALICE), 2001)
    assert world.storage.recorded is not None
    assert len(world.storage.recorded) == 2


def test_defect_34_a_deposit_that_is_no_longer_whole_does_not_keep_a_registration_alive() -> None:
    world = World()
    world.register(2000)
    world.publish(2000, A)
    world.balances.slash_held(world.storage, PUBLISHER_DEPOSIT, ALICE, 60)
    world.pallet.on_offboard(world.storage, [ParaId(2000)])
    assert not RegisteredPublishers.contains(world.storage, ParaId(2000))
    assert world.everything(2000) == NOTHING_LEFT
    assert (world.held(ALICE), world.free(ALICE)) == (0, 940)
    world.try_state()
    world.register(2000)
    world.balances.release(world.storage, PUBLISHER_DEPOSIT, ALICE, 100, Precision.EXACT)
    world.deregister(2000)
    assert world.free(ALICE) == 940


def test_defect_36_size_is_counted_as_promised_and_a_write_touches_a_few_rows_whatever_is_stored_ps6() -> None:
    """32 + len(value) leaves out lifetime and trie on purpose (PS-8): limits are what publishers can compute."""
    world = World(Config())
    world.publish(1000, A, b"")
    assert world.size(1000) == 32
    assert world.storage.child_get(derive_child_key(ParaId(1000)), A) == PublishedEntry(b"", 0, 1).encode()
    for key in numbered(1000):
        world.publish(1000, key, b"v", 9)
    world.storage.commit()
    world.storage.start_recording()
    world.at(2).publish(1000, name("key 3"), b"w", 9)
    world.publish(1000, name("new"), b"w", 9)
    assert world.storage.recorded is not None
    assert len(world.storage.recorded) <= 4
