"""Downward and horizontal messages, the hash chains over their queues, and their weight in bytes.

A parachain proves that it received every message in order by hashing them one after another,
beginning with 32 zero bytes:

    head' = blake2_256( [u8; 32] head ++ u32 sent_at ++ blake2_256(message) )
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Codec, Reader, compact_len
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.codecs import para_id, relay_number

ZERO_HEAD: Final = Hash(bytes(32))
"""The head of an empty chain."""


@dataclass(frozen=True, slots=True)
class InboundDownwardMessage:
    """A message from the relay chain, with the relay block that sent it."""

    sent_at: RelayBlockNumber
    msg: bytes


@dataclass(frozen=True, slots=True)
class InboundHrmpMessage:
    """A message from another parachain, with the relay block that accepted it."""

    sent_at: RelayBlockNumber
    data: bytes


HorizontalMessages = tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]
"""Messages by sender, senders ascending."""

downward_message: Final[Codec[InboundDownwardMessage]] = struct(
    InboundDownwardMessage,
    relay_number,
    scale.bytes_,
    rust="polkadot_core_primitives::InboundDownwardMessage",
)
hrmp_message: Final[Codec[InboundHrmpMessage]] = struct(
    InboundHrmpMessage,
    relay_number,
    scale.bytes_,
    rust="polkadot_core_primitives::InboundHrmpMessage",
)
_downward: Final = scale.vec(downward_message)
_horizontal: Final = scale.sorted_map(para_id, scale.vec(hrmp_message))

MAX_MESSAGES: Final = 262_144
"""The maximum number of messages, or of senders, that may wait for a parachain."""


def message_allowance(max_pov_size: int) -> int:
    """Return the bytes of a block's proof that messages may take (PS-50).

    They are 85 percent of the maximum proof size, rounded down.
    """
    return max_pov_size * 85 // 100


Queue = tuple[ParaId | None, tuple[tuple[RelayBlockNumber, bytes], ...]]
"""A sender, `None` for the relay chain, and its messages as `(sent_at, bytes)`."""


@dataclass(frozen=True)
class InboundMessages:
    """The messages that a block takes in: downward ones in queue order, horizontal ones by sender.

    Vec<(u32, Vec<u8>)>                      downward: (sent_at, msg)
    BTreeMap<u32, Vec<(u32, Vec<u8>)>>       horizontal: (sent_at, data) by sender
    """

    downward: tuple[InboundDownwardMessage, ...] = ()
    horizontal: HorizontalMessages = ()

    @cached_property
    def encoded(self) -> bytes:
        """SCALE bytes, as in the table."""
        by_sender = {sender: list(messages) for sender, messages in self.horizontal}
        return _downward.encode(list(self.downward)) + _horizontal.encode(by_sender)

    @property
    def weight(self) -> int:
        """The length of the SCALE bytes: `messages_used` (PS-50)."""
        return len(self.encoded)

    @staticmethod
    def read(reader: Reader) -> "InboundMessages":
        """Return the next messages in `reader`.

        Raises `ScaleError`, also for more than `MAX_MESSAGES`.
        """
        start = reader.pos
        _ensure_few(reader)
        downward = tuple(_downward.read(reader))
        _ensure_few(reader)
        by_sender = _horizontal.read(reader)
        out = InboundMessages(
            downward, tuple((sender, tuple(messages)) for sender, messages in by_sender.items())
        )
        # The encoding is canonical, so the bytes that were read are the encoding.
        out.__dict__["encoded"] = reader.data[start : reader.pos]
        return out

    def queues(self) -> tuple["Queue", ...]:
        """Return all queues in the order of the encoding.

        The downward queue comes first, then those of the senders.
        """
        downward = tuple((m.sent_at, m.msg) for m in self.downward)
        sent = (
            (sender, tuple((m.sent_at, m.data) for m in messages))
            for sender, messages in self.horizontal
        )
        return ((None, downward), *sent)

    def tidy(self) -> "InboundMessages":
        """Return the same messages in the order that a block must have.

        Senders ascend, and those without messages are left out.
        """
        return InboundMessages(
            self.downward, tuple(sorted((e for e in self.horizontal if e[1]), key=itemgetter(0)))
        )

    def until(self, number: int) -> "InboundMessages":
        """Return the messages that the relay chain sent up to its block `number`."""
        horizontal = (
            (sender, tuple(m for m in sent if m.sent_at <= number))
            for sender, sent in self.horizontal
        )
        return InboundMessages(
            tuple(m for m in self.downward if m.sent_at <= number), tuple(horizontal)
        ).tidy()


def _ensure_few(reader: Reader) -> None:
    """Refuse a list of more than `MAX_MESSAGES` before it is read."""
    count = Reader(reader.data, reader.pos).length()
    if count > MAX_MESSAGES:
        raise ScaleError(f"{count} messages; a block takes in at most {MAX_MESSAGES}")


NO_MESSAGES: Final = InboundMessages()


@dataclass(frozen=True, slots=True)
class OutboundHrmpMessage:
    """A message that a parachain block sends to another parachain."""

    recipient: ParaId
    data: bytes


@dataclass(frozen=True, slots=True)
class MessageBounds:
    """Limits of the waiting bytes, as counted in the parachain's block.

    They are those of the downward queue and of all channels to the parachain.
    """

    downward: int = 1_048_576
    horizontal: int = 6_291_456

    def total(self) -> int:
        """Return the maximum size of the message fields of a block in bytes.

        It includes the lengths of both collections.
        """
        return self.downward + self.horizontal + 8


def chain_head(head: Hash, sent_at: RelayBlockNumber, message: bytes) -> Hash:
    """Return the head of a message queue chain after one more message."""
    return blake2_256(head + sent_at.to_bytes(4, "little") + blake2_256(message))


def message_chain(head: Hash, messages: Iterable[tuple[RelayBlockNumber, bytes]]) -> Hash:
    """Return the head after `messages`, each with the relay block that sent it."""
    for sent_at, message in messages:
        head = chain_head(head, sent_at, message)
    return head


def message_weight(length: int) -> int:
    """Return the bytes that a message of this length takes in a block.

    They are sent_at, the length and the message.
    """
    return 4 + compact_len(length) + length
