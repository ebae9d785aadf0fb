"""Upstream scenarios of the broadcaster pallet about publishing; each test names its row (A…) and its rule.

Their calls are of an older form that takes a batch; ours publishes one key at a time (RFC-0160, decision 6).
"""

from support.pallet_pubsub.world import MOCK, World, name, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import (
    PublishedEntry,
    TimedOut,
    ValidFor,
    derive_child_key,
    publisher_root_key,
    ttl_state,
)
from pubsub_emulator.primitives.types import U32_MAX, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.pallet_pubsub import Error
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys, TotalStorageSize

A, B, C = name("a"), name("b"), name("c")


def test_a8_a_registered_publisher_publishes_at_the_relay_height_ps65() -> None:
    """Defect 24: lifetimes are measured against heights of the relay chain, and `when_inserted` is one."""
    world = World(now=5_000_000)
    world.register(2000)
    world.publish(2000, A, b"hello", 5)
    assert world.entry(2000, A) == PublishedEntry(b"hello", 5, RelayBlockNumber(5_000_000))
    assert ttl_state(5, RelayBlockNumber(5_000_000), RelayBlockNumber(5_000_004)) == ValidFor(1)
    assert ttl_state(5, RelayBlockNumber(5_000_000), RelayBlockNumber(5_000_005)) == TimedOut()


def test_a9_keys_are_stored_updated_and_read_back_each_on_its_own_ps2() -> None:
    world = World()
    assert world.storage.get(publisher_root_key(ParaId(1000))) is None
    world.publish(1000, A, b"1")
    world.publish(1000, B, b"2")
    world.root()
    before = world.storage.get(publisher_root_key(ParaId(1000)))
    world.publish(1000, A, b"11")
    world.publish(1000, C, b"3")
    world.root()
    after = world.storage.get(publisher_root_key(ParaId(1000)))
    assert before is not None
    assert after not in {None, before}
    assert [world.value(1000, key) for key in (A, B, C, name("unknown"))] == [b"11", b"2", b"3", None]


def test_a10_how_many_keys_a_message_carries_is_no_matter_of_this_pallet() -> None:
    """Row A10 limits a batch to 16 items. Ours has no batches; the XCM barrier limits instructions (PS-22)."""
    world = World()
    for key in numbered(17):
        world.publish(1000, key, b"")
    assert world.count(1000) == 17


def test_a12_the_size_limit_counts_32_and_the_value_per_key_and_gives_back_what_shrinks_ps8() -> None:
    world = World()
    world.publish(1000, A, bytes(1024))
    assert world.size(1000) == 1056
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(1024))
    world.publish(1000, A, bytes(100))
    assert world.size(1000) == 132
    world.publish(1000, B, bytes(900))
    assert world.size(1000) == 132 + 932
    world.try_state()


def test_a12_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    world = World()
    world.publish(1000, A, bytes(1024))
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(2048 - 1056 - 32 + 1))
    world.publish(1000, B, bytes(2048 - 1056 - 32))
    assert world.size(1000) == 2048
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, C, b"")
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(2048 - 1056 - 32 + 1))
    world.publish(1000, B, bytes(2048 - 1056 - 32), 9)


def test_a13_at_the_key_limit_updates_still_work_ps8() -> None:
    world = World()
    keys = numbered(50)
    for key in keys:
        world.publish(1000, key, b"")
    world.refuses(Error.TooManyStoredKeys, world.publish, 1000, name("one more"), b"")
    world.publish(1000, keys[49], b"u")
    world.force_delete(1000, keys[:1])
    world.publish(1000, name("one more"), b"")
    assert world.count(1000) == 50


def test_a14_counts_and_sizes_are_those_of_the_child_trie() -> None:
    """Row A14 compares a stored key set; ours is a count, and membership is the child trie's own (PS-6)."""
    world = World()
    for keys in (numbered(10), numbered(10, first=5)):
        for key in keys:
            world.publish(1000, key, key[:9])
    assert world.keys(1000) == sorted(numbered(15))
    assert (world.count(1000), world.size(1000)) == (15, 15 * 41)
    world.try_state()


def test_a15_publishers_of_one_block_do_not_meet_ps5() -> None:
    world = World()
    world.register(2000)
    for para in (1000, 1001, 2000):
        world.publish(para, A, b"%d" % para)
    roots = {para: world.child_root(para) for para in (1000, 1001, 2000)}
    assert len(set(roots.values())) == 3
    world.publish(1001, B, b"x")
    assert world.child_root(1000) == roots[1000]
    assert world.child_root(2000) == roots[2000]
    assert world.child_root(1001) != roots[1001]
    assert [world.value(para, A) for para in roots] == [b"1000", b"1001", b"2000"]
    assert world.value(1000, B) is None


def test_a31_an_empty_value_is_a_value() -> None:
    """Row A31 refuses an empty batch, which we cannot have. An empty value is published and counts 32 bytes."""
    world = World()
    world.publish(1000, A, b"")
    assert world.value(1000, A) == b""
    assert world.size(1000) == 32


def test_a32_the_child_key_is_scale_of_pubsub_and_the_para_ps1() -> None:
    assert derive_child_key(ParaId(1000)) == bytes.fromhex("707562737562e8030000")
    assert derive_child_key(ParaId(U32_MAX)) == bytes.fromhex("707562737562ffffffff")
    world = World()
    world.publish(1000, A)
    world.root()
    assert list(world.storage.state.children) == [b"pubsub\xe8\x03\x00\x00"]
    assert publisher_root_key(ParaId(1000)) == b":child_storage:default:pubsub\xe8\x03\x00\x00"


def test_a37_keys_are_stored_verbatim_ps4() -> None:
    world = World()
    key = b"\xab" * 32
    world.publish(1000, key, b"v")
    assert world.keys(1000) == [key]
    assert world.entry(1000, blake2_256(key)) is None


def test_a38_the_longest_value_is_allowed_ps8() -> None:
    world = World()
    world.publish(1000, A, b"\x01" * 1024)
    assert world.value(1000, A) == b"\x01" * 1024
    assert world.events() == [DataPublished(ParaId(1000), A, 1024)]


def test_a40_after_deregistering_nothing_is_there() -> None:
    world = World()
    world.register(2000)
    world.publish(2000, A)
    world.delete(2000, [A])
    world.deregister(2000)
    assert not PublishedKeys.contains(world.storage, ParaId(2000))
    assert not TotalStorageSize.contains(world.storage, ParaId(2000))
    assert world.entry(2000, A) is None


def test_a41_a42_a44_a45_a46_the_row_follows_the_ttl_of_the_newest_publish_ps14() -> None:
    world = World(now=100)
    for now, ttl, row in ((100, 0, None), (110, 500, (500, 110)), (150, 200, (200, 150)), (160, 0, None)):
        world.at(now).publish(1000, A, b"%d" % now, ttl)
        assert world.ttl(1000, A) == row
        assert world.value(1000, A) == b"%d" % now


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
