"""Bad input of every kind changes nothing but the record of it, and says why (PS-10, PS-20 to PS-23).

Each test runs a chain that meets the bad input beside one that does not. What may differ between the two is what tells
of it: events, weight, the hash of the parent; with a message also the book of its queue.
"""

from typing import Any

import pytest
from support.relay_chain import world
from support.relay_chain.storage_dump import differing
from support.relay_chain.world import ALICE, BOB, PUBLIC, ROOT, SECOND, SYSTEM, para_origin

from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
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
from pubsub_emulator.runtime.relay.message_queue import (
    MessageErrorKind,
    OverweightDropped,
    ProcessingFailed,
)
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
    (para_origin(SYSTEM), "register_publisher", (SYSTEM,), Token(TokenError.CannotCreateHold)),
    (Signed(BOB), "delete_keys", (PUBLIC, [K]), Error.NotAuthorized),
    (ROOT, "force_delete_keys", (9999, [K]), Error.NoKeysToDelete),
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
    ("deposit beyond u128", world.call(ROOT, "force_register_publisher", ALICE, 2**128, SECOND)),
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
    "trailing byte": (GOOD + b"\0", CORRUPT),
    "nested as deep as is read": (_nested(6), BAD_FORMAT),
    "nested 150 levels": (_nested(150), CORRUPT),
    "XCM V4": (b"\x04" + GOOD[1:], UNSUPPORTED),
    "another before": (world.message(ClearOrigin(), P), BAD_FORMAT),
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


def test_ps21_what_came_before_a_failure_stays_as_if_it_had_been_sent_alone() -> None:
    chain, other = twins()
    message = world.message(world.publish("before"), LONG, world.publish("behind"))
    world.send(chain, PUBLIC, message)
    world.send(other, PUBLIC, world.message(world.publish("before")))
    assert differing(chain.state, other.state) <= RECORD
    assert world.value(chain, PUBLIC, "before") == b"value"
    assert chain.state.child_root(b"pubsub\xd0\x07\0\0") == other.state.child_root(b"pubsub\xd0\x07\0\0")


# Parachain blocks that are not included


def test_ps23_a_parachain_that_is_about_to_leave_sends_nothing_more_but_may_make_blocks() -> None:
    chain = prepared()
    world.step(chain, (), [world.call(ROOT, "deregister", PUBLIC, pallet="Registrar")])
    block = world.step(chain, [world.candidate(chain, PUBLIC, GOOD), world.candidate(chain, PUBLIC, head=b"empty")])
    refusal = ModuleError(InclusionError.IsOffboarding)
    assert world.events(block, "ParaInclusion") == [CandidateRefused(ParaId(PUBLIC), refusal)]
    assert chain.runtime.paras.head(chain.storage(), ParaId(PUBLIC)) == b"empty"
