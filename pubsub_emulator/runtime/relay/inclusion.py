"""The inclusion of a parachain block: all of its commitments take effect, or none do.

check     the para includes blocks, and is not about to leave if it sends upward
receive   the messages that the block has received are dropped from their queues
send      upward messages go to the message queue, horizontal ones into their channels
head      the head is noted
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Protocol

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework import dispatch, system
from pubsub_emulator.runtime.framework.codecs import U32, para_id, relay_number
from pubsub_emulator.runtime.framework.dispatch import (
    DispatchError,
    Failure,
    ModuleError,
    dispatchable,
    ensure,
)
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError
from pubsub_emulator.runtime.framework.message_chains import (
    MessageBounds,
    OutboundHrmpMessage,
    message_allowance,
)
from pubsub_emulator.runtime.framework.origin import Origin, ensure_unsigned
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.host_configuration import active_config

PALLET: Final = Pallet("ParaInclusion", 53, "polkadot_runtime_parachains::inclusion")
_CANDIDATE_WEIGHT: Final = Weight(1_000_000_000, 100_000)


@dataclass(frozen=True, slots=True)
class CandidateCommitments:
    """The commitments of a parachain block to the relay chain, without new validation code."""

    upward_messages: tuple[bytes, ...]
    horizontal_messages: tuple[OutboundHrmpMessage, ...]
    head_data: bytes
    processed_downward_messages: int
    hrmp_watermark: RelayBlockNumber


@dataclass(frozen=True, slots=True)
class BackedCandidate:
    """A valid parachain block that is offered to the relay chain."""

    para: ParaId
    relay_parent: RelayBlockNumber
    commitments: CandidateCommitments


_outbound: Final[Codec[OutboundHrmpMessage]] = struct(
    OutboundHrmpMessage, para_id, scale.bytes_, rust="polkadot_core_primitives::OutboundHrmpMessage"
)
_upward: Final = scale.vec(scale.bytes_).map("UpwardMessages", tuple, list)
_horizontal: Final = scale.vec(_outbound).map("HorizontalMessages", tuple, list)
commitments_codec: Final[Codec[CandidateCommitments]] = struct(
    CandidateCommitments, _upward, _horizontal, scale.bytes_, scale.u32, relay_number
)
backed_candidate: Final[Codec[BackedCandidate]] = struct(
    BackedCandidate, para_id, relay_number, commitments_codec
)
Backed = Annotated[BackedCandidate, backed_candidate]


@event(PALLET, 3)
class UpwardMessagesReceived(Event):
    """Upward messages of an included block went to the queue."""

    from_: ParaId
    count: U32


@event(PALLET, 100)
class CandidateRefused(Event):
    """A block was not included; nothing of it took effect, and its author keeps it.

    Rust has no such event.
    """

    para: ParaId
    error: Failure


@pallet_errors(PALLET)
class Error(PalletError):
    """Why a block was refused before any of its messages was looked at."""

    UnscheduledCandidate = 0, "The para includes no blocks now."
    IsOffboarding = 100, "The para is about to leave and cannot send upward."


class Paras(Protocol):
    """The pallet of lifecycles and heads."""

    def is_parachain(self, storage: Storage, para: ParaId) -> bool:
        """Return whether a para includes blocks now."""

    def is_offboarding(self, storage: Storage, para: ParaId) -> bool:
        """Return whether a parachain is about to leave."""

    def note_new_head(
        self, storage: Storage, para: ParaId, head: bytes, relay_parent: RelayBlockNumber
    ) -> None:
        """Set the head of an included block."""


class UpwardQueue(Protocol):
    """The queue of upward messages."""

    def enqueue(self, storage: Storage, para: ParaId, messages: Sequence[bytes]) -> None:
        """Append all of a block's messages, or none."""


class DownwardQueue(Protocol):
    """The queue of downward messages."""

    def acknowledge(
        self, storage: Storage, para: ParaId, processed: int, relay_parent: RelayBlockNumber
    ) -> None:
        """Drop the messages that an included block has received."""


class Channels(Protocol):
    """The pallet of channels between parachains."""

    def acknowledge(
        self,
        storage: Storage,
        recipient: ParaId,
        watermark: RelayBlockNumber,
        relay_parent: RelayBlockNumber,
    ) -> None:
        """Drop the messages that an included block has received."""

    def queue_outbound(
        self,
        storage: Storage,
        sender: ParaId,
        messages: Sequence[OutboundHrmpMessage],
        now: RelayBlockNumber,
    ) -> None:
        """Put a block's messages into their channels."""


class ParaInclusion(Hooks):
    """The pallet that enacts the commitments of parachain blocks."""

    pallet = PALLET

    def __init__(
        self,
        paras: Paras,
        queue: UpwardQueue,
        downward: DownwardQueue,
        channels: Channels,
        bounds: MessageBounds,
    ) -> None:
        self._paras = paras
        self._queue = queue
        self._downward = downward
        self._channels = channels
        self._bounds = bounds

    @dispatchable(0, weight=lambda _pallet, candidates: _CANDIDATE_WEIGHT * len(candidates))
    def enter(self, storage: Storage, origin: Origin, candidates: Sequence[Backed]) -> None:
        """The inherent that brings parachain blocks into a relay block, each whole or not at all.

        Emits what `include` emits, and `CandidateRefused` for each that raised.
        """
        ensure_unsigned(origin)
        now = RelayBlockNumber(system.NUMBER.get(storage))
        for block in candidates:
            try:
                self.include(
                    storage, block.para, block.commitments, relay_parent=block.relay_parent, now=now
                )
            except DispatchError as error:
                deposit(storage, CandidateRefused(block.para, error))

    def include(
        self,
        storage: Storage,
        para: ParaId,
        commitments: CandidateCommitments,
        *,
        relay_parent: RelayBlockNumber,
        now: RelayBlockNumber,
    ) -> None:
        """Enact a valid parachain block, built on `relay_parent`, in relay block `now`.

        Raises `UnscheduledCandidate`, `IsOffboarding`, and the errors of `Paras.note_new_head`,
        `MessageQueue.enqueue`, `Dmp.acknowledge`, `Hrmp.acknowledge` and `Hrmp.queue_outbound`.
        Then the state is as before and the sender still has its messages (PS-23). Emits
        `UpwardMessagesReceived`, `NewHeadNoted`.
        """

        def enact() -> None:
            ensure(self._paras.is_parachain(storage, para), Error.UnscheduledCandidate)
            if commitments.upward_messages and self._paras.is_offboarding(storage, para):
                # Its queue is dropped when it leaves, and new messages would be lost.
                raise ModuleError(Error.IsOffboarding)
            self._downward.acknowledge(
                storage, para, commitments.processed_downward_messages, relay_parent
            )
            self._channels.acknowledge(storage, para, commitments.hrmp_watermark, relay_parent)
            if commitments.upward_messages:
                self._queue.enqueue(storage, para, commitments.upward_messages)
                deposit(storage, UpwardMessagesReceived(para, len(commitments.upward_messages)))
            self._channels.queue_outbound(storage, para, commitments.horizontal_messages, now)
            self._paras.note_new_head(storage, para, commitments.head_data, relay_parent)

        dispatch.with_storage_layer(storage, enact)

    def check_bounds(self, storage: Storage) -> None:
        """Raise `IntegrityError` if more messages may wait than fit into a block (PS-50)."""
        allowed = message_allowance(active_config(storage).max_pov_size)
        if self._bounds.total() > allowed:
            raise IntegrityError(
                f"{self._bounds.total()} bytes may wait for a parachain, a block holds {allowed}"
            )
