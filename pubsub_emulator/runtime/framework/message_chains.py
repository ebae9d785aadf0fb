"""Downward and horizontal messages, the hash chains over their queues, and their weight in bytes.

A parachain proves that it received every message in order by hashing them one after another,
beginning with 32 zero bytes. A message is hashed with its length, as the SCALE bytes of `Vec<u8>`:

    head' = blake2_256( [u8; 32] head ++ u32 sent_at ++ blake2_256(Vec<u8> message) )

A block has the first messages in full, as far as its share reaches, and only the hashes of the
others (UP-9). Later blocks bring those in full.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, Protocol, TypeVar

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Codec, Reader, compact_len, encode_bytes
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.type_info import Parameter
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.codecs import hash_codec, para_id, relay_number


class _Sent(Protocol):
    """A message that a relay block sent."""

    @property
    def sent_at(self) -> RelayBlockNumber:
        """Return the relay block that sent the message."""


F = TypeVar("F")
H = TypeVar("H")
M = TypeVar("M", bound=_Sent)

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
_PRIMITIVES: Final = "cumulus_primitives_parachain_inherent"
_SYSTEM: Final = "cumulus_pallet_parachain_system::parachain_inherent"


@dataclass(frozen=True, slots=True)
class HashedMessage:
    """A message of which a block has only the hash."""

    sent_at: RelayBlockNumber
    msg_hash: Hash
    """The `message_hash` of the message."""


hashed_message: Final[Codec[HashedMessage]] = struct(
    HashedMessage, relay_number, hash_codec, rust=f"{_PRIMITIVES}::HashedMessage"
)


@dataclass(frozen=True, slots=True)
class Abridged(Generic[F, H]):
    """The messages of one kind in the order of the wire: the first in full, the others hashed."""

    full_messages: list[F]
    hashed_messages: list[H]


_sent: Final = scale.pair(para_id, hrmp_message)
_sent_hashed: Final = scale.pair(para_id, hashed_message)
_ABRIDGED: Final = f"{_SYSTEM}::AbridgedInboundMessagesCollection"
abridged_downward: Final[Codec[Abridged[InboundDownwardMessage, HashedMessage]]] = struct(
    Abridged,
    scale.vec(downward_message),
    scale.vec(hashed_message),
    rust=_ABRIDGED,
    params=(Parameter("Message", downward_message.info),),
)
abridged_horizontal: Final[
    Codec[Abridged[tuple[ParaId, InboundHrmpMessage], tuple[ParaId, HashedMessage]]]
] = struct(
    Abridged,
    scale.vec(_sent),
    scale.vec(_sent_hashed),
    rust=_ABRIDGED,
    params=(Parameter("Message", _sent.info),),
)

MAX_MESSAGES: Final = 262_144
"""The maximum number of messages in each of the four lists of a block."""

_FOUR_EMPTY_LISTS: Final = bytes(4)
"""The encoding of no messages at all, as most blocks have it."""

LISTS_BYTES: Final = 16
"""The maximum bytes of the lengths of the four lists."""


def message_allowance(max_pov_size: int) -> int:
    """Return the bytes of a block's proof that messages may take (PS-50).

    They are 85 percent of the maximum proof size, rounded down.
    """
    return max_pov_size * 85 // 100


HashedHorizontal = tuple[tuple[ParaId, tuple[HashedMessage, ...]], ...]
"""Hashed messages by sender, senders ascending."""
Queue = tuple[ParaId | None, tuple[tuple[RelayBlockNumber, bytes], ...]]
"""A sender, `None` for the relay chain, and its messages as `(sent_at, bytes)`."""
Link = tuple[RelayBlockNumber, Hash]
"""A message as a part of its queue's chain: `(sent_at, message_hash)`."""


@dataclass(frozen=True, slots=True)
class QueueLinks:
    """The messages of one queue that a block brings."""

    full: tuple[Link, ...] = ()
    hashed: tuple[Link, ...] = ()


@dataclass(frozen=True)
class InboundMessages:
    """The messages that a block takes in: downward ones in queue order, horizontal ones by sender.

    On the wire, horizontal messages are in the order of `(sent_at, sender)` (UP-7, UP-8):

    Vec<(u32, Vec<u8>)>            downward in full: sent_at, msg
    Vec<(u32, [u8; 32])>           downward hashed: sent_at, msg_hash
    Vec<(u32, u32, Vec<u8>)>       horizontal in full: sender, sent_at, data
    Vec<(u32, u32, [u8; 32])>      horizontal hashed: sender, sent_at, msg_hash
    """

    downward: tuple[InboundDownwardMessage, ...] = ()
    horizontal: HorizontalMessages = ()
    hashed_downward: tuple[HashedMessage, ...] = ()
    hashed_horizontal: HashedHorizontal = ()

    @cached_property
    def encoded(self) -> bytes:
        """Return the SCALE bytes of `InboundMessagesData`, in the order listed at the class."""
        downward = Abridged(list(self.downward), list(self.hashed_downward))
        full = _flat(self.horizontal)
        hashed = _flat(self.hashed_horizontal)
        return abridged_downward.encode(downward) + abridged_horizontal.encode(
            Abridged(full, hashed)
        )

    @property
    def weight(self) -> int:
        """Return the length of the SCALE bytes, which is `messages_used` (PS-50, UP-11)."""
        return len(self.encoded)

    @property
    def hashed_count(self) -> int:
        """Return the number of hashed messages."""
        return len(self.hashed_downward) + sum(len(sent) for _, sent in self.hashed_horizontal)

    @staticmethod
    def read(reader: Reader) -> "InboundMessages":
        """Return the next messages in `reader`.

        Raises `ScaleError`, also for horizontal messages that are not in the order of
        `(sent_at, sender)`, and for more than `MAX_MESSAGES`.
        """
        start = reader.pos
        if reader.data.startswith(_FOUR_EMPTY_LISTS, start):
            reader.pos = start + len(_FOUR_EMPTY_LISTS)
            return NO_MESSAGES
        downward = _read_list(reader, downward_message)
        hashed_downward = _read_list(reader, hashed_message)
        horizontal = _by_sender(_read_list(reader, _sent), start)
        hashed_horizontal = _by_sender(_read_list(reader, _sent_hashed), start)
        messages = InboundMessages(
            tuple(downward), horizontal, tuple(hashed_downward), hashed_horizontal
        )
        # The encoding is canonical, so the bytes that were read are the encoding.
        messages.__dict__["encoded"] = reader.data[start : reader.pos]
        return messages

    def queues(self) -> tuple["Queue", ...]:
        """Return the full messages of all queues, the downward queue first, then by sender."""
        downward = tuple((m.sent_at, m.msg) for m in self.downward)
        sent = (
            (sender, tuple((m.sent_at, m.data) for m in messages))
            for sender, messages in self.horizontal
        )
        return ((None, downward), *sent)

    @cached_property
    def links(self) -> dict[ParaId | None, QueueLinks]:
        """Return the messages of each queue as parts of its chain; `None` is the downward queue."""
        full: dict[ParaId | None, list[Link]] = {}
        hashed: dict[ParaId | None, list[Link]] = {}
        for sender, messages in self.queues():
            links = full.setdefault(sender, [])
            links += [(sent_at, message_hash(message)) for sent_at, message in messages]
        hashed_queues: list[tuple[ParaId | None, tuple[HashedMessage, ...]]] = [
            (None, self.hashed_downward)
        ]
        hashed_queues += self.hashed_horizontal
        for sender, hashed_messages in hashed_queues:
            hashed.setdefault(sender, []).extend(
                (message.sent_at, message.msg_hash) for message in hashed_messages
            )
        return {
            sender: QueueLinks(tuple(full.get(sender, ())), tuple(hashed.get(sender, ())))
            for sender in {**full, **hashed}
        }

    def tidy(self) -> "InboundMessages":
        """Return the same messages in the order that the encoding has.

        Senders ascend, each once, and those without messages are left out. The messages of a sender
        are in the order of sending.
        """
        return InboundMessages(
            self.downward,
            _tidied(self.horizontal),
            self.hashed_downward,
            _tidied(self.hashed_horizontal),
        )

    def until(self, number: int) -> "InboundMessages":
        """Return the messages that the relay chain sent up to its block `number`."""
        return InboundMessages(
            tuple(m for m in self.downward if m.sent_at <= number),
            _until(self.horizontal, number),
            tuple(m for m in self.hashed_downward if m.sent_at <= number),
            _until(self.hashed_horizontal, number),
        ).tidy()


def _flat(by_sender: tuple[tuple[ParaId, tuple[M, ...]], ...]) -> list[tuple[ParaId, M]]:
    """Return messages with their senders, in the order of `(sent_at, sender)`."""
    flat = []
    for sender, sent in by_sender:
        flat += [(sender, message) for message in sent]
    flat.sort(key=lambda entry: (entry[1].sent_at, entry[0]))
    return flat


def _by_sender(
    flat: list[tuple[ParaId, M]], start: int
) -> tuple[tuple[ParaId, tuple[M, ...]], ...]:
    """Return messages by sender. Raises `ScaleError` if they are not in order."""
    by_sender: dict[ParaId, list[M]] = {}
    last = (-1, -1)
    for sender, message in flat:
        place = (message.sent_at, sender)
        if place < last:
            raise ScaleError(
                f"horizontal messages are not in the order of sending and sender, at offset {start}"
            )
        last = place
        by_sender.setdefault(sender, []).append(message)
    return tuple((sender, tuple(by_sender[sender])) for sender in sorted(by_sender))


def _tidied(
    by_sender: tuple[tuple[ParaId, tuple[M, ...]], ...],
) -> tuple[tuple[ParaId, tuple[M, ...]], ...]:
    return _by_sender(_flat(by_sender), 0)


def _until(
    by_sender: tuple[tuple[ParaId, tuple[M, ...]], ...], number: int
) -> tuple[tuple[ParaId, tuple[M, ...]], ...]:
    return tuple(
        (sender, tuple(m for m in sent if m.sent_at <= number)) for sender, sent in by_sender
    )


def _read_list(reader: Reader, item: Codec[F]) -> list[F]:
    """Read a list. Raises `ScaleError` for more than `MAX_MESSAGES` before it reads any of them."""
    count = Reader(reader.data, reader.pos).length()
    if count > MAX_MESSAGES:
        raise ScaleError(f"{count} messages; a block takes in at most {MAX_MESSAGES}")
    reader.length()
    return [item.read(reader) for _ in range(count)]


NO_MESSAGES: Final = InboundMessages()


@dataclass(frozen=True, slots=True)
class OutboundHrmpMessage:
    """A message that a parachain block sends to another parachain."""

    recipient: ParaId
    data: bytes


@dataclass(frozen=True, slots=True)
class MessageBounds:
    """The limits of the bytes that wait for a parachain, as counted in the parachain's block.

    One limit is for the downward queue, the other for all channels to the parachain together.
    """

    downward: int = 1_048_576
    horizontal: int = 6_291_456

    def total(self) -> int:
        """Return the maximum size of the message fields of a block in bytes.

        It includes the lengths of the lists.
        """
        return self.downward + self.horizontal + LISTS_BYTES


def message_hash(message: bytes) -> Hash:
    """Return the hash of a message in its queue's chain: that of its SCALE bytes."""
    return blake2_256(encode_bytes(message))


def chain_head(head: Hash, sent_at: RelayBlockNumber, message: bytes) -> Hash:
    """Return the head of a message queue chain after one more message."""
    return blake2_256(head + sent_at.to_bytes(4, "little") + message_hash(message))


def message_chain(head: Hash, messages: Iterable[tuple[RelayBlockNumber, bytes]]) -> Hash:
    """Return the head after `messages`, each with the relay block that sent it."""
    for sent_at, message in messages:
        head = chain_head(head, sent_at, message)
    return head


def linked_chain(head: Hash, links: Iterable[Link]) -> Hash:
    """Return the head after messages of which only the hashes are given."""
    for sent_at, hashed in links:
        head = blake2_256(head + sent_at.to_bytes(4, "little") + hashed)
    return head


def message_weight(length: int) -> int:
    """Return the bytes that a message of this length takes in a block.

    They are sent_at, the length and the message.
    """
    return 4 + compact_len(length) + length
