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
from typing import Any, Final, NamedTuple, Protocol

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import KEY_LENGTH, PublishedEntry, node_cost, publisher_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber.cache import Cache, leaf_reference, open_cache
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, key_set_hash
from pubsub_emulator.runtime.pallet_subscriber.meter import (
    Cut,
    Disabled,
    DisableReason,
    Meter,
    MissingNode,
    NodeSource,
    Stopped,
)
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered
from pubsub_emulator.runtime.pallet_subscriber.view import Item, SubscriberView
from pubsub_emulator.runtime.parachain.static_keys import StaticValues, read_static_keys
from pubsub_emulator.trie import BadNode
from pubsub_emulator.trie.codec import (
    BEFORE_HASH,
    BRANCH,
    CHILD_HASHES,
    CHILDREN,
    DETACHED_HASH,
    EMPTY_NODE,
    HASH_LENGTHS,
    HASHED_LEAF_HEADS,
    HIGH_BITS,
    LEAF,
    LENGTHS,
    LOW_BITS,
    ODD_HASHED_LEAF_HEADS,
)
from pubsub_emulator.trie.nibbles import shared
from pubsub_emulator.trie.walk import ABSENT, CHILD, DETACHED, INLINE, VALUE, branch_of_hashes, step


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
                child.resolve(low, high)
            finally:
                self.item = (para, keys[child.at])
                publisher.row_charges = child.delivered.charges
                publisher.child_node_bytes += self.meter.used - child.charged_beside_nodes() - before
        except BadNode:
            self.out.publishers[para].disabled = DisableReason.UNDECODABLE
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

        kind, value = self.top_value(publisher_root_key(para), take)
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


_NOWHERE: Final[Mapping[int, int]] = {}

_NIBBLES: Final = 2 * KEY_LENGTH
_HASH_AND_HEAD: Final = 34
"""More bytes than a node has that is neither of the shapes looked for."""
_NO_LIMIT: Final = 1 << 32
"""More nodes than any path has."""


class _ChildWalk:
    """Descents through one publisher's child trie; `at` is the item at hand.

    `trail` is the way to the last key as far as the one after it goes too: nodes, the nibble at which each starts, and
    the bitmap of those that are branches of hashes without partial key and value, else 0.
    """

    def __init__(self, view: SubscriberView, meter: Meter, changes: list[Change], publisher: PublisherPlan) -> None:
        self.meter = meter
        self.changes = changes
        self.publisher = publisher
        self.root = publisher.root or EMPTY_TRIE_ROOT
        self.cache = publisher.cache
        self.delivered = view.delivered(meter, publisher.para, publisher.keys)
        self.max_depth = _NO_LIMIT if view.spec.max_trie_depth is None else view.spec.max_trie_depth
        self.shared_with_next = _shared_with_next(publisher.keys)
        self.trail: list[tuple[bytes, int, int]] = []
        self.at = 0

    def resolve(self, low: int, high: int) -> None:
        """Settle the items `keys[low:high]` and note their changes. Raises `Stopped`, `Cut`, `Disabled`, `BadNode`.

        Every subscribed item of every block comes through here, on three sides. Parted into methods for an item and for
        a step it took a quarter more time than in one piece: so this is one piece, it takes the steps through a branch
        of hashes and onto a leaf with a detached value by itself, and a cache is told only what it makes use of.
        """
        meter, publisher, cache, delivered, trail = self.meter, self.publisher, self.cache, self.delivered, self.trail
        keys, shared_with_next, max_depth = publisher.keys, self.shared_with_next, self.max_depth
        keeps_nodes, keeps_references = cache.keeps_nodes, cache.keeps_references
        taken, walked, read = meter.taken, publisher.walked, meter.read
        para, note, came_to_the_end = publisher.para, self.changes.append, cache.resolved.append
        reference: Hash
        payload: bytes
        whole: Any  # the node at hand again: mypyc takes what indexes bytes for a number
        children, child_hashes, lengths, of_hashes = CHILDREN, CHILD_HASHES, LENGTHS, HASH_LENGTHS
        before_hash, detached_hash = BEFORE_HASH, DETACHED_HASH
        high_bits, low_bits, heads, odd_heads = HIGH_BITS, LOW_BITS, HASHED_LEAF_HEADS, ODD_HASHED_LEAF_HEADS
        while low < high:
            last, self.at = self.at, low
            key = keys[low]
            if trail:
                goes_with = shared_with_next[last] if low == last + 1 else shared(keys[last], key)
                while trail[-1][1] > goes_with:
                    trail.pop()
            else:
                self.enter(key)
            node, start, bitmap = trail[-1]
            goes_on = shared_with_next[low]
            length = len(trail)
            places = cache.places[low] if keeps_references else _NOWHERE
            alone_from = cache.alone_from[low] if keeps_references else _NO_LIMIT
            row: LastDelivered | None = None
            row_known = False
            covered = 0
            while True:
                # A step: to the next node's hash, or to what this one says of the key.
                if bitmap and start < _NIBBLES:
                    byte = key[start >> 1]
                    bit = low_bits[byte] if start & 1 else high_bits[byte]
                    if bitmap & bit:
                        whole = node
                        kind, payload = CHILD, whole[child_hashes[children[bitmap & (bit - 1)]]]
                        start += 1
                    else:
                        kind, payload = ABSENT, b""
                else:
                    kind, payload, start = step(node, key, start)
                if kind == ABSENT:
                    if keeps_references:
                        covered = cache.covers_absence(low, start)
                    break
                if kind <= DETACHED:
                    break
                if length >= max_depth:
                    raise Disabled(DisableReason.TRIE_DEPTH_EXCEEDED)
                length += 1
                bitmap = 0
                if kind == INLINE:
                    if start in places:
                        covered = cache.covers(low, places[start], blake2_256(payload))
                        if covered:
                            break
                    node = payload
                else:
                    reference = payload  # type: ignore[assignment]  # a call of the NewType costs as much as the step
                    if keeps_references:
                        if start in places:
                            covered = cache.covers(low, places[start], reference)
                            if covered:
                                break
                        if start >= alone_from:
                            row = delivered.read(low)
                            row_known = True
                            if row is None:
                                alone_from = _NO_LIMIT
                            elif leaf_reference(key, start, row.entry_hash) == reference:
                                came_to_the_end(low)
                                covered = 1
                                break
                    found = taken.get(reference)
                    if found is None:
                        found = self.untaken(reference, key, start) if keeps_nodes else read(reference, key, start)
                    whole = node = walked[reference] = found
                    size = len(node)
                    if size > _HASH_AND_HEAD:
                        head = node[0]
                        if head == BRANCH:
                            bitmap = node[1] | node[2] << 8
                            count = children[bitmap]
                            if size != 3 + 33 * count or whole[lengths] != of_hashes[count]:
                                bitmap = 0
                        elif head < LEAF:
                            half = start >> 1
                            if start & 1:
                                expected = odd_heads[_NIBBLES - start][key[half] & 15] + key[half + 1 :]
                            else:
                                expected = heads[_NIBBLES - start] + key[half:]
                            if whole[before_hash] == expected:
                                kind, payload = DETACHED, whole[detached_hash]
                                break
                if start <= goes_on:
                    trail.append((node, start, bitmap))

            if not covered:
                covered = 1
                if not row_known:
                    row = delivered.read(low)
                if kind == ABSENT:
                    if row is not None:
                        note(Change(para, key, row.entry_hash, None))
                else:
                    entry_hash: Hash = payload if kind == DETACHED else blake2_256(payload)  # type: ignore[assignment]
                    if row is None or row.entry_hash != entry_hash:
                        data = payload if kind == VALUE else taken.get(entry_hash)
                        if data is None:
                            before = meter.used
                            data = read(entry_hash, key, _NIBBLES)  # never from the cache (PS-45)
                            publisher.value_bytes += meter.used - before
                        try:
                            entry = PublishedEntry.decode(data)
                        except ScaleError:
                            raise Disabled(DisableReason.UNDECODABLE) from None
                        note(Change(para, key, entry_hash, entry))
                if keeps_references:
                    came_to_the_end(low)
            publisher.resolved += covered
            low += covered

    def enter(self, key: PubsubKey) -> None:
        """Begin the way down with the trie's root; that of an empty trie need not be read."""
        root, node = self.root, EMPTY_NODE
        if root != EMPTY_TRIE_ROOT:
            node = self.publisher.walked[root] = self.meter.taken.get(root) or self.untaken(root, key, 0)
        self.trail.append((node, 0, branch_of_hashes(node)))

    def untaken(self, node_hash: Hash, key: PubsubKey, depth: int) -> bytes:
        """A node that is not taken: free when paid for, else from the cache, else from the proof (PS-43)."""
        node = self.publisher.walked.get(node_hash)
        if node is None:
            self.meter.check()
            node = self.cache.lookup(node_hash)
        return self.meter.read(node_hash, key, depth) if node is None else node

    def charged_beside_nodes(self) -> int:
        """What was charged for this publisher's items so far, the nodes of its trie apart."""
        return self.publisher.value_bytes + self.delivered.charges + self.cache.charges
