"""A block that a node keeps, and a moment: the whole network after one step."""

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
"""A parachain by its id, or the relay chain."""

RELAY: Final = None


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A block of one chain, never changed. `body` holds encoded extrinsics, each with its length first."""

    chain: Chain
    header: Header
    body: tuple[bytes, ...]
    state: State
    relay_number: RelayBlockNumber
    """The relay block that it is, or that included it; block 0 of every chain belongs to relay block 0."""

    @property
    def hash(self) -> Hash:
        """Its header's."""
        return self.header.hash()

    @property
    def number(self) -> int:
        """Its height."""
        return self.header.number

    def __repr__(self) -> str:
        return f"<Block: {'relay' if self.chain is None else self.chain} {self.number}, 0x{self.hash.hex()[:8]}>"


@dataclass(frozen=True, slots=True, eq=False)
class Acts:
    """The actions after relay block `after`, in order, and those before it."""

    after: int
    actions: tuple[Action, ...]
    before: "Acts | None"


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The network after one step: the relay block, what was judged for it, and the newest block of every chain."""

    relay: Block
    blocks: tuple[Block, ...]
    """Parachain blocks that the relay block included, in the order of their inclusion."""
    records: tuple[BlockRecord, ...]
    """Every candidate, the refused ones included."""
    heads: Mapping[Chain, Block]
    saved: Snapshot | None = None
    """The network as it was right after the step, where a node may come back to it."""

    executions: tuple[MessageExecution, ...] = ()
    """Upward messages that ran in the relay block, in order."""
    idle: Mapping[ParaId, str] = field(default_factory=dict)
    """Parachains that could not build in their turn, each with the reason."""
    acts: Acts | None = None
    """All that was ever asked for on the way to it, the newest first."""

    @property
    def number(self) -> RelayBlockNumber:
        """The height of the relay block."""
        return RelayBlockNumber(self.relay.number)
