"""The `MessageQueue` pallet: queues of upward messages, served at the start of a block (PS-23).

Read `types` (pages, books), `ring` (the order of queues), then `pallet`.
"""

from pubsub_emulator.runtime.relay.message_queue.pallet import Config, MessageProcessor, MessageQueue, MessageResult
from pubsub_emulator.runtime.relay.message_queue.types import (
    Error,
    MessageError,
    MessageErrorKind,
    OverweightDropped,
    Processed,
    ProcessingFailed,
)

__all__ = [
    "Config",
    "Error",
    "MessageError",
    "MessageErrorKind",
    "MessageProcessor",
    "MessageQueue",
    "MessageResult",
    "OverweightDropped",
    "Processed",
    "ProcessingFailed",
]
