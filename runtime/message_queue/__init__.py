"""The `MessageQueue` pallet: upward messages of parachains wait here and are served at the start of a block (PS-23).

Read `types` (pages, books), `ring` (whose turn it is), then `pallet`.
"""

from runtime.message_queue.pallet import Config, MessageProcessor, MessageQueue, Processed
from runtime.message_queue.types import Error, MessageError, OverweightDropped, ProcessingFailed, ProcessMessageError
from runtime.message_queue.types import Processed as ProcessedEvent

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
