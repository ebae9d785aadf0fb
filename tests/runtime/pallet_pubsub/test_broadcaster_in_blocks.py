"""The pallet in blocks: calls as extrinsics, their outcomes and weights, expiry in what weight is left."""

from support.pallet_pubsub.world import ALICE, BOB, MOCK, ROOT, World, name, parachain

from pubsub_emulator.emulator.runtimes import EVERY
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, Call, ModuleError
from pubsub_emulator.runtime.framework.executive import BlockWeights, Executive, Extrinsic
from pubsub_emulator.runtime.framework.origin import Origin, Signed
from pubsub_emulator.runtime.pallet_pubsub import Error, weights
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired, KeysDeleted, PublisherRegistered

A, B = name("a"), name("b")


def extrinsic(origin: Origin, call: str, *args: object) -> Extrinsic:
    return Extrinsic(origin, Call("Broadcaster", call, args))


def test_calls_run_as_extrinsics_and_failed_ones_are_part_of_the_block_ps10() -> None:
    world = World()
    world.publish(1000, A)
    world.publish(1000, B)
    executive = Executive([world.balances, world.pallet])
    block = executive.build_block(
        world.storage,
        2,
        Hash(bytes(32)),
        extrinsics=[
            extrinsic(Signed(ALICE), "register_publisher", 2000),
            extrinsic(Signed(BOB), "register_publisher", 2001),
            extrinsic(Signed(ALICE), "force_delete_keys", 1000, [A]),
            extrinsic(parachain(1000), "delete_keys", 1000, [A, A]),
            extrinsic(ROOT, "force_deregister_publisher", 4000),
        ],
    )
    why = [outcome.error for outcome in block.outcomes]
    refused = [ModuleError(error) for error in (Error.NotAuthorized, Error.NotRegistered)]
    assert why == [None, refused[0], BadOrigin(), None, refused[1]]
    told = [record.event for record in block.events if record.event.PALLET.name == "Broadcaster"]
    assert told == [PublisherRegistered(ParaId(2000), ALICE), KeysDeleted(ParaId(1000), 1)]
    assert EVERY.stored_events(world.storage) == list(block.events)
    assert world.keys(1000) == [B]
    assert block.header.state_root == world.root()
    world.try_state()


def test_a_deregistration_is_charged_for_a_full_publisher_and_refunded_ps15() -> None:
    world = World()
    world.register(2000)
    world.publish(2000, A)
    block = Executive([world.balances, world.pallet]).build_block(
        world.storage, 2, Hash(bytes(32)), extrinsics=[extrinsic(Signed(ALICE), "deregister_publisher", 2000)]
    )
    assert block.outcomes[0].info.weight == weights.deregister_publisher(world.config, 1)


def test_expiry_gets_what_calls_leave_and_a_full_block_puts_it_off_ps15() -> None:
    world = World(MOCK)
    world.publish(1000, A, ttl=1)
    sweep = weights.on_idle_base() + weights.expire_key(world.config) * 4
    tight = Executive([world.balances, world.pallet], BlockWeights(max_block=sweep, normal=sweep))
    tight.build_block(world.storage, 2, Hash(bytes(32)))
    assert world.keys(1000) == []
    world.publish(1000, A, ttl=1)
    full = Executive([world.balances, world.pallet], BlockWeights(max_block=Weight(10**8, 1000), normal=Weight()))
    full.build_block(world.storage, 3, Hash(bytes(32)))
    assert world.keys(1000) == [A]
    block = tight.build_block(world.storage, 4, Hash(bytes(32)))
    assert [record.event for record in block.events] == [KeyExpired(ParaId(1000), A)]
    assert block.events[0].encode().startswith(b"\x01\x65\x03"), "in finalization, pallet 101, variant 3"
