"""The division of a block's messages into full and hashed ones, and the progress in the queues.

Full messages of each kind may take a sixth of the block's proof size, and horizontal ones also the
part that downward ones leave (UP-9). The block has only the hashes of all others, so that the
chains over the queues still end in the heads that the relay chain proves (UP-10).

Two advancement rules, those of Cumulus, prevent an author from hashing everything. A file of rules
may replace them and the shares.

    basic      if there is a hashed message, there is a full one                 both kinds
    advanced   the full bytes, with the largest message that the channel of the
               first hashed one allows, exceed the share                         horizontal
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.codecs import relay_number
from pubsub_emulator.runtime.framework.message_chains import (
    HashedMessage,
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
    message_hash,
)


class _Sent(Protocol):
    @property
    def sent_at(self) -> RelayBlockNumber:
        """Return the relay block that sent the message."""


S = TypeVar("S", bound=_Sent)
Sent = tuple[ParaId, InboundHrmpMessage]
"""A horizontal message with its sender."""


@dataclass(frozen=True, slots=True)
class InboundMessageId:
    """The last message of a queue that a parachain has processed (UP-8).

    It is the one `reverse_idx` places before the last message with this `sent_at`. An index from
    the front would change when the relay chain drops messages there.
    """

    sent_at: RelayBlockNumber
    reverse_idx: int


inbound_message_id: Final[Codec[InboundMessageId]] = struct(
    InboundMessageId,
    relay_number,
    scale.u32,
    rust="cumulus_pallet_parachain_system::parachain_inherent::InboundMessageId",
)


@dataclass(frozen=True, slots=True)
class Marks:
    """The last processed messages of a parachain, downward and horizontal."""

    downward: InboundMessageId
    horizontal: InboundMessageId


def unprocessed(messages: Sequence[S], mark: InboundMessageId) -> tuple[S, ...]:
    """Return the messages after the marked one. `messages` are in the order of sending."""
    end = 0
    for index in range(len(messages) - 1, -1, -1):
        sent_at = messages[index].sent_at
        if sent_at == mark.sent_at:
            # The marked message may be older than all messages that the relay chain still has.
            end = max(index - mark.reverse_idx + 1, 0)
            break
        if sent_at < mark.sent_at:
            end = index + 1
            break
    return tuple(messages[end:])


@dataclass(frozen=True, slots=True)
class _SentBy:
    """A horizontal message with its sender, in the order of all senders' messages."""

    sender: ParaId
    message: InboundHrmpMessage

    @property
    def sent_at(self) -> RelayBlockNumber:
        return self.message.sent_at


def ordered(messages: InboundMessages) -> list[Sent]:
    """Return the full horizontal messages in the order of `(sent_at, sender)`."""
    flat = []
    for sender, sent in messages.horizontal:
        flat += [(sender, message) for message in sent]
    flat.sort(key=lambda entry: (entry[1].sent_at, entry[0]))
    return flat


def _ordered_hashed(messages: InboundMessages) -> list[tuple[ParaId, HashedMessage]]:
    flat = []
    for sender, sent in messages.hashed_horizontal:
        flat += [(sender, hashed) for hashed in sent]
    flat.sort(key=lambda entry: (entry[1].sent_at, entry[0]))
    return flat


def new_messages(waiting: InboundMessages, marks: Marks) -> InboundMessages:
    """Return the waiting messages that the parachain has not processed yet, all in full."""
    flat = [_SentBy(sender, message) for sender, message in ordered(waiting)]
    horizontal = [(entry.sender, (entry.message,)) for entry in unprocessed(flat, marks.horizontal)]
    downward = unprocessed(waiting.downward, marks.downward)
    return InboundMessages(downward, tuple(horizontal)).tidy()


@dataclass(frozen=True, slots=True)
class Shares:
    """The bytes that full messages may take of a block (UP-9)."""

    limit: int
    """The bytes of each kind, with which the advancement rules compare."""
    room: Callable[[int], int] | None = None
    """The rule for horizontal messages, by the bytes of downward ones; `None` is the shipped one.
    """
    may_hash: Callable[[int, int, int], bool] | None = None
    """The rule for downward messages: whether they may be hashed after so many full bytes, with the
    largest message that the relay chain allows, and with `limit`.
    """

    def horizontal(self, downward: int) -> int:
        """Return the bytes of horizontal messages beside `downward` bytes of downward ones."""
        if self.room is None:
            return max(self.limit - downward, 0) + self.limit
        return self.room(downward)


def _count_fitting(sizes: Sequence[int], limit: int) -> tuple[int, int]:
    """Return how many of the first messages fit into `limit` bytes, and how many bytes are left."""
    for index, size in enumerate(sizes):
        if size > limit:
            return index, limit
        limit -= size
    return len(sizes), limit


def abridged(messages: InboundMessages, shares: Shares) -> InboundMessages:
    """Return the same messages, of which those beyond their share are hashed (UP-9).

    If some are hashed already, all messages are returned unchanged.
    """
    if messages.hashed_downward or messages.hashed_horizontal:
        return messages
    downward = messages.downward
    downward_count, unused = _count_fitting(
        [len(message.msg) for message in downward], shares.limit
    )
    horizontal = ordered(messages)
    room = shares.horizontal(shares.limit - unused)
    horizontal_count, _ = _count_fitting([len(message.data) for _, message in horizontal], room)
    if downward_count == len(downward) and horizontal_count == len(horizontal):
        return messages
    return InboundMessages(
        downward[:downward_count],
        tuple((sender, (message,)) for sender, message in horizontal[:horizontal_count]),
        tuple(_hashed(message) for message in downward[downward_count:]),
        tuple((sender, (_hashed(message),)) for sender, message in horizontal[horizontal_count:]),
    ).tidy()


def _hashed(message: InboundDownwardMessage | InboundHrmpMessage) -> HashedMessage:
    content = message.msg if isinstance(message, InboundDownwardMessage) else message.data
    return HashedMessage(message.sent_at, message_hash(content))


def full_bytes(messages: InboundMessages) -> tuple[int, int]:
    """Return the bytes of the full downward and of the full horizontal messages."""
    downward = sum(len(message.msg) for message in messages.downward)
    horizontal = 0
    for _, sent in messages.horizontal:
        horizontal += sum(len(message.data) for message in sent)
    return downward, horizontal


def order_faults(messages: InboundMessages) -> Iterator[str]:
    """Yield a fault if a hashed horizontal message comes before a full one (UP-10)."""
    full = ordered(messages)
    hashed = _ordered_hashed(messages)
    if full and hashed:
        last = (full[-1][1].sent_at, full[-1][0])
        first = (hashed[0][1].sent_at, hashed[0][0])
        if first < last:
            yield (
                f"the hashed message of {first[1]}, sent at {first[0]}, comes before the full one"
                f" of {last[1]}, sent at {last[0]}"
            )


def share_faults(messages: InboundMessages, shares: Shares) -> Iterator[str]:
    """Yield a fault for each kind whose full messages exceed the share (UP-9)."""
    downward, horizontal = full_bytes(messages)
    if downward > shares.limit:
        yield f"{downward} bytes of downward messages exceed the share of {shares.limit}"
    room = shares.horizontal(downward)
    if horizontal > room:
        yield f"{horizontal} bytes of horizontal messages exceed the {room} that are left for them"


def advancement_faults(
    messages: InboundMessages,
    shares: Shares,
    largest: Mapping[ParaId, int],
    largest_downward: int | None,
) -> Iterator[str]:
    """Yield a fault for each advancement rule that the messages violate (UP-10).

    `largest` has the largest message that each channel allows. `largest_downward` is that of the
    downward queue, which the rule `may_hash` gets. Without it the rule cannot be applied.
    """
    limit, may_hash = shares.limit, shares.may_hash
    downward, horizontal = full_bytes(messages)
    if messages.hashed_downward:
        if not messages.downward:
            yield "downward messages are hashed, and none is there in full"
        elif (
            may_hash is not None
            and largest_downward is not None
            and not may_hash(downward, largest_downward, limit)
        ):
            yield (
                f"downward messages are hashed after {downward} bytes, and the rules want more of"
                f" the share of {limit} in full, since the largest message has {largest_downward}"
            )
    hashed = _ordered_hashed(messages)
    if hashed:
        sender = hashed[0][0]
        longest = largest.get(sender, 0)
        if not messages.horizontal:
            yield "horizontal messages are hashed, and none is there in full"
        elif horizontal + longest <= limit:
            yield (
                f"horizontal messages are hashed after {horizontal} bytes, and another {longest} of"
                f" {sender} would fit into the share of {limit}"
            )


@dataclass(frozen=True, slots=True)
class Progress:
    """The position of a parachain in its message queues after a block."""

    marks: Marks
    watermark: RelayBlockNumber
    """The relay block up to which all horizontal messages are processed."""


def progress(
    messages: InboundMessages,
    before: Progress,
    relay_parent: RelayBlockNumber,
) -> Progress:
    """Return the position of a parachain after a block with these messages (UP-8)."""
    downward = before.marks.downward
    if messages.downward:
        last = messages.downward[-1].sent_at
        behind = sum(message.sent_at == last for message in messages.hashed_downward)
        downward = InboundMessageId(last, behind)
    flat = ordered(messages)
    if not flat:
        return Progress(Marks(downward, InboundMessageId(relay_parent, 0)), relay_parent)
    last = flat[-1][1].sent_at
    behind = sum(message.sent_at == last for _, message in _ordered_hashed(messages))
    # All messages of a relay block must be processed before the watermark reaches it.
    earlier = [message.sent_at for _, message in flat if message.sent_at < last]
    watermark = before.watermark
    if not messages.hashed_horizontal:
        watermark = relay_parent
    elif not behind:
        watermark = last
    elif earlier:
        watermark = earlier[-1]
    return Progress(Marks(downward, InboundMessageId(last, behind)), watermark)
