"""A block of a chain, and a moment: the state of the whole network after one step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.emulator.network import Snapshot
from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.relay.message_outcomes import MessageExecution
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.storage import State

Chain = ParaId | None
"""The id of a parachain, or `None` for the relay chain."""

RELAY: Final = None
"""The relay chain, as a value of `Chain`."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredBlock:
    """A block of one chain. It is immutable."""

    chain: Chain
    header: Header
    body: tuple[bytes, ...]
    """The encoded extrinsics, each with its length prefix."""
    state: State
    """The state after the block."""
    relay_number: RelayBlockNumber
    """The height of the relay block that included it, or of the block itself on the relay chain.
    Block 0 of every chain belongs to relay block 0.
    """

    @property
    def hash(self) -> Hash:
        """Return the hash of the block's header."""
        return self.header.hash()

    @property
    def number(self) -> int:
        """Return the block's height."""
        return self.header.number

    def __repr__(self) -> str:
        return (
            f"<Block: {'relay' if self.chain is None else self.chain} {self.number},"
            f" 0x{self.hash.hex()[:8]}>"
        )


@dataclass(frozen=True, slots=True, eq=False)
class AppliedActs:
    """The actions that were applied between two relay blocks, as an element of a linked list.

    Each moment adds at most one element to the list of the moment before, so that a long history
    takes little memory.
    """

    after: int
    """The height of the relay block before the actions."""
    actions: tuple[Action, ...]
    """The actions in the order in which they were applied."""
    before: "AppliedActs | None"
    """The rest of the list: actions before earlier relay blocks, the most recent first."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The network after one step: a relay block, the candidates judged for it, and all heads."""

    relay: StoredBlock
    blocks: tuple[StoredBlock, ...]
    """Parachain blocks that the relay block included, in order of inclusion."""
    records: tuple[BlockRecord, ...]
    """All candidates of the step, including rejected ones."""
    heads: Mapping[Chain, StoredBlock]
    """The newest block of every chain."""
    saved: Snapshot | None = None
    """The network right after the step, or `None` if the node cannot return to this moment."""
    executions: tuple[MessageExecution, ...] = ()
    """Upward messages that were executed in the relay block, in order."""
    idle: Mapping[ParaId, str] = field(default_factory=dict)
    """Parachains that could not build a block in their turn, with the reason."""
    acts: AppliedActs | None = None
    """All actions before this moment, the most recent first."""

    @property
    def number(self) -> RelayBlockNumber:
        """Return the height of the relay block."""
        return RelayBlockNumber(self.relay.number)
