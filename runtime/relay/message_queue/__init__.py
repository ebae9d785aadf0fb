"""The `MessageQueue` pallet: upward messages of parachains wait here and are served at the start of a block (PS-23).

Read `types` (pages, books), `ring` (whose turn it is), then `pallet`.
"""

from pubsub_emulator.runtime.relay.message_queue.pallet import Config, MessageProcessor, MessageQueue, Processed
from pubsub_emulator.runtime.relay.message_queue.types import (
    Error,
    MessageError,
    OverweightDropped,
    ProcessingFailed,
    ProcessMessageError,
)
from pubsub_emulator.runtime.relay.message_queue.types import Processed as ProcessedEvent

__all__ = [
    "Config",
    "Error",
    "MessageError",
    "MessageProcessor",
    "MessageQueue",
    "OverweightDropped",
    "ProcessMessageError",
    "Processed",
    "ProcessedEvent",
    "ProcessingFailed",
]
