"""Upstream scenarios of the broadcaster pallet about registration; each test names its row (A…) and its rule."""

import pytest
from support.pallet_pubsub.world import ALICE, BOB, MOCK, NOTHING_LEFT, POOR, World, name, numbered, parachain

from pubsub_emulator.runtime.balances import HOLDS, TOTAL_ISSUANCE
from pubsub_emulator.runtime.framework.dispatch import Token, TokenError
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.pallet_pubsub import Error, ForcedDeposit
from pubsub_emulator.runtime.pallet_pubsub.events import PublisherDeregistered, PublisherRegistered
from pubsub_emulator.runtime.pallet_pubsub.registry import sovereign_account
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    PublisherInfo,
    RegisteredPublishers,
)


def info(world: World, para: int) -> PublisherInfo | None:
    return RegisteredPublishers.get(world.storage, para)


def test_a1_registering_holds_the_deposit_and_makes_the_caller_manager_ps12() -> None:
    world = World()
    world.register(2000)
    assert info(world, 2000) == PublisherInfo(ALICE, 100)
    assert (world.held(ALICE), world.free(ALICE)) == (100, 900)
    assert world.events() == [PublisherRegistered(2000, ALICE)]
    world.try_state()


@pytest.mark.parametrize(("para", "deposit"), [(1000, 0), (2000, 500)])
def test_a2_a3_root_registers_with_a_deposit_of_its_choice(para: int, deposit: int) -> None:
    world = World()
    world.force_register(para, deposit=deposit)
    assert info(world, para) == PublisherInfo(ALICE, deposit)
    assert (world.held(ALICE), world.free(ALICE)) == (deposit, 1000 - deposit)


def test_a4_nobody_registers_a_para_twice() -> None:
    world = World()
    world.register(2000)
    for origin in (Signed(ALICE), Signed(BOB), parachain(2000)):
        world.refuses(Error.AlreadyRegistered, world.register, 2000, origin)
    world.refuses(Error.AlreadyRegistered, world.force_register, 2000)
    assert (world.held(ALICE), world.held(BOB)) == (100, 0)


def test_a6_a_balance_below_the_deposit_registers_nothing() -> None:
    world = World()
    world.owners.owners[2000] = POOR
    world.refuses(Token(TokenError.FundsUnavailable), world.register, 2000, Signed(POOR))
    world.refuses(Token(TokenError.FundsUnavailable), world.force_register, 2000, 100, POOR)
    assert info(world, 2000) is None
    assert CounterForRegisteredPublishers.get(world.storage) == 0


def test_a16_the_last_place_is_taken_and_existing_publishers_go_on() -> None:
    world = World(MOCK, max_publishers=3)
    for para in (2000, 2001, 2002):
        world.register(para)
    world.publish(2000, name("k"), b"1")
    world.refuses(Error.TooManyPublishers, world.register, 2003)
    world.refuses(Error.TooManyPublishers, world.force_register, 2003)
    world.publish(2000, name("k"), b"2")
    assert world.value(2000, name("k")) == b"2"
    world.deregister(2001)
    world.register(2003)
    world.try_state()


@pytest.mark.parametrize("origin", [Signed(ALICE), parachain(2000)])
def test_a21_deregistering_without_data_releases_the_deposit(origin: object) -> None:
    world = World()
    world.register(2000)
    world.at(2).deregister(2000, origin)
    assert info(world, 2000) is None
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000)
    assert world.events() == [PublisherDeregistered(2000)]
    world.try_state()


def test_a22_deregistering_with_data_takes_the_data_along() -> None:
    """Row A22 wants `MustCleanupDataFirst`; by our table one call removes data, rows, registration and hold."""
    world = World()
    untouched = world.root()
    world.register(2000)
    world.publish(2000, name("a"), ttl=10)
    world.publish(2000, name("b"))
    world.deregister(2000)
    assert world.everything(2000) == NOTHING_LEFT
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000)
    CounterForRegisteredPublishers.kill(world.storage)  # stays as 0, as FRAME's counter does
    HOLDS.remove(world.storage, ALICE)  # stays as an empty list, as FRAME's does
    assert world.root() == untouched


def test_a23_only_the_manager_or_the_para_deregisters() -> None:
    world = World()
    world.register(2000)
    for origin in (Signed(BOB), parachain(2001)):
        world.refuses(Error.NotAuthorized, world.deregister, 2000, origin)


def test_a24_deletion_keeps_the_deposit_and_deregistering_releases_it() -> None:
    """Row A24's two steps, cleanup and deregister, are `delete_keys` and `deregister_publisher` with us."""
    world = World()
    world.register(2000)
    world.publish(2000, name("a"))
    world.delete(2000, [name("a")])
    assert world.held(ALICE) == 100
    world.deregister(2000)
    assert world.held(ALICE) == 0


def test_a25_force_deregistering_removes_data_registration_and_hold_in_one_call() -> None:
    world = World()
    world.register(2000)
    for key in numbered(10):
        world.publish(2000, key, ttl=7)
    world.at(2).force_deregister(2000)
    assert world.everything(2000) == NOTHING_LEFT
    assert info(world, 2000) is None
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000)
    assert world.events() == [PublisherDeregistered(2000)]
    world.try_state()


def test_a26_force_deregistering_works_without_data() -> None:
    world = World()
    world.register(2000)
    world.force_deregister(2000)
    assert info(world, 2000) is None


def test_a29_force_deregistering_without_a_deposit_moves_no_balance() -> None:
    world = World()
    world.force_register(1000)
    world.publish(1000, name("a"))
    world.force_deregister(1000)
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000)


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


def test_a33_para_1999_is_a_system_para_ps7() -> None:
    world = World()
    world.force_register(1999)
    world.publish(1999, name("a"))
    world.publish(1998, name("a"))
    assert (world.count(1999), world.count(1998)) == (1, 1)


@pytest.mark.parametrize("para", [2000, 5000])
def test_a34_a36_a_public_para_publishes_only_once_registered_ps7(para: int) -> None:
    world = World()
    world.refuses(Error.PublishNotAuthorized, world.publish, para, name("a"))
    world.register(para)
    world.publish(para, name("a"))
    assert world.held(ALICE) == 100


def test_a35_a_system_para_publishes_without_registration_ps7() -> None:
    world = World()
    world.publish(1000, name("a"), b"v")
    assert world.value(1000, name("a")) == b"v"
    assert world.count(1000) == 1


def test_the_para_itself_registers_and_pays_from_its_own_account() -> None:
    """The para is as good as its owner: its sovereign account pays, becomes manager, and the para manages itself."""
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
    world.publish(2000, name("a"))
    world.delete(2000, [name("a")], parachain(3000))
    world.deregister(2000, parachain(3000))
    assert info(world, 2000) is None


def test_one_account_manages_many_publishers_and_each_deposit_is_its_own_ps12() -> None:
    world = World()
    for para in (2000, 2001):
        world.register(para)
    world.force_register(2002, deposit=30)
    assert world.held(ALICE) == 230
    world.try_state()
    world.deregister(2001)
    assert world.held(ALICE) == 130
    world.try_state()
