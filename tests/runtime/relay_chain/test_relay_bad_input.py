"""Bad input of every kind changes nothing but the record of it, and says why (PS-10, PS-20 to PS-23).

Each test runs a chain that meets the bad input beside one that does not. What may differ between the two is what tells
of it: events, weight, the hash of the parent; with a message also the book of its queue.
"""

from collections.abc import Callable
from typing import Any

import pytest
from support.relay_chain import world
from support.relay_chain.storage_dump import differing
from support.relay_chain.world import ALICE, BOB, PUBLIC, ROOT, SECOND, STRANGER, SYSTEM, para_origin

from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.emulator.relay.message_outcomes import Attempted
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.dispatch import (
    BadOrigin,
    DispatchError,
    ModuleError,
    Token,
    TokenError,
    dispatch,
)
from pubsub_emulator.runtime.framework.executive import Extrinsic
from pubsub_emulator.runtime.framework.origin import Origin, Signed
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import Error
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.runtime.relay.inclusion import Error as InclusionError
from pubsub_emulator.runtime.relay.message_queue import Error as QueueError
from pubsub_emulator.runtime.relay.message_queue import (
    MessageErrorKind,
    OverweightDropped,
    Processed,
    ProcessingFailed,
)
from pubsub_emulator.xcm import Incomplete, XcmErrorKind
from pubsub_emulator.xcm.instructions import ClearOrigin, SetAppendix, Trap

RECORD = {"System::Events", "System::EventCount", "System::BlockWeight", "System::ParentHash", "System::BlockHash"}
"""Where it stands that something was tried."""
QUEUE = {"MessageQueue::BookStateFor", ":relay_dispatch_queue_remaining_capacity"}
"""What stays of a queue that a message went through."""

K = world.key(1)


def prepared() -> RelayChain:
    """2000 is registered and stores two keys, 1000 stores one, 2001 owns nothing."""
    chain = world.start(publishers=[PUBLIC])
    data = [world.message(world.publish(name)) for name in (1, 2)]
    world.step(chain, [world.candidate(chain, PUBLIC, *data), world.candidate(chain, SYSTEM, data[0])])
    world.step(chain)
    assert world.counted(chain, PUBLIC)[0] == 2
    return chain


def twins() -> tuple[RelayChain, RelayChain]:
    return prepared(), prepared()


# Calls

REFUSED: list[tuple[Origin, str, tuple[Any, ...], Error | DispatchError]] = [
    (ROOT, "register_publisher", (SECOND,), BadOrigin()),
    (Signed(ALICE), "register_publisher", (SECOND,), Error.NotAuthorized),
    (para_origin(PUBLIC), "register_publisher", (SECOND,), Error.NotAuthorized),
    (Signed(ALICE), "register_publisher", (9999,), Error.NotAuthorized),
    (Signed(ALICE), "register_publisher", (PUBLIC,), Error.AlreadyRegistered),
    (para_origin(SYSTEM), "register_publisher", (SYSTEM,), Token(TokenError.CannotCreateHold)),
    (Signed(ALICE), "force_register_publisher", (ALICE, 0, SECOND), BadOrigin()),
    (para_origin(SECOND), "force_register_publisher", (ALICE, 0, SECOND), BadOrigin()),
    (ROOT, "force_register_publisher", (ALICE, 10**18, SECOND), Token(TokenError.FundsUnavailable)),
    (ROOT, "force_register_publisher", (STRANGER, 1, SECOND), Token(TokenError.CannotCreateHold)),
    (ROOT, "deregister_publisher", (PUBLIC,), BadOrigin()),
    (Signed(BOB), "deregister_publisher", (PUBLIC,), Error.NotAuthorized),
    (Signed(BOB), "deregister_publisher", (9999,), Error.NotRegistered),
    (para_origin(SYSTEM), "deregister_publisher", (SYSTEM,), Error.NotRegistered),
    (Signed(ALICE), "force_deregister_publisher", (PUBLIC,), BadOrigin()),
    (ROOT, "force_deregister_publisher", (9999,), Error.NotRegistered),
    (ROOT, "delete_keys", (PUBLIC, [K]), BadOrigin()),
    (Signed(BOB), "delete_keys", (PUBLIC, [K]), Error.NotAuthorized),
    (para_origin(SYSTEM), "delete_keys", (PUBLIC, [K]), Error.NotAuthorized),
    (Signed(ALICE), "delete_keys", (SYSTEM, [K]), Error.NotAuthorized),
    (para_origin(9999), "delete_keys", (9999, [K]), Error.NotRegistered),
    (Signed(ALICE), "delete_keys", (PUBLIC, [world.key("none")]), Error.NoKeysToDelete),
    (Signed(ALICE), "force_delete_keys", (PUBLIC, [K]), BadOrigin()),
    (ROOT, "force_delete_keys", (9999, [K]), Error.NoKeysToDelete),
    (ROOT, "force_delete_keys", (PUBLIC, []), Error.NoKeysToDelete),
]


@pytest.mark.parametrize(
    ("origin", "name", "args", "why"), REFUSED, ids=[f"{i}-{row[1]}" for i, row in enumerate(REFUSED)]
)
def test_ps10_a_refused_call_leaves_the_root_and_in_a_block_only_its_record(
    origin: Origin, name: str, args: tuple[Any, ...], why: Error | DispatchError
) -> None:
    wanted = ModuleError(why) if isinstance(why, Error) else why
    chain, other = twins()
    call = world.call(origin, name, *args)
    storage = Storage(chain.state.fork())
    outcome = dispatch(chain.runtime.broadcaster, storage, origin, call.call)
    assert (outcome.error, storage.commit(), storage.log) == (wanted, chain.header.state_root, [])
    block = world.step(chain, (), [call])
    world.step(other)
    assert world.errors(block) == [wanted]
    nonce = {"System::Account"} if origin in (Signed(ALICE), Signed(BOB)) else set()
    assert differing(chain.state, other.state) <= RECORD | nonce


NO_CALL: list[tuple[str, Extrinsic]] = [
    ("key of 31 bytes", world.call(Signed(ALICE), "delete_keys", PUBLIC, [K[:31]])),
    ("key of 33 bytes", world.call(ROOT, "force_delete_keys", PUBLIC, [K + b"\0"])),
    ("id beyond u32", world.call(Signed(ALICE), "register_publisher", 2**32)),
    ("negative id", world.call(ROOT, "force_deregister_publisher", -1)),
    ("deposit beyond u128", world.call(ROOT, "force_register_publisher", ALICE, 2**128, SECOND)),
    ("account of 31 bytes", world.call(ROOT, "force_register_publisher", ALICE[:31], 0, SECOND)),
]


@pytest.mark.parametrize("call", [call for _, call in NO_CALL], ids=[name for name, _ in NO_CALL])
def test_ps4_what_no_encoded_call_can_say_makes_no_block_and_the_chain_goes_on(call: Extrinsic) -> None:
    chain, other = twins()
    before = chain.header
    with pytest.raises(ScaleError):
        chain.build((), [call])
    assert (chain.header, chain.state.root()) == (before, before.state_root)
    world.step(chain)
    world.step(other)
    assert chain.header == other.header


# Messages that do not run


def _nested(depth: int) -> bytes:
    """Appendices inside one another, written by hand since the encoder refuses them too."""
    inner = world.message(Trap(1))[1:]
    for _ in range(depth):
        inner = b"\x04" + world.message(SetAppendix(()))[2:3] + inner
    return b"\x05" + inner


P = world.publish("new")
GOOD = world.message(P)
CORRUPT, UNSUPPORTED, BAD_FORMAT = (
    MessageErrorKind.Corrupt,
    MessageErrorKind.Unsupported,
    MessageErrorKind.BadFormat,
)
NEVER_RUN: dict[str, tuple[bytes, MessageErrorKind]] = {
    "no bytes": (b"", CORRUPT),
    "garbage": (b"\xff" * 40, CORRUPT),
    "trailing byte": (GOOD + b"\0", CORRUPT),
    "truncated": (GOOD[:-1], CORRUPT),
    "key of 31 bytes": (GOOD[:3] + GOOD[4:], CORRUPT),
    "unknown instruction": (b"\x05\x04\x35", CORRUPT),
    "long compact": (GOOD.replace(b"\x05\x04", b"\x05\x05\x00", 1), CORRUPT),
    "announces 2**30 instructions": (b"\x05" + encode_compact(2**30), CORRUPT),
    "announces 2**30 bytes": (GOOD[:35] + encode_compact(2**30) + GOOD[36:], CORRUPT),
    "nested as deep as is read": (_nested(6), BAD_FORMAT),
    "nested 9 levels": (_nested(9), CORRUPT),
    "nested 150 levels": (_nested(150), CORRUPT),
    "101 instructions": (world.message(*[ClearOrigin()] * 100).replace(b"\x91\x01", b"\x95\x01", 1) + b"\x0a", CORRUPT),
    "XCM V4": (b"\x04" + GOOD[1:], UNSUPPORTED),
    "XCM V3": (b"\x03" + GOOD[1:], UNSUPPORTED),
    "empty": (world.message(), BAD_FORMAT),
    "only another instruction": (world.message(ClearOrigin()), BAD_FORMAT),
    "another before": (world.message(ClearOrigin(), P), BAD_FORMAT),
    "another behind": (world.message(P, Trap(1)), BAD_FORMAT),
    "65 instructions": (world.message(*[ClearOrigin()] * 65), MessageErrorKind.StackLimitReached),
}


def _same_block(chain: RelayChain, other: RelayChain, para: int, *messages: bytes) -> Any:
    """The same parachain block with messages and without; returns the relay block that serves them."""
    world.step(chain, [world.candidate(chain, para, *messages)])
    world.step(other, [world.candidate(other, para)])
    served = world.step(chain)
    world.step(other)
    return served


@pytest.mark.parametrize("kind", NEVER_RUN)
def test_ps20_ps22_a_message_that_cannot_run_leaves_its_record_and_the_event_says_why(kind: str) -> None:
    data, why = NEVER_RUN[kind]
    chain, other = twins()
    served = _same_block(chain, other, PUBLIC, data)
    told = world.events(served, "MessageQueue", "Broadcaster", "XcmPallet")
    assert [type(event) for event in told] == [ProcessingFailed]
    failed = told[0]
    assert isinstance(failed, ProcessingFailed)
    assert (failed.id, failed.origin, failed.error.kind) == (blake2_256(data), PUBLIC, why)
    assert chain.executions == ()
    assert differing(chain.state, other.state) <= RECORD | QUEUE
    assert world.value(world_after(chain, GOOD), PUBLIC, "new") == b"value"


def world_after(chain: RelayChain, data: bytes) -> RelayChain:
    world.send(chain, PUBLIC, data)
    return chain


def test_ps23_a_message_heavier_than_a_whole_block_is_dropped_with_its_weight_and_changes_nothing() -> None:
    chain, other = twins()
    heavy = world.message(*(world.publish(i) for i in range(4)))
    served = _same_block(chain, other, PUBLIC, heavy)
    dropped = world.events(served, "MessageQueue", "Broadcaster")
    assert [type(event) for event in dropped] == [OverweightDropped]
    assert isinstance(dropped[0], OverweightDropped)
    assert dropped[0].encode()[:2].hex() == "6404"
    assert dropped[0].weight.ref_time > world.SMALL.queue.service_weight.ref_time
    assert differing(chain.state, other.state) <= RECORD | QUEUE


# Messages that run and fail

LONG = world.publish("long", bytes(65))
FAILING: dict[str, tuple[int, list[Any], Error]] = {
    "oversize value": (PUBLIC, [LONG], Error.ValueTooLong),
    "unregistered": (SECOND, [P], Error.PublishNotAuthorized),
}


@pytest.mark.parametrize("kind", FAILING)
def test_ps10_ps21_a_failing_instruction_leaves_its_record_and_the_pallets_error_is_kept(kind: str) -> None:
    para, instructions, why = FAILING[kind]
    chain, other = twins()
    served = _same_block(chain, other, para, world.message(*instructions))
    attempted, processed = world.events(served, "XcmPallet", "MessageQueue", "Broadcaster")
    assert isinstance(attempted, Attempted)
    assert isinstance(attempted.outcome, Incomplete)
    assert (attempted.outcome.error.index, attempted.outcome.error.error.kind) == (0, XcmErrorKind.PublishFailed)
    assert isinstance(processed, Processed)
    assert not processed.success
    (ran,) = chain.executions
    assert [failure.cause for failure in ran.execution.failures] == [ModuleError(why)]
    assert differing(chain.state, other.state) <= RECORD | QUEUE


def test_ps21_what_came_before_a_failure_stays_as_if_it_had_been_sent_alone() -> None:
    chain, other = twins()
    message = world.message(world.publish("before"), LONG, world.publish("behind"))
    world.send(chain, PUBLIC, message)
    world.send(other, PUBLIC, world.message(world.publish("before")))
    assert differing(chain.state, other.state) <= RECORD
    assert world.value(chain, PUBLIC, "before") == b"value"
    assert chain.state.child_root(b"pubsub\xd0\x07\0\0") == other.state.child_root(b"pubsub\xd0\x07\0\0")


# Parachain blocks that are not included


def _full(chain: RelayChain) -> None:
    """Fill the queue of 2000: six messages, of which the next block serves three."""
    three = [world.message(world.publish(name)) for name in range(3)]
    world.step(chain, [world.candidate(chain, PUBLIC, *three), world.candidate(chain, PUBLIC, *three)])


TURNED_AWAY: dict[str, tuple[int, list[bytes], Callable[[RelayChain], None] | None, DispatchError]] = {
    "unknown para": (9999, [GOOD], None, ModuleError(InclusionError.UnscheduledCandidate)),
    "too many messages": (PUBLIC, [GOOD] * 5, None, ModuleError(QueueError.MoreMessagesThanPermitted)),
    "a message too long": (PUBLIC, [bytes(601)], None, ModuleError(QueueError.MessageSize)),
    "queue full of messages": (
        PUBLIC, [GOOD] * 4, _full, ModuleError(QueueError.CapacityExceeded)
    ),
    "queue full of bytes": (PUBLIC, [bytes(600)] * 4, None, ModuleError(QueueError.TotalSizeExceeded)),
}  # fmt: skip


@pytest.mark.parametrize("kind", TURNED_AWAY)
def test_ps23_a_block_whose_messages_do_not_fit_is_refused_whole_and_its_sender_keeps_them(kind: str) -> None:
    para, messages, before, why = TURNED_AWAY[kind]
    chain, other = twins()
    if before is not None:
        before(chain)
        before(other)
    block = world.step(chain, [world.candidate(chain, para, *messages, head=b"not this")])
    world.step(other)
    assert world.events(block, "ParaInclusion") == [CandidateRefused(ParaId(para), why)]
    assert differing(chain.state, other.state) <= RECORD
    assert chain.runtime.paras.head(chain.storage(), ParaId(para)) != b"not this"


def test_ps23_a_parachain_that_is_about_to_leave_sends_nothing_more_but_may_make_blocks() -> None:
    chain = prepared()
    world.step(chain, (), [world.call(ROOT, "deregister", PUBLIC, pallet="Registrar")])
    block = world.step(chain, [world.candidate(chain, PUBLIC, GOOD), world.candidate(chain, PUBLIC, head=b"empty")])
    refusal = ModuleError(InclusionError.IsOffboarding)
    assert world.events(block, "ParaInclusion") == [CandidateRefused(ParaId(PUBLIC), refusal)]
    assert chain.runtime.paras.head(chain.storage(), ParaId(PUBLIC)) == b"empty"
