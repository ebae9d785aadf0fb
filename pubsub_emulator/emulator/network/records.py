"""The records that a network sends to observers, who only read: ordered, gap-free, and enough to verify all again."""

from dataclasses import dataclass

from pubsub_emulator.emulator.relay.message_outcomes import MessageExecution
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome


@dataclass(frozen=True, slots=True)
class RelayRecord:
    """A relay block; candidates may claim `slot` at most. Blocks older than the observer have no events."""

    number: RelayBlockNumber
    hash: Hash
    storage_root: Hash
    slot: Slot
    events: tuple[Event, ...] = ()
    executions: tuple[MessageExecution, ...] = ()
    lost_downward: int = 0
    """Downward messages lost to a full queue."""
    parent: Hash | None = None
    """The parent block; `None` for blocks before the observer was added."""
    time: int = 0
    """Milliseconds since 1970, by timestamp or slot."""
    weight: Weight = WEIGHT_ZERO
    """What calls and hooks of the block used."""
    lags: tuple[int, ...] = ()
    """Blocks since the expiry of each entry that the block removed as expired."""
    clock: int = 0
    """The time that entries published in it are stored with: `number`, unless a rule counts otherwise."""


@dataclass(frozen=True, slots=True)
class AuthorityRecord:
    """A chain's collators in turn order, valid from a block on."""

    chain: ParaId
    from_block: ParaBlockNumber
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A chain's state after block `header.number`, with which a segment of its history starts."""

    chain: ParaId
    segment: int
    header: Header
    state: State


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A chain's subscriptions, valid from a block on: publishers ascending, each with ascending keys."""

    chain: ParaId
    from_block: ParaBlockNumber
    items: tuple[tuple[ParaId, tuple[bytes, ...]], ...]


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A judged candidate; `unpruned` is what its author's full proof cost by publisher, which is not proven later."""

    chain: ParaId
    segment: int
    candidate: Candidate
    included_at: RelayBlockNumber
    slot_now: Slot
    relay_storage_root: Hash | None
    """The root that the relay chain attests; `None` if the candidate names an unknown relay block."""
    unpruned: tuple[tuple[ParaId, int], ...]
    outcome: BlockOutcome | None
    refusal: InvalidBlock | None
    strategy: str | None = None
    """The strategy that the author used, if any: the ground truth for audits."""
    due: tuple[Verdict, ...] = ()
    """Every verdict that the cheat must meet, in order, computed from what its author knew and not by judging it."""
    idle: str | None = None
    """The strategy that the author tried and whose steps led to the honest block."""

    def __repr__(self) -> str:
        verdict = "valid" if self.refusal is None else self.refusal.verdict.value
        size = len(self.candidate.inherent.proof)
        return f"<BlockRecord: chain {self.chain}, block {self.candidate.header.number}, {verdict}, {size} nodes>"


class Observer:
    """Base of observers, which a network calls in order after each step. The methods do nothing."""

    def relay_block(self, record: RelayRecord) -> None:
        """A relay block was built."""

    def authorities(self, record: AuthorityRecord) -> None:
        """A chain has new collators."""

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """A chain's subscriptions changed."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """A segment of a chain's history starts, or the last one ends."""

    def candidate(self, record: BlockRecord) -> None:
        """A candidate was judged."""
