"""The maximum weight of a message, known before it runs (PS-21), as in `FixedWeightBounds`.

`weigh_message` turns the bytes of a message queue into a message with its weight (PS-20, PS-23):

    Corrupt            the bytes do not decode
    Unsupported        XCM V3 or V4; a weight beyond u64
    StackLimitReached  more instructions than are weighed

If the weight does not fit, the queue keeps the message for later or drops it. The executor asks the
barrier, whose refusals have the same type (PS-22). Upstream's `ProcessXcmMessage` reports
`Unsupported` for every refusal of a barrier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.types import U64_MAX
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.xcm import outcome
from pubsub_emulator.xcm.errors import UnsupportedXcmVersion, XcmDecodeError
from pubsub_emulator.xcm.instructions import (
    ExecuteWithOrigin,
    Instruction,
    Publish,
    SetAppendix,
    SetErrorHandler,
    Xcm,
)
from pubsub_emulator.xcm.message import decode
from pubsub_emulator.xcm.outcome import (
    InstructionError,
    ProcessMessageError,
    XcmError,
    XcmErrorKind,
)
from pubsub_emulator.xcm.schema import MAX_INSTRUCTIONS_TO_DECODE

MAX_INDEX: Final = 255
"""The maximum `InstructionIndex` (u8), which all later instructions share."""


@dataclass(frozen=True, slots=True)
class XcmWeights:
    """The weights of instructions."""

    instruction: Weight
    """The weight of every instruction."""
    publish: Weight = WEIGHT_ZERO
    """The weight of each `Publish` in addition."""
    publish_byte: Weight = WEIGHT_ZERO
    """The weight of each byte of a `Publish`'s value."""


class FixedWeightBounds:
    """A weigher of messages, with a fixed weight for each instruction.

    Instructions that a message may run here are counted. Messages for other chains weigh nothing.
    """

    def __init__(
        self, weights: XcmWeights, max_instructions: int = MAX_INSTRUCTIONS_TO_DECODE
    ) -> None:
        self.weights = weights
        self.max_instructions = max_instructions
        self._publish_time = weights.instruction.ref_time + weights.publish.ref_time
        self._publish_proof = weights.instruction.proof_size + weights.publish.proof_size
        self._publish_byte = weights.publish_byte

    def weight(self, message: Sequence[Instruction]) -> Weight | InstructionError:
        """Return the maximum weight of executing `message`.

        If it cannot be computed, return the index of the top-level instruction and the error:
        `ExceedsStackLimit` for more than `max_instructions`, inner ones included, and `Overflow`
        for a weight beyond u64.
        """
        remaining = self.max_instructions
        ref_time = proof_size = 0
        for index, instruction in enumerate(message):
            count, more_time, more_proof = self._bounds(instruction, remaining)
            remaining -= count
            ref_time += more_time
            proof_size += more_proof
            if remaining < 0:
                return InstructionError(
                    min(index, MAX_INDEX), XcmError(XcmErrorKind.ExceedsStackLimit)
                )
            if ref_time > U64_MAX or proof_size > U64_MAX:
                return InstructionError(min(index, MAX_INDEX), XcmError(XcmErrorKind.Overflow))
        return Weight(ref_time, proof_size)

    def instr_weight(self, instruction: Instruction) -> Weight:
        """Return the maximum weight of one instruction, saturating at u64.

        It is used to refund weight that was charged.
        """
        _, ref_time, proof_size = self._bounds(instruction, U64_MAX)
        return Weight(min(ref_time, U64_MAX), min(proof_size, U64_MAX))

    def _bounds(self, top: Instruction, limit: int) -> tuple[int, int, int]:
        """Return the count, ref_time and proof_size of one instruction with those that it may run.

        Counting stops beyond `limit` instructions.
        """
        # This is the fast path: nearly every instruction is a `Publish`.
        if isinstance(top, Publish):
            size = len(top.value)
            byte = self._publish_byte
            return (
                1,
                self._publish_time + byte.ref_time * size,
                self._publish_proof + byte.proof_size * size,
            )
        base = self.weights.instruction
        publish = self.weights.publish
        per_byte = self.weights.publish_byte
        count = ref_time = proof_size = 0
        waiting: list[Xcm] = [(top,)]
        while waiting and count <= limit:
            for instruction in waiting.pop():
                count += 1
                ref_time += base.ref_time
                proof_size += base.proof_size
                if isinstance(instruction, Publish):
                    size = len(instruction.value)
                    ref_time += publish.ref_time + per_byte.ref_time * size
                    proof_size += publish.proof_size + per_byte.proof_size * size
                elif isinstance(instruction, SetErrorHandler | SetAppendix):
                    waiting.append(instruction.inner)
                elif isinstance(instruction, ExecuteWithOrigin):
                    waiting.append(instruction.xcm)
        return count, ref_time, proof_size


@value_type
class WeighedMessage:
    """A decoded message and its weight."""

    message: Xcm
    weight: Weight
    """The maximum weight that the message takes."""


def weigh_message(weigher: FixedWeightBounds, data: bytes) -> WeighedMessage | ProcessMessageError:
    """Decode and weigh a message.

    If this fails, return the reason why the message will never run.
    """
    try:
        message = decode(data)
    except UnsupportedXcmVersion:
        return outcome.Unsupported()
    except XcmDecodeError:
        return outcome.Corrupt()
    weight = weigher.weight(message)
    if isinstance(weight, InstructionError):
        too_many = weight.error.kind is XcmErrorKind.ExceedsStackLimit
        return outcome.StackLimitReached() if too_many else outcome.Unsupported()
    return WeighedMessage(message, weight)
