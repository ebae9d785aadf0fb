"""The meter of a walk: its budget, the nodes it took, and the ways in which it can end early.

The stop rule (PS-51) depends on the charges so far and never on the node that would be read next.
So the collator, which has all nodes, and the chain, which has only the received nodes, stop at the
same point.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, RuntimeSpec
from pubsub_emulator.runtime.rules import SHIPPED, Rules

NodesByHash = Mapping[Hash, bytes]
"""Nodes and detached values by hash.

They are the nodes of a received proof, or all those of the relay state.
"""


@dataclass(frozen=True, slots=True)
class NeededNode:
    """A node that a walk needs and the source does not have."""

    node_hash: Hash
    key: bytes
    depth: int
    """The nibble of `key` at which the node starts."""


class DisableReason(Enum):
    """The reason why a publisher is no longer read (PS-68)."""

    TRIE_DEPTH_EXCEEDED = "TrieDepthExceeded"
    UNDECODABLE = "Undecodable"


class Stopped(Exception):
    """The stop rule fired. This is raised and caught within a walk."""


class Cut(Exception):
    """A needed node is not in the source. This is raised and caught within a walk."""

    def __init__(self, missing: NeededNode) -> None:
        self.missing = missing


class Disabled(Exception):
    """The current publisher cannot be read. This is raised and caught within a walk."""

    def __init__(self, reason: DisableReason) -> None:
        self.reason = reason


class Meter:
    """The budget of one walk, in bytes, and the nodes that it took from the source."""

    def __init__(
        self, spec: RuntimeSpec, source: NodesByHash, budget: int, rules: Rules = SHIPPED
    ) -> None:
        self.source = source
        self.taken: dict[Hash, bytes] = {}
        self.used = 0
        self._last_start = budget - spec.max_item_cost - ROW_COST
        if rules.reserve is not None:
            self._last_start = budget - rules.reserve(spec.max_item_cost) - ROW_COST

    def room(self) -> int:
        """Return the bytes that may be charged before the stop rule fires."""
        return max(self._last_start - self.used, 0)

    def narrow(self, room: int) -> int:
        """Let the stop rule fire after at most `room` more bytes.

        Returns the argument for `widen`.
        """
        before = self._last_start
        self._last_start = min(before, self.used + room)
        return before

    def widen(self, before: int) -> None:
        """Undo `narrow`."""
        self._last_start = before

    def has_room(self, more: int) -> bool:
        """Return whether the stop rule would allow a read after `more` bytes are charged."""
        return self.used + more <= self._last_start

    def check(self) -> None:
        """Apply the stop rule. Call this before reading anything not yet taken in this block.

        Raises `Stopped`.
        """
        if self.used > self._last_start:
            raise Stopped

    def take(self, node_hash: Hash, key: bytes, depth: int) -> bytes:
        """Take a node or value from the source, free of charge.

        Raises `Cut` if the source does not have it.
        """
        node = self.source.get(node_hash)
        if node is None:
            raise Cut(NeededNode(node_hash, key, depth))
        self.taken[node_hash] = node
        return node

    def read(self, node_hash: Hash, key: bytes, depth: int) -> bytes:
        """Apply the stop rule, then take a node or value from the source and charge its cost.

        Raises `Stopped` if the rule stops the walk, and `Cut` if the source does not have the node.
        """
        # This repeats `check`. Calling it here would take a tenth of the time of a walk.
        if self.used > self._last_start:
            raise Stopped
        node = self.source.get(node_hash)
        if node is None:
            raise Cut(NeededNode(node_hash, key, depth))
        self.taken[node_hash] = node
        cost = len(node)
        # This repeats the usual cases of `node_cost`, too.
        if cost < 0x40:
            cost += 1
        elif cost < 0x4000:
            cost += 2
        else:
            cost = node_cost(cost)
        self.used += cost
        return node
