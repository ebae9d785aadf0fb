"""The relay chain: its blocks, and what parachains can read of the newest ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pubsub_emulator.collator.author import RelayBlock
from pubsub_emulator.emulator.fork import Fork, base
from pubsub_emulator.emulator.relay.message_outcomes import MessageExecution, executions
from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.emulator.relay.runtime import RelayConfig, RelayRuntime
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CURRENT_SLOT
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchError
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.message_chains import NO_MESSAGES, InboundMessages
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import BLOCK_HASH, BLOCK_WEIGHT
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers, TtlData
from pubsub_emulator.runtime.relay.babe import babe_pre_digest
from pubsub_emulator.runtime.relay.host_configuration import active_config
from pubsub_emulator.runtime.relay.inclusion import BackedCandidate
from pubsub_emulator.trie import ordered_root

_ZERO: Final = RelayBlockNumber(0)
KEPT_BLOCKS: Final = 256
"""The number of newest states that can be proven; older ones are pruned, as by a node."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """The content of the first block: parachains with heads and managers, publishers, (sender, recipient) pairs."""

    heads: dict[ParaId, bytes]
    managers: dict[ParaId, AccountId]
    publishers: tuple[ParaId, ...] = ()
    channels: tuple[tuple[ParaId, ParaId], ...] = ()
    fork: Fork | None = None
    """The block on which the first one is built, its state being written over."""


@dataclass(frozen=True, slots=True)
class KeptBlock:
    """A relay block on which candidates can be built, and the messages that ran in it. Its state never changes."""

    header: Header
    state: State
    executions: tuple[MessageExecution, ...] = ()
    lost_downward: int = 0
    """Downward messages lost to a full queue."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limits of a parachain block: upward messages, their bytes in all and each, and horizontal messages."""

    messages: int
    size: int
    longest: int
    horizontal: int


@dataclass(frozen=True, slots=True)
class RelaySnapshot:
    """A relay chain at one block."""

    blocks: tuple[KeptBlock, ...]
    downward: tuple[tuple[ParaId, bytes], ...]
    skipped_slots: int = 0


@dataclass(slots=True)
class RelayChain:
    """The blocks so far, newest last, and downward messages for the next one."""

    runtime: RelayRuntime
    blocks: list[KeptBlock]
    downward: list[tuple[ParaId, bytes]] = field(default_factory=list)
    skipped_slots: int = 0
    """Slots since block 0 without a block."""
    first: RelayBlockNumber = _ZERO
    """The number of the chain's first block."""

    @staticmethod
    def start(config: RelayConfig, genesis: Genesis) -> "RelayChain":
        """A relay chain at its first block, 0 or that after the fork's. Raises `IntegrityError`, `DispatchError`."""
        runtime = RelayRuntime(config)
        fork = genesis.fork
        storage = Storage(State() if fork is None else base(fork, RELAY))
        if fork is not None:
            runtime.take_over(storage, fork.source)
        runtime.genesis(storage, genesis.heads, genesis.managers, genesis.publishers, genesis.channels)
        root = storage.commit()
        parent, number = (Hash(bytes(32)), 0) if fork is None else (fork.block, fork.number + 1)
        digest = (babe_pre_digest(Slot(config.genesis_slot + number)),)
        header = Header(parent, number, root, ordered_root(()), digest)
        return RelayChain(runtime, [KeptBlock(header, storage.state)], first=RelayBlockNumber(number))

    @property
    def number(self) -> RelayBlockNumber:
        """The newest block's height."""
        return RelayBlockNumber(self.blocks[-1].header.number)

    @property
    def header(self) -> Header:
        """The newest block's header."""
        return self.blocks[-1].header

    @property
    def state(self) -> State:
        """The newest block's state, for reading."""
        return self.blocks[-1].state

    def slot(self, number: int) -> Slot:
        """The slot of the block with that number, if it is the next one."""
        return Slot(self.runtime.config.genesis_slot + number + self.skipped_slots)

    @property
    def executions(self) -> tuple[MessageExecution, ...]:
        """The messages that ran in the newest block, in order."""
        return self.blocks[-1].executions

    @property
    def lost_downward(self) -> int:
        """Downward messages lost in the newest block."""
        return self.blocks[-1].lost_downward

    def storage(self) -> Storage:
        """A storage over the newest state for reading with the pallets; writes to it are discarded."""
        return Storage(self.state)

    def weight(self) -> Weight:
        """The weight that calls and hooks of the newest block used."""
        return BLOCK_WEIGHT.get(self.storage()).total()

    def lags(self, events: Iterable[Event]) -> tuple[int, ...]:
        """Blocks since the expiry of each entry that `events`, those of the newest block, report as expired."""
        before = self.block(self.number - 1)
        if before is None:
            return ()
        storage = Storage(before.state)
        lifetimes = [TtlData.get(storage, each.publisher, each.key) for each in events if isinstance(each, KeyExpired)]
        now = self.clock()
        return tuple(now - sum(lifetime) for lifetime in lifetimes if lifetime is not None)

    def clock(self) -> RelayBlockNumber:
        """The time in which lifetimes are counted, at the newest block."""
        return self.runtime.config.pubsub.rules.time(self.number, self.storage().get(CURRENT_SLOT))

    def deposits(self) -> int:
        """Plancks held for publishers."""
        return sum(info.deposit for _, info in RegisteredPublishers.items(self.storage()))

    def block(self, number: int) -> KeptBlock | None:
        """A block that is still kept, or `None`."""
        at = number - self.blocks[0].header.number
        return self.blocks[at] if 0 <= at < len(self.blocks) else None

    def access(self, number: int) -> RelayBlock | None:
        """A block's state for a collator, or `None` if the block is not kept."""
        kept = self.block(number)
        return None if kept is None else RelayBlock(RelayBlockNumber(number), kept.state)

    def inbound(self, number: int, para: ParaId, since: RelayBlockNumber | None) -> InboundMessages:
        """The messages for a block of `para` on relay block `number`: those sent after its last relay parent."""
        kept = self.block(number)
        if kept is None:
            return NO_MESSAGES
        storage = Storage(kept.state)
        last = -1 if since is None else since
        downward = tuple(m for m in self.runtime.dmp.contents(storage, para) if m.sent_at > last)
        inbound = self.runtime.hrmp.inbound(storage, para)
        channels = ((sender, tuple(m for m in waiting if m.sent_at > last)) for sender, waiting in inbound)
        return InboundMessages(downward, tuple((sender, messages) for sender, messages in channels if messages))

    def capacity(self, para: ParaId) -> Capacity:
        """The limits of the newest state for the next block of a parachain."""
        storage = self.storage()
        count, size = self.runtime.message_queue.remaining(storage, para)
        host = active_config(storage)
        return Capacity(
            min(host.max_upward_message_num_per_candidate, count),
            size,
            self.runtime.message_queue.longest_message(storage),
            host.hrmp_max_message_num_per_candidate,
        )

    def send_downward(self, para: ParaId, message: bytes) -> None:
        """Send a message to a parachain in the next block, unless its queue is full."""
        self.downward.append((para, message))

    def build(
        self, candidates: Sequence[BackedCandidate], extrinsics: Iterable[Extrinsic], signed: Iterable[bytes] = ()
    ) -> Block:
        """Build the next block with these parachain blocks, calls and signed extrinsics, and keep its state."""
        parent = self.blocks[-1]
        number = parent.header.number + 1
        storage = Storage(parent.state.fork())
        if self.first == parent.header.number > 0:  # extrinsics are signed for the chain that begins there
            BLOCK_HASH.insert(storage, 0, parent.header.hash())
        lost = 0
        for para, message in self.downward:
            try:
                self.runtime.dmp.queue_downward_message(storage, para, message, RelayBlockNumber(number))
            except DispatchError:
                lost += 1
        block = self.runtime.executive.build_block(
            storage,
            number,
            parent.header.hash(),
            digest=(babe_pre_digest(self.slot(number)),),
            inherents=(Call(self.runtime.inclusion.pallet.name, "enter", (list(candidates),)),),
            extrinsics=extrinsics,
            signed=signed,
        )
        self.downward.clear()
        self.blocks.append(KeptBlock(block.header, storage.state, executions(storage), lost))
        del self.blocks[:-KEPT_BLOCKS]
        return block

    def fork(self) -> "RelayChain":
        """An independent copy with forks of the states."""
        blocks = [replace(kept, state=kept.state.fork()) for kept in self.blocks]
        return replace(self, blocks=blocks, downward=list(self.downward))

    def snapshot(self) -> RelaySnapshot:
        """A snapshot of the newest block, for `restore`."""
        return RelaySnapshot(tuple(self.blocks), tuple(self.downward), self.skipped_slots)

    def restore(self, snapshot: RelaySnapshot) -> None:
        """Go back to a snapshot."""
        self.blocks = list(snapshot.blocks)
        self.downward = list(snapshot.downward)
        self.skipped_slots = snapshot.skipped_slots
