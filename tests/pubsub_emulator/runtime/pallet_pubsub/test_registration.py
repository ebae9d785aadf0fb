"""Upstream scenarios of the broadcaster pallet about registration, deposits, deletion and
offboarding, by row (A…).

Among them defects 31 to 34 of the Rust attempt. Upstream's `cleanup_published_data` is
`delete_keys` over all keys.
"""

from collections.abc import Callable

import pytest
from support.runtime.pallet_pubsub.world import (
    ALICE,
    MOCK,
    NOTHING_LEFT,
    World,
    name,
    numbered,
    parachain,
)

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.balances import HOLDS, TOTAL_ISSUANCE, Precision
from pubsub_emulator.runtime.framework.dispatch import ModuleError, Token, TokenError
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_pubsub import Error, ForcedDeposit
from pubsub_emulator.runtime.pallet_pubsub.events import (
    KeysDeleted,
    KeysForcedDeleted,
    PublisherDeregistered,
    PublisherRegistered,
)
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT, sovereign_account
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    PublisherInfo,
    RegisteredPublishers,
)

A, B, C = name("a"), name("b"), name("c")


def info(world: World, para: int) -> PublisherInfo | None:
    return RegisteredPublishers.get(world.storage, para)


def published() -> World:
    world = World()
    world.register(2000)
    for key in (A, B, C):
        world.publish(2000, key, b"v", 10)
    return world.at(2)


def test_a1_registering_holds_the_deposit_and_makes_the_caller_manager_ps12() -> None:
    world = World()
    world.register(2000)
    assert info(world, 2000) == PublisherInfo(ALICE, 100)
    assert (world.held(ALICE), world.free(ALICE)) == (100, 900)
    assert world.events() == [PublisherRegistered(2000, ALICE)]
    world.try_state()


@pytest.mark.parametrize("para", [1000, 1999, 2000, 5000])
def test_a33_a34_a35_a36_system_paras_publish_at_once_and_public_ones_once_registered_ps7(
    para: int,
) -> None:
    world = World()
    if para >= 2000:
        world.refuses(Error.PublishNotAuthorized, world.publish, para, A)
        world.register(para)
    world.publish(para, A, b"v")
    assert (world.value(para, A), world.count(para)) == (b"v", 1)


def test_the_para_itself_registers_and_pays_from_its_own_account() -> None:
    """The para is as good as its owner: its sovereign account pays, becomes manager, and the para
    manages itself.
    """
    world = World()
    own = sovereign_account(2000)
    assert own == bytes.fromhex("70617261d0070000") + bytes(24)
    world.refuses(Token(TokenError.CannotCreateHold), world.register, 2000, parachain(2000))
    world.balances.force_set_balance(world.storage, Root(), own, 500)
    world.register(2000, parachain(2000))
    assert info(world, 2000) == PublisherInfo(own, 100)
    assert world.held(own) == 100
    world.deregister(2000, parachain(2000))
    assert (world.held(own), world.free(own)) == (0, 500)


def test_another_paras_account_as_manager_is_that_para() -> None:
    world = World()
    world.force_register(2000, manager=sovereign_account(3000))
    world.publish(2000, A)
    world.delete(2000, [A], parachain(3000))
    world.deregister(2000, parachain(3000))
    assert info(world, 2000) is None


def test_defect_33_registrations_are_counted_by_a_counter_not_by_iterating() -> None:
    """The cap is on registrations (PS-8); system paras that merely publish are as many as
    governance makes.
    """
    world = World(MOCK, max_publishers=2)
    for para in range(10):
        world.publish(para, A, b"")
    world.register(2000)
    world.force_register(5)
    assert CounterForRegisteredPublishers.get(world.storage) == 2
    world.storage.commit()
    world.storage.start_recording()
    with pytest.raises(ModuleError, match="TooManyPublishers"):
        world.register(2001)
    assert world.storage.recorded is not None
    assert len(world.storage.recorded) == 2


@pytest.mark.parametrize("keys", [0, 3])
@pytest.mark.parametrize(
    "leave",
    [
        lambda w: w.deregister(2000),
        lambda w: w.deregister(2000, parachain(2000)),
        lambda w: w.force_deregister(2000),
        lambda w: w.pallet.on_offboard(w.storage, [ParaId(2000), ParaId(3000)]),
    ],
    ids=["the manager", "the para", "root", "offboarding"],
)
def test_a21_a22_a24_a25_a26_a40_a56_who_goes_takes_data_rows_registration_and_hold_along_ps11(
    leave: Callable[[World], object], keys: int
) -> None:
    """Row A22 wants `MustCleanupDataFirst`; by our table one call removes everything."""
    world = World()
    untouched = world.root()
    world.register(2000)
    for at, key in enumerate(numbered(keys)):
        world.publish(2000, key, ttl=7 * at)  # the first lives for ever
    leave(world.at(2))
    assert world.everything(2000) == NOTHING_LEFT
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000)
    assert world.events() == [PublisherDeregistered(2000)]
    world.try_state()
    CounterForRegisteredPublishers.kill(world.storage)  # stays as 0, as FRAME's counter does
    HOLDS.remove(world.storage, ALICE)  # stays as an empty list, as FRAME's does
    assert world.at(1).root() == untouched


def test_force_deregistering_slashes_the_deposit_where_the_runtime_says_so() -> None:
    world = World(MOCK, forced_deposit=ForcedDeposit.SLASHED)
    world.register(2000)
    world.register(2001)
    issuance = TOTAL_ISSUANCE.get(world.storage)
    world.force_deregister(2000)
    assert (world.held(ALICE), world.free(ALICE)) == (100, 800)
    assert TOTAL_ISSUANCE.get(world.storage) == issuance - 100
    world.deregister(2001)
    assert (world.held(ALICE), world.free(ALICE)) == (0, 900)
    world.try_state()


def test_a30_offboarding_wipes_the_outgoing_paras_and_no_other_ps11() -> None:
    world = published()
    world.register(2001)
    world.register(2002)
    world.publish(2002, A, b"stays")
    root_of_c = world.child_root(2002)
    world.at(3).pallet.on_offboard(world.storage, [ParaId(2000), ParaId(2001)])
    assert world.everything(2000) == NOTHING_LEFT
    assert info(world, 2000) is info(world, 2001) is None
    assert world.child_root(2002) == root_of_c
    assert world.held(ALICE) == 100
    assert world.events() == [
        PublisherDeregistered(ParaId(2000)),
        PublisherDeregistered(ParaId(2001)),
    ]
    world.try_state()


def test_a_deposit_that_cannot_be_given_back_never_keeps_a_para_ps11(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is burned: a hold without a registration would be nobody's."""
    world = World()
    world.register(2000)
    for para in (1000, 2000):
        world.publish(para, A, b"old", 5)

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise Token(TokenError.CannotCreate)

    monkeypatch.setattr(world.pallet.balances, "release", refuse)
    used = world.pallet.on_offboard(world.storage, [ParaId(1000), ParaId(2000), ParaId(3000)])
    assert world.everything(1000) == world.everything(2000) == NOTHING_LEFT
    assert (world.held(ALICE), world.free(ALICE)) == (0, 900)
    world.try_state()
    base = world.pallet.on_offboard(world.storage, [ParaId(3000)])
    assert (base * 3).all_lte(used)
    assert used != base * 3


def test_defect_34_an_incomplete_deposit_does_not_keep_a_registration_alive() -> None:
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


def test_a17_a28_a53_deleting_all_keys_leaves_the_registration() -> None:
    world = published()
    more = numbered(47)
    for key in more:
        world.publish(2000, key, b"")
    world.delete(2000, [A, B, C, *more])
    assert world.everything(2000) == NOTHING_LEFT
    assert RegisteredPublishers.contains(world.storage, ParaId(2000))
    assert world.held(ALICE) == 100


@pytest.mark.parametrize(
    ("call", "event"),
    [
        ("delete", KeysDeleted),
        ("force_delete", KeysForcedDeleted),
    ],
)
def test_a50_a54_two_of_three_are_deleted_duplicates_merge_and_absent_keys_are_ignored(
    call: str, event: Callable[[ParaId, int], object]
) -> None:
    world = published()
    getattr(world, call)(2000, [A, A, name("absent"), C, A])
    assert world.keys(2000) == [B]
    assert (world.count(2000), world.size(2000)) == (1, 33)
    assert world.events() == [event(ParaId(2000), 2)]


@pytest.mark.parametrize(
    "remove",
    [
        lambda w: w.delete(1000, [A], parachain(1000)),
        lambda w: w.force_delete(1000, [A]),
        lambda w: w.force_deregister(1000),
        lambda w: w.pallet.on_offboard(w.storage, [ParaId(1000)]),
    ],
    ids=["the para", "root", "deregistered", "offboarded"],
)
def test_defect_32_an_unregistered_system_paras_data_can_be_deleted_in_every_way(
    remove: Callable[[World], object],
) -> None:
    world = World()
    world.publish(1000, A, ttl=5)
    remove(world)
    assert world.everything(1000) == NOTHING_LEFT
    world.refuses(Error.NotRegistered, world.deregister, 1000, parachain(1000))
