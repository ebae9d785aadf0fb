"""Offboarding at a change of session, with the real session and message queue around the pallet (PS-11)."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from support.pallet_pubsub.world import ALICE, NOTHING_LEFT, World, name

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import Token, TokenError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import weights
from pubsub_emulator.runtime.relay.host_configuration import ACTIVE, HostConfiguration
from pubsub_emulator.runtime.relay.message_queue import MessageQueue, MessageResult
from pubsub_emulator.runtime.relay.session import OffboardingHook, Session

A = name("a")
SYSTEM, PUBLIC = ParaId(1000), ParaId(2000)


class Value(NamedTuple):
    """What a message publishes."""

    value: bytes
    weight: Weight


class Publishes:
    """A processor for which every message is a value to publish under one key."""

    def __init__(self, world: World) -> None:
        self.world = world

    def prepare(self, message: bytes) -> Value:
        return Value(message, weights.publish(self.world.config, len(message)))

    def process(self, storage: Storage, para: ParaId, prepared: Value, _id: bytes) -> MessageResult:
        self.world.pallet.publish(storage, para, A, prepared.value, 0)
        return MessageResult(prepared.weight)


class Leaving:
    """Para lifecycles in which both paras leave with the next session."""

    def apply_actions(self, _storage: Storage, _session: int) -> list[ParaId]:
        return [SYSTEM, PUBLIC]


def relay() -> tuple[World, MessageQueue]:
    world = World()
    ACTIVE.put(world.storage, HostConfiguration())
    queue = MessageQueue(Publishes(world))
    world.register(PUBLIC)
    for para in (SYSTEM, PUBLIC):
        world.publish(para, A, b"old", 5)
        queue.enqueue(world.storage, para, [b"waiting"])
    return world, queue


def change_session(world: World, offboarding: Sequence[OffboardingHook]) -> None:
    Session(10, Leaving(), offboarding=offboarding).on_initialize(world.storage, 10)


def test_queue_then_data_then_deposit_registered_or_not_ps11() -> None:
    world, queue = relay()
    change_session(world, [queue.on_offboard, world.pallet.on_offboard])
    queue.service_queues(world.storage, Weight(10**13, 10**9))
    for para in (SYSTEM, PUBLIC):
        assert world.everything(para) == NOTHING_LEFT
        assert queue.messages(world.storage, para) == []
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000)
    world.try_state()


def test_a_queue_that_is_not_emptied_would_bring_a_system_paras_data_back_ps11() -> None:
    """Why the order is a rule: what still waits runs afterwards, for a para that is gone."""
    world, queue = relay()
    change_session(world, [world.pallet.on_offboard])
    queue.sweep_queue(world.storage, PUBLIC)
    queue.service_queues(world.storage, Weight(10**13, 10**9))
    assert world.value(SYSTEM, A) == b"waiting"


def test_a_deposit_that_cannot_be_given_back_never_keeps_a_para_ps11(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is burned: a hold without a registration would be nobody's."""
    world, queue = relay()
    held = world.held(ALICE)
    assert held

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise Token(TokenError.CannotCreate)

    monkeypatch.setattr(world.pallet.balances, "release", refuse)
    change_session(world, [queue.on_offboard, world.pallet.on_offboard])
    for para in (SYSTEM, PUBLIC):
        assert world.everything(para) == NOTHING_LEFT
    assert (world.held(ALICE), world.free(ALICE)) == (0, 1000 - held)
    world.try_state()


def test_offboarding_says_what_it_took() -> None:
    world, _ = relay()
    used = world.pallet.on_offboard(world.storage, [SYSTEM, PUBLIC, ParaId(3000)])
    base = world.pallet.on_offboard(World().storage, [ParaId(3000)])
    assert (base * 3).all_lte(used)
    assert used != base * 3
