"""Upward messages, bad ones and good ones, and what a block tells of them (PS-10, PS-11, PS-16 to
PS-23).
"""

from dataclasses import replace
from typing import Any

import pytest
from support.runtime.pallet_pubsub.world import both_policies
from support.runtime.relay_chain import world
from support.runtime.relay_chain.storage_dump import differing
from support.runtime.relay_chain.world import (
    ALICE,
    BOB,
    BOUNDARY,
    PUBLIC,
    ROOT,
    SECOND,
    SMALL,
    SYSTEM,
    para_origin,
)

from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.emulator.relay.message_outcomes import Attempted
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
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
from pubsub_emulator.runtime.pallet_pubsub import Error, TtlPolicy, weights
from pubsub_emulator.runtime.pallet_pubsub.events import (
    DataPublished,
    KeyExpired,
    PublisherDeregistered,
)
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration, active_config
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.runtime.relay.inclusion import Error as InclusionError
from pubsub_emulator.runtime.relay.message_queue import Error as QueueError
from pubsub_emulator.runtime.relay.message_queue import (
    MessageErrorKind,
    OverweightDropped,
    Processed,
    ProcessingFailed,
    ring,
)
from pubsub_emulator.trie import read_child_proof
from pubsub_emulator.xcm import Complete, Incomplete, InstructionError, XcmError, XcmErrorKind
from pubsub_emulator.xcm.instructions import ClearOrigin, SetAppendix, SetTopic, Trap

RECORD = {
    "System::Events",
    "System::EventCount",
    "System::BlockWeight",
    "System::ParentHash",
    "System::BlockHash",
}
"""Where it stands that something was tried."""
QUEUE = {"MessageQueue::BookStateFor", ":relay_dispatch_queue_remaining_capacity"}
"""What stays of a queue that a message went through."""

K = world.key(1)


def prepared() -> RelayChain:
    """2000 is registered and stores two keys, 1000 stores one, 2001 owns nothing."""
    chain = world.start(publishers=[PUBLIC])
    data = [world.message(world.publish(name)) for name in (1, 2)]
    world.step(
        chain, [world.candidate(chain, PUBLIC, *data), world.candidate(chain, SYSTEM, data[0])]
    )
    world.step(chain)
    assert world.counted(chain, PUBLIC)[0] == 2
    return chain


def twins() -> tuple[RelayChain, RelayChain]:
    """One to meet bad input and one that does not; what may differ then is what tells of it."""
    return prepared(), prepared()


# Calls

REFUSED: list[tuple[Origin, str, tuple[Any, ...], Error | DispatchError]] = [
    (ROOT, "register_publisher", (SECOND,), BadOrigin()),
    (para_origin(SYSTEM), "register_publisher", (SYSTEM,), Token(TokenError.CannotCreateHold)),
    (Signed(BOB), "delete_keys", (PUBLIC, [K]), Error.NotAuthorized),
    (ROOT, "force_delete_keys", (9999, [K]), Error.NoKeysToDelete),
]


@pytest.mark.parametrize(
    ("origin", "name", "args", "why"),
    REFUSED,
    ids=[f"{i}-{row[1]}" for i, row in enumerate(REFUSED)],
)
def test_ps10_a_refused_call_leaves_the_root_or_only_its_record(
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
def test_ps4_a_call_that_cannot_be_encoded_makes_no_block(
    call: Extrinsic,
) -> None:
    chain, other = twins()
    before = chain.header
    with pytest.raises(ScaleError):
        chain.build((), [call])
    assert (chain.header, chain.state.root()) == (before, before.state_root)
    world.step(chain)
    world.step(other)
    assert chain.header == other.header


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
    """The same parachain block with messages and without; returns the relay block that serves
    them.
    """
    world.step(chain, [world.candidate(chain, para, *messages)])
    world.step(other, [world.candidate(other, para)])
    served = world.step(chain)
    world.step(other)
    return served


@pytest.mark.parametrize("kind", NEVER_RUN)
def test_ps20_ps22_a_failing_message_leaves_its_record_and_a_reason(
    kind: str,
) -> None:
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
    world.send(chain, PUBLIC, GOOD)
    assert world.value(chain, PUBLIC, "new") == b"value"


def test_ps23_a_message_heavier_than_a_block_is_dropped_with_its_weight() -> None:
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


def test_ps21_instructions_before_a_failure_stay_as_if_sent_alone() -> None:
    chain, other = twins()
    message = world.message(world.publish("before"), LONG, world.publish("behind"))
    world.send(chain, PUBLIC, message)
    world.send(other, PUBLIC, world.message(world.publish("before")))
    assert differing(chain.state, other.state) <= RECORD
    assert world.value(chain, PUBLIC, "before") == b"value"
    assert chain.state.child_root(b"pubsub\xd0\x07\0\0") == other.state.child_root(
        b"pubsub\xd0\x07\0\0"
    )


def test_ps23_a_leaving_parachain_sends_nothing_more_but_may_make_blocks() -> None:
    chain = prepared()
    world.step(chain, (), [world.call(ROOT, "deregister", PUBLIC, pallet="Registrar")])
    block = world.step(
        chain, [world.candidate(chain, PUBLIC, GOOD), world.candidate(chain, PUBLIC, head=b"empty")]
    )
    refusal = ModuleError(InclusionError.IsOffboarding)
    assert world.events(block, "ParaInclusion") == [CandidateRefused(ParaId(PUBLIC), refusal)]
    assert chain.runtime.paras.head(chain.storage(), ParaId(PUBLIC)) == b"empty"


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
    assert (
        processed.encode().hex() == "6401" + blake2_256(data).hex() + origin + weight.hex() + "01"
    )
    (ran,) = chain.executions
    assert (ran.para, ran.id, ran.execution.outcome) == (SYSTEM, blake2_256(data), Complete(used))


def test_ps21_a_failed_message_names_instruction_and_error_before_its_queue_does() -> None:
    chain = world.start()
    instructions = [
        world.publish(1),
        world.publish(2, bytes(65)),
        world.publish(3),
        SetTopic(bytes(32)),
    ]
    served = world.send(chain, SYSTEM, world.message(*instructions))
    published, attempted, processed = world.events(
        served, "Broadcaster", "MessageQueue", "XcmPallet"
    )
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
    for names in ((0, 1, 2), (3, 4)):
        world.send(chain, PUBLIC, *(world.message(world.publish(name, b"")) for name in names))
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


def test_a_blocks_events_are_in_its_state_and_decode_to_the_originals() -> None:
    chain = world.start()
    world.step(
        chain,
        [
            world.candidate(
                chain, SYSTEM, world.message(world.publish(1), world.publish(2, bytes(65)))
            )
        ],
    )
    block = world.step(
        chain,
        [world.candidate(chain, 9999)],
        [
            world.call(Signed(ALICE), "register_publisher", PUBLIC),
            world.call(Signed(ALICE), "delete_keys", 5, []),
        ],
    )
    assert every_runtime().stored_events(chain.storage()) == list(block.events)
    assert len({type(record.event) for record in block.events}) >= 8
    for record in block.events:
        reader = every_runtime().reader(record.event.encode())
        assert every_runtime().read_event(reader) == record.event
        reader.end()


CHILD = derive_child_key(ParaId(SYSTEM))


@both_policies
def test_ps17_an_expired_entry_is_provable_counted_and_updated_until_it_is_swept(
    policy: TtlPolicy,
) -> None:
    """Five entries expire at once and a sweep takes four: the fifth is expired and there."""
    chain = world.start(world.small(ttl_policy=policy))
    for names in ((0, 1, 2), (3, 4)):
        world.send(
            chain,
            SYSTEM,
            world.message(*(world.publish(name, b"v", 4 - names[0] // 3 * 2) for name in names)),
        )
    world.step(chain, blocks=2)
    (left,) = [name for name in range(5) if world.value(chain, SYSTEM, name) is not None]
    found = world.entry(chain, SYSTEM, left)
    assert found is not None
    assert found.when_inserted + found.ttl <= chain.number
    nodes: dict[bytes, bytes] = {}
    chain.state.prove([publisher_root_key(ParaId(SYSTEM))], {CHILD: [world.key(left)]}, nodes)
    proven = read_child_proof(chain.header.state_root, nodes.values(), CHILD, [world.key(left)])
    assert proven == {world.key(left): found.encode()}
    assert world.counted(chain, SYSTEM) == (1, 33, 1)


@both_policies
def test_ps17_in_their_expiry_block_entries_count_and_can_be_renewed(
    policy: TtlPolicy,
) -> None:
    """Messages are served before the sweep: all five keys are expired, a sixth is one too many, an
    update saves one.
    """
    chain = world.start(world.small(ttl_policy=policy))
    world.send(chain, SYSTEM, world.message(*(world.publish(name, b"v", 10) for name in range(3))))
    expiry = chain.number + 10
    world.send(
        chain,
        SYSTEM,
        world.message(*(world.publish(name, b"v", expiry - chain.number - 2) for name in (3, 4))),
    )
    world.step(chain, blocks=expiry - 2 - chain.number)
    world.step(
        chain,
        [
            world.candidate(
                chain, SYSTEM, world.message(world.publish(0, b"renewed"), world.publish(6))
            )
        ],
    )
    assert world.counted(chain, SYSTEM)[0] == 5
    block = world.step(chain)
    assert chain.number == expiry
    told = world.events(block, "Broadcaster")
    assert told[0] == DataPublished(ParaId(SYSTEM), world.key(0), 7)
    gone = [event.key for event in told[1:] if isinstance(event, KeyExpired)]
    assert sorted(gone) == sorted(map(world.key, range(1, 5)))
    (ran,) = chain.executions
    assert [failure.cause for failure in ran.execution.failures] == [
        ModuleError(Error.TooManyStoredKeys)
    ]
    assert world.entry(chain, SYSTEM, 0) == PublishedEntry(b"renewed", 0, RelayBlockNumber(expiry))
    assert world.counted(chain, SYSTEM) == (1, 39, 0)


def test_ps11_waiting_messages_go_with_their_para_and_nothing_comes_back() -> None:
    """1000 is a system para: a message of it that ran after its data was removed would store data
    for ever.
    """
    chain = world.start()
    world.send(chain, SYSTEM, world.message(world.publish(9)))
    assert world.counted(chain, SYSTEM)[0] == 1
    # accepted in blocks 3 and 4, and the session changes in block 5
    light = [world.message(world.publish(number)) for number in range(2)]
    heavy = [world.message(*(world.publish(i, b"") for i in range(3)))] * 3
    world.step(chain, [world.candidate(chain, BOUNDARY, *heavy)])
    world.step(
        chain,
        [world.candidate(chain, SYSTEM, *light)],
        [world.call(ROOT, "deregister", SYSTEM, pallet="Registrar")],
    )
    assert world.waiting(chain, SYSTEM) == light
    assert chain.number == 4
    block = world.step(chain)
    assert ParaId(SYSTEM) not in chain.runtime.paras.parachains(chain.storage())
    assert world.waiting(chain, SYSTEM) == []
    assert world.events(block, "Broadcaster")[0] == PublisherDeregistered(ParaId(SYSTEM))
    for _ in range(4):
        assert (world.entries(chain, SYSTEM), world.counted(chain, SYSTEM)) == ({}, (0, 0, 0))
        told = world.events(block, "Broadcaster")
        assert not [
            event
            for event in told
            if isinstance(event, DataPublished) and event.publisher == SYSTEM
        ]
        block = world.step(chain)
    assert ring.members(chain.storage()) == []
    assert world.counted(chain, BOUNDARY)[0] == 3


def set_config(config: HostConfiguration, session: int) -> world.Extrinsic:
    return world.call(ROOT, "set_config", config, session, pallet="Configuration")


def test_ps23_a_message_that_no_page_holds_is_refused_whatever_governance_allows() -> None:
    """Pages hold 700 bytes, five of them for a header; the configuration allows for 1,900."""
    chain = world.start()
    step = set_config(replace(SMALL.host, max_upward_message_size=1_900), 1)
    world.step(chain, (), [step], blocks=5)
    assert active_config(chain.storage()).max_upward_message_size == 1_900
    block = world.step(chain, [world.candidate(chain, SYSTEM, bytes(696))])
    refusal = ModuleError(QueueError.MessageSize)
    assert world.events(block, "ParaInclusion") == [CandidateRefused(ParaId(SYSTEM), refusal)]
    served = world.send(chain, SYSTEM, bytes(695))
    assert [type(event) for event in world.events(served, "MessageQueue")] == [ProcessingFailed]


def test_ps23_a_smaller_queue_applies_from_its_session_and_waiting_messages_are_served() -> None:
    chain = world.start()
    world.step(chain, (), [set_config(replace(SMALL.host, max_upward_queue_count=2), 1)], blocks=3)
    six = [world.message(world.publish(number % 5, b"%d" % number)) for number in range(6)]
    world.step(
        chain, [world.candidate(chain, SYSTEM, *six[:3]), world.candidate(chain, SYSTEM, *six[3:])]
    )
    block = world.step(chain, [world.candidate(chain, SYSTEM, six[0])])
    assert chain.number == 5
    refusal = ModuleError(QueueError.CapacityExceeded)
    assert world.events(block, "ParaInclusion")[-1] == CandidateRefused(ParaId(SYSTEM), refusal)
    world.step(chain, blocks=2)
    assert world.waiting(chain, SYSTEM) == []
    assert world.value(chain, SYSTEM, 0) == b"5"
