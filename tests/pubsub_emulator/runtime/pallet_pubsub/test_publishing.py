"""Upstream scenarios of the broadcaster pallet about publishing, by row (A…), and bad input of
every kind (PS-10).

Their calls are of an older form that takes a batch; ours publishes one key at a time (RFC-0160,
decision 6). Rows A8 to A10, A14, A31, A37 and A38 are in the model of
tests/support/runtime/relay_chain, A32 in the vectors.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runtime.pallet_pubsub.world import (
    ALICE,
    BOB,
    MOCK,
    POOR,
    World,
    name,
    numbered,
    parachain,
)

from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import U32_MAX, U128_MAX, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Token, TokenError
from pubsub_emulator.runtime.framework.origin import Root, Signed, Unsigned
from pubsub_emulator.runtime.pallet_pubsub import Config, Error

A, B, C = name("a"), name("b"), name("c")


def test_a12_a38_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    world = World()
    world.publish(1000, A, bytes(1024))
    world.refuses(
        Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(2048 - 1056 - 32 + 1)
    )
    world.publish(1000, B, bytes(2048 - 1056 - 32))
    assert world.size(1000) == 2048
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 1000, C, b"")
    world.refuses(
        Error.TotalStorageSizeExceeded, world.publish, 1000, B, bytes(2048 - 1056 - 32 + 1)
    )
    world.publish(1000, B, bytes(2048 - 1056 - 32), 9)


def test_a13_a31_at_the_key_limit_updates_still_work_even_with_empty_values_ps8() -> None:
    world = World()
    keys = numbered(50)
    for key in keys:
        world.publish(1000, key, b"")
    world.refuses(Error.TooManyStoredKeys, world.publish, 1000, name("one more"), b"")
    world.publish(1000, keys[49], b"u")
    world.force_delete(1000, keys[:1])
    world.publish(1000, name("one more"), b"")
    assert world.count(1000) == 50


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


def test_a41_a42_a44_a45_a46_the_row_follows_the_ttl_of_the_newest_publish_ps14() -> None:
    world = World(now=100)
    for now, ttl, row in (
        (100, 0, None),
        (110, 500, (500, 110)),
        (150, 200, (200, 150)),
        (160, 0, None),
    ):
        world.at(now).publish(1000, A, b"%d" % now, ttl)
        assert world.ttl(1000, A) == row
        assert world.value(1000, A) == b"%d" % now


def test_the_same_value_again_is_a_write_ps9() -> None:
    """Defect 30: it renews the TTL, which publishing again is for; subscribers pay one changed
    path, not the value.
    """
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
    """A runtime that lowers a limit strands nobody: what is stored can shrink, stay and be
    renewed.
    """
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


def test_defect_36_size_is_counted_as_promised_and_writes_touch_few_rows_ps6() -> None:
    """32 + len(value) leaves out lifetime and trie on purpose (PS-8): limits are what publishers
    can compute.
    """
    world = World(Config())
    world.publish(1000, A, b"")
    assert world.size(1000) == 32
    assert (
        world.storage.child_get(derive_child_key(ParaId(1000)), A)
        == PublishedEntry(b"", 0, 1).encode()
    )
    for key in numbered(1000):
        world.publish(1000, key, b"v", 9)
    world.storage.commit()
    world.storage.start_recording()
    world.at(2).publish(1000, name("key 3"), b"w", 9)
    world.publish(1000, name("new"), b"w", 9)
    assert world.storage.recorded is not None
    assert len(world.storage.recorded) <= 4


def populated() -> World:
    world = World(MOCK, max_publishers=2, max_stored_keys=3, max_total_storage_size=1500)
    world.register(2000)
    world.publish(2000, A, b"a", 10)
    for key in numbered(3):
        world.publish(1000, key, b"1", 4)
    return world.at(2)


REFUSED: dict[str, tuple[object, Callable[[World], object]]] = {
    "publish: not registered": (Error.PublishNotAuthorized, lambda w: w.publish(2001, A)),
    "publish: first id that is no system para": (
        Error.PublishNotAuthorized,
        lambda w: w.publish(2001, A, b""),
    ),
    "publish: largest id": (Error.PublishNotAuthorized, lambda w: w.publish(U32_MAX, A)),
    "publish: too long, and not registered either": (
        Error.PublishNotAuthorized,
        lambda w: w.publish(2001, A, bytes(9999)),
    ),
    "publish: too long": (Error.ValueTooLong, lambda w: w.publish(2000, A, bytes(1025))),
    "publish: too many keys": (
        Error.TooManyStoredKeys,
        lambda w: w.publish(1000, name("4th"), b""),
    ),
    "publish: too many keys before too much": (
        Error.TooManyStoredKeys,
        lambda w: [
            w.publish(1000, numbered(1)[0], bytes(1024)),
            w.publish(1000, name("4th"), bytes(1024)),
        ],
    ),
    "publish: too much": (
        Error.TotalStorageSizeExceeded,
        lambda w: [w.publish(2000, A, bytes(1024)), w.publish(2000, name("b"), bytes(500))],
    ),
    "publish: key of 31 bytes": (ScaleError, lambda w: w.publish(2000, bytes(31))),
    "publish: key of 33 bytes": (ScaleError, lambda w: w.publish(2000, bytes(33))),
    "publish: empty key": (ScaleError, lambda w: w.publish(2000, b"")),
    "publish: ttl beyond u32": (ScaleError, lambda w: w.publish(2000, A, b"", U32_MAX + 1)),
    "publish: negative ttl": (ScaleError, lambda w: w.publish(2000, A, b"", -1)),
    "publish: id beyond u32": (ScaleError, lambda w: w.publish(U32_MAX + 1, A)),
    "publish: negative id": (ScaleError, lambda w: w.publish(-1, A)),
    "register: by root": (BadOrigin(), lambda w: w.register(2001, Root())),
    "register: by nobody": (BadOrigin(), lambda w: w.register(2001, Unsigned())),
    "register: again": (Error.AlreadyRegistered, lambda w: w.register(2000)),
    "register: not the owner": (Error.NotAuthorized, lambda w: w.register(2001, Signed(BOB))),
    "register: another para": (Error.NotAuthorized, lambda w: w.register(2001, parachain(2002))),
    "register: a para that nobody owns": (Error.NotAuthorized, lambda w: w.register(9999)),
    "register: the owner is poor": (
        Token(TokenError.FundsUnavailable),
        lambda w: w.register(2001, Signed(POOR)),
    ),
    "register: id beyond u32": (ScaleError, lambda w: w.register(U32_MAX + 1)),
    "force register: not root": (
        BadOrigin(),
        lambda w: w.force_register(2001, origin=Signed(ALICE)),
    ),
    "force register: again": (Error.AlreadyRegistered, lambda w: w.force_register(2000)),
    "force register: more than there is": (
        Token(TokenError.FundsUnavailable),
        lambda w: w.force_register(2001, deposit=901),
    ),
    "force register: an account that is not there": (
        Token(TokenError.CannotCreateHold),
        lambda w: w.force_register(2001, deposit=1, manager=bytes(32)),
    ),
    "force register: negative deposit": (ScaleError, lambda w: w.force_register(2001, deposit=-1)),
    "force register: deposit beyond u128": (
        ScaleError,
        lambda w: w.force_register(2001, deposit=U128_MAX + 1),
    ),
    "force register: no account id": (
        ScaleError,
        lambda w: w.force_register(2001, manager=b"short"),
    ),
    "deregister: not registered": (Error.NotRegistered, lambda w: w.deregister(2001)),
    "deregister: an unregistered system para": (
        Error.NotRegistered,
        lambda w: w.deregister(1000, parachain(1000)),
    ),
    "deregister: not the manager": (Error.NotAuthorized, lambda w: w.deregister(2000, Signed(BOB))),
    "deregister: another para": (
        Error.NotAuthorized,
        lambda w: w.deregister(2000, parachain(2001)),
    ),
    "deregister: by root": (BadOrigin(), lambda w: w.deregister(2000, Root())),
    "force deregister: not root": (BadOrigin(), lambda w: w.force_deregister(2000, Signed(ALICE))),
    "force deregister: nothing there": (Error.NotRegistered, lambda w: w.force_deregister(1001)),
    "delete: not registered": (Error.NotRegistered, lambda w: w.delete(2001, [A])),
    "delete: not the manager": (Error.NotAuthorized, lambda w: w.delete(2000, [A], Signed(BOB))),
    "delete: a system para has no manager": (
        Error.NotAuthorized,
        lambda w: w.delete(1000, numbered(1)),
    ),
    "delete: by root": (BadOrigin(), lambda w: w.delete(2000, [A], Root())),
    "delete: nothing": (Error.NoKeysToDelete, lambda w: w.delete(2000, [])),
    "delete: absent": (Error.NoKeysToDelete, lambda w: w.delete(2000, [name("absent")])),
    "delete: one good key and one of 31 bytes": (
        ScaleError,
        lambda w: w.delete(2000, [A, bytes(31)]),
    ),
    "force delete: not root": (BadOrigin(), lambda w: w.force_delete(2000, [A], Signed(ALICE))),
    "force delete: absent": (
        Error.NoKeysToDelete,
        lambda w: w.force_delete(2000, [name("absent")]),
    ),
    "force delete: a key of 33 bytes": (ScaleError, lambda w: w.force_delete(2000, [bytes(33)])),
    "force delete: id beyond u32": (ScaleError, lambda w: w.force_delete(U32_MAX + 1, [A])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_by_its_name_and_leaves_no_trace_ps10(case: str) -> None:
    """Among them A4, A5, A6, A7, A11, A18, A19, A20, A23, A27, A39, A51, A52, A55.

    And defect 31.
    """
    world = populated()
    world.owners.owners[2001] = POOR if "poor" in case else ALICE
    why, action = REFUSED[case]

    def in_a_layer() -> None:
        with (
            world.storage.transaction()
        ):  # two writes in one case: the layer an instruction or a call runs in
            action(world)

    world.refuses(why, in_a_layer)
    world.try_state()


def test_no_place_left_comes_before_not_authorized_and_after_already_registered() -> None:
    world = populated()
    world.register(2001)
    world.refuses(Error.TooManyPublishers, world.register, 2002, Signed(BOB))
    world.refuses(Error.AlreadyRegistered, world.register, 2001, Signed(BOB))


def test_a_refused_publish_needs_no_layer_to_leave_no_trace_ps10() -> None:
    world = populated()
    for why, para, key, size in (
        (Error.PublishNotAuthorized, 2001, A, 1),
        (Error.ValueTooLong, 2000, A, 1025),
        (Error.TooManyStoredKeys, 1000, name("4th"), 0),
    ):
        world.refuses(why, world.publish, para, key, bytes(size))
    world.publish(2000, A, bytes(1024))
    world.refuses(Error.TotalStorageSizeExceeded, world.publish, 2000, name("b"), bytes(500))


ids = st.sampled_from([0, 999, 1000, 1999, 2000, 2001, U32_MAX, U32_MAX + 1, -1])
keys = st.one_of(st.sampled_from([A, *numbered(4)]), st.binary(max_size=40))
origins = st.sampled_from(
    [Root(), Unsigned(), Signed(ALICE), Signed(BOB), Signed(POOR), parachain(1000), parachain(2000)]
)


@given(
    call=st.one_of(
        st.tuples(
            st.just("publish"),
            ids,
            keys,
            st.binary(max_size=3),
            st.sampled_from([0, 1, U32_MAX, U32_MAX + 1, -1]),
        ),
        st.tuples(st.sampled_from(["register", "deregister"]), ids, origins),
        st.tuples(
            st.just("force_register"),
            ids,
            st.sampled_from([0, 5, -1, 10**6, 2**128]),
            st.just(ALICE),
            origins,
        ),
        st.tuples(st.just("force_deregister"), ids, origins),
        st.tuples(
            st.sampled_from(["delete", "force_delete"]), ids, st.lists(keys, max_size=3), origins
        ),
    )
)
def test_whatever_is_asked_either_works_or_changes_nothing_and_never_fails_otherwise_ps10(
    call: tuple[object, ...],
) -> None:
    world = populated()
    before, log = world.root(), list(world.storage.log)
    verb, *args = call
    try:
        getattr(world, str(verb))(*args)
    except PubsubError:
        assert world.root() == before
        assert world.storage.log == log
    else:
        assert world.root() != before
        assert len(world.storage.log) > len(log)
    world.try_state()
