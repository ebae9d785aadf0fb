"""A network: relay chain, parachains and collators, stepped relay block by relay block.

What one step does, in order:

    1. every parachain whose turn it is builds candidates on a relay parent that exists already (PS-31)
    2. each candidate is judged; one that is refused changes nothing, and the next collator may try (PS-53, PS-79)
    3. the relay chain builds its next block: sessions, queues, accepted candidates, their messages, calls, expiry
    4. observers are told: the relay block, then every candidate with its verdict

    >>> network = Network.of(publishers=[1000], subscribers={2000: {1000: [key]}})
    >>> network.publish(1000, key, b"value")
    >>> network.step(3)[-1].deliveries(2000)
"""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from collator.author import CannotAuthor, RelayBlock, author
from collator.cheats import STRATEGIES, Situation, attempt, equivocates, expected
from emulator.parachain import Pace, Parachain, make_collators
from emulator.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
    SubscriptionRecord,
)
from emulator.relay_chain import Genesis, RelayChain, RelaySnapshot
from emulator.relay_runtime import RelayConfig
from emulator.requests import ensure_blocks, ensure_key, ensure_keys, ensure_message, ensure_ttl, ensure_value
from emulator.seeded import Stream, secret
from primitives.errors import PubsubError
from primitives.types import AccountId, ParaBlockNumber, ParaId, PubsubKey, RelayBlockNumber, Slot
from runtime.dispatch import Call, CallInfo, DispatchError
from runtime.events import Event
from runtime.executive import Block, Extrinsic
from runtime.inclusion import BackedCandidate, CandidateCommitments, CandidateRefused
from runtime.messages import OutboundHrmpMessage
from runtime.origin import Origin, Root, Signed
from runtime.pallet_subscriber.apply import Delivery
from runtime.pallet_subscriber.config import RuntimeSpec, merge_subscriptions
from runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from runtime.parachain_system.block import Candidate, HorizontalMessages, InboundDownwardMessage, InvalidBlock, Verdict
from runtime.parachain_system.execute import BlockOutcome
from runtime.parachain_system.governance import set_code, transact
from runtime.parachain_system.validate import RelayContext, validate_block
from runtime.storage import Storage

ATTEMPTS: Final = 2
"""Candidates that may be tried for one block: after a refused one, the next collator's."""


REMEMBERED: Final = 8
"""Older relay blocks that a cheating collator keeps at hand."""

EQUIVOCATION: Final = "equivocation"


class UnknownCall(PubsubError):
    """A call that no pallet of the relay chain has, or with another number of arguments."""


class UnknownParachain(PubsubError):
    """A parachain id that the network does not have."""


@dataclass(frozen=True, slots=True)
class ParachainConfig:
    """One parachain: its runtime, its collators as (strategies, rate in millionths), and when it builds blocks."""

    spec: RuntimeSpec
    collators: tuple[tuple[tuple[str, ...], int], ...] = (((), 0), ((), 0))
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """A whole network at genesis. `publishers` are registered, `channels` open from the start (sender, recipient)."""

    parachains: tuple[ParachainConfig, ...]
    relay: RelayConfig = field(default_factory=RelayConfig)
    publishers: tuple[ParaId, ...] = ()
    channels: tuple[tuple[ParaId, ParaId], ...] = ()
    seed: bytes = b"network"
    segment_length: int = 100
    """Relay blocks from one checkpoint of all chains to the next."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step did: the relay block, and every candidate that was judged for it, in order."""

    number: RelayBlockNumber
    block: Block
    records: tuple[BlockRecord, ...]
    parachains: tuple[ParaId, ...]
    """Every parachain of the network, whether it had a turn or not."""

    def __repr__(self) -> str:
        refused = f", {len(self.refused)} refused" if self.refused else ""
        return f"<Step: relay block {self.number}, {len(self.records)} candidates{refused}>"

    @property
    def events(self) -> tuple[Event, ...]:
        """The relay block's events."""
        return tuple(record.event for record in self.block.events)

    def deliveries(self, para: int) -> tuple[Delivery, ...]:
        """What was delivered to a parachain in this step. Raises `UnknownParachain`."""
        if para not in self.parachains:
            raise UnknownParachain(_no_parachain(para, self.parachains))
        outcomes = (record.outcome for record in self.records if record.chain == para)
        return tuple(delivery for outcome in outcomes if outcome is not None for delivery in outcome.deliveries)

    @property
    def refused(self) -> tuple[BlockRecord, ...]:
        """The candidates that were not valid."""
        return tuple(record for record in self.records if record.refusal is not None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A network at one moment; costs a few references."""

    relay: RelaySnapshot
    parachains: tuple[Parachain, ...]
    extrinsics: tuple[Extrinsic, ...]


@dataclass(frozen=True, slots=True)
class _Tried:
    """A candidate as it came from its author, before it is judged."""

    candidate: Candidate
    unpruned: tuple[tuple[ParaId, int], ...]
    strategy: str | None = None
    due: tuple[Verdict, ...] = ()
    twin: Candidate | None = None
    """Another block of this author for the same slot."""


@dataclass(slots=True)
class _Round:
    """What one relay block's candidates came to."""

    number: RelayBlockNumber
    records: list[BlockRecord] = field(default_factory=list)
    backed: list[BackedCandidate] = field(default_factory=list)
    changes: list[SubscriptionRecord] = field(default_factory=list)

    def drop(self, para: ParaId) -> None:
        """The relay chain did not include this parachain's blocks: they have not happened, nor what came on top."""
        kept = []
        happened = True
        for record in self.records:
            if record.chain == para:
                happened = happened and record.outcome is None
            if record.chain != para or happened:
                kept.append(record)
        self.records = kept
        self.changes = [each for each in self.changes if each.chain != para]


class Network:
    """Relay chain and parachains; everything that happens follows from configuration, seed and calls (PS-90)."""

    def __init__(self, config: NetworkConfig) -> None:
        """The network at genesis. Raises `PubsubError` for a configuration that cannot work."""
        self.config = config
        self.parachains = {
            each.spec.para_id: Parachain.start(
                each.spec, make_collators(config.seed, each.spec.para_id, each.collators), each.pace
            )
            for each in sorted(config.parachains, key=lambda each: each.spec.para_id)
        }
        self.relay = RelayChain.start(
            config.relay,
            Genesis(
                {para: chain.header.encode() for para, chain in self.parachains.items()},
                {para: self.manager(para) for para in self.parachains},
                config.publishers,
                config.channels,
            ),
        )
        self._observers: list[Observer] = []
        self._extrinsics: list[Extrinsic] = []
        most = max(
            (len(chain.collators) + ATTEMPTS * chain.pace.blocks for chain in self.parachains.values()), default=1
        )
        self._slots = most
        """Parachain slots per relay block: enough for every collator to be first and every block to be tried again."""

    @staticmethod
    def of(
        publishers: Iterable[int],
        subscribers: Mapping[int, Mapping[int, Iterable[PubsubKey]]],
        seed: str = "network",
    ) -> "Network":
        """A small network with every default: who publishes, and who subscribes to which keys of whom."""
        subscribed = {
            ParaId(para): merge_subscriptions([(ParaId(publisher), list(keys)) for publisher, keys in wanted.items()])
            for para, wanted in subscribers.items()
        }
        relay = RelayConfig()
        publishing = tuple(ParaId(para) for para in publishers)
        chains = [ParachainConfig(RuntimeSpec(para, items)) for para, items in subscribed.items()]
        chains += [
            ParachainConfig(RuntimeSpec(para, {}), (((), 0),), Pace(on_demand=True))
            for para in publishing
            if para not in subscribed
        ]
        registered = tuple(para for para in publishing if not relay.pubsub.is_system(para))
        return Network(NetworkConfig(tuple(chains), relay, registered, seed=seed.encode()))

    def __repr__(self) -> str:
        return f"<Network at relay block {self.number}, parachains {', '.join(map(str, self.parachains))}>"

    # What a user of the network does

    @property
    def number(self) -> RelayBlockNumber:
        """The newest relay block's height."""
        return self.relay.number

    def parachain(self, para: int) -> Parachain:
        """A parachain by id. Raises `UnknownParachain`."""
        found = self.parachains.get(ParaId(para))
        if found is None:
            raise UnknownParachain(_no_parachain(para, self.parachains))
        return found

    def publish(self, para: int, key: PubsubKey, value: bytes, ttl: int = 0) -> None:
        """Have a parachain publish a key: sent with its next block, executed one relay block later.

        Raises `UnknownParachain`, `BadRequest`, and as `Parachain.publish`.
        """
        chain = self.parachain(para)
        ensure_key(key)
        ensure_value(value)
        ensure_ttl(ttl)
        chain.publish(key, value, ttl)

    def delete(self, para: int, keys: Iterable[PubsubKey]) -> None:
        """Have keys of a publisher deleted in the next relay block: by root for a system para, else by its manager.

        Raises `UnknownParachain`, `BadRequest`.
        """
        publisher = self.parachain(para).para
        listed = ensure_keys(keys)
        if self.config.relay.pubsub.is_system(publisher):
            self.call(Root(), "Broadcaster", "force_delete_keys", publisher, listed)
        else:
            self.call(Signed(self.manager(para)), "Broadcaster", "delete_keys", publisher, listed)

    def send(self, sender: int, recipient: int, data: bytes) -> None:
        """Have a parachain send a message to another one, over a channel between them.

        Raises `UnknownParachain`, `BadRequest`.
        """
        ensure_message(data)
        self.parachain(sender).horizontal.append(OutboundHrmpMessage(self.parachain(recipient).para, data))

    def send_downward(self, para: int, message: bytes) -> None:
        """Have the relay chain send a parachain a message in its next block. Raises as `send`."""
        ensure_message(message)
        self.relay.send_downward(self.parachain(para).para, message)

    def upgrade(self, spec: RuntimeSpec) -> None:
        """Have governance change a parachain's runtime, its subscriptions for instance, by a downward message."""
        self.send_downward(spec.para_id, transact(set_code(spec)))

    def call(self, origin: Origin, pallet: str, name: str, *args: object) -> None:
        """Put a call into the next relay block.

        Raises `ScaleError` or `UnknownCall` for what no extrinsic can say: once queued, it would keep every later block
        from being built.
        """
        executive = self.relay.runtime.executive
        info = getattr(getattr(executive.pallets.get(pallet), name, None), "call_info", None)
        if not isinstance(info, CallInfo):
            raise UnknownCall(f"the relay chain has no call {pallet}::{name}")
        if len(info.codecs) != len(args):
            takes = ", ".join(codec.name for codec in info.codecs) or "no arguments"
            raise UnknownCall(f"{pallet}::{name} takes {len(info.codecs)} ({takes}), not {len(args)}")
        extrinsic = Extrinsic(origin, Call(pallet, name, args))
        executive.encode_extrinsic(extrinsic)
        self._extrinsics.append(extrinsic)

    def manager(self, para: int) -> AccountId:
        """The account that owns a parachain on the relay chain."""
        return AccountId(secret(self.config.seed, f"manager/{para}"))

    def step(self, blocks: int = 1) -> list[Step]:
        """Go on by some relay blocks. Raises `BadRequest` for less than none."""
        ensure_blocks(blocks)
        return [self._step() for _ in range(blocks)]

    def situation(self, para: int) -> Situation:
        """What the author of a parachain's next block would have before it now: the honest block, and means to cheat.

        Raises `UnknownParachain`, `CannotAuthor`.
        """
        chain = self.parachain(para)
        relay, last = self._relay_parent(chain)
        if relay is None:
            raise CannotAuthor(
                f"relay block {last}, the least that parachain {para} can build on, is not kept any more"
            )
        downward, horizontal = self.relay.inbound(relay.number, chain.para, last)
        slot = Slot(self._first_slot(chain, self.number + 1))
        return self._situation(chain, relay, downward, horizontal, slot)

    # Observers, snapshots

    def observe(self, observer: Observer, *, past: bool = True) -> None:
        """Tell an observer everything from now on, after where each chain stands now.

        Without the `past` it is told of none of the relay blocks that are still kept.
        """
        self._observers.append(observer)
        for kept in self.relay.blocks if past else ():
            number = RelayBlockNumber(kept.header.number)
            observer.relay_block(
                RelayRecord(number, kept.header.hash(), kept.header.state_root, self._slot_now(number))
            )
        for para, chain in self.parachains.items():
            following = ParaBlockNumber(chain.header.number + 1)
            keys = tuple(collator.key for collator in chain.collators)
            observer.authorities(AuthorityRecord(para, following, keys))
            observer.subscriptions(_subscriptions(chain))
        self._checkpoint(observer, self._segment(self.number + 1))

    def finish(self) -> None:
        """Tell observers where each chain stands at the end: the last segment's other end."""
        for observer in self._observers:
            self._checkpoint(observer, self._segment(self.number) + 1)

    def snapshot(self) -> Snapshot:
        """This moment, to come back to or to branch from."""
        chains = tuple(chain.copy() for chain in self.parachains.values())
        return Snapshot(self.relay.snapshot(), chains, tuple(self._extrinsics))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a moment. Observers are not told: give a network that is restored none, or new ones."""
        self.relay.restore(snapshot.relay)
        self.parachains = {chain.para: chain.copy() for chain in snapshot.parachains}
        self._extrinsics = list(snapshot.extrinsics)

    def fork(self) -> "Network":
        """A network that goes on from here by itself, with no observers; costs some references for each kept block.

        Whatever is done to either, through its methods or to its states, the other never sees.
        """
        fork = copy(self)
        fork.relay = self.relay.fork()
        fork.parachains = {para: chain.fork() for para, chain in self.parachains.items()}
        fork._observers = []  # noqa: SLF001  # of its own kind
        fork._extrinsics = list(self._extrinsics)  # noqa: SLF001  # of its own kind
        return fork

    # One step

    def _step(self) -> Step:
        number = RelayBlockNumber(self.number + 1)
        if number % self.config.segment_length == 1 % self.config.segment_length and number > 1:
            for observer in self._observers:
                self._checkpoint(observer, self._segment(number))
        before = {para: chain.copy() for para, chain in self.parachains.items() if chain.has_turn(number)}
        now = _Round(number)
        for para in before:
            self._turn(self.parachains[para], now)
        block = self.relay.build(now.backed, self._extrinsics)
        self._extrinsics = list(block.left_out)
        for para in _refused(block):
            self.parachains[para] = before[para]
            now.drop(para)
        self._tell(now, block)
        return Step(number, block, tuple(now.records), tuple(self.parachains))

    def _turn(self, chain: Parachain, now: _Round) -> None:
        """One parachain's turn: so many blocks as its pace says, all on one relay parent."""
        if not self.relay.runtime.paras.is_parachain(self.relay.storage(), chain.para):
            chain.abandon()
            return
        slot = self._first_slot(chain, now.number)
        for at in range(chain.pace.blocks):
            for _attempt in range(ATTEMPTS):
                record = self._try(chain, now, Slot(slot), first=at == 0)
                slot += 1
                if record is None:
                    return
                if record.outcome is not None:
                    break

    def _try(self, chain: Parachain, now: _Round, slot: Slot, *, first: bool) -> BlockRecord | None:
        """Have the slot's author build a candidate, judge it, and go on from it if it is valid.

        None when there is no relay parent to build on.
        """
        relay, last = self._relay_parent(chain)
        if relay is None:
            return None
        tried = self._author(chain, relay, last, slot)
        record = self._judge(chain, tried, now)
        if record.outcome is not None:
            self._enact(chain, record.candidate, record.outcome, now, first=first)
        if tried.twin is not None:
            self._judge(chain, self._second(chain, relay, slot, tried.twin, tried.unpruned), now)
        return record

    def _judge(self, chain: Parachain, tried: _Tried, now: _Round) -> BlockRecord:
        """Judge a candidate on the parachain's newest block, and record it."""
        claimed = self.relay.block(tried.candidate.inherent.relay_parent_number)
        root = None if claimed is None else claimed.header.state_root
        slot_now = self._slot_now(now.number)
        context = RelayContext(tried.candidate.inherent.relay_parent_number, root, slot_now)
        outcome, refusal = None, None
        try:
            outcome = validate_block(chain.header, chain.state, tried.candidate, context)
        except InvalidBlock as invalid:
            refusal = invalid
        record = BlockRecord(
            chain.para,
            self._segment(now.number),
            tried.candidate,
            now.number,
            slot_now,
            root,
            tried.unpruned,
            outcome,
            refusal,
            tried.strategy,
            tried.due,
        )
        now.records.append(record)
        return record

    def _author(self, chain: Parachain, relay: RelayBlock, last: RelayBlockNumber | None, slot: Slot) -> _Tried:
        """What the slot's author makes of its turn: the honest block, or another one when it cheats."""
        collator = chain.author_of(slot)
        downward, horizontal = self.relay.inbound(relay.number, chain.para, last)
        stream = Stream(self.config.seed, f"cheat/{chain.para}/{slot}")
        if collator.strategies and stream.chance(collator.rate):
            situation = self._situation(chain, relay, downward, horizontal, slot)
            attempted = attempt(situation, (STRATEGIES[stream.choice(collator.strategies)],), stream.take(32))
            if attempted is not None:
                name = "+".join(attempted.strategies)
                keys = tuple(each.key for each in chain.collators)
                two = not attempted.expected and equivocates(attempted.candidate, situation.honest, keys) is not None
                twin = situation.honest if two else None
                # a strategy that ends in a valid block is no cheat (PS-52)
                cheat = name if attempted.expected else None
                return _Tried(attempted.candidate, situation.proof.unpruned, cheat, attempted.expected, twin)
            return _Tried(situation.honest, situation.proof.unpruned)
        authored = author(chain.header, chain.state, relay, downward, horizontal, slot, collator.seed)
        return _Tried(authored.candidate, authored.unpruned)

    def _second(
        self, chain: Parachain, relay: RelayBlock, slot: Slot, twin: Candidate, unpruned: tuple[tuple[ParaId, int], ...]
    ) -> _Tried:
        """An author's other block for the same slot, now that the first one was judged."""
        last = LAST_RELAY_PARENT.get(Storage(chain.state))
        situation = self._situation(chain, relay, *self.relay.inbound(relay.number, chain.para, last), slot)
        return _Tried(twin, unpruned, EQUIVOCATION, expected(situation, twin))

    def _relay_parent(self, chain: Parachain) -> tuple[RelayBlock | None, RelayBlockNumber | None]:
        """The relay parent of a parachain's next block, none when it is not kept, and the last block's."""
        last = LAST_RELAY_PARENT.get(Storage(chain.state))
        return self.relay.access(max(self.number - chain.pace.lag, 0, last or 0)), last

    def _situation(
        self,
        chain: Parachain,
        relay: RelayBlock,
        downward: tuple[InboundDownwardMessage, ...],
        horizontal: HorizontalMessages,
        slot: Slot,
    ) -> Situation:
        """What a collator has before it that could cheat."""
        return Situation(
            chain.header,
            chain.state,
            relay,
            downward,
            horizontal,
            slot,
            self._slot_now(self.number + 1),
            tuple(each.seed for each in chain.collators),
            secret(self.config.seed, "stranger"),
            self._other_relay_blocks(relay),
            _foreign(relay),
        )

    def _other_relay_blocks(self, relay: RelayBlock) -> tuple[RelayBlock, ...]:
        """Older relay blocks that a cheat could build on, newest first."""
        numbers = range(relay.number - 1, max(relay.number - 1 - REMEMBERED, -1), -1)
        return tuple(found for number in numbers if (found := self.relay.access(number)) is not None)

    def _enact(
        self, chain: Parachain, candidate: Candidate, outcome: BlockOutcome, now: _Round, *, first: bool
    ) -> None:
        """Let the parachain go on from a valid block; its first one at a turn takes along what waits to be sent."""
        inherent = candidate.inherent
        chain.header, chain.state = candidate.header, outcome.state
        if chain.note_spec():
            now.changes.append(_subscriptions(chain))
        upward, horizontal = self._outbound(chain) if first else ((), ())
        commitments = CandidateCommitments(
            upward, horizontal, candidate.header.encode(), len(inherent.downward), inherent.relay_parent_number
        )
        now.backed.append(BackedCandidate(chain.para, inherent.relay_parent_number, commitments))

    def _outbound(self, chain: Parachain) -> tuple[tuple[bytes, ...], tuple[OutboundHrmpMessage, ...]]:
        """Take what the relay chain has room for off the parachain's queues; what it has not waits (PS-23)."""
        storage, runtime = self.relay.storage(), self.relay.runtime
        if runtime.paras.is_offboarding(storage, chain.para):
            return (), ()
        chain.pack()
        most, count, size = self.relay.capacity(chain.para)
        taken = 0
        for message in chain.upward[: min(most, count)]:
            if len(message) > size:
                break
            size -= len(message)
            taken += 1
        upward = tuple(chain.upward[:taken])
        del chain.upward[:taken]
        horizontal: dict[ParaId, OutboundHrmpMessage] = {}
        most_horizontal = runtime.config.host.hrmp_max_message_num_per_candidate
        for waiting in list(chain.horizontal):
            if waiting.recipient in horizontal or len(horizontal) == most_horizontal:
                continue
            try:
                runtime.hrmp.check_outbound(storage, chain.para, (waiting,))
            except DispatchError:
                continue
            horizontal[waiting.recipient] = waiting
            chain.horizontal.remove(waiting)
        return upward, tuple(horizontal[recipient] for recipient in sorted(horizontal))

    # Slots, segments, records

    def _slot_now(self, number: int) -> Slot:
        """The newest parachain slot that a candidate judged in relay block `number` may claim."""
        return Slot((number + 1) * self._slots - 1)

    def _first_slot(self, chain: Parachain, number: int) -> int:
        """The slot in which relay block `number` finds collator `number mod n` at its turn."""
        start = number * self._slots
        return start + (number - start) % len(chain.collators)

    def _segment(self, number: int) -> int:
        return (number - 1) // self.config.segment_length if number else 0

    def _checkpoint(self, observer: Observer, segment: int) -> None:
        for para, chain in self.parachains.items():
            observer.checkpoint(CheckpointRecord(para, segment, chain.header, chain.state))

    def _tell(self, now: _Round, block: Block) -> None:
        header = block.header
        events = tuple(record.event for record in block.events)
        slot = self._slot_now(now.number)
        relay = RelayRecord(now.number, header.hash(), header.state_root, slot, events, self.relay.executions)
        for observer in self._observers:
            observer.relay_block(relay)
            for record in now.records:
                observer.candidate(record)
            for change in now.changes:
                observer.subscriptions(change)


def _subscriptions(chain: Parachain) -> SubscriptionRecord:
    items = tuple((para, tuple(keys)) for para, keys in chain.spec().subscriptions.items())
    return SubscriptionRecord(chain.para, ParaBlockNumber(chain.header.number + 1), items)


def _foreign(relay: RelayBlock) -> RelayBlock:
    """A relay state that is no block's: the relay parent's with one more entry."""
    state = relay.state.fork()
    state.apply({b"foreign": b"state"}, {})
    return RelayBlock(relay.number, state)


def _refused(block: Block) -> list[ParaId]:
    """Parachains whose valid blocks the relay chain did not include."""
    return [record.event.para for record in block.events if isinstance(record.event, CandidateRefused)]


def _no_parachain(para: int, known: Iterable[ParaId]) -> str:
    return f"there is no parachain {para}; there are {', '.join(map(str, known)) or 'none'}"
