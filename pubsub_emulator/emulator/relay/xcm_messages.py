"""Executes upward messages as XCM.

Messages from the queue are decoded, weighed, checked by a barrier, and executed. Only messages that
publish pass the barrier.
"""

from contextlib import AbstractContextManager
from typing import Final

from pubsub_emulator import xcm
from pubsub_emulator.emulator.relay.message_outcomes import note_execution
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.dispatch import DispatchError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub import weights as pubsub_weights
from pubsub_emulator.runtime.relay.message_queue import (
    MessageError,
    MessageErrorKind,
    MessageResult,
)

PUBLISHES_PER_MESSAGE: Final = 64
"""The maximum number of instructions in a message that the barrier admits."""

_INSTRUCTION: Final = Weight(10_000_000, 0)
"""The weight of an instruction other than `Publish`."""
_UNDECODABLE: Final = Weight(10_000_000, 0)
"""The weight of a failed attempt to decode a message."""


@value_type
class NeverRun:
    """A message that cannot be decoded or weighed."""

    error: xcm.ProcessMessageError
    weight: Weight = _UNDECODABLE
    """The weight of the attempt to decode or weigh it."""


class XcmMessages:
    """The processor of the message queue, which executes upward messages as XCM."""

    def __init__(self, pubsub: PubsubConfig, broadcaster: Broadcaster) -> None:
        publish = pubsub_weights.publish(pubsub, 0)
        weights = xcm.XcmWeights(_INSTRUCTION, publish, pubsub_weights.PER_VALUE_BYTE)
        barrier = xcm.AllowPublishFrom(
            xcm.only_parachains, PUBLISHES_PER_MESSAGE, tolerate_set_topic=True
        )
        self._executor = xcm.XcmExecutor(xcm.FixedWeightBounds(weights), barrier)
        self._broadcaster = broadcaster

    def prepare(self, message: bytes) -> xcm.WeighedMessage | NeverRun:
        """Decode and weigh a message. Returns `NeverRun` if that is not possible."""
        weighed = xcm.weigh_message(self._executor.weigher, message)
        return weighed if isinstance(weighed, xcm.WeighedMessage) else NeverRun(weighed)

    def process(
        self,
        storage: Storage,
        para: ParaId,
        prepared: xcm.WeighedMessage | NeverRun,
        message_id: Hash,
    ) -> MessageResult:
        """Execute a message of `para`.

        A rejected message costs its whole weight. Emits `Attempted` if an instruction fails.
        """
        if isinstance(prepared, NeverRun):
            return _failed(prepared.error, WEIGHT_ZERO)
        chain = PublishingChain(storage, self._broadcaster)
        execution = self._executor.execute(
            chain, xcm.parachain(para), prepared.message, prepared.weight, message_id
        )
        if execution.rejected is not None:
            return _failed(execution.rejected, prepared.weight)
        outcome = execution.outcome
        if not isinstance(outcome, (xcm.Complete, xcm.Incomplete)):
            raise DefensiveFailure(f"{outcome} without a reason")
        note_execution(storage, para, message_id, execution)
        return MessageResult(outcome.used, success=isinstance(outcome, xcm.Complete))


@value_type
class PublishingChain:
    """The executor's `Chain` for one message."""

    storage: Storage
    broadcaster: Broadcaster

    def transaction(self) -> AbstractContextManager[object]:
        """Return a context that rolls back writes to the storage if it ends with an error."""
        return self.storage.transaction()

    def publish(self, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Publish one key. Raises `PublishFailure` with the pallet's error."""
        try:
            self.broadcaster.publish(self.storage, para, key, value, ttl)
        except DispatchError as error:
            raise xcm.PublishFailure(error) from error


def _failed(error: xcm.ProcessMessageError, used: Weight) -> MessageResult:
    return MessageResult(
        used, success=False, error=MessageError(MessageErrorKind[type(error).__name__])
    )
