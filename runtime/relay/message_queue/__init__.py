"""The `MessageQueue` pallet: queues of upward messages, served at the start of a block (PS-23).

Read `types` (pages, books), `ring` (the order of queues), then `pallet`.
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
