"""The result of `plan`, which `apply` writes and the ledger counts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.relay_state import RequestedValues
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.cache import Cache
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import StaleRows
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason, NeededNode
from pubsub_emulator.runtime.pallet_subscriber.own_state import OwnState
from pubsub_emulator.runtime.pallet_subscriber.view import Item
from pubsub_emulator.runtime.rules import SHIPPED, Rules


class RootCall(NamedTuple):
    """The reads of a root call in a downward message."""

    rows: int
    """The approximate number of rows that the call reads."""
    read: Callable[[Storage], object]
    """Makes the call's reads of the chain's state."""


class Change(NamedTuple):
    """An item whose entry differs from the one last delivered."""

    para: ParaId
    key: PubsubKey
    entry_hash: Hash
    entry: PublishedEntry | None
    """The new entry, or `None` if the key was removed."""


@dataclass(slots=True)
class PublisherPlan:
    """The result of the walk for one publisher, and its charges in bytes."""

    para: ParaId
    keys: tuple[PubsubKey, ...]
    cache: Cache
    root: Hash | None = None
    """The child root, or `None` until the top path has been read."""
    unchanged: bool = False
    disabled: DisableReason | None = None
    resolved: int = 0
    """The number of items that the walk resolved."""
    visited: dict[Hash, bytes] = field(default_factory=dict)
    """All nodes of the child trie that the walk visited, whether read or cached."""
    top_path_bytes: int = 0
    child_trie_bytes: int = 0
    """All charges below the child root."""
    value_bytes: int = 0
    row_charges: int = 0

    @property
    def child_node_bytes(self) -> int:
        """Return the charges for nodes of the child trie, without values, rows and cache."""
        return self.child_trie_bytes - self.value_bytes - self.row_charges - self.cache.charges

    @property
    def needs_no_walk(self) -> bool:
        """Return whether the walk can skip the items.

        This is so if the root was processed before, or the publisher cannot be read.
        """
        return self.unchanged or self.disabled is not None

    @property
    def complete(self) -> bool:
        """Return whether all items were resolved under this root in this block (PS-61)."""
        return self.resolved == len(self.keys) and not self.unchanged and self.disabled is None

    @property
    def has_all_nodes(self) -> bool:
        """Return whether the walk visited all nodes on the publisher's paths.

        A publisher with an empty child trie has no such nodes.
        """
        return self.complete or (not self.needs_no_walk and self.root == EMPTY_TRIE_ROOT)


@dataclass(slots=True)
class Plan:
    """The result of a walk."""

    budget: int
    taken: dict[Hash, bytes]
    """The nodes that the proof must have, in the order in which they were read."""
    statics: StaticValues = field(default_factory=StaticValues)
    static_bytes: int = 0
    requested: RequestedValues = field(default_factory=dict)
    """The values of the runtime's `extra_keys` that were read."""
    requested_bytes: int = 0
    """The cost of the nodes that only the requested keys need."""
    map_charges: int = 0
    used: int = 0
    changed_key_sets: tuple[ParaId, ...] = ()
    publishers: dict[ParaId, PublisherPlan] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    cursor: Item | None = None
    """The item at which the stop rule fired, or `None`."""
    missing: NeededNode | None = None
    """The missing node that ended the walk, or `None`."""
    stale: StaleRows = field(default_factory=StaleRows)
    calls: int | None = None
    """The number of root calls for which the block has room, or `None` if `calls` was `None`."""
    own_state: OwnState | None = None
    rules: Rules = SHIPPED
    """The rules of the walk, by which its result is also stored."""

    def proof(self) -> tuple[bytes, ...]:
        """Return the only valid proof, which has the taken nodes in ascending order."""
        return tuple(sorted(self.taken.values()))
