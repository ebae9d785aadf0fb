"""The `Hrmp` pallet: channels between parachains, each a bounded queue with a hash chain.

A channel opens only if all channels to its recipient, when full, fit into one block. So one
sender's messages never cause the refusal of another's.
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework import message_chains as chains
from pubsub_emulator.runtime.framework.codecs import U32, hash_codec, para_id, relay_number
from pubsub_emulator.runtime.framework.dispatch import ModuleError, dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hashers import Twox64Concat
from pubsub_emulator.runtime.framework.hooks import Hooks, StateError
from pubsub_emulator.runtime.framework.items import StorageMap, para_map
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.host_configuration import active_config

PALLET: Final = Pallet("Hrmp", 60, "polkadot_runtime_parachains::hrmp")


@dataclass(frozen=True, slots=True)
class HrmpChannelId:
    """A channel's sender and recipient."""

    sender: ParaId
    recipient: ParaId


@dataclass(frozen=True, slots=True)
class HrmpChannel:
    """A channel: its limits, its contents, and its deposits.

    Limits and contents are in messages and bytes, deposits in plancks.
    """

    max_capacity: int
    max_total_size: int
    max_message_size: int
    msg_count: int = 0
    total_size: int = 0
    mqc_head: Hash | None = None
    """The head of the hash chain, or `None` before the first message."""
    sender_deposit: int = 0
    recipient_deposit: int = 0


channel_id: Final[Codec[HrmpChannelId]] = struct(
    HrmpChannelId, para_id, para_id, rust="polkadot_parachain_primitives::primitives::HrmpChannelId"
)
_CHANNEL: Final = "polkadot_runtime_parachains::hrmp::HrmpChannel"
channel: Final[Codec[HrmpChannel]] = struct(
    HrmpChannel, *([scale.u32] * 5), scale.option(hash_codec), scale.u128, scale.u128, rust=_CHANNEL
)

WATERMARKS: Final = para_map(
    PALLET,
    "HrmpWatermarks",
    "The relay block up to which a para took horizontal messages.",
    relay_number,
)
CHANNELS: Final = StorageMap(
    PALLET,
    "HrmpChannels",
    "HRMP channel data associated with each channel.",
    Twox64Concat,
    channel_id,
    channel,
)
_paras: Final = scale.vec(para_id)
INGRESS: Final = para_map(
    PALLET, "HrmpIngressChannelsIndex", "Who has a channel to a para, ascending.", _paras, []
)
EGRESS: Final = para_map(
    PALLET, "HrmpEgressChannelsIndex", "To whom a para has a channel, ascending.", _paras, []
)
_queue: Final = scale.vec(chains.hrmp_message)
CONTENTS: Final = StorageMap(
    PALLET, "HrmpChannelContents", "What waits in a channel.", Twox64Concat, channel_id, _queue, []
)
_digest: Final = scale.vec(scale.pair(relay_number, _paras))
DIGESTS: Final = para_map(
    PALLET, "HrmpChannelDigests", "Who sent to a para, by relay block.", _digest, []
)


@event(PALLET, 3)
class ChannelClosed(Event):
    """A channel is closed; what waited in it is gone."""

    by_parachain: ParaId
    channel_id: Annotated[HrmpChannelId, channel_id]


@event(PALLET, 4)
class HrmpChannelForceOpened(Event):
    """Root opened a channel."""

    sender: ParaId
    recipient: ParaId
    proposed_max_capacity: U32
    proposed_max_message_size: U32


@pallet_errors(PALLET)
class Error(PalletError):
    """Why a channel was not opened or closed, or a parachain block refused.

    Rust has the errors from 100 on elsewhere.
    """

    OpenHrmpChannelToSelf = 0, "The sender tried to open a channel to itself."
    OpenHrmpChannelZeroCapacity = 2, "The channel would hold no message."
    OpenHrmpChannelCapacityExceedsLimit = (
        3,
        "The channel would hold more messages than the configuration allows.",
    )
    OpenHrmpChannelZeroMessageSize = 4, "Messages of the channel would have no byte."
    OpenHrmpChannelMessageSizeExceedsLimit = (
        5,
        "Messages of the channel would be longer than the configuration allows.",
    )
    OpenHrmpChannelAlreadyExists = 6, "The channel already exists."
    OpenHrmpChannelLimitExceeded = 8, "The sender has the maximum number of channels."
    AcceptHrmpChannelLimitExceeded = 11, "The recipient has the maximum number of channels."
    CloseHrmpChannelDoesntExist = 13, "The channel to be closed does not exist."
    RecipientBoundExceeded = (
        99,
        "All channels to the recipient, full, would not fit into one of its blocks.",
    )
    MoreMessagesThanPermitted = 100, "A block sends more messages than the configuration allows."
    NotSorted = 101, "The recipients do not ascend."
    NoSuchChannel = 102, "There is no channel to the recipient."
    MaxMessageSizeExceeded = 103, "A message is longer than its channel allows."
    TotalSizeExceeded = 104, "The channel has no room for so many bytes."
    CapacityExceeded = 105, "The channel has no room for another message."
    AdvancementRule = 106, "The watermark goes back."
    AheadRelayParent = 107, "The watermark is ahead of the relay parent."
    LandsOnBlockWithNoMessages = 108, "Nothing was sent in the relay block of the watermark."


def channel_weight(capacity: int, total_size: int) -> int:
    """Return the maximum bytes of a full channel in its recipient's block.

    This is the total size, with 12 bytes for each message: sender, relay block and length.
    """
    return 12 * capacity + total_size


class Hrmp(Hooks):
    """The pallet of horizontal messages.

    `bounds.horizontal` is in bytes of the recipient's block.
    """

    pallet = PALLET

    def __init__(self, bounds: chains.MessageBounds | None = None) -> None:
        self.bounds = chains.MessageBounds() if bounds is None else bounds

    @dispatchable(7, weight=Weight(100_000_000, 10_000))
    def force_open_hrmp_channel(  # noqa: PLR0917  # the call's own arguments
        self,
        storage: Storage,
        origin: Origin,
        sender: ParaId,
        recipient: ParaId,
        max_capacity: U32,
        max_message_size: U32,
    ) -> None:
        """Root opens a channel at once.

        Errors as `open_channel`. Emits `HrmpChannelForceOpened`.
        """
        ensure_root(origin)
        self.open_channel(storage, sender, recipient, max_capacity, max_message_size)
        deposit(storage, HrmpChannelForceOpened(sender, recipient, max_capacity, max_message_size))

    @dispatchable(2, weight=Weight(100_000_000, 10_000))
    def hrmp_close_channel(
        self, storage: Storage, origin: Origin, which: Annotated[HrmpChannelId, channel_id]
    ) -> None:
        """Root closes a channel at once.

        Raises `CloseHrmpChannelDoesntExist`. Emits `ChannelClosed`.
        """
        ensure_root(origin)
        ensure(CHANNELS.contains(storage, which), Error.CloseHrmpChannelDoesntExist)
        self._close(storage, which)
        deposit(storage, ChannelClosed(which.sender, which))

    def open_channel(
        self,
        storage: Storage,
        sender: ParaId,
        recipient: ParaId,
        max_capacity: int,
        max_message_size: int,
    ) -> None:
        """Open a channel within the configured limits, `hrmp_channel_max_total_size` bytes large.

        Raises the `OpenHrmpChannel…` errors, `AcceptHrmpChannelLimitExceeded`, and
        `RecipientBoundExceeded` if all channels to the recipient, when full, would not fit into one
        of its blocks.
        """
        config = active_config(storage)
        ensure(sender != recipient, Error.OpenHrmpChannelToSelf)
        ensure(max_capacity != 0, Error.OpenHrmpChannelZeroCapacity)
        ensure(
            max_capacity <= config.hrmp_channel_max_capacity,
            Error.OpenHrmpChannelCapacityExceedsLimit,
        )
        ensure(max_message_size != 0, Error.OpenHrmpChannelZeroMessageSize)
        ensure(
            max_message_size <= config.hrmp_channel_max_message_size,
            Error.OpenHrmpChannelMessageSizeExceedsLimit,
        )
        which = HrmpChannelId(sender, recipient)
        ensure(not CHANNELS.contains(storage, which), Error.OpenHrmpChannelAlreadyExists)
        ingress = INGRESS.get(storage, recipient)
        egress = EGRESS.get(storage, sender)
        ensure(
            len(egress) < config.hrmp_max_parachain_outbound_channels,
            Error.OpenHrmpChannelLimitExceeded,
        )
        ensure(
            len(ingress) < config.hrmp_max_parachain_inbound_channels,
            Error.AcceptHrmpChannelLimitExceeded,
        )
        weight = channel_weight(max_capacity, config.hrmp_channel_max_total_size)
        ensure(
            self._worst_case(storage, recipient) + weight <= self.bounds.horizontal,
            Error.RecipientBoundExceeded,
        )
        CHANNELS.insert(
            storage,
            which,
            HrmpChannel(max_capacity, config.hrmp_channel_max_total_size, max_message_size),
        )
        insort(ingress, sender)
        insort(egress, recipient)
        INGRESS.insert(storage, recipient, ingress)
        EGRESS.insert(storage, sender, egress)

    def check_outbound(
        self, storage: Storage, sender: ParaId, messages: Sequence[chains.OutboundHrmpMessage]
    ) -> list[tuple[HrmpChannelId, HrmpChannel, chains.OutboundHrmpMessage]]:
        """Check a block's `messages`, and return each with its channel.

        There must be at most one message to each recipient, with recipients ascending. Raises
        `MoreMessagesThanPermitted`, `NotSorted`, `NoSuchChannel`, `MaxMessageSizeExceeded`,
        `TotalSizeExceeded` and `CapacityExceeded`.
        """
        if len(messages) > active_config(storage).hrmp_max_message_num_per_candidate:
            raise ModuleError(Error.MoreMessagesThanPermitted)
        previous = -1
        checked = []
        for message in messages:
            ensure(message.recipient > previous, Error.NotSorted)
            previous = message.recipient
            which = HrmpChannelId(sender, message.recipient)
            state = CHANNELS.get(storage, which)
            if state is None:
                raise ModuleError(Error.NoSuchChannel)
            ensure(len(message.data) <= state.max_message_size, Error.MaxMessageSizeExceeded)
            ensure(
                state.total_size + len(message.data) <= state.max_total_size,
                Error.TotalSizeExceeded,
            )
            ensure(state.msg_count < state.max_capacity, Error.CapacityExceeded)
            checked.append((which, state, message))
        return checked

    def queue_outbound(
        self,
        storage: Storage,
        sender: ParaId,
        messages: Sequence[chains.OutboundHrmpMessage],
        now: RelayBlockNumber,
    ) -> None:
        """Append messages to their channels, sent at relay block `now`.

        Raises as `check_outbound`.
        """
        for which, state, message in self.check_outbound(storage, sender, messages):
            waiting = [*CONTENTS.get(storage, which), chains.InboundHrmpMessage(now, message.data)]
            head = chains.chain_head(state.mqc_head or chains.ZERO_HEAD, now, message.data)
            size = state.total_size + len(message.data)
            CONTENTS.insert(storage, which, waiting)
            CHANNELS.insert(
                storage,
                which,
                replace(state, msg_count=len(waiting), total_size=size, mqc_head=head),
            )
            digests = DIGESTS.get(storage, message.recipient)
            if digests and digests[-1][0] == now:
                if sender not in digests[-1][1]:
                    digests[-1][1].append(sender)
            else:
                digests.append((now, [sender]))
            DIGESTS.insert(storage, message.recipient, digests)

    def inbound(
        self, storage: Storage, recipient: ParaId
    ) -> list[tuple[ParaId, list[chains.InboundHrmpMessage]]]:
        """Return the messages that wait for a parachain, by ascending sender.

        Senders without messages are included.
        """
        senders = INGRESS.get(storage, recipient)
        return [
            (sender, CONTENTS.get(storage, HrmpChannelId(sender, recipient))) for sender in senders
        ]

    def acknowledge(
        self,
        storage: Storage,
        recipient: ParaId,
        watermark: RelayBlockNumber,
        relay_parent: RelayBlockNumber,
    ) -> None:
        """Drop messages sent up to `watermark`.

        The watermark must be the included block's relay parent, or an earlier block with messages.
        Raises `AdvancementRule` if it goes back, `AheadRelayParent`, and
        `LandsOnBlockWithNoMessages`.
        """
        last = WATERMARKS.get(storage, recipient)
        ensure(last is None or watermark >= last, Error.AdvancementRule)
        ensure(watermark <= relay_parent, Error.AheadRelayParent)
        digests = DIGESTS.get(storage, recipient)
        if watermark not in {relay_parent, last} and all(
            block != watermark for block, _ in digests
        ):
            raise ModuleError(Error.LandsOnBlockWithNoMessages)
        WATERMARKS.insert(storage, recipient, watermark)
        due = [entry for entry in digests if entry[0] <= watermark]
        if not due:
            return
        DIGESTS.insert(storage, recipient, digests[len(due) :])
        due_senders: set[ParaId] = set()
        for _, senders in due:
            due_senders.update(senders)
        for sender in sorted(due_senders):
            self._prune(storage, HrmpChannelId(sender, recipient), watermark)

    def on_offboard(self, storage: Storage, outgoing: Iterable[ParaId]) -> None:
        """Close all channels from and to parachains that left."""
        for para in outgoing:
            for sender in INGRESS.get(storage, para):
                self._close(storage, HrmpChannelId(sender, para))
            for recipient in EGRESS.get(storage, para):
                self._close(storage, HrmpChannelId(para, recipient))
            DIGESTS.remove(storage, para)
            WATERMARKS.remove(storage, para)

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if channels, indexes and counts differ, or a bound is exceeded."""
        known = dict(CHANNELS.items(storage))
        for index, outbound in ((INGRESS, False), (EGRESS, True)):
            for para, others in index.items(storage):
                ensure(
                    others == sorted(dict.fromkeys(others)),
                    StateError(f"Hrmp: an index of {para} is not sorted"),
                )
                for other in others:
                    if (
                        HrmpChannelId(para, other) if outbound else HrmpChannelId(other, para)
                    ) not in known:
                        raise StateError(f"Hrmp: {para} and {other} have no channel")
        for which, state in known.items():
            waiting = CONTENTS.get(storage, which)
            if (len(waiting), sum(len(m.data) for m in waiting)) != (
                state.msg_count,
                state.total_size,
            ):
                raise StateError(f"Hrmp: {which} miscounts what waits in it")
            if state.msg_count > state.max_capacity or state.total_size > state.max_total_size:
                raise StateError(f"Hrmp: {which} is too full")
            ensure(
                which.sender in INGRESS.get(storage, which.recipient),
                StateError(f"Hrmp: {which} is not indexed"),
            )
            if self._worst_case(storage, which.recipient) > self.bounds.horizontal:
                raise StateError(f"Hrmp: {which.recipient} could be sent more than it can take")

    def _worst_case(self, storage: Storage, recipient: ParaId) -> int:
        channels = (
            CHANNELS.get(storage, HrmpChannelId(s, recipient))
            for s in INGRESS.get(storage, recipient)
        )
        return sum(
            channel_weight(c.max_capacity, c.max_total_size) for c in channels if c is not None
        )

    def _prune(self, storage: Storage, which: HrmpChannelId, watermark: RelayBlockNumber) -> None:
        state = CHANNELS.get(storage, which)
        # The channel may have been closed since the messages were sent.
        if state is None:
            return
        waiting = CONTENTS.get(storage, which)
        remaining = [message for message in waiting if message.sent_at > watermark]
        CONTENTS.insert_or_remove(storage, which, remaining)
        CHANNELS.insert(
            storage,
            which,
            replace(
                state, msg_count=len(remaining), total_size=sum(len(m.data) for m in remaining)
            ),
        )

    def _close(self, storage: Storage, which: HrmpChannelId) -> None:
        CHANNELS.remove(storage, which)
        CONTENTS.remove(storage, which)
        for index, para, other in (
            (INGRESS, which.recipient, which.sender),
            (EGRESS, which.sender, which.recipient),
        ):
            index.insert_or_remove(
                storage, para, [entry for entry in index.get(storage, para) if entry != other]
            )
        digests = []
        for block, senders in DIGESTS.get(storage, which.recipient):
            remaining = [sender for sender in senders if sender != which.sender]
            if remaining:
                digests.append((block, remaining))
        DIGESTS.insert_or_remove(storage, which.recipient, digests)
