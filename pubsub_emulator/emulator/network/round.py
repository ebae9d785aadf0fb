"""The round of candidates for one relay block.

turn    Repeat the following for each block of a parachain's pace. After an invalid block, the next
        collator tries.
author  Build the honest block, or let a cheating collator build another one.
judge   Run `validate_block` on the parachain's newest block. An invalid block changes nothing
        (PS-53, PS-79). An honest block is not executed again if `confirmed` accepts the outcome of
        its author. With `unjudged`, that outcome is taken without a check.
enact   Make a valid block the parachain's newest one, and hand its commitments to the relay chain.
"""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.collator.author import (
    Authored,
    CannotAuthor,
    RelayBlock,
    author,
    ensure_advance,
    ensure_descendants,
    ensure_room,
)
from pubsub_emulator.collator.cheats import STRATEGIES, Situation, attempt, equivocates, expected
from pubsub_emulator.collator.confirm import confirmed
from pubsub_emulator.emulator.network.parachain import Parachain, encoded
from pubsub_emulator.emulator.network.records import BlockRecord, SubscriptionRecord
from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.primitives.draws import Draws, secret
from pubsub_emulator.primitives.types import ParaBlockNumber, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.runtime.accounts.publisher import Sent
from pubsub_emulator.runtime.framework.abridged import abridged, new_messages
from pubsub_emulator.runtime.framework.dispatch import DispatchError
from pubsub_emulator.runtime.framework.message_chains import InboundMessages, OutboundHrmpMessage
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.storage import queue_progress
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.runtime.relay.inclusion import BackedCandidate, CandidateCommitments
from pubsub_emulator.xcm import Publish

REMEMBERED: Final = 8
"""The number of older relay blocks that a cheating collator knows."""
EQUIVOCATION: Final = "equivocation"
"""The name of the strategy of a second block for the same slot."""
ATTEMPTS: Final = 2
"""The maximum number of candidates for one block. After an invalid one, the next collator tries."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The slots of parachain blocks and the segments of histories, by relay block."""

    slots: int
    """The number of parachain slots per relay block, sufficient for all collators and attempts."""
    segment_length: int
    """The number of relay blocks between two checkpoints."""

    def newest_slot(self, number: int) -> Slot:
        """Return the newest slot that a candidate judged in relay block `number` may claim."""
        return Slot((number + 1) * self.slots - 1)

    def first_slot(self, number: int, collators: int) -> Slot:
        """Return the first slot of candidates for relay block `number`.

        It belongs to collator `number mod collators`.
        """
        start = number * self.slots
        return Slot(start + (number - start) % collators)

    def segment(self, number: int) -> int:
        """Return the segment of relay block `number`.

        Genesis and the first block are both in the first segment.
        """
        return (number - 1) // self.segment_length if number else 0

    def begins_segment(self, number: int) -> bool:
        """Return whether relay block `number` is the first of a segment other than the first."""
        return number > 1 and number % self.segment_length == 1 % self.segment_length


@value_type
class _Unjudged:
    """A candidate that has not been judged yet."""

    candidate: Candidate
    unpruned: tuple[tuple[ParaId, int], ...]
    """The size of the author's full proof, by publisher."""
    strategy: str | None = None
    """The strategy with which its author cheated, if any."""
    due: tuple[Verdict, ...] = ()
    """The verdicts that the candidate must receive if it is a cheat."""
    twin: Candidate | None = None
    """A second block of the same author for the same slot, to be judged after this one."""
    idle: str | None = None
    """The strategy that its author tried, if it led to the honest block."""
    authored: Authored | None = None
    """The block of an honest author, with the outcome of its execution by the author."""


class Round:
    """The candidates for one relay block.

    records  all judged candidates, in order
    backed   the valid ones, in the form in which the relay chain includes them
    idle     the reasons why parachains could not build in their turn
    changes  new subscriptions of parachains, valid from their new block on
    """

    def __init__(
        self, relay: RelayChain, schedule: Schedule, seed: bytes, *, unjudged: bool
    ) -> None:
        """Begin the round for the block after the relay chain's newest one."""
        self.number = RelayBlockNumber(relay.number + 1)
        self.records: list[BlockRecord] = []
        self.backed: list[BackedCandidate] = []
        self.changes: list[SubscriptionRecord] = []
        self.idle: dict[ParaId, str] = {}
        self._relay = relay
        self._schedule = schedule
        self._seed = seed
        self._unjudged = unjudged

    def turn(self, chain: Parachain) -> None:
        """Let a parachain build the blocks of its turn, all of them on the same relay parent.

        If it cannot build, the turn ends, and `idle` has the reason.
        """
        # A parachain that has left the relay chain builds no blocks.
        if not self._relay.runtime.paras.is_parachain(self._relay.storage(), chain.para):
            chain.abandon()
            return
        slot = self._schedule.first_slot(self.number, len(chain.collators))
        for index in range(chain.pace.blocks):
            for _attempt in range(ATTEMPTS):
                try:
                    record = self._try(chain, slot, first=index == 0)
                except CannotAuthor as reason:
                    self.idle[chain.para] = str(reason)
                    return
                slot = Slot(slot + 1)
                if record.outcome is not None:
                    break

    def drop(self, para: ParaId) -> None:
        """Undo a parachain's valid blocks of this round, which the relay chain did not include.

        Candidates after the first of them are dropped as well, since they were built on it.
        """
        records = list(enumerate(self.records))
        valid = (
            index
            for index, record in records
            if record.chain == para and record.outcome is not None
        )
        first = next(valid, len(records))
        self.records = [
            record for index, record in records if record.chain != para or index < first
        ]
        self.changes = [change for change in self.changes if change.chain != para]

    def situation(self, chain: Parachain) -> Situation:
        """Return what the author of a parachain's first block of this round knows.

        Raises `CannotAuthor`.
        """
        relay = self._relay_parent(chain)
        messages = self._inbound(chain, relay)
        return self._situation(
            chain, relay, messages, self._schedule.first_slot(self.number, len(chain.collators))
        )

    def _try(self, chain: Parachain, slot: Slot, *, first: bool) -> BlockRecord:
        """Let the author of a slot build a candidate, judge it, and enact it if it is valid.

        Raises `CannotAuthor`.
        """
        relay = self._relay_parent(chain)
        unjudged = self._author(chain, relay, slot)
        record = self._judge(chain, unjudged)
        if record.outcome is not None:
            self._enact(chain, record.candidate, record.outcome, first=first)
        if unjudged.twin is not None:
            # The second block for the same slot is judged on the first one, which was just enacted.
            messages = self._inbound(chain, relay)
            situation = self._situation(chain, relay, messages, slot)
            due = expected(situation, unjudged.twin)
            twin = _Unjudged(unjudged.twin, unjudged.unpruned, EQUIVOCATION, due=due)
            self._judge(chain, twin)
        return record

    def _judge(self, chain: Parachain, unjudged: _Unjudged) -> BlockRecord:
        """Judge a candidate and record the result."""
        parent_number = unjudged.candidate.inherent.relay_parent_number
        claimed = self._relay.block(parent_number)
        root = None if claimed is None else claimed.header.state_root
        slot_now = self._schedule.newest_slot(self.number)
        context = RelayContext(parent_number, root, slot_now)
        outcome = self._own_outcome(chain, unjudged, context)
        refusal = None
        if outcome is None:
            outcome, refusal = judge_block(chain.head, unjudged.candidate, context)
        record = BlockRecord(
            chain=chain.para,
            segment=self._schedule.segment(self.number),
            candidate=unjudged.candidate,
            included_at=self.number,
            slot_now=slot_now,
            relay_storage_root=root,
            unpruned=unjudged.unpruned,
            outcome=outcome,
            refusal=refusal,
            strategy=unjudged.strategy,
            due=unjudged.due,
            idle=unjudged.idle,
        )
        self.records.append(record)
        return record

    def _own_outcome(
        self, chain: Parachain, unjudged: _Unjudged, context: RelayContext
    ) -> BlockOutcome | None:
        """Return the outcome of an honest author's own execution, or `None`.

        With an outcome, the block need not be executed again.
        """
        if unjudged.authored is None:
            return None
        if self._unjudged:
            return unjudged.authored.outcome
        return confirmed(chain.head, unjudged.candidate, context, unjudged.authored)

    def _author(self, chain: Parachain, relay: RelayBlock, slot: Slot) -> _Unjudged:
        """Return the block of the slot's author: the honest one, or another one if it cheats."""
        collator = chain.author_of(slot)
        messages = self._inbound(chain, relay)
        stream = Draws(self._seed, f"cheat/{chain.para}/{slot}")
        if collator.strategies and stream.chance(collator.rate):
            situation = self._situation(chain, relay, messages, slot)
            strategy = STRATEGIES[stream.choice(collator.strategies)]
            attempted = attempt(situation, (strategy,), stream.take(32))
            if attempted is None:
                return _Unjudged(situation.honest, situation.proof.unpruned)
            name = "+".join(attempted.strategies)
            is_cheat = bool(attempted.expected)
            keys = tuple(other.key for other in chain.collators)
            # A strategy that leads to a valid block is not a cheat (PS-52). If it is another block
            # than the honest one, the author can still sign both for the slot.
            is_twin = (
                not is_cheat
                and equivocates(attempted.candidate, situation.honest, keys) is not None
            )
            return _Unjudged(
                attempted.candidate,
                situation.proof.unpruned,
                strategy=name if is_cheat else None,
                due=attempted.expected,
                twin=situation.honest if is_twin else None,
                idle=name if attempted.candidate == situation.honest else None,
            )
        authored = author(
            chain.head,
            relay,
            messages,
            slot,
            collator.seed,
            extrinsics=chain.offered,
        )
        return _Unjudged(authored.candidate, authored.unpruned, authored=authored)

    def _relay_parent(self, chain: Parachain) -> RelayBlock:
        """Return the relay parent of a parachain's next block.

        It is older than the newest relay block by the sum of the lag and the runtime's relay parent
        offset. The offset ensures that it has as many descendants (UP-12). Raises `CannotAuthor` if
        the relay block is no longer stored, or does not have the descendants yet.
        """
        last = LAST_RELAY_PARENT.get(Storage(chain.state))
        spec = chain.spec()
        behind = chain.pace.lag + spec.relay_parent_offset
        wanted = max(self._relay.number - behind, self._relay.first, last or 0)
        relay = self._relay.access(wanted)
        if relay is None:
            raise CannotAuthor(
                f"parachain {chain.para} would build on relay block {wanted}, which is no longer"
                " kept"
            )
        ensure_descendants(spec, relay)
        return relay

    def _inbound(self, chain: Parachain, relay: RelayBlock) -> InboundMessages:
        """Return the messages for the next block. Those beyond the block's share are hashes only.

        Raises `CannotAuthor` if the next message does not fit into any block.
        """
        spec = chain.spec()
        shares = spec.shares(chain.head.rules.named(spec.rules))
        messages = abridged(self._waiting(chain, relay), shares)
        ensure_room(spec, messages, shares)
        return messages

    def _situation(
        self, chain: Parachain, relay: RelayBlock, messages: InboundMessages, slot: Slot
    ) -> Situation:
        """Return what a collator that may cheat knows.

        This includes older relay blocks, the newest first, and a state that does not belong to any
        block. Raises `CannotAuthor` if a block cannot have these messages.
        """
        numbers = range(relay.number - 1, max(relay.number - 1 - REMEMBERED, -1), -1)
        older = (self._relay.access(number) for number in numbers)
        foreign = relay.state.fork()
        foreign.apply({b"foreign": b"state"}, {})
        situation = Situation(
            chain.head,
            relay,
            messages,
            slot,
            self._schedule.newest_slot(self.number),
            tuple(collator.seed for collator in chain.collators),
            secret(self._seed, "stranger"),
            tuple(block for block in older if block is not None),
            RelayBlock(relay.number, foreign),
            extrinsics=chain.offered,
            waiting=self._waiting(chain, relay),
        )
        ensure_advance(messages, situation.shares, situation.proof.statics)
        return situation

    def _waiting(self, chain: Parachain, relay: RelayBlock) -> InboundMessages:
        """Return the messages that the parachain has not processed at a relay block, in full."""
        storage = Storage(chain.state)
        marks = queue_progress(storage, LAST_RELAY_PARENT.get(storage)).marks
        return new_messages(self._relay.inbound(relay.number, chain.para), marks)

    def _enact(
        self, chain: Parachain, candidate: Candidate, outcome: BlockOutcome, *, first: bool
    ) -> None:
        """Make a valid block the parachain's newest one.

        The first block of a turn also sends the waiting messages.
        """
        inherent = candidate.inherent
        chain.head = chain.head.followed(candidate.header, outcome.state)
        included = frozenset(candidate.extrinsics)
        chain.offered = tuple(raw for raw in chain.offered if raw not in included)
        for sent in outcome.upward:
            if isinstance(sent, Sent):
                chain.send_upward(sent.message)
            else:
                chain.publishes.append(encoded(Publish(sent.key, sent.value, sent.ttl)))
        before = chain.known_subscriptions
        chain.known_subscriptions = chain.spec().subscriptions
        if before != chain.known_subscriptions:
            self.changes.append(subscriptions(chain))
        upward: tuple[bytes, ...] = ()
        horizontal: tuple[OutboundHrmpMessage, ...] = ()
        if first:
            upward, horizontal = self._outbound(chain)
        parent = inherent.relay_parent_number
        taken = len(inherent.messages.downward)
        commitments = CandidateCommitments(
            upward,
            horizontal,
            candidate.header.encode(),
            taken,
            outcome.hrmp_watermark,
        )
        self.backed.append(BackedCandidate(chain.para, parent, commitments))

    def _outbound(
        self, chain: Parachain
    ) -> tuple[tuple[bytes, ...], tuple[OutboundHrmpMessage, ...]]:
        """Remove and return the queued messages for which the relay chain has room.

        They are upward and horizontal messages. The others wait for the next block (PS-23).
        """
        storage = self._relay.storage()
        runtime = self._relay.runtime
        if runtime.paras.is_offboarding(storage, chain.para):
            return (), ()
        chain.pack()
        capacity = self._relay.capacity(chain.para)
        # Messages are packed for the usual limit, which the host configuration can lower.
        chain.fit(capacity.longest)
        taken = 0
        room = capacity.size
        for message in chain.upward[: capacity.messages]:
            if len(message) > min(room, capacity.longest):
                break
            room -= len(message)
            taken += 1
        upward = tuple(chain.upward[:taken])
        del chain.upward[:taken]
        horizontal: dict[ParaId, OutboundHrmpMessage] = {}
        for waiting in list(chain.horizontal):
            # A block sends at most one message to each recipient.
            if waiting.recipient in horizontal or len(horizontal) >= capacity.horizontal:
                continue
            try:
                runtime.hrmp.check_outbound(storage, chain.para, (waiting,))
            except DispatchError:
                continue
            horizontal[waiting.recipient] = waiting
            chain.horizontal.remove(waiting)
        return upward, tuple(horizontal[recipient] for recipient in sorted(horizontal))


def subscriptions(chain: Parachain) -> SubscriptionRecord:
    """Return the subscriptions of a parachain from its next block on."""
    items = tuple((para, tuple(keys)) for para, keys in chain.spec().subscriptions.items())
    return SubscriptionRecord(chain.para, ParaBlockNumber(chain.header.number + 1), items)
