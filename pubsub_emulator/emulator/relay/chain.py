"""The relay chain: its newest blocks with their states, and the building of the next one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pubsub_emulator.collator.author import RelayBlock
from pubsub_emulator.emulator.fork import base
from pubsub_emulator.emulator.relay.message_outcomes import MessageExecution, executions
from pubsub_emulator.emulator.relay.pallets import RELAY
from pubsub_emulator.emulator.relay.runtime import RelayConfig, RelayRuntime
from pubsub_emulator.primitives import babe
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CURRENT_SLOT
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchError
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.framework.message_chains import NO_MESSAGES, InboundMessages
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import BLOCK_HASH, BLOCK_WEIGHT
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers, TtlData
from pubsub_emulator.runtime.parachain.block import MAX_DESCENDANTS
from pubsub_emulator.runtime.relay.host_configuration import active_config
from pubsub_emulator.runtime.relay.inclusion import BackedCandidate
from pubsub_emulator.trie import ordered_root

_ZERO: Final = RelayBlockNumber(0)
KEPT_BLOCKS: Final = 256
"""The number of newest blocks whose states are stored. A node prunes older ones in the same way."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """The content of the first block."""

    heads: dict[ParaId, bytes]
    """The encoded header of each parachain's genesis."""
    managers: dict[ParaId, AccountId]
    """The account that manages each parachain."""
    publishers: tuple[ParaId, ...] = ()
    """Parachains to register as publishers."""
    channels: tuple[tuple[ParaId, ParaId], ...] = ()
    """Channels to open, as (sender, recipient)."""
    fork: Fork | None = None
    """The block on which the first one is built, if any. A part of its state is overwritten."""


@dataclass(frozen=True, slots=True)
class KeptBlock:
    """A relay block on which candidates can be built. Its state never changes."""

    header: Header
    state: State
    executions: tuple[MessageExecution, ...] = ()
    """The messages that were executed in the block."""
    lost_downward: int = 0
    """The number of downward messages that were lost because a queue was full."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The messages that the relay chain accepts from the next block of a parachain."""

    messages: int
    """The maximum number of upward messages."""
    size: int
    """The maximum size of all upward messages in bytes."""
    longest: int
    """The maximum size of one upward message in bytes."""
    horizontal: int
    """The maximum number of horizontal messages."""


@dataclass(frozen=True, slots=True)
class RelaySnapshot:
    """A relay chain at one block."""

    blocks: tuple[KeptBlock, ...]
    downward: tuple[tuple[ParaId, bytes], ...]
    """Downward messages for the next block."""
    skipped_slots: int = 0
    """The number of slots that passed without a block."""


@dataclass(slots=True)
class RelayChain:
    """The relay chain."""

    runtime: RelayRuntime
    blocks: list[KeptBlock]
    """The stored blocks, the newest last."""
    downward: list[tuple[ParaId, bytes]] = field(default_factory=list)
    """Downward messages for the next block."""
    skipped_slots: int = 0
    """The number of slots since the first block that passed without a block."""
    first: RelayBlockNumber = _ZERO
    """The height of the chain's first block."""

    @staticmethod
    def start(config: RelayConfig, genesis: Genesis) -> "RelayChain":
        """Return a relay chain at its first block.

        The first block has height 0, or follows that of the fork. Raises `IntegrityError` or
        `DispatchError`.
        """
        runtime = RelayRuntime(config)
        fork = genesis.fork
        storage = Storage(State() if fork is None else base(fork, RELAY))
        if fork is not None:
            runtime.take_over(storage, fork.source)
        runtime.genesis(
            storage, genesis.heads, genesis.managers, genesis.publishers, genesis.channels
        )
        root = storage.commit()
        parent = Hash(bytes(32))
        number = 0
        if fork is not None:
            parent = fork.block
            number = fork.number + 1
        digest = (babe.pre_digest(Slot(config.genesis_slot + number)),)
        header = Header(parent, number, root, ordered_root(()), digest)
        return RelayChain(
            runtime, [KeptBlock(header, storage.state)], first=RelayBlockNumber(number)
        )

    @property
    def number(self) -> RelayBlockNumber:
        """Return the newest block's height."""
        return RelayBlockNumber(self.blocks[-1].header.number)

    @property
    def header(self) -> Header:
        """Return the newest block's header."""
        return self.blocks[-1].header

    @property
    def state(self) -> State:
        """Return the newest block's state. It must only be read."""
        return self.blocks[-1].state

    def slot(self, number: int) -> Slot:
        """Return the slot of the next block, whose height is `number`."""
        return Slot(self.runtime.config.genesis_slot + number + self.skipped_slots)

    @property
    def executions(self) -> tuple[MessageExecution, ...]:
        """Return the messages that were executed in the newest block, in order."""
        return self.blocks[-1].executions

    @property
    def lost_downward(self) -> int:
        """Return the number of downward messages lost in the newest block."""
        return self.blocks[-1].lost_downward

    def storage(self) -> Storage:
        """Return a storage for reading the newest state with the pallets. Writes are discarded."""
        return Storage(self.state)

    def weight(self) -> Weight:
        """Return the weight that calls and hooks of the newest block used."""
        return BLOCK_WEIGHT.get(self.storage()).total()

    def lags(self, events: Iterable[Event]) -> tuple[int, ...]:
        """Return the number of blocks since the expiry of each entry that was removed as expired.

        `events` are those of the newest block.
        """
        before = self.block(self.number - 1)
        if before is None:
            return ()
        storage = Storage(before.state)
        lifetimes = [
            TtlData.get(storage, event.publisher, event.key)
            for event in events
            if isinstance(event, KeyExpired)
        ]
        now = self.clock()
        return tuple(now - sum(lifetime) for lifetime in lifetimes if lifetime is not None)

    def clock(self) -> RelayBlockNumber:
        """Return the time at the newest block, by which lifetimes are counted.

        It is the block's number, unless the rules use another time.
        """
        return self.runtime.config.pubsub.rules.time(self.number, self.storage().get(CURRENT_SLOT))

    def deposits(self) -> int:
        """Return the sum of publishers' deposits in plancks."""
        return sum(info.deposit for _, info in RegisteredPublishers.items(self.storage()))

    def block(self, number: int) -> KeptBlock | None:
        """Return a stored block by its height, or `None`."""
        index = number - self.blocks[0].header.number
        return self.blocks[index] if 0 <= index < len(self.blocks) else None

    def access(self, number: int) -> RelayBlock | None:
        """Return a block's state for a collator, or `None` if it is not stored.

        If the chain seals its headers, the collator also receives the headers from this block on.
        """
        kept = self.block(number)
        if kept is None:
            return None
        return RelayBlock(RelayBlockNumber(number), kept.state, self._sealed_headers(number))

    def _sealed_headers(self, number: int) -> tuple[Header, ...]:
        """Return the headers of a stored block and of up to `MAX_DESCENDANTS - 1` descendants.

        The tuple is empty if the block has no seal, such as the chain's first one.
        """
        if not self.runtime.config.validators or number == self.first:
            return ()
        index = number - self.blocks[0].header.number
        return tuple(kept.header for kept in self.blocks[index : index + MAX_DESCENDANTS])

    def inbound(self, number: int, para: ParaId) -> InboundMessages:
        """Return the messages that wait for `para` at relay block `number`, all with their content.

        The parachain may have processed some of them already.
        """
        kept = self.block(number)
        if kept is None:
            return NO_MESSAGES
        storage = Storage(kept.state)
        downward = tuple(self.runtime.dmp.contents(storage, para))
        inbound = self.runtime.hrmp.inbound(storage, para)
        return InboundMessages(
            downward, tuple((sender, tuple(messages)) for sender, messages in inbound if messages)
        )

    def capacity(self, para: ParaId) -> Capacity:
        """Return the messages that the newest state accepts from a parachain's next block."""
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
        """Queue a message to a parachain for the next block.

        The message is lost if the parachain's queue is full by then.
        """
        self.downward.append((para, message))

    def build(
        self,
        candidates: Sequence[BackedCandidate],
        extrinsics: Iterable[Extrinsic],
        signed: Iterable[bytes] = (),
    ) -> Block:
        """Build the next block with these parachain blocks, calls and signed extrinsics."""
        parent = self.blocks[-1]
        number = parent.header.number + 1
        storage = Storage(parent.state.fork())
        # Signatures include the hash of block 0. On a fork, the first block takes its place.
        if self.first == parent.header.number > 0:
            BLOCK_HASH.insert(storage, 0, parent.header.hash())
        lost = 0
        for para, message in self.downward:
            try:
                self.runtime.dmp.queue_downward_message(
                    storage, para, message, RelayBlockNumber(number)
                )
            except DispatchError:
                lost += 1
        slot = self.slot(number)
        author = self.runtime.babe.author(Storage(parent.state), number, slot)
        block = self.runtime.executive.build_block(
            storage,
            number,
            parent.header.hash(),
            digest=(babe.pre_digest(slot, author.index),),
            inherents=(Call(self.runtime.inclusion.pallet.name, "enter", (list(candidates),)),),
            extrinsics=extrinsics,
            signed=signed,
        )
        if author.key is not None:
            block = replace(block, header=self.runtime.validators.seal(block.header, author.key))
        self.downward.clear()
        self.blocks.append(KeptBlock(block.header, storage.state, executions(storage), lost))
        del self.blocks[:-KEPT_BLOCKS]
        return block

    def fork(self) -> "RelayChain":
        """Return an independent copy with forks of the states."""
        blocks = [replace(kept, state=kept.state.fork()) for kept in self.blocks]
        return replace(self, blocks=blocks, downward=list(self.downward))

    def snapshot(self) -> RelaySnapshot:
        """Return a snapshot of the newest block for `restore`."""
        return RelaySnapshot(tuple(self.blocks), tuple(self.downward), self.skipped_slots)

    def restore(self, snapshot: RelaySnapshot) -> None:
        """Return to a snapshot."""
        self.blocks = list(snapshot.blocks)
        self.downward = list(snapshot.downward)
        self.skipped_slots = snapshot.skipped_slots
