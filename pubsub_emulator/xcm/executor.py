"""The executor of XCM messages.

It has registers for origin, error, handler, appendix and topic, and no holding (PS-20, PS-21).

    weigh > barrier > run main > (error handler) > appendix > used weight

An error stops a list of instructions, and the weight of the instructions after the failed one is
refunded. Then the error handler runs, if one is set. The appendix runs in any case. The weight of
an unused handler is refunded. Each list has its own indices. The outcome has the index of the last
error within its own list, as in `xcm-executor`.

Executed here: `Publish`, `ClearOrigin`, `DescendOrigin`, `ExpectOrigin`, `UnpaidExecution`,
`SetTopic`, `ClearTopic`, `SetErrorHandler`, `SetAppendix`, `ClearError`, `Trap`. Everything else
ends in `Unimplemented`.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.xcm import instructions
from pubsub_emulator.xcm.barriers import Barrier, Properties, Refusal
from pubsub_emulator.xcm.errors import PublishFailure
from pubsub_emulator.xcm.instructions import Instruction, Publish, Xcm
from pubsub_emulator.xcm.location import MAX_JUNCTIONS, Location, as_parachain
from pubsub_emulator.xcm.outcome import (
    Complete,
    Error,
    Incomplete,
    InstructionError,
    Outcome,
    XcmError,
    XcmErrorKind,
)
from pubsub_emulator.xcm.weigher import MAX_INDEX, FixedWeightBounds


class ExecutingChain(Protocol):
    """The interface of a chain on which the executor runs messages."""

    def transaction(self) -> AbstractContextManager[object]:
        """Open a storage layer.

        It is committed when its body ends and rolled back when its body raises (PS-10).
        """
        ...

    def publish(self, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Publish one key of `para`.

        Raises `PublishFailure` with the pallet's error.
        """
        ...


@value_type
class Execution:
    """The outcome of a message, with details that the encoded outcome does not have."""

    outcome: Outcome
    message_id: bytes
    """The id that the barrier determined."""
    failures: tuple[InstructionError, ...] = ()
    """All errors in order, including those that a handler or `ClearError` cleared."""
    rejected: Refusal = None
    """The barrier's reason for a refusal, or `None`."""
    topic: bytes | None = None
    """The topic register at the end."""


class _Failed(PubsubError):
    """An instruction failed with this error."""

    def __init__(self, error: XcmError, cause: PubsubError | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.cause = cause


def _fail(kind: XcmErrorKind) -> _Failed:
    return _Failed(XcmError(kind))


class XcmExecutor:
    """An executor of weighed messages that a barrier admits."""

    def __init__(self, weigher: FixedWeightBounds, barrier: Barrier) -> None:
        self.weigher = weigher
        self.barrier = barrier

    def execute(
        self,
        chain: ExecutingChain,
        origin: Location,
        message: Xcm,
        weight: Weight,
        message_id: bytes,
    ) -> Execution:
        """Run a message from `origin` on `chain`, and return its outcome.

        `weight` is the result of the weigher. A message cannot make this raise an error. If the
        barrier refuses the message, nothing runs, and the outcome is `Error` for instruction 0 with
        `Barrier`.
        """
        properties = Properties(message_id)
        rejected = self.barrier.should_execute(origin, message, weight, properties)
        if rejected is not None:
            outcome = Error(InstructionError(0, XcmError(XcmErrorKind.Barrier)))
            return Execution(outcome, message_id, rejected=rejected)
        machine = _Machine(chain, self.weigher, origin)
        while message:
            message = machine.run(message)
        return machine.finish(weight, properties.message_id)


class _Machine:
    """The registers of one message."""

    def __init__(self, chain: ExecutingChain, weigher: FixedWeightBounds, origin: Location) -> None:
        self.chain = chain
        self.weigher = weigher
        self.origin: Location | None = origin
        self.topic: bytes | None = None
        self.error: InstructionError | None = None
        self.failures: list[InstructionError] = []
        self.error_handler: Xcm = ()
        self.error_handler_weight = WEIGHT_ZERO
        self.appendix: Xcm = ()
        self.appendix_weight = WEIGHT_ZERO
        self.surplus = WEIGHT_ZERO

    def run(self, message: Xcm) -> Xcm:
        """Run one list of instructions and return the list that follows it; empty at the end."""
        for index, instruction in enumerate(message):
            try:
                # Nearly every instruction is a `Publish`, so it is tested first.
                if isinstance(instruction, Publish):
                    self._publish(PubsubKey(instruction.key), instruction.value, instruction.ttl)
                else:
                    self._execute(instruction)
            except _Failed as failure:
                self.error = InstructionError(min(index, MAX_INDEX), failure.error, failure.cause)
                self.failures.append(self.error)
                for skipped in message[index + 1 :]:
                    self.surplus += self.weigher.instr_weight(skipped)
                return self._take_error_handler() or self._take_appendix()
        if self.error_handler:
            self.surplus += self.error_handler_weight
            self._take_error_handler()
        return self._take_appendix() if self.appendix else ()

    def finish(self, weight: Weight, message_id: bytes) -> Execution:
        """Return the outcome.

        The used weight is the charged weight less the refunded weight.
        """
        used = weight if self.surplus is WEIGHT_ZERO else weight - self.surplus
        outcome = Complete(used) if self.error is None else Incomplete(used, self.error)
        return Execution(outcome, message_id, tuple(self.failures), topic=self.topic)

    def _take_error_handler(self) -> Xcm:
        handler = self.error_handler
        self.error_handler = ()
        self.error_handler_weight = WEIGHT_ZERO
        return handler

    def _take_appendix(self) -> Xcm:
        appendix = self.appendix
        self.appendix = ()
        self.appendix_weight = WEIGHT_ZERO
        return appendix

    def _weigh(self, message: Xcm) -> Weight:
        weight = self.weigher.weight(message)
        if isinstance(weight, InstructionError):
            raise _fail(XcmErrorKind.WeightNotComputable)
        return weight

    def _execute(self, instruction: Instruction) -> None:
        """Execute one instruction other than `Publish`.

        An instruction that fails raises before it writes a register (PS-21).
        """
        match instruction:
            case instructions.ClearOrigin():
                self.origin = None
            case instructions.DescendOrigin(inner=path):
                if self.origin is None:
                    raise _fail(XcmErrorKind.BadOrigin)
                if len(self.origin.interior) + len(path) > MAX_JUNCTIONS:
                    raise _fail(XcmErrorKind.LocationFull)
                self.origin = Location(self.origin.parents, self.origin.interior + tuple(path))
            case instructions.ExpectOrigin(inner=expected):
                if self.origin != expected:
                    raise _fail(XcmErrorKind.ExpectationFalse)
            case instructions.UnpaidExecution(check_origin=expected):
                if expected is not None and self.origin != expected:
                    raise _fail(XcmErrorKind.BadOrigin)
            case instructions.SetTopic(inner=topic):
                self.topic = topic
            case instructions.ClearTopic():
                self.topic = None
            case instructions.SetErrorHandler(inner=handler):
                weight = self._weigh(handler)
                self.surplus += self.error_handler_weight
                self.error_handler = handler
                self.error_handler_weight = weight
            case instructions.SetAppendix(inner=appendix):
                weight = self._weigh(appendix)
                self.surplus += self.appendix_weight
                self.appendix = appendix
                self.appendix_weight = weight
            case instructions.ClearError():
                self.error = None
            case instructions.Trap(inner=code):
                raise _Failed(XcmError(XcmErrorKind.Trap, code))
            case _:
                raise _fail(XcmErrorKind.Unimplemented)

    def _publish(self, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Publish as the parachain that is the origin.

        Accounts on parachains, sibling chains and a missing origin fail (PS-21).
        """
        para = None if self.origin is None else as_parachain(self.origin)
        if para is None:
            raise _fail(XcmErrorKind.BadOrigin)
        try:
            with self.chain.transaction():
                self.chain.publish(para, key, value, ttl)
        except PublishFailure as failure:
            raise _Failed(XcmError(XcmErrorKind.PublishFailed), failure.error) from failure
