"""PS-20 to PS-23: what a message queue gets for its bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.xcm import ORIGIN, PARA, PER_BYTE, PER_PUBLISH, UNIT, WEIGHER, WEIGHTS, Ledger, failed, key, publish, run

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U64_MAX, ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.barriers import (
    AllowPublishFrom,
    AllowUnpaidExecutionFrom,
    Properties,
    everything,
    only_parachains,
)
from pubsub_emulator.xcm.executor import Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import ClearOrigin, SetTopic, Trap
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.outcome import (
    BadFormat,
    Complete,
    Corrupt,
    Incomplete,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.weighed_message import WeighedMessage, weigh_message
from pubsub_emulator.xcm.weigher import FixedWeightBounds, XcmWeights

BARRIER = AllowPublishFrom(only_parachains, max_instructions=16, tolerate_set_topic=True)
ONE = UNIT + PER_PUBLISH + PER_BYTE * 5


EXECUTOR = XcmExecutor(WEIGHER, BARRIER)


def test_a_message_runs_as_the_parachain_that_sent_it() -> None:
    """PS-21: the weight used, the outcome; the id is the hash of the bytes."""
    chain = Ledger()
    data = encode((publish(1), publish(2)))
    result = run(EXECUTOR, data, chain, ParaId(2001))
    assert isinstance(result, Execution)
    assert result.outcome == Complete(ONE * 2)
    assert result.message_id == blake2_256(data)
    assert list(chain.stored) == [(2001, key(1)), (2001, key(2))]


def test_the_weight_is_known_before_the_barrier_is_asked() -> None:
    """Defect 38, PS-21, PS-23: the queue compares it with its limit; the barrier sees what may run, and its weight."""
    asked = []

    class Asked:
        def should_execute(self, *arguments: object) -> None:
            asked.append(arguments)

    data = encode((publish(),))
    weighed = weigh_message(WEIGHER, data)
    assert weighed == WeighedMessage((publish(),), ONE)
    assert not asked
    assert isinstance(run(XcmExecutor(WEIGHER, Asked()), data, Ledger()), Execution)
    assert asked == [(ORIGIN, (publish(),), ONE, Properties(blake2_256(data)))]


def test_a_tolerated_topic_names_the_message() -> None:
    """PS-22: the id is the topic then."""
    result = run(EXECUTOR, encode((publish(), SetTopic(b"\x01" * 32))), Ledger())
    assert isinstance(result, Execution)
    assert result.message_id == b"\x01" * 32


def test_an_incomplete_message_has_used_its_weight() -> None:
    """PS-21: it is done with."""
    result = run(EXECUTOR, encode((publish(1), publish(2))), Ledger(room=1))
    assert isinstance(result, Execution)
    assert result.outcome == Incomplete(ONE * 2, failed(1, XcmErrorKind.PublishFailed))


REJECTED: list[tuple[str, bytes, ProcessMessageError]] = [
    ("nothing", b"", Corrupt()),
    ("junk", b"\x37\x42", Corrupt()),
    ("trailing byte", encode((publish(),)) + b"\x00", Corrupt()),
    ("cut short", encode((publish(),))[:-1], Corrupt()),
    ("too many to decode", b"\x05\x95\x01" + b"\x0a" * 101, Corrupt()),
    ("version 4", b"\x04\x00", Unsupported()),
    ("version 3", b"\x03\x04\x0a", Unsupported()),
    ("version 6", b"\x06\x00", Corrupt()),
]


@pytest.mark.parametrize(("what", "data", "error"), REJECTED, ids=[row[0] for row in REJECTED])
def test_what_cannot_be_read_is_never_run(what: str, data: bytes, error: ProcessMessageError) -> None:
    """PS-20."""
    del what
    assert weigh_message(WEIGHER, data) == error


@pytest.mark.parametrize(
    ("message", "error"),
    [((), BadFormat()), ((ClearOrigin(),), BadFormat()), ((publish(),) * 17, StackLimitReached())],
)
def test_the_barriers_reason_is_told_and_nothing_ran(
    message: tuple[ClearOrigin, ...], error: ProcessMessageError
) -> None:
    """PS-22: upstream would say `Unsupported` to each."""
    chain = Ledger()
    result = run(EXECUTOR, encode(message), chain)
    assert isinstance(result, Execution)
    assert result.rejected == error
    assert chain.layers == 0


def test_more_instructions_than_are_weighed_reach_the_stack_limit() -> None:
    """PS-22: before any barrier."""
    data = encode((publish(),) * 3)
    assert weigh_message(FixedWeightBounds(WEIGHTS, 2), data) == StackLimitReached()


def test_a_weight_beyond_u64_is_unsupported() -> None:
    """PS-21: such a message will never fit."""
    heavy = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 0)))
    assert weigh_message(heavy, encode((publish(),) * 2)) == Unsupported()


def test_messages_weighed_in_one_order_run_in_any_other() -> None:
    """PS-23: nothing is kept of a message."""
    chain = Ledger()
    first = weigh_message(WEIGHER, encode((publish(1),)))
    second = weigh_message(WEIGHER, encode((publish(2, b"longer value"),)))
    assert isinstance(first, WeighedMessage)
    assert isinstance(second, WeighedMessage)
    assert (first.weight, second.weight) == (ONE, UNIT + PER_PUBLISH + PER_BYTE * 12)
    assert chain.stored == {}
    for at, weighed in enumerate((second, first, second)):
        EXECUTOR.execute(chain, ORIGIN, weighed.message, weighed.weight, bytes((at,)) * 32)
    assert list(chain.stored) == [(PARA, key(2)), (PARA, key(1))]


def test_the_origin_is_the_sender_and_nobody_else() -> None:
    """PS-21: a barrier sees `(0, [Parachain(id)])`."""
    seen = []

    class Looking:
        def should_execute(self, origin: object, *_: object) -> None:
            seen.append(origin)

    run(XcmExecutor(WEIGHER, Looking()), encode((Trap(1),)), Ledger())
    assert seen == [ORIGIN]


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_weighing_or_executing_raise(data: bytes, versioned: bool) -> None:
    """PS-20: a parachain chooses its upward messages freely."""
    prefix = b"\x05\x04" if versioned else b""
    result = run(XcmExecutor(WEIGHER, AllowUnpaidExecutionFrom(everything)), prefix + data, Ledger())
    assert isinstance(result, Execution | ProcessMessageError)
