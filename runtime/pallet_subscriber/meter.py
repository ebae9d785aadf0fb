"""What a walk may still read, what it has read, and the three ways in which it can end early.

The stop rule (PS-51) depends on what was charged so far and never on what is about to be read: that is what makes the
collator, who has every node, and the chain, which has those it was given, stop at the same point.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, RuntimeSpec

NodeSource = Mapping[Hash, bytes]
"""Nodes and detached values by their hash: a received proof, or all of the relay state that matters."""


@dataclass(frozen=True, slots=True)
class MissingNode:
    """A node that was needed, and not there, while the stop rule had not fired; `depth` in nibbles of `key`."""

    node_hash: Hash
    key: bytes
    depth: int


class DisableReason(Enum):
    """Why a publisher is no longer read (PS-68)."""

    TRIE_DEPTH_EXCEEDED = "TrieDepthExceeded"
    UNDECODABLE = "Undecodable"


class Stopped(Exception):
    """The stop rule fired. Inside of a walk only."""


class Cut(Exception):
    """A needed node is not in the source. Inside of a walk only."""

    def __init__(self, missing: MissingNode) -> None:
        self.missing = missing


class Disabled(Exception):
    """The publisher at hand cannot be read. Inside of a walk only."""

    def __init__(self, reason: DisableReason) -> None:
        self.reason = reason


class Meter:
    """The budget of one walk, in bytes, and the nodes it took from the proof."""

    __slots__ = ("_last_start", "source", "taken", "used")

    def __init__(self, spec: RuntimeSpec, source: NodeSource, budget: int) -> None:
        self.source = source
        self.taken: dict[Hash, bytes] = {}
        self.used = 0
        self._last_start = budget - spec.max_item_cost - ROW_COST

    def has_room(self, more: int) -> bool:
        """Whether the stop rule lets anything be read once `more` bytes are charged."""
        return self.used + more <= self._last_start

    def check(self) -> None:
        """The stop rule, before anything that was not taken in this block is read. Raises `Stopped`."""
        if self.used > self._last_start:
            raise Stopped

    def take(self, node_hash: Hash, key: bytes, depth: int) -> bytes:
        """A node or value from the proof that was not taken yet, free of charge. Raises `Cut` when it is not there."""
        node = self.source.get(node_hash)
        if node is None:
            raise Cut(MissingNode(node_hash, key, depth))
        self.taken[node_hash] = node
        return node

    def read(self, node_hash: Hash, key: bytes, depth: int) -> bytes:
        """As `take`, after the stop rule and charged its cost. Raises `Stopped` and `Cut`."""
        if self.used > self._last_start:  # `check`: a call here costs a tenth of a walk
            raise Stopped
        node = self.source.get(node_hash)
        if node is None:
            raise Cut(MissingNode(node_hash, key, depth))
        self.taken[node_hash] = node
        length = len(node)
        self.used += length + 2 if 0x40 <= length < 0x4000 else node_cost(length)
        return node
