"""The descent of one publisher's child trie during a walk, and the changes of its items."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber.cache import leaf_reference
from pubsub_emulator.runtime.pallet_subscriber.meter import Disabled, DisableReason, Meter
from pubsub_emulator.runtime.pallet_subscriber.outcome import Change, PublisherPlan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.rules import RuleFailed
from pubsub_emulator.trie.codec import EMPTY_NODE
from pubsub_emulator.trie.descent import Descent
from pubsub_emulator.trie.nibbles import shared_with_next
from pubsub_emulator.trie.step import ABSENT, DETACHED, VALUE


@lru_cache(maxsize=1024)
def _shared_with_next(keys: tuple[PubsubKey, ...]) -> tuple[int, ...]:
    return tuple(shared_with_next(list(keys)))


_NO_LIMIT: Final = 1 << 32
"""A number of nodes or nibbles that is greater than that of any path."""


class ChildTrie(Descent):
    """The descent of one publisher's child trie.

    It chooses the source of each node, and ends the descent early where the cache shows that
    nothing changed.
    """

    def __init__(
        self, view: SubscriberView, meter: Meter, changes: list[Change], publisher: PublisherPlan
    ) -> None:
        self.rules = view.rules
        keys = publisher.keys
        if self.rules.place is not None:
            keys = tuple(map(PubsubKey, self.rules.placed(publisher.para, keys)[1]))
        super().__init__(publisher.root or EMPTY_TRIE_ROOT, keys, _shared_with_next(keys), {})
        self.below = 2 * (len(keys[0]) - len(publisher.keys[0])) if keys else 0
        """The number of nibbles that a rule `place` puts before the publisher's own keys."""
        self.meter = meter
        self.taken = meter.taken
        self.changes = changes
        self.publisher = publisher
        self.visited = publisher.visited
        self.cache = publisher.cache
        self.delivered = view.delivered(meter, publisher.para, publisher.keys)
        self.most_nodes = (
            _NO_LIMIT if view.spec.max_trie_depth is None else view.spec.max_trie_depth
        )
        self.entered = False
        # These three belong to the current item: the depths at which to ask the cache, the depth
        # from which to recognise the leaf, and the number of items that the cache has resolved.
        self.places: Mapping[int, int] = {}
        self.alone_from = _NO_LIMIT
        self.known = 0

    def enter(self, at: int) -> None:
        """Read the root node, on the way to `keys[at]`, unless this was done before.

        The root of an empty trie need not be read.
        """
        if not self.entered:
            self.at = at
            node = EMPTY_NODE if self.root == EMPTY_TRIE_ROOT else self.child(self.root, 0, 0)
            if node is not None:
                self.start(node)
            self.entered = True

    def resolve(self, at: int) -> int:
        """Resolve `keys[at]`, and return the number of items that this resolves (PS-69).

        Raises `Stopped`, `Cut`, `Disabled` and `BadNode`.
        """
        remembers = self.cache.keeps_references
        if remembers:
            self.places = self.cache.places[at]
            self.alone_from = self.cache.alone_from[at]
            self.known = 0
            # The cache counts nibbles of the publisher's own keys, without the prefix of a rule
            # `place`.
            if self.below:
                self.places = {depth + self.below: place for depth, place in self.places.items()}
                self.alone_from += self.below
        kind, payload, depth = self.find(at)
        if remembers:
            if kind == ABSENT:
                self.known = self.cache.covers_absence(at, depth - self.below)
            if self.known:
                self.publisher.resolved += self.known
                return self.known
        delivered = self.delivered.read(at)
        if kind == ABSENT:
            if delivered is not None:
                self.changes.append(
                    Change(self.publisher.para, self.publisher.keys[at], delivered, None)
                )
        else:
            entry_hash: Hash = payload if kind == DETACHED else blake2_256(payload)  # type: ignore[assignment]
            if delivered != entry_hash:
                self.value(at, entry_hash, payload if kind == VALUE else self.taken.get(entry_hash))
        if remembers:
            self.cache.resolved.append(at)
        self.publisher.resolved += 1
        return 1

    def child(self, reference: Hash, depth: int, above: int) -> bytes | None:
        """Return the child node from the cheapest place (PS-43).

        The order is: the nodes that were already taken, which are free, the cache, the source.
        Returns `None` if nothing changed below the node (PS-69). Raises `Disabled` if the path is
        too long (PS-68).
        """
        if above >= self.most_nodes:
            raise Disabled(DisableReason.TRIE_DEPTH_EXCEEDED)
        if depth in self.places and self.covered_by_slot(reference, depth):
            return None
        if depth >= self.alone_from and self.is_last_delivered(reference, depth):
            return None
        node = self.taken.get(reference)
        if node is None and self.cache.keeps_nodes:
            node = self.cached(reference)
        if node is None:
            node = self.meter.read(reference, self.keys[self.at], depth)
        self.visited[reference] = node
        return node

    def inline(self, node: bytes, depth: int, above: int) -> bool:
        """Return whether to descend into an inline child. The conditions are those of `child`.

        For the cache, the reference of an inline node is its hash.
        """
        if above >= self.most_nodes:
            raise Disabled(DisableReason.TRIE_DEPTH_EXCEEDED)
        return depth not in self.places or not self.covered_by_slot(blake2_256(node), depth)

    def covered_by_slot(self, reference: Hash, depth: int) -> bool:
        """Return whether nothing changed below `reference`, because its slot holds it (PS-69)."""
        self.known = self.cache.covers(self.at, self.places[depth], reference)
        return self.known > 0

    def is_last_delivered(self, reference: Hash, depth: int) -> bool:
        """Return whether `reference` is the leaf that was last delivered under the key (PS-69)."""
        delivered = self.delivered.read(self.at)
        if delivered is None:
            self.alone_from = _NO_LIMIT
        elif leaf_reference(self.keys[self.at], depth, delivered) == reference:
            self.cache.resolved.append(self.at)
            self.known = 1
            return True
        return False

    def cached(self, reference: Hash) -> bytes | None:
        """Return a node that this walk visited, for free, or a cached one, which is charged."""
        node = self.visited.get(reference)
        if node is None:
            self.meter.check()
            node = self.cache.lookup(reference)
        return node

    def value(self, at: int, entry_hash: Hash, data: bytes | None) -> None:
        """Note the change of `keys[at]`.

        `data` is its value, or `None` to read it. Values are not cached (PS-45). Raises `Disabled`
        if the value cannot be decoded.
        """
        key = self.publisher.keys[at]
        if data is None:
            before = self.meter.used
            data = self.meter.read(entry_hash, key, 2 * len(key))
            self.publisher.value_bytes += self.meter.used - before
        try:
            entry = (
                PublishedEntry.decode(data) if self.rules.decode is None else self.rules.read(data)
            )
        except (ScaleError, RuleFailed):
            raise Disabled(DisableReason.UNDECODABLE) from None
        self.changes.append(Change(self.publisher.para, key, entry_hash, entry))
