"""Processes the messages of a message queue: decode, weigh, execute, report the result (PS-20 to PS-23).

It is `ProcessXcmMessage` with one difference: the queue learns the barrier's reason (PS-22), where upstream always
reports `Unsupported`.

    Corrupt            the bytes do not decode
    Unsupported        XCM V3 or V4; a weight beyond u64; the barrier says so
    StackLimitReached  more instructions than are weighed; the barrier says so
    Overweight         the message may take more than the limit; nothing ran, and it may be tried again
    BadFormat          the barrier says so
"""

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.xcm.barriers import Barrier
from pubsub_emulator.xcm.errors import UnsupportedXcmVersion, XcmDecodeError
from pubsub_emulator.xcm.executor import Chain, Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import Xcm
from pubsub_emulator.xcm.location import parachain
from pubsub_emulator.xcm.message import decode
from pubsub_emulator.xcm.outcome import (
    Complete,
    Corrupt,
    Incomplete,
    InstructionError,
    Overweight,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
    XcmErrorKind,
)
from pubsub_emulator.xcm.weigher import FixedWeightBounds


@value_type
class Prepared:
    """A decoded and weighed message; `weight` is the most that it takes."""

    message: Xcm
    weight: Weight


@value_type
class Processed:
    """The message ran; `success` says whether to its end. `used` is the weight charged less what was refunded."""

    success: bool
    used: Weight
    execution: Execution


@value_type
class Rejected:
    """The message did not run. `used` is charged nevertheless: a barrier's refusal costs the whole weight."""

    error: ProcessMessageError
    used: Weight = WEIGHT_ZERO


class XcmProcessor:
    """Processes the upward messages of parachains."""

    __slots__ = ("executor", "weigher")

    def __init__(self, weigher: FixedWeightBounds, barrier: Barrier) -> None:
        self.weigher = weigher
        self.executor = XcmExecutor(weigher, barrier)

    def prepare(self, data: bytes) -> Prepared | ProcessMessageError:
        """Decode and weigh a message. Returns why it will never run if it cannot be decoded or weighed."""
        try:
            message = decode(data)
        except UnsupportedXcmVersion:
            return Unsupported()
        except XcmDecodeError:
            return Corrupt()
        weight = self.weigher.weight(message)
        if isinstance(weight, InstructionError):
            return StackLimitReached() if weight.error.kind is XcmErrorKind.ExceedsStackLimit else Unsupported()
        return Prepared(message, weight)

    def process(
        self, chain: Chain, para: ParaId, prepared: Prepared, limit: Weight, message_id: Hash
    ) -> Processed | Rejected:
        """Run a message from `para` on `chain` within `limit`. The whole weight must fit before anything runs."""
        weight = prepared.weight
        if weight.any_gt(limit):
            return Rejected(Overweight(weight))
        execution = self.executor.execute(chain, parachain(para), prepared.message, weight, message_id)
        outcome = execution.outcome
        if isinstance(outcome, Complete):
            return Processed(success=True, used=outcome.used, execution=execution)
        if isinstance(outcome, Incomplete):
            return Processed(success=False, used=outcome.used, execution=execution)
        if execution.rejected is None:
            raise DefensiveFailure(f"{outcome} without a reason")
        return Rejected(execution.rejected, weight)
