"""PS-20 to PS-23: what a message queue gets for its bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xcm_support import ORIGIN, PARA, PER_BYTE, PER_PUBLISH, UNIT, WEIGHER, WEIGHTS, Ledger, failed, key, publish, run

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U64_MAX, Hash, ParaId
from pubsub_emulator.primitives.weights import WEIGHT_MAX, WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.barriers import (
    AllowPublishFrom,
    AllowUnpaidExecutionFrom,
    everything,
    only_parachains,
)
from pubsub_emulator.xcm.instructions import ClearOrigin, SetTopic, Trap
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.outcome import (
    BadFormat,
    Complete,
    Corrupt,
    Incomplete,
    Overweight,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.processor import Prepared, Processed, Rejected, XcmProcessor
from pubsub_emulator.xcm.weigher import FixedWeightBounds, XcmWeights

BARRIER = AllowPublishFrom(only_parachains, max_instructions=16, tolerate_set_topic=True)
ONE = UNIT + PER_PUBLISH + PER_BYTE * 5


PROCESSOR = XcmProcessor(WEIGHER, BARRIER)


def test_a_message_runs_as_the_parachain_that_sent_it() -> None:
    """PS-21: success, the weight used, the outcome; the id is the hash of the bytes."""
    chain = Ledger()
    data = encode((publish(1), publish(2)))
    result = run(PROCESSOR, data, chain, para=ParaId(2001))
    assert isinstance(result, Processed)
    assert (result.success, result.used, result.execution.outcome) == (True, ONE * 2, Complete(ONE * 2))
    assert result.execution.message_id == blake2_256(data)
    assert list(chain.stored) == [(2001, key(1)), (2001, key(2))]


def test_a_tolerated_topic_names_the_message() -> None:
    """PS-22: the id is the topic then."""
    result = run(PROCESSOR, encode((publish(), SetTopic(b"\x01" * 32))), Ledger())
    assert isinstance(result, Processed)
    assert result.execution.message_id == b"\x01" * 32


def test_an_incomplete_message_is_processed_without_success() -> None:
    """PS-21: it is done with, and its weight is used."""
    result = run(PROCESSOR, encode((publish(1), publish(2))), Ledger(room=1))
    assert isinstance(result, Processed)
    assert not result.success
    assert result.execution.outcome == Incomplete(ONE * 2, failed(1, XcmErrorKind.PublishFailed))
    assert result.used == ONE * 2


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
    assert PROCESSOR.prepare(data) == error


@pytest.mark.parametrize(
    ("message", "error"),
    [((), BadFormat()), ((ClearOrigin(),), BadFormat()), ((publish(),) * 17, StackLimitReached())],
)
def test_the_barriers_reason_reaches_the_queue_and_costs_what_was_weighed(
    message: tuple[ClearOrigin, ...], error: ProcessMessageError
) -> None:
    """PS-22: upstream would say `Unsupported` to each."""
    weight = WEIGHER.weight(message)
    chain = Ledger()
    assert run(PROCESSOR, encode(message), chain) == Rejected(error, weight)
    assert chain.layers == 0


def test_more_instructions_than_are_weighed_reach_the_stack_limit() -> None:
    """PS-22: before any barrier."""
    small = XcmProcessor(FixedWeightBounds(WEIGHTS, 2), BARRIER)
    data = encode((publish(),) * 3)
    assert small.prepare(data) == StackLimitReached()


def test_a_weight_beyond_u64_is_unsupported() -> None:
    """PS-21: such a message will never fit."""
    heavy = XcmProcessor(FixedWeightBounds(XcmWeights(Weight(U64_MAX, 0))), BARRIER)
    assert heavy.prepare(encode((publish(),) * 2)) == Unsupported()


@given(st.integers(-1, 1), st.integers(-1, 1))
def test_a_message_runs_only_when_its_whole_weight_fits(time: int, proof: int) -> None:
    """PS-23: in both dimensions; else it is `Overweight` with what it takes, nothing ran, nothing is used."""
    chain = Ledger()
    data = encode((publish(),))
    assert PROCESSOR.prepare(data) == Prepared((publish(),), ONE)
    result = run(PROCESSOR, data, chain, Weight(ONE.ref_time + time, ONE.proof_size + proof))
    if min(time, proof) < 0:
        assert result == Rejected(Overweight(ONE))
        assert chain.layers == 0
    else:
        assert isinstance(result, Processed)


def test_an_overweight_message_runs_later_unchanged() -> None:
    """PS-23: what does not fit waits."""
    chain = Ledger()
    data = encode((publish(),))
    assert run(PROCESSOR, data, chain, WEIGHT_ZERO) == Rejected(Overweight(ONE))
    assert chain.stored == {}
    assert isinstance(run(PROCESSOR, data, chain, ONE), Processed)
    assert list(chain.stored) == [(PARA, key(1))]


def test_messages_prepared_in_one_order_run_in_any_other() -> None:
    """PS-23: a processor keeps nothing of a message."""
    chain = Ledger()
    first = PROCESSOR.prepare(encode((publish(1),)))
    second = PROCESSOR.prepare(encode((publish(2, b"longer value"),)))
    assert isinstance(first, Prepared)
    assert isinstance(second, Prepared)
    assert (first.weight, second.weight) == (ONE, UNIT + PER_PUBLISH + PER_BYTE * 12)
    assert chain.stored == {}
    for at, prepared in enumerate((second, first, second)):
        PROCESSOR.process(chain, PARA, prepared, WEIGHT_MAX, Hash(bytes((at,)) * 32))
    assert list(chain.stored) == [(PARA, key(2)), (PARA, key(1))]


def test_the_origin_is_the_sender_and_nobody_else() -> None:
    """PS-21: a barrier sees `(0, [Parachain(id)])`."""
    seen = []

    class Looking:
        def should_execute(self, origin: object, *_: object) -> None:
            seen.append(origin)

    run(XcmProcessor(WEIGHER, Looking()), encode((Trap(1),)), Ledger())
    assert seen == [ORIGIN]


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_make_the_processor_raise(data: bytes, versioned: bool) -> None:
    """PS-20: a parachain chooses its upward messages freely."""
    prefix = b"\x05\x04" if versioned else b""
    result = run(XcmProcessor(WEIGHER, AllowUnpaidExecutionFrom(everything)), prefix + data, Ledger())
    assert isinstance(result, Processed | Rejected)
