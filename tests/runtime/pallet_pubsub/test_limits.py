"""The limits on what a publisher stores: to the byte, only for what grows, and counted in a few rows (PS-6, PS-8)."""

import pytest
from support.pallet_pubsub.world import ALICE, MOCK, World, name, numbered

from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.pallet_pubsub import Config, Error
from pubsub_emulator.runtime.pallet_pubsub.storage import CounterForRegisteredPublishers

A, B, C = name("a"), name("b"), name("c")


def test_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    world = World()
    world.publish(1000, A, bytes(1024))
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(2048 - 1056 - 32 + 1))
    world.publish(1000, B, bytes(2048 - 1056 - 32))
    assert world.size(1000) == 2048
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, C, b"")
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(2048 - 1056 - 32 + 1))
    world.publish(1000, B, bytes(2048 - 1056 - 32), 9)


def test_at_the_key_limit_updates_still_work_ps8() -> None:
    world = World()
    keys = numbered(50)
    for key in keys:
        world.publish(1000, key, b"")
    world.refuses(Error.TooManyStoredKeys, world.publish, 1000, name("one more"), b"")
    world.publish(1000, keys[49], b"u")
    world.force_delete(1000, keys[:1])
    world.publish(1000, name("one more"), b"")
    assert world.count(1000) == 50


def test_the_same_value_again_is_a_write_ps9() -> None:
    """Defect 30: it renews the TTL, which publishing again is for; subscribers pay one changed path, not the value."""
    world = World(now=10)
    world.publish(1000, A, b"same", 5)
    root = world.root()
    world.at(11).publish(1000, A, b"same", 5)
    assert world.entry(1000, A) == PublishedEntry(b"same", 5, RelayBlockNumber(11))
    assert world.child_root(1000) is not None
    assert world.root() != root
    assert world.count(1000) == 1
    assert world.ttl(1000, A) == (5, 11)


def test_lowered_limits_bind_what_grows_and_nothing_else_ps8() -> None:
    """A runtime that lowers a limit strands nobody: what is stored can shrink, stay and be renewed."""
    world = World(MOCK)
    world.publish(1000, A, bytes(1000))
    world.publish(1000, B, bytes(900))
    lower = World(MOCK, max_total_storage_size=1100, max_stored_keys=1)
    lower.storage = world.storage
    lower.refuses(Error.TotalStorageSizeExceeded, lower.publish, 1000, A, bytes(1001))
    lower.refuses(Error.TooManyStoredKeys, lower.publish, 1000, C, b"")
    lower.publish(1000, A, bytes(1000), 3)
    lower.publish(1000, A, bytes(999))
    assert lower.size(1000) == 32 + 999 + 932
    lower.try_state()


def test_registrations_are_counted_by_a_counter_not_by_iterating() -> None:
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


def test_size_is_counted_as_promised_and_a_write_touches_a_few_rows_whatever_is_stored_ps6() -> None:
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
