"""PS-21: weight is known before execution: per instruction, and per byte of a published value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.xcm import PER_BYTE, PER_PUBLISH, PUBLISHES, UNIT, WEIGHER, WEIGHTS, failed, publish

from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.instructions import (
    ClearOrigin,
    ExecuteWithOrigin,
    Instruction,
    Publish,
    SetAppendix,
    SetErrorHandler,
)
from pubsub_emulator.xcm.location import NetworkId
from pubsub_emulator.xcm.outcome import XcmErrorKind
from pubsub_emulator.xcm.weigher import FixedWeightBounds, XcmWeights


@given(st.lists(PUBLISHES, max_size=20))
def test_a_publish_weighs_the_unit_its_own_share_and_its_bytes(message: list[Publish]) -> None:
    """PS-21: in both dimensions; ttl and key do not matter."""
    size = sum(len(instruction.value) for instruction in message)
    expected = (UNIT + PER_PUBLISH) * len(message) + PER_BYTE * size
    assert WEIGHER.weight(message) == expected


@pytest.mark.parametrize("wrap", [SetErrorHandler, SetAppendix, lambda xcm: ExecuteWithOrigin(None, xcm)])
def test_what_may_run_here_is_weighed(wrap: type[SetAppendix]) -> None:
    """PS-21: a publish hidden in a handler is paid for before it can run."""
    hidden = UNIT + PER_PUBLISH + PER_BYTE * 5
    assert WEIGHER.weight((wrap((publish(), publish())),)) == UNIT + hidden * 2
    assert WEIGHER.weight((wrap((wrap((publish(),)),)),)) == UNIT * 2 + hidden


def test_messages_for_elsewhere_are_data() -> None:
    """PS-21: an exported message runs on another chain."""
    assert WEIGHER.weight((Instruction.VARIANTS[38](NetworkId.VARIANTS[2](), (), (publish(),) * 9),)) == UNIT


def test_too_many_instructions_are_named_by_the_first_that_is_too_many() -> None:
    """PS-21: inner ones count; the index is the top-level instruction's."""
    weigher = FixedWeightBounds(WEIGHTS, max_instructions=3)
    assert weigher.weight((ClearOrigin(),) * 3) == UNIT * 3
    assert weigher.weight((ClearOrigin(),) * 5) == failed(3, XcmErrorKind.ExceedsStackLimit)
    nested: tuple[Instruction, ...] = (ClearOrigin(), SetAppendix((ClearOrigin(),) * 2))
    assert weigher.weight(nested) == failed(1, XcmErrorKind.ExceedsStackLimit)
    assert weigher.weight((ClearOrigin(), SetAppendix((ClearOrigin(),)))) == UNIT * 3
    assert weigher.weight((SetAppendix(()), SetErrorHandler(()), SetAppendix(()))) == UNIT * 3
    assert FixedWeightBounds(WEIGHTS, 0).weight(()) == WEIGHT_ZERO


def test_a_message_that_holds_itself_many_times_is_not_walked_to_its_end() -> None:
    """PS-21: 2 to the 40th instructions out of 40 objects stop at the limit."""
    message: tuple[Instruction, ...] = (ClearOrigin(),)
    for _ in range(40):
        message = (SetAppendix(message), SetAppendix(message))
    assert WEIGHER.weight(message) == failed(0, XcmErrorKind.ExceedsStackLimit)


def test_a_weight_beyond_u64_is_not_computable() -> None:
    """PS-21: it must not wrap into something small."""
    weigher = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 0)))
    assert weigher.weight((ClearOrigin(),)) == Weight(U64_MAX, 0)
    assert weigher.weight((ClearOrigin(),) * 2) == failed(1, XcmErrorKind.Overflow)
    proof = FixedWeightBounds(XcmWeights(Weight(0, U64_MAX)))
    assert proof.weight((ClearOrigin(),) * 2) == failed(1, XcmErrorKind.Overflow)


def test_giving_back_saturates() -> None:
    """PS-21: one instruction's weight is what was charged for it, and never more than u64."""
    weigher = FixedWeightBounds(XcmWeights(Weight(U64_MAX, 1)))
    assert weigher.instr_weight(SetAppendix((ClearOrigin(),))) == Weight(U64_MAX, 2)
    assert WEIGHER.instr_weight(publish()) == WEIGHER.weight((publish(),))
