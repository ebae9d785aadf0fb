"""What executing a message came to is told by SCALE events that a Rust client knows (PS-20, PS-21)."""

import pytest
from support.relay_chain import world
from support.relay_chain.world import ALICE, PUBLIC, SECOND, SYSTEM

from pubsub_emulator.emulator.relay.message_outcomes import Attempted
from pubsub_emulator.emulator.runtimes import EVERY
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.pallet_pubsub import Error, weights
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished
from pubsub_emulator.runtime.relay.message_queue import Processed
from pubsub_emulator.xcm import Complete, Incomplete, InstructionError, XcmError, XcmErrorKind
from pubsub_emulator.xcm.instructions import SetTopic

PUBLISH_FAILED = 41


def test_ps20_a_publish_goes_from_xcm_bytes_to_the_stored_entry() -> None:
    """Byte by byte: version 5, one instruction, discriminant 52, key, value, ttl."""
    chain = world.start()
    key = world.key("by hand")
    data = b"\x05\x04\x34" + key + b"\x14hello" + (9).to_bytes(4, "little")
    served = world.send(chain, SYSTEM, data)
    assert world.entry(chain, SYSTEM, "by hand") == PublishedEntry(b"hello", 9, chain.number)
    published, processed = world.events(served, "Broadcaster", "MessageQueue", "XcmPallet")
    used = Weight(10_000_000, 0) + weights.publish(world.SMALL.pubsub, 5)
    assert published == DataPublished(ParaId(SYSTEM), key, 5)
    assert published.encode().hex() == "6500" + "e8030000" + key.hex() + "05000000"
    assert processed == Processed(blake2_256(data), ParaId(SYSTEM), used, success=True)
    origin = "0000e8030000"
    weight = encode_compact(used.ref_time) + encode_compact(used.proof_size)
    assert processed.encode().hex() == "6401" + blake2_256(data).hex() + origin + weight.hex() + "01"
    (ran,) = chain.executions
    assert (ran.para, ran.id, ran.execution.outcome) == (SYSTEM, blake2_256(data), Complete(used))


def test_ps21_a_failed_message_says_which_instruction_failed_and_how_before_its_queue_says_that_it_did() -> None:
    chain = world.start()
    instructions = [world.publish(1), world.publish(2, bytes(65)), world.publish(3), SetTopic(bytes(32))]
    served = world.send(chain, SYSTEM, world.message(*instructions))
    published, attempted, processed = world.events(served, "Broadcaster", "MessageQueue", "XcmPallet")
    config = world.SMALL.pubsub
    used = Weight(20_000_000, 0) + weights.publish(config, 5) + weights.publish(config, 65)
    failure = InstructionError(1, XcmError(XcmErrorKind.PublishFailed))
    assert isinstance(published, DataPublished)
    assert attempted == Attempted(Incomplete(used, failure))
    weight = encode_compact(used.ref_time) + encode_compact(used.proof_size)
    assert attempted.encode() == bytes((99, 0, 1)) + weight + bytes((1, PUBLISH_FAILED))
    assert isinstance(processed, Processed)
    assert (processed.weight_used, processed.success) == (used, False)


ONE_OF_EACH = {
    Error.PublishNotAuthorized: (SECOND, [world.publish(1)]),
    Error.ValueTooLong: (PUBLIC, [world.publish(1, bytes(65))]),
    Error.TooManyStoredKeys: (PUBLIC, [world.publish("sixth", b"")]),
    Error.TotalStorageSizeExceeded: (PUBLIC, [world.publish(n, bytes(64)) for n in (0, 1, 2)]),
}


@pytest.mark.parametrize("why", ONE_OF_EACH, ids=lambda why: why.name)
def test_ps21_which_pallet_error_it_was_is_kept_with_the_block(why: Error) -> None:
    chain = world.start(publishers=[PUBLIC])
    first = [world.message(world.publish(n, b"")) for n in range(3)], [world.message(world.publish(3, b""))] * 1
    for messages in (*first, [world.message(world.publish(4, b""))]):
        world.send(chain, PUBLIC, *messages)
    assert world.counted(chain, PUBLIC)[:2] == (5, 160)
    para, instructions = ONE_OF_EACH[why]
    world.send(chain, para, world.message(*instructions))
    (ran,) = chain.executions
    assert [failure.cause for failure in ran.execution.failures] == [ModuleError(why)]
    assert ran.execution.failures[0].index == len(instructions) - 1
    world.step(chain)
    assert chain.executions == ()


def test_executions_go_back_with_the_chain() -> None:
    """PS-90: a restored chain tells what it told."""
    chain = world.start()
    world.send(chain, SYSTEM, world.message(world.publish(1)))
    told, at = chain.executions, chain.snapshot()
    world.step(chain, blocks=3)
    chain.restore(at)
    assert chain.executions == told != ()


def test_a_blocks_events_stand_in_its_state_and_decode_to_what_they_were() -> None:
    chain = world.start()
    world.step(chain, [world.candidate(chain, SYSTEM, world.message(world.publish(1), world.publish(2, bytes(65))))])
    block = world.step(
        chain,
        [world.candidate(chain, 9999)],
        [world.call(Signed(ALICE), "register_publisher", PUBLIC), world.call(Signed(ALICE), "delete_keys", 5, [])],
    )
    assert EVERY.stored_events(chain.storage()) == list(block.events)
    assert len({type(record.event) for record in block.events}) >= 8
    for record in block.events:
        reader = EVERY.reader(record.event.encode())
        assert EVERY.read_event(reader) == record.event
        reader.end()
