"""Whose deposit is held, and what becomes of it when a publisher goes (PS-11, PS-12)."""

import pytest
from support.pallet_pubsub.world import ALICE, NOTHING_LEFT, World, name

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.dispatch import Token, TokenError


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
