"""The `Dmp` pallet: messages from the relay chain to a parachain.

They wait in a bounded queue with a hash chain.
"""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework import message_chains as chains
from pubsub_emulator.runtime.framework.codecs import hash_codec
from pubsub_emulator.runtime.framework.dispatch import ensure
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError, StateError
from pubsub_emulator.runtime.framework.items import para_map
from pubsub_emulator.runtime.framework.pallet import Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.host_configuration import active_config

PALLET: Final = Pallet("Dmp", 58, "polkadot_runtime_parachains::dmp")
_queue: Final = scale.vec(chains.downward_message)
QUEUES: Final = para_map(
    PALLET,
    "DownwardMessageQueues",
    "The downward messages addressed for a certain para.",
    _queue,
    [],
)
_about: Final = "The head of the hash chain of a para's downward messages."
HEADS: Final = para_map(PALLET, "DownwardMessageQueueHeads", _about, hash_codec, chains.ZERO_HEAD)


@pallet_errors(PALLET)
class Error(PalletError):
    """Why a message was not queued, or a parachain block's acknowledgement refused."""

    ExceedsMaxMessageSize = 0, "The message is longer than the configuration allows."
    QueueFull = 1, "The queue holds as much as the parachain can take in one block."
    AdvancementRule = 2, "A block took no message though one waited."
    Underflow = 3, "A block took more messages than waited."


class Dmp(Hooks):
    """The pallet of downward messages.

    `bounds.downward` is in bytes of the parachain's block.
    """

    pallet = PALLET

    def __init__(self, bounds: chains.MessageBounds | None = None) -> None:
        self.bounds = chains.MessageBounds() if bounds is None else bounds

    def queue_downward_message(
        self, storage: Storage, para: ParaId, msg: bytes, now: RelayBlockNumber
    ) -> None:
        """Append a message sent at block `now`.

        Raises `ExceedsMaxMessageSize`, `QueueFull`.
        """
        ensure(
            len(msg) <= active_config(storage).max_downward_message_size,
            Error.ExceedsMaxMessageSize,
        )
        queue = QUEUES.get(storage, para)
        ensure(
            queue_weight(queue) + chains.message_weight(len(msg)) <= self.bounds.downward,
            Error.QueueFull,
        )
        QUEUES.insert(storage, para, [*queue, chains.InboundDownwardMessage(now, msg)])
        HEADS.insert(storage, para, chains.chain_head(HEADS.get(storage, para), now, msg))

    def contents(self, storage: Storage, para: ParaId) -> list[chains.InboundDownwardMessage]:
        """Return the messages that wait for a parachain, in order."""
        return QUEUES.get(storage, para)

    def head(self, storage: Storage, para: ParaId) -> Hash:
        """Return the head of the parachain's hash chain."""
        return HEADS.get(storage, para)

    def acknowledge(
        self, storage: Storage, para: ParaId, processed: int, relay_parent: RelayBlockNumber
    ) -> None:
        """Drop the first `processed` messages, which an included block has received.

        Raises `Underflow` if there are fewer, and `AdvancementRule` if the block received none
        although one waited at the relay parent.
        """
        queue = QUEUES.get(storage, para)
        ensure(processed <= len(queue), Error.Underflow)
        ensure(
            processed != 0 or not queue or queue[0].sent_at > relay_parent, Error.AdvancementRule
        )
        if processed or not queue:
            QUEUES.insert_or_remove(storage, para, queue[processed:])

    def on_offboard(self, storage: Storage, outgoing: Iterable[ParaId]) -> None:
        """Remove the queues and hash chains of parachains that left."""
        for para in outgoing:
            QUEUES.remove(storage, para)
            HEADS.remove(storage, para)

    def integrity_test(self) -> None:
        """Raise `IntegrityError` if the queue has no room for messages."""
        ensure(self.bounds.downward > 0, IntegrityError("the downward queue needs room"))

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` unless queues are within bounds, in order of sending, with a head."""
        for para, queue in QUEUES.items(storage):
            if queue_weight(queue) > self.bounds.downward:
                raise StateError(f"Dmp: more waits for {para} than it can take")
            if [m.sent_at for m in queue] != sorted(m.sent_at for m in queue):
                raise StateError(f"Dmp: the queue of {para} is out of order")
            if queue and HEADS.get(storage, para) == chains.ZERO_HEAD:
                raise StateError(f"Dmp: the queue of {para} has no head")


def queue_weight(queue: list[chains.InboundDownwardMessage]) -> int:
    """Return the bytes of these messages in a block."""
    return sum(chains.message_weight(len(message.msg)) for message in queue)
