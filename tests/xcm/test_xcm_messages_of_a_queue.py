"""PS-20 to PS-23: what a message queue gets for its bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.xcm import ORIGIN, PER_BYTE, PER_PUBLISH, UNIT, WEIGHER, WEIGHTS, Ledger, publish, run

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.barriers import (
    AllowUnpaidExecutionFrom,
    Properties,
    everything,
)
from pubsub_emulator.xcm.executor import Execution, XcmExecutor
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.outcome import (
    Corrupt,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
)
from pubsub_emulator.xcm.weighed_message import WeighedMessage, weigh_message
from pubsub_emulator.xcm.weigher import FixedWeightBounds, XcmWeights

ONE = UNIT + PER_PUBLISH + PER_BYTE * 5


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


def test_more_instructions_than_are_weighed_reach_the_stack_limit() -> None:
    """PS-22: before any barrier."""
    data = encode((publish(),) * 3)
    assert weigh_message(FixedWeightBounds(WEIGHTS, 2), data) == StackLimitReached()


def test_a_weight_beyond_u64_is_unsupported() -> None:
    """PS-21: such a message will never fit."""
    heavy = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 0)))
    assert weigh_message(heavy, encode((publish(),) * 2)) == Unsupported()


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_weighing_or_executing_raise(data: bytes, versioned: bool) -> None:
    """PS-20: a parachain chooses its upward messages freely."""
    prefix = b"\x05\x04" if versioned else b""
    result = run(XcmExecutor(WEIGHER, AllowUnpaidExecutionFrom(everything)), prefix + data, Ledger())
    assert isinstance(result, Execution | ProcessMessageError)
