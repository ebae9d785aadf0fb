"""Whose deposit is held, and what becomes of it when a publisher goes (PS-11, PS-12)."""

import pytest
from support.pallet_pubsub.world import ALICE, MOCK, NOTHING_LEFT, World, name, parachain

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.balances import HOLDS, TOTAL_ISSUANCE, Precision
from pubsub_emulator.runtime.framework.dispatch import Token, TokenError
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_pubsub import ForcedDeposit
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT, sovereign_account
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    PublisherInfo,
    RegisteredPublishers,
)


def test_deregistering_with_data_takes_the_data_along() -> None:
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


def test_the_para_itself_registers_and_pays_from_its_own_account() -> None:
    """The para is as good as its owner: its sovereign account pays, becomes manager, and the para manages itself."""
    world = World()
    own = sovereign_account(2000)
    assert own == bytes.fromhex("70617261d0070000") + bytes(24)
    world.refuses(Token(TokenError.CannotCreateHold), world.register, 2000, parachain(2000))
    world.balances.force_set_balance(world.storage, Root(), own, 500)
    world.register(2000, parachain(2000))
    assert RegisteredPublishers.get(world.storage, ParaId(2000)) == PublisherInfo(own, 100)
    assert world.held(own) == 100
    world.deregister(2000, parachain(2000))
    assert (world.held(own), world.free(own)) == (0, 500)


def test_a_deposit_that_is_no_longer_whole_does_not_keep_a_registration_alive() -> None:
    world = World()
    world.register(2000)
    world.publish(2000, name("a"))
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


def test_a_deposit_that_cannot_be_given_back_never_keeps_a_para_ps11(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is burned: a hold without a registration would be nobody's."""
    world = World()
    world.register(2000)
    for para in (1000, 2000):
        world.publish(para, name("a"), b"old", 5)

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
