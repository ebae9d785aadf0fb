"""Executes upward messages as XCM: the binding of message queue, XCM and publishing.

upward message ─► MessageQueue ─► XcmMessages ─► XcmProcessor: decode, barrier, executor ─► Publish ─► Broadcaster
"""

from contextlib import AbstractContextManager
from typing import Final

from pubsub_emulator.emulator.relay.message_outcomes import note_execution
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.dispatch import DispatchError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub import weights as pubsub_weights
from pubsub_emulator.runtime.relay.message_queue import MessageError, Processed, ProcessMessageError
from pubsub_emulator.xcm import (
    AllowPublishFrom,
    FixedWeightBounds,
    PublishFailure,
    XcmProcessor,
    XcmWeights,
    only_parachains,
)
from pubsub_emulator.xcm import Prepared as XcmPrepared
from pubsub_emulator.xcm import Processed as XcmProcessed
from pubsub_emulator.xcm.outcome import Overweight
from pubsub_emulator.xcm.outcome import ProcessMessageError as XcmProcessMessageError

PUBLISHES_PER_MESSAGE: Final = 64
"""The most instructions of a message that the barrier admits."""

_INSTRUCTION: Final = Weight(10_000_000, 0)
_UNDECODABLE: Final = Weight(10_000_000, 0)
"""The weight of failing to decode a message."""


@value_type
class PreparedXcm:
    """A decoded and weighed upward message, or the reason why it will never run."""

    message: XcmPrepared | XcmProcessMessageError
    weight: Weight


class XcmMessages:
    """The message queue's processor: executes upward messages as XCM."""

    def __init__(self, pubsub: PubsubConfig, broadcaster: Broadcaster) -> None:
        publish = pubsub_weights.publish(pubsub, 0)
        weights = XcmWeights(_INSTRUCTION, publish, pubsub_weights.PER_VALUE_BYTE)
        barrier = AllowPublishFrom(only_parachains, PUBLISHES_PER_MESSAGE, tolerate_set_topic=True)
        self._processor = XcmProcessor(FixedWeightBounds(weights), barrier)
        self._broadcaster = broadcaster

    def prepare(self, message: bytes) -> PreparedXcm:
        """Decode and weigh a message."""
        prepared = self._processor.prepare(message)
        return PreparedXcm(prepared, prepared.weight if isinstance(prepared, XcmPrepared) else _UNDECODABLE)

    def process(self, storage: Storage, para: ParaId, prepared: PreparedXcm, message_id: Hash) -> Processed:
        """Execute a message of `para` over `storage`. Emits `Attempted` if it does not run to its end."""
        message = prepared.message
        if not isinstance(message, XcmPrepared):
            return Processed(WEIGHT_ZERO, success=False, error=_message_error(message))
        chain = PublishingChain(storage, self._broadcaster)
        result = self._processor.process(chain, para, message, prepared.weight, message_id)
        if isinstance(result, XcmProcessed):
            note_execution(storage, para, message_id, result.execution)
            return Processed(result.used, success=result.success)
        return Processed(result.used, success=False, error=_message_error(result.error))


@value_type
class PublishingChain:
    """The executor's `Chain` for one message."""

    storage: Storage
    broadcaster: Broadcaster

    def transaction(self) -> AbstractContextManager[object]:
        """A layer of the storage."""
        return self.storage.transaction()

    def publish(self, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Publish one key. Raises `PublishFailure` with the pallet's error."""
        try:
            self.broadcaster.publish(self.storage, para, key, value, ttl)
        except DispatchError as error:
            raise PublishFailure(error) from error


def _message_error(error: XcmProcessMessageError) -> MessageError:
    kind = ProcessMessageError[type(error).__name__]
    return MessageError(kind, error.inner if isinstance(error, Overweight) else None)
