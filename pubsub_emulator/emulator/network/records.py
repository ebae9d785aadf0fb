"""The records that a network sends to its observers.

They are in order and without gaps, and sufficient to verify everything again.
"""

from dataclasses import dataclass

from pubsub_emulator.emulator.relay.message_outcomes import MessageExecution
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome


@dataclass(frozen=True, slots=True)
class RelayRecord:
    """A relay block. Blocks from before the observer was added have no events."""

    number: RelayBlockNumber
    hash: Hash
    storage_root: Hash
    """The root of the block's state, against which parachains verify proofs."""
    slot: Slot
    """The newest parachain slot that candidates judged in the block may claim."""
    events: tuple[Event, ...] = ()
    """The events of the block."""
    executions: tuple[MessageExecution, ...] = ()
    """The messages that were executed in the block."""
    lost_downward: int = 0
    """The number of downward messages that were lost because a queue was full."""
    parent: Hash | None = None
    """The hash of the parent, or `None` for blocks from before the observer was added."""
    time: int = 0
    """The time in milliseconds since 1970, by timestamp or slot."""
    weight: Weight = WEIGHT_ZERO
    """The weight that calls and hooks used."""
    lags: tuple[int, ...] = ()
    """For each expired entry that the block removed, the number of blocks since its expiry."""
    clock: int = 0
    """The time of insertion of entries that are published in the block. It is the block's number,
    unless the rules use another time.
    """


@dataclass(frozen=True, slots=True)
class AuthorityRecord:
    """The collators of a chain in the order of their turns."""

    chain: ParaId
    from_block: ParaBlockNumber
    """The first parachain block that they build."""
    keys: tuple[bytes, ...]
    """The public keys of the collators."""


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """The state of a chain at the beginning of a segment of its history."""

    chain: ParaId
    segment: int
    """The number of the segment that begins with this state."""
    header: Header
    """The header of the block whose state it is."""
    state: State
    """The state after the block."""


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """The subscriptions of a chain."""

    chain: ParaId
    from_block: ParaBlockNumber
    """The first parachain block that uses them."""
    items: tuple[tuple[ParaId, tuple[bytes, ...]], ...]
    """Publishers in ascending order, each with its keys in ascending order."""


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A judged candidate."""

    chain: ParaId
    segment: int
    """The number of the segment of the history."""
    candidate: Candidate
    included_at: RelayBlockNumber
    """The relay block for which it was judged."""
    slot_now: Slot
    """The newest slot that it may claim."""
    relay_storage_root: Hash | None
    """The storage root of its relay parent, or `None` if it names an unknown relay block."""
    unpruned: tuple[tuple[ParaId, int], ...]
    """The size of the author's proof before pruning, by publisher. It cannot be verified later."""
    outcome: BlockOutcome | None
    """The result of its execution, or `None` if it is invalid."""
    refusal: InvalidBlock | None
    """The reason why it is invalid, or `None`."""
    strategy: str | None = None
    """The strategy with which its author cheated, if any. Audits are measured by it."""
    due: tuple[Verdict, ...] = ()
    """All verdicts that the candidate must receive if it is a cheat, in order. They are computed
    from the author's knowledge and not by judging the candidate.
    """
    idle: str | None = None
    """The strategy that its author tried if the result was the honest block."""

    def __repr__(self) -> str:
        verdict = "valid" if self.refusal is None else self.refusal.verdict.value
        size = len(self.candidate.inherent.proof)
        return (
            f"<BlockRecord: chain {self.chain}, block {self.candidate.header.number}, {verdict},"
            f" {counted(size, 'node')}>"
        )


class Observer:
    """The base class of observers, whose methods do nothing.

    A network calls them in order after each step. Observers must only read.
    """

    def relay_block(self, record: RelayRecord) -> None:
        """Handle a new relay block."""

    def authorities(self, record: AuthorityRecord) -> None:
        """Handle new collators of a chain."""

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """Handle new subscriptions of a chain."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Handle the state at the start of a segment, or at the end of the last one."""

    def candidate(self, record: BlockRecord) -> None:
        """Handle a judged candidate."""
