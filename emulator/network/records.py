"""What a network tells its observers: one ordered, gap-free account of what happened, enough to verify it all again.

An observer is a reader only. Histories, explorers and tests are built on these records; the network knows of none.
"""

from dataclasses import dataclass

from pubsub_emulator.emulator.network.message_outcomes import MessageExecution
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.events import Event
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome


@dataclass(frozen=True, slots=True)
class RelayRecord:
    """A relay block, the trusted input of every proof; `slot` is the newest that candidates judged here may claim.

    `events` and `executions` say what became of messages and calls; a block of before the observer came has none.
    """

    number: RelayBlockNumber
    hash: Hash
    storage_root: Hash
    slot: Slot
    events: tuple[Event, ...] = ()
    executions: tuple[MessageExecution, ...] = ()
    lost_downward: int = 0
    """Downward messages that a full queue did not take."""
    parent: Hash | None = None
    """The block before it; `None` for a block of before the observer came."""
    time: int = 0
    """Milliseconds since 1970, by timestamp or slot."""


@dataclass(frozen=True, slots=True)
class AuthorityRecord:
    """A chain's collator set, in turn order, from a block of it on."""

    chain: ParaId
    from_block: ParaBlockNumber
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A chain's state before block `header.number + 1`: where a segment of its history starts."""

    chain: ParaId
    segment: int
    header: Header
    state: State


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A chain's subscriptions from a block of it on: publishers ascending, each with its keys ascending."""

    chain: ParaId
    from_block: ParaBlockNumber
    items: tuple[tuple[ParaId, tuple[bytes, ...]], ...]


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A candidate that was judged in relay block `included_at`: `outcome` when included, `refusal` when not.

    `unpruned` is what the collator's full proof weighed, by publisher: witnessed by the network, not provable later.
    """

    chain: ParaId
    segment: int
    candidate: Candidate
    included_at: RelayBlockNumber
    slot_now: Slot
    relay_storage_root: Hash | None
    """What the relay chain vouches for; none where the candidate names a block that it does not have."""
    unpruned: tuple[tuple[ParaId, int], ...]
    outcome: BlockOutcome | None
    refusal: InvalidBlock | None
    strategy: str | None = None
    """The cheat that the author followed, if the network was told to cheat: the truth that audits are measured by."""
    due: tuple[Verdict, ...] = ()
    """Every verdict that the cheat must meet, in order, worked out from what its author knew and not by judging it."""

    def __repr__(self) -> str:
        verdict = "valid" if self.refusal is None else self.refusal.verdict.value
        size = len(self.candidate.inherent.proof)
        return f"<BlockRecord: chain {self.chain}, block {self.candidate.header.number}, {verdict}, {size} nodes>"


class Observer:
    """Is told of what a network did, in order, afterwards. Each method does nothing until it is overridden."""

    def relay_block(self, record: RelayRecord) -> None:
        """A relay block was built."""

    def authorities(self, record: AuthorityRecord) -> None:
        """A chain has a new collator set."""

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """A chain's subscriptions changed."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """A segment of a chain's history starts (or, at the end, would start) here."""

    def candidate(self, record: BlockRecord) -> None:
        """A candidate was judged."""
