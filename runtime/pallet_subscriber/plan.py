"""The walk: which nodes of the relay state a block must carry, and what they say.

`plan` takes nodes from a source, in an order that the subscriber's state alone decides, and stops by a rule that never
looks at a node not yet read. So for one state, relay root and budget there is exactly one set of nodes that a block can
carry (PS-52): a collator runs `plan` over the whole relay state and keeps what was taken; the chain, and later the
audit, runs it over what was received; and any difference between the two is the collator's doing.

    static keys      taken first, free                                                  PS-44
    pre-state maps   charged                                                            PS-45
    publishers       ascending, from the cursor round to the cursor                     PS-40
      top path       charged; the child root that it proves may settle the publisher    PS-41, PS-42
      each key       otherwise:  child path → LastDelivered → value                     PS-43, PS-45
    the stop rule    before anything that was not taken in this block is read           PS-51

Nodes are looked up by their hash, so a wrong one can never stand in for the right one: all that an attacker can do is
leave out or add, and either shows.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from primitives.errors import ScaleError
from primitives.hashing import blake2_256
from primitives.pubsub import KEY_LENGTH, PublishedEntry, node_cost, publisher_root_key
from primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId, PubsubKey
from runtime.pallet_subscriber.cache import Cache, leaf_reference, open_cache
from runtime.pallet_subscriber.config import ROW_COST, key_set_hash
from runtime.pallet_subscriber.meter import Cut, Disabled, DisableReason, Meter, MissingNode, NodeSource, Stopped
from runtime.pallet_subscriber.view import Item, SubscriberView
from runtime.parachain_system.static_keys import StaticValues, read_static_keys
from trie import BadNode
from trie.codec import BRANCH, CHILD_AT, CHILDREN, HIGH_BITS, LOW_BITS
from trie.nibbles import shared
from trie.walk import ABSENT, CHILD, DETACHED, INLINE, VALUE, branch_of_hashes, step


class Change(NamedTuple):
    """An item whose entry is not the one last delivered; `entry` is none when it is gone."""

    para: ParaId
    key: PubsubKey
    entry_hash: Hash
    entry: PublishedEntry | None


@dataclass(slots=True)
class PublisherPlan:
    """What the walk learned of one publisher, and its cost in bytes. `root` is none until the top path was read."""

    para: ParaId
    keys: tuple[PubsubKey, ...]
    cache: Cache
    root: Hash | None = None
    unchanged: bool = False
    disabled: DisableReason | None = None
    resolved: int = 0
    walked: dict[Hash, bytes] = field(default_factory=dict)
    top_path_bytes: int = 0
    child_node_bytes: int = 0
    value_bytes: int = 0
    row_charges: int = 0

    @property
    def settled(self) -> bool:
        """Nothing of it is to be walked: its root is the one processed, or it cannot be read."""
        return self.unchanged or self.disabled is not None

    @property
    def complete(self) -> bool:
        """Every item was resolved under this root in this block (PS-61)."""
        return not self.settled and self.resolved == len(self.keys)


@dataclass(slots=True)
class Plan:
    """The outcome of a walk. `taken` are the nodes that the proof must consist of, in the order they were read."""

    budget: int
    taken: dict[Hash, bytes]
    statics: StaticValues = field(default_factory=StaticValues)
    static_bytes: int = 0
    map_charges: int = 0
    used: int = 0
    changed_key_sets: tuple[ParaId, ...] = ()
    publishers: dict[ParaId, PublisherPlan] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    cursor: Item | None = None
    missing: MissingNode | None = None

    def proof(self) -> tuple[bytes, ...]:
        """The one list of nodes that is accepted: those taken, strictly ascending."""
        return tuple(sorted(self.taken.values()))


def plan(view: SubscriberView, relay_root: Hash, source: NodeSource, budget: int) -> Plan:
    """Walk the relay state under `relay_root` as the subscriber's state asks for; pure.

    Never raises on hostile nodes: a needed node that is not there ends the walk in `Plan.missing`, and genuine relay
    data that makes no sense disables its publisher (PS-54).
    """
    meter = Meter(view.spec, source, budget)
    out = Plan(budget, meter.taken)
    walk = _Walk(view, relay_root, meter, out)
    try:
        walk.static_keys()
        walk.pre_state()
        for para, keys, low, high in walk.rotation():
            walk.stretch(para, keys, low, high)
    except Stopped:
        out.cursor = walk.item
    except Cut as cut:
        out.missing = cut.missing
    out.used = meter.used
    return out


class _Take(Protocol):
    """How a top-trie node is had: `take(hash, key, depth)`."""

    def __call__(self, node_hash: Hash, key: bytes, depth: int, /) -> bytes: ...


class _Walk:
    """One run: the order of publishers, and the relay chain's top trie."""

    def __init__(self, view: SubscriberView, relay_root: Hash, meter: Meter, out: Plan) -> None:
        self.view = view
        self.spec = view.spec
        self.relay_root = relay_root
        self.meter = meter
        self.out = out
        self.item: Item | None = None
        self.roots: Mapping[ParaId, Hash] = {}
        self.children: dict[ParaId, _ChildWalk] = {}

    def static_keys(self) -> None:
        """Take the nodes of the keys that every parachain proves anyway (PS-44)."""

        def take(node_hash: Hash, key: bytes, depth: int) -> bytes:
            node = self.meter.taken.get(node_hash)
            if node is None:
                node = self.meter.take(node_hash, key, depth)
                self.out.static_bytes += node_cost(len(node))
            return node

        def read(key: bytes) -> bytes | None:
            try:
                kind, payload = self.top_value(key, take)
            except BadNode:
                return None  # genuine, for the relay root commits to it, and senseless: as if nothing stood there
            if kind == DETACHED:
                return take(Hash(payload), key, 2 * len(key))
            return payload if kind == VALUE else None

        self.out.statics = read_static_keys(self.spec.para_id, read)

    def pre_state(self) -> None:
        """Charge the two maps, and see which key sets are not those that the cache was made for (PS-45, PS-63)."""
        self.roots, roots_length = self.view.processed_roots()
        hashes, hashes_length = self.view.subscription_hashes()
        self.out.map_charges = roots_length + hashes_length + 2 * ROW_COST
        self.meter.used += self.out.map_charges
        subscribed = {para: key_set_hash(keys) for para, keys in self.spec.subscriptions.items()}
        known = sorted({**hashes, **subscribed})
        self.out.changed_key_sets = tuple(para for para in known if hashes.get(para) != subscribed.get(para))

    def rotation(self) -> Iterator[tuple[ParaId, tuple[PubsubKey, ...], int, int]]:
        """Stretches of one publisher's keys, from the first item at or after the cursor round to it (PS-40)."""
        enabled = [(para, keys) for para, keys in self.spec.subscriptions.items() if not self.view.is_disabled(para)]
        para, key = self.view.cursor() or (ParaId(0), PubsubKey(b""))
        first = bisect_left(enabled, para, key=lambda entry: entry[0])
        split = bisect_left(enabled[first][1], key) if first < len(enabled) and enabled[first][0] == para else 0
        for at in range(first, len(enabled)):
            para, keys = enabled[at]
            yield para, keys, split if at == first else 0, len(keys)
        for para, keys in enabled[:first]:
            yield para, keys, 0, len(keys)
        if split:
            para, keys = enabled[first]
            yield para, keys, 0, split

    def stretch(self, para: ParaId, keys: tuple[PubsubKey, ...], low: int, high: int) -> None:
        """Resolve the items `keys[low:high]`, unless the publisher's root or a fault settles it."""
        if low == high:
            return
        self.item = (para, keys[low])
        publisher = self.out.publishers.get(para)
        try:
            if publisher is None:
                publisher = self.meet(para, keys)
            if publisher.settled:
                return
            child = self.children.get(para)
            if child is None:
                child = self.children[para] = _ChildWalk(self.view, self.meter, self.out.changes, publisher)
            publisher.cache.end = high
            before = self.meter.used - child.charged_beside_nodes()
            try:
                while low < high:
                    self.item = (para, keys[low])
                    low += child.resolve(low)
            finally:
                publisher.row_charges = child.delivered.charges
                publisher.child_node_bytes += self.meter.used - child.charged_beside_nodes() - before
        except Disabled as fault:
            self.out.publishers[para].disabled = fault.reason

    def meet(self, para: ParaId, keys: tuple[PubsubKey, ...]) -> PublisherPlan:
        """Read the publisher's child root from the top trie (PS-41, PS-42)."""
        trusted = para not in self.out.changed_key_sets
        publisher = PublisherPlan(para, keys, open_cache(self.view, self.meter, para, keys, trusted=trusted))
        self.out.publishers[para] = publisher

        def take(node_hash: Hash, key: bytes, depth: int) -> bytes:
            node = self.meter.taken.get(node_hash)
            if node is None:
                before = self.meter.used
                node = self.meter.read(node_hash, key, depth)
                publisher.top_path_bytes += self.meter.used - before
            return node

        try:
            kind, value = self.top_value(publisher_root_key(para), take)
        except BadNode:
            raise Disabled(DisableReason.UNDECODABLE) from None
        if kind == ABSENT:
            publisher.root = EMPTY_TRIE_ROOT
        elif kind == VALUE and len(value) == len(EMPTY_TRIE_ROOT):
            publisher.root = Hash(value)
        else:
            raise Disabled(DisableReason.UNDECODABLE)
        publisher.unchanged = trusted and self.roots.get(para) == publisher.root
        return publisher

    def top_value(self, key: bytes, take: _Take) -> tuple[int, bytes]:
        """Walk the top trie to `key`: `VALUE` and the value, `DETACHED` and its hash, or `ABSENT`."""
        node, depth = take(self.relay_root, key, 0), 0
        while True:
            kind, payload, depth = step(node, key, depth)
            if kind == CHILD:
                node = take(Hash(payload), key, depth)
            elif kind == INLINE:
                node = payload
            else:
                return kind, payload


@lru_cache(maxsize=1024)
def _shared_with_next(keys: tuple[PubsubKey, ...]) -> tuple[int, ...]:
    """How many nibbles each of the sorted `keys` shares with the next, 0 for the last one."""
    return (*(shared(key, following) for key, following in pairwise(keys)), 0)


_COVERED: Final = INLINE + 1
"""A descent's outcome beside those of `step`: the state vouches for the item."""

_BRANCH: Final = bytes((BRANCH,))
_NOWHERE: Final[Mapping[int, int]] = {}

_NIBBLES: Final = 2 * KEY_LENGTH
_NO_LIMIT: Final = 1 << 32
"""More nodes than any path has."""


class _ChildWalk:
    """Descents through one publisher's child trie.

    `trail` is the way to the last key as far as the one after it goes too: nodes, the nibble at which each starts, and
    the bitmap of those that are branches of hashes (`walk.branch_of_hashes`, else 0).

    Every subscribed item comes through `resolve` and `descend`, where a call costs as much as most of what it does. So
    `descend` takes the step through a branch of hashes by itself, and a cache is told only what it makes use of.
    """

    def __init__(self, view: SubscriberView, meter: Meter, changes: list[Change], publisher: PublisherPlan) -> None:
        self.meter = meter
        self.changes = changes
        self.publisher = publisher
        self.root = publisher.root or EMPTY_TRIE_ROOT
        self.cache = publisher.cache
        self.keeps_nodes = publisher.cache.keeps_nodes
        self.keeps_references = publisher.cache.keeps_references
        self.delivered = view.delivered(meter, publisher.para, publisher.keys)
        self.max_depth = _NO_LIMIT if view.spec.max_trie_depth is None else view.spec.max_trie_depth
        self.shared_with_next = _shared_with_next(publisher.keys)
        self.trail: list[tuple[bytes, int, int]] = []
        self.last = 0

    def resolve(self, at: int) -> int:
        """Settle the item `keys[at]` and note its change; returns how many items are settled, at least one."""
        publisher = self.publisher
        key = publisher.keys[at]
        try:
            kind, payload, covered = self.descend(key, at)
        except BadNode:
            raise Disabled(DisableReason.UNDECODABLE) from None
        if kind == _COVERED:
            publisher.resolved += covered
            return covered
        row = self.delivered.read(at)
        if kind == ABSENT:
            if row is not None:
                self.changes.append(Change(publisher.para, key, row.entry_hash, None))
        else:
            entry_hash = Hash(payload) if kind == DETACHED else blake2_256(payload)
            if row is None or row.entry_hash != entry_hash:
                data = self.value(entry_hash, key) if kind == DETACHED else payload
                try:
                    entry = PublishedEntry.decode(data)
                except ScaleError:
                    raise Disabled(DisableReason.UNDECODABLE) from None
                self.changes.append(Change(publisher.para, key, entry_hash, entry))
        publisher.resolved += 1
        if self.keeps_references:
            self.cache.resolved(at)
        return 1

    def descend(self, key: PubsubKey, at: int) -> tuple[int, bytes, int]:
        """Walk the child trie to `key`: a kind of `step` and its payload, or `_COVERED` and how many items are."""
        cache, trail, keeps_references = self.cache, self.trail, self.keeps_references
        taken, walked, read = self.meter.taken, self.publisher.walked, self.meter.read
        if trail:
            last = self.last
            goes_with = self.shared_with_next[last] if at == last + 1 else shared(self.publisher.keys[last], key)
            while trail[-1][1] > goes_with:
                trail.pop()
        elif self.root == EMPTY_TRIE_ROOT:
            covered = cache.covers_absence(at, 0)
            return (_COVERED, b"", covered) if covered else (ABSENT, b"", 0)
        else:
            node = taken.get(self.root) or self.untaken(self.root, key, 0)
            walked[self.root] = node
            trail.append((node, 0, branch_of_hashes(node)))
        self.last = at
        node, start, bitmap = trail[-1]
        length = len(trail)
        shared_with_next = self.shared_with_next[at]
        alone_from, places = _NO_LIMIT, _NOWHERE
        if keeps_references:
            alone_from, places = cache.alone_from(at), cache.places(at)
        while True:
            if bitmap and start < _NIBBLES:
                byte = key[start >> 1]
                bit = LOW_BITS[byte] if start & 1 else HIGH_BITS[byte]
                if bitmap & bit:
                    pos = CHILD_AT[CHILDREN[bitmap & (bit - 1)]]
                    payload = node[pos : pos + 32]
                    kind = CHILD
                    depth = start + 1
                else:
                    kind, payload, depth = ABSENT, b"", start
            else:
                kind, payload, depth = step(node, key, start)
            if kind == CHILD:
                if length >= self.max_depth:
                    raise Disabled(DisableReason.TRIE_DEPTH_EXCEEDED)
                reference: Hash = payload  # type: ignore[assignment]  # a call of the NewType costs as much as the step
                if keeps_references:
                    if depth in places:
                        covered = cache.covers(at, depth, reference, b"")
                        if covered:
                            return _COVERED, b"", covered
                    if depth >= alone_from:
                        row = self.delivered.read(at)
                        if row is None:
                            alone_from = _NO_LIMIT
                        elif leaf_reference(key, depth, row.entry_hash) == reference:
                            cache.resolved(at)
                            return _COVERED, b"", 1
                found = taken.get(reference)
                if found is None:
                    found = self.untaken(reference, key, depth) if self.keeps_nodes else read(reference, key, depth)
                node = walked[reference] = found
            elif kind == INLINE:
                if length >= self.max_depth:
                    raise Disabled(DisableReason.TRIE_DEPTH_EXCEEDED)
                covered = cache.covers(at, depth, None, payload)
                if covered:
                    return _COVERED, b"", covered
                node = payload
            elif kind == ABSENT:
                covered = cache.covers_absence(at, depth) if keeps_references else 0
                return (_COVERED, b"", covered) if covered else (ABSENT, b"", 0)
            else:
                return kind, payload, 0
            start = depth
            length += 1
            bitmap = branch_of_hashes(node) if node[:1] == _BRANCH else 0
            if start <= shared_with_next:
                trail.append((node, start, bitmap))

    def untaken(self, node_hash: Hash, key: PubsubKey, depth: int) -> bytes:
        """A node that is not taken: free when paid for, else from the cache, else from the proof (PS-43)."""
        node = self.publisher.walked.get(node_hash)
        if node is None:
            self.meter.check()
            node = self.cache.lookup(node_hash)
        return self.meter.read(node_hash, key, depth) if node is None else node

    def value(self, value_hash: Hash, key: PubsubKey) -> bytes:
        """A detached value: free when taken, else from the proof and never from the cache (PS-45)."""
        data = self.meter.taken.get(value_hash)
        if data is None:
            before = self.meter.used
            data = self.meter.read(value_hash, key, 2 * len(key))
            self.publisher.value_bytes += self.meter.used - before
        return data

    def charged_beside_nodes(self) -> int:
        """What was charged for this publisher's items so far, the nodes of its trie apart."""
        return self.publisher.value_bytes + self.delivered.charges + self.cache.charges
