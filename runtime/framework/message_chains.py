"""What downward and horizontal messages have in common: hash chains over queues, and what a message weighs.

A parachain proves that it was given every message in order by hashing them one after another:

    head' = blake2_256( [u8; 32] head ++ u32 sent_at ++ blake2_256(message) )      from 32 zero bytes on
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Codec, compact_len
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber

ZERO_HEAD: Final = Hash(bytes(32))
"""The head of an empty chain."""


@dataclass(frozen=True, slots=True)
class InboundDownwardMessage:
    """A message from the relay chain, with the relay block that sent it."""

    sent_at: RelayBlockNumber
    msg: bytes


@dataclass(frozen=True, slots=True)
class InboundHrmpMessage:
    """A message from another parachain, with the relay block that took it."""

    sent_at: RelayBlockNumber
    data: bytes


HorizontalMessages = tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]
"""Messages by sender, senders ascending."""

para_id: Final[Codec[ParaId]] = scale.u32.named("ParaId", ParaId, type_info.PARA_ID)
relay_number: Final[Codec[RelayBlockNumber]] = scale.u32.named("BlockNumber", RelayBlockNumber)
downward_message: Final[Codec[InboundDownwardMessage]] = struct(
    InboundDownwardMessage,
    relay_number,
    scale.bytes_,
    rust="polkadot_core_primitives::InboundDownwardMessage",
)
hrmp_message: Final[Codec[InboundHrmpMessage]] = struct(
    InboundHrmpMessage, relay_number, scale.bytes_, rust="polkadot_core_primitives::InboundHrmpMessage"
)


@dataclass(frozen=True, slots=True)
class OutboundHrmpMessage:
    """A message that a parachain block sends to another parachain."""

    recipient: ParaId
    data: bytes


@dataclass(frozen=True, slots=True)
class MessageBounds:
    """How many bytes may wait for one parachain, as they weigh in its block: it has to take them all at once.

    `downward` bounds the downward queue, `horizontal` the sum over all channels to the parachain.
    """

    downward: int = 1_048_576
    horizontal: int = 6_291_456

    def total(self) -> int:
        """The most that the message fields of a block can weigh, with the lengths of both collections."""
        return self.downward + self.horizontal + 8


def chain_head(head: Hash, sent_at: RelayBlockNumber, message: bytes) -> Hash:
    """The head of a message queue chain after one more message."""
    return blake2_256(head + sent_at.to_bytes(4, "little") + blake2_256(message))


def message_chain(head: Hash, messages: Iterable[tuple[RelayBlockNumber, bytes]]) -> Hash:
    """The head after `messages`, each with the relay block that sent it."""
    for sent_at, message in messages:
        head = chain_head(head, sent_at, message)
    return head


def message_weight(length: int) -> int:
    """Bytes that a message of this length takes in a block: sent_at, length, itself."""
    return 4 + compact_len(length) + length
