"""Turns the bytes of a message queue into a message with its weight (PS-20, PS-23).

    Corrupt            the bytes do not decode
    Unsupported        XCM V3 or V4; a weight beyond u64
    StackLimitReached  more instructions than are weighed

The queue waits or drops a message whose weight does not fit; the executor asks the barrier, whose refusals are of the
same type (PS-22). Upstream's `ProcessXcmMessage` reports `Unsupported` for every refusal of a barrier.
"""

from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.errors import UnsupportedXcmVersion, XcmDecodeError
from pubsub_emulator.xcm.instructions import Xcm
from pubsub_emulator.xcm.message import decode
from pubsub_emulator.xcm.outcome import (
    Corrupt,
    InstructionError,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.weigher import FixedWeightBounds


@value_type
class WeighedMessage:
    """A decoded message; `weight` is the most that it takes."""

    message: Xcm
    weight: Weight


def weigh_message(weigher: FixedWeightBounds, data: bytes) -> WeighedMessage | ProcessMessageError:
    """Decode and weigh a message. Returns why it will never run if it cannot be decoded or weighed."""
    try:
        message = decode(data)
    except UnsupportedXcmVersion:
        return Unsupported()
    except XcmDecodeError:
        return Corrupt()
    weight = weigher.weight(message)
    if isinstance(weight, InstructionError):
        return StackLimitReached() if weight.error.kind is XcmErrorKind.ExceedsStackLimit else Unsupported()
    return WeighedMessage(message, weight)
