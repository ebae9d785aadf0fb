"""The `MessageQueue` pallet (PS-23).

Read `types` (pages, books), `ring` (the order of queues), then `pallet`.
"""

from pubsub_emulator.runtime.relay.message_queue.pallet import Config as Config
from pubsub_emulator.runtime.relay.message_queue.pallet import MessageProcessor as MessageProcessor
from pubsub_emulator.runtime.relay.message_queue.pallet import MessageQueue as MessageQueue
from pubsub_emulator.runtime.relay.message_queue.pallet import MessageResult as MessageResult
from pubsub_emulator.runtime.relay.message_queue.types import Error as Error
from pubsub_emulator.runtime.relay.message_queue.types import MessageError as MessageError
from pubsub_emulator.runtime.relay.message_queue.types import MessageErrorKind as MessageErrorKind
from pubsub_emulator.runtime.relay.message_queue.types import OverweightDropped as OverweightDropped
from pubsub_emulator.runtime.relay.message_queue.types import Processed as Processed
from pubsub_emulator.runtime.relay.message_queue.types import ProcessingFailed as ProcessingFailed
