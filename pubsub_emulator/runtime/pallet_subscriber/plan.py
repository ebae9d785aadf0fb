"""The walk: the nodes of the relay state that a block must have, and the values in them.

`plan` reads nodes from a source in an order that depends only on the subscriber's state, the
budget, the block's root calls and the nodes already read. The stop rule is applied before anything
is read that is not yet taken in this block. The walk stops if the bytes charged so far exceed the
budget minus the largest item and one row (`Meter.check`). The size of the next node is irrelevant.

The collator runs `plan` over the whole relay state and puts the taken nodes into the block. The
chain, and later the audit, run it over the received nodes. With the same state, relay root, budget
and root calls, they take the same nodes (PS-52). `validate` refuses nodes that were not taken
(`_unused`) and nodes that do not ascend (`check_node_order`). So two different proofs cannot both
be valid.

Nodes are looked up by hash, so a forged node is never read. An attacker can only omit a node, which
ends the walk with `Plan.missing`, or add one, which is not in `Plan.taken`.

A walk ends when it has visited every publisher, when the stop rule fires (`Plan.cursor`), or at a
missing node.

    1  static keys       the keys that every parachain proves; free                  PS-44
       requested keys    further keys that the runtime requests; free, or charged
                         as one sum                                                  UP-13
    2  pre-state         two maps of the parachain's own state; charged              PS-45, PS-63
    3  rotation          publishers ascending, from the cursor around to the cursor  PS-40
    4  top path          the publisher's child root; if it is unchanged, the items
                         are skipped                                                 PS-41, PS-42
    5  items             child path, then `LastDelivered`, then the value            PS-43, PS-45,
                                                                                     PS-69
    6  the stop rule     `Meter.check`, before reading anything not yet taken in
                         this block                                                  PS-51

The next table shows what is charged, and whether there must be room for it before:

    what is read                                     room needed before   charged
    nodes of static keys                             no                   never
    nodes of requested keys                          no                   if `charge_extra_keys`
    the two maps of the pre-state                    no                   when read
    rows of a root call                              `has_room` for all   when read
    stale rows, `CacheInfo` of changed key sets,
      `DisabledPublishers`, the cursor               no                   by `charge_own_state`
    nodes of top path and child trie, values         stop rule            when read
    delivered rows                                   stop rule            when read
    rows of slots; cached nodes, when found          stop rule            when read, if
                                                                          `meter_cache_reads`
    rows that a cache's `begin` and `foresee` read   `has_room(0)`        by `charge_own_state`

With `meter_cache_reads`, `charge_own_state` charges afterwards the bytes by which the nodes of all
own rows exceed these charges and a fixed allowance. It does not stop the walk, so `used <= budget`
is not an invariant. A node or row that was already taken in this block is free.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from pubsub_emulator.primitives.pubsub import nodes_cost
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.relay_state import read_requested
from pubsub_emulator.runtime.framework.static_keys import read_static_keys, static_value
from pubsub_emulator.runtime.pallet_subscriber.cache import open_cache
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import stale_rows
from pubsub_emulator.runtime.pallet_subscriber.child_trie import ChildTrie
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, key_set_hash
from pubsub_emulator.runtime.pallet_subscriber.meter import (
    Cut,
    Disabled,
    DisableReason,
    Meter,
    NodesByHash,
    Stopped,
)
from pubsub_emulator.runtime.pallet_subscriber.outcome import Change, Plan, PublisherPlan, RootCall
from pubsub_emulator.runtime.pallet_subscriber.own_state import (
    OWN_STATE_ALLOWANCE,
    OwnState,
    recorded,
)
from pubsub_emulator.runtime.pallet_subscriber.view import Item, SubscriberView
from pubsub_emulator.trie import BadNode
from pubsub_emulator.trie.descent import Lookups
from pubsub_emulator.trie.step import ABSENT, VALUE

__all__ = ["Change", "Plan", "PublisherPlan", "RootCall", "plan"]


def plan(
    view: SubscriberView,
    relay_root: Hash,
    source: NodesByHash,
    budget: int,
    calls: Sequence[RootCall] | None = None,
    *,
    authorities: tuple[bytes, ...] = (),
) -> Plan:
    """Walk the relay state under `relay_root` for the subscriber with the state `view`.

    This writes nothing. The keys in `authorities`, which a block with relay headers needs, are
    taken after the other static keys (UP-4). The reads of the block's root `calls` are made and
    charged before the walk. Hostile nodes do not make it raise an error: a missing node ends the
    walk with `Plan.missing`, and a publisher whose genuine data cannot be read is disabled (PS-54).

    Raises `ScaleError` if a row of the chain's own state does not decode, and `StateUnavailable` if
    that state is fetched on demand and cannot be fetched.
    """
    meter = Meter(view.spec, source, budget, view.rules)
    out = Plan(budget, meter.taken, rules=view.rules)
    own_state = out.own_state = OwnState(view.storage.state)
    with recorded(view.storage, own_state) as reads:
        walk = _Walk(view, relay_root, meter, out, reads=reads, own_state=own_state)
        try:
            walk.static_keys(authorities)
            walk.requested_keys()
            walk.pre_state(calls)
            if walk.rules.share is None:
                for para, keys, low, high in walk.rotation():
                    walk.publisher(para, keys, low, high)
            else:
                walk.shared(walk.rules.share)
        except Stopped:
            out.cursor = walk.item
        except Cut as cut:
            out.missing = cut.missing
    out.used = meter.used
    return out


class _Walk:
    """One walk over the relay state.

    `item` is the item at which it would stop now. `top` reads the relay chain's top trie.
    """

    def __init__(
        self,
        view: SubscriberView,
        relay_root: Hash,
        meter: Meter,
        out: Plan,
        *,
        reads: Mapping[bytes, bytes | None],
        own_state: OwnState,
    ) -> None:
        self.view = view
        self.spec = view.spec
        self.rules = view.rules
        self.meter = meter
        self.top = Lookups(relay_root, meter.taken, meter.take)
        self.out = out
        self.reads = reads
        self.counted = 0
        """The number of `reads` that `own_state` already counts."""
        self.charged = 0
        """The bytes charged so far for reads of the parachain's own state."""
        self.own_state = own_state
        self.item: Item | None = None
        self.roots: Mapping[ParaId, Hash] = {}
        self.children: dict[ParaId, ChildTrie] = {}

    # 1: static keys

    def static_keys(self, authorities: tuple[bytes, ...]) -> None:
        """Take the nodes of the keys that every parachain proves, free of charge (PS-44)."""
        read = partial(static_value, self.top)
        try:
            self.out.statics = read_static_keys(self.spec.para_id, read, authorities)
        finally:
            self.out.static_bytes = nodes_cost(self.meter.taken.values())
            # The nodes of static keys are free. Later nodes of the top trie are charged.
            self.top.node_of = self.meter.read

    def requested_keys(self) -> None:
        """Take the nodes of the keys that the runtime requests besides its subscriptions (UP-13).

        They are taken even beyond the budget. With `charge_extra_keys`, they are charged, which
        leaves less of the budget to the walk.
        """
        keys = self.spec.extra_keys
        if not keys:
            return
        meter = self.meter
        before = len(meter.taken)
        self.top.node_of = meter.take
        try:
            read_requested(
                keys,
                self.top,
                lambda root: Lookups(root, meter.taken, meter.take),
                self.out.requested,
            )
        finally:
            self.top.node_of = meter.read
            self.out.requested_bytes = nodes_cost(islice(meter.taken.values(), before, None))
            if self.spec.charge_extra_keys:
                meter.used += self.out.requested_bytes

    # 2: pre-state

    def pre_state(self, calls: Sequence[RootCall] | None) -> None:
        """Charge the two maps, and find the publishers whose key set changed (PS-45, PS-63).

        This also reads the rows of abandoned caches that the block removes, and makes the reads of
        its root calls.
        """
        self.roots, roots_length = self.view.processed_roots()
        hashes, hashes_length = self.view.subscription_hashes()
        self.out.map_charges = roots_length + hashes_length + 2 * ROW_COST
        self.meter.used += self.out.map_charges
        subscribed = {para: key_set_hash(keys) for para, keys in self.spec.subscriptions.items()}
        known = sorted({**hashes, **subscribed})
        self.out.changed_key_sets = tuple(
            para for para in known if hashes.get(para) != subscribed.get(para)
        )
        self.out.stale = stale_rows(self.view.storage)
        self.charged = self.out.map_charges
        # `apply` reads these rows, so they are read here, where reads are charged.
        for para in self.out.changed_key_sets:
            self.view.cache_info(para)
        if calls is not None:
            self.out.calls = self.make_room(calls)

    def make_room(self, calls: Sequence[RootCall]) -> int:
        """Make the reads of root calls, and charge them as rows.

        Returns the number of calls for which there is room.
        """
        for index, call in enumerate(calls):
            self.charge_own_state(None)
            if not self.meter.has_room(call.rows * ROW_COST):
                return index
            known = len(self.reads)
            call.read(self.view.storage)
            cost = sum(
                ROW_COST + len(value or b"") for value in islice(self.reads.values(), known, None)
            )
            self.out.map_charges += cost
            self.meter.used += cost
            self.charged += cost
        return len(calls)

    def charge_own_state(self, publisher: PublisherPlan | None) -> None:
        """Charge the bytes by which own rows exceed their charges and the allowance.

        They are charged to `publisher`, or to the reads before the walk if it is `None`.
        """
        if len(self.reads) == self.counted or not self.spec.meter_cache_reads:
            return
        self.own_state.add(islice(self.reads, self.counted, None))
        self.counted = len(self.reads)
        excess = self.own_state.total - OWN_STATE_ALLOWANCE - self.charged
        if excess <= 0:
            return
        self.meter.used += excess
        self.charged += excess
        trie = None if publisher is None else self.children.get(publisher.para)
        if publisher is None or trie is None:
            self.out.map_charges += excess
        else:
            trie.delivered.charges += excess
            publisher.row_charges += excess
            publisher.child_trie_bytes += excess

    # 3: rotation

    def rotation(self) -> Iterator[tuple[ParaId, tuple[PubsubKey, ...], int, int]]:
        """Yield the ranges `keys[low:high]` of each publisher, in the order of the walk (PS-40).

        The walk begins with the first item at or after the cursor, and continues after the last
        item with the first one, up to the cursor.
        """
        enabled = [
            (para, keys)
            for para, keys in self.spec.subscriptions.items()
            if not self.view.is_disabled(para)
        ]
        self.charge_own_state(None)
        cursor = self.view.cursor()
        if self.rules.resume is not None:
            cursor = self.rules.resume(cursor, tuple(para for para, _ in enabled))
        para, key = cursor or (ParaId(0), PubsubKey(b""))
        first = bisect_left(enabled, para, key=lambda entry: entry[0])
        split = (
            bisect_left(enabled[first][1], key)
            if first < len(enabled) and enabled[first][0] == para
            else 0
        )
        for index in range(first, len(enabled)):
            para, keys = enabled[index]
            yield para, keys, split if index == first else 0, len(keys)
        for para, keys in enabled[:first]:
            yield para, keys, 0, len(keys)
        if split:
            para, keys = enabled[first]
            yield para, keys, 0, split

    def publisher(self, para: ParaId, keys: tuple[PubsubKey, ...], low: int, high: int) -> None:
        """Resolve the items `keys[low:high]`, unless the publisher needs no walk."""
        if low == high:
            return
        self.item = (para, keys[low])
        # A publisher whose keys the cursor splits has two ranges.
        publisher = self.out.publishers.get(para)
        try:
            if publisher is None:
                publisher = self.top_path(para, keys)
            if not publisher.needs_no_walk:
                self.items(publisher, low, high)
        except BadNode:
            self.out.publishers[para].disabled = DisableReason.UNDECODABLE
        except Disabled as fault:
            self.out.publishers[para].disabled = fault.reason
        finally:
            self.end_range(self.out.publishers.get(para))

    def shared(self, share: Callable[[int, int, int], int]) -> None:
        """Walk all publishers, each within its share of the room.

        A publisher whose share is too small is walked again in the next block.
        """
        ranges = list(self.rotation())
        for index, (para, keys, low, high) in enumerate(ranges):
            room = self.meter.room()
            if not room:
                self.item = (para, keys[low])
                raise Stopped
            before = self.meter.narrow(share(room, para, len(ranges) - index))
            try:
                self.publisher(para, keys, low, high)
            except Stopped:
                self.meter.widen(before)
                if not self.meter.room():
                    raise
            finally:
                self.meter.widen(before)

    def end_range(self, publisher: PublisherPlan | None) -> None:
        """Let the cache read the rows that `apply` will need, and charge them."""
        if publisher is not None and publisher.has_all_nodes and self.meter.has_room(0):
            publisher.cache.foresee(publisher.visited)
        self.charge_own_state(publisher)

    # 4: top path

    def top_path(self, para: ParaId, keys: tuple[PubsubKey, ...]) -> PublisherPlan:
        """Read the publisher's child root, and compare it with the processed root (PS-41, PS-42).

        Raises `Disabled` if the value is not a root.
        """
        trusted = para not in self.out.changed_key_sets
        publisher = PublisherPlan(
            para, keys, open_cache(self.view, self.meter, para, keys, trusted=trusted)
        )
        self.out.publishers[para] = publisher
        before = self.meter.used
        try:
            kind, value, _ = self.top.read(self.rules.root_key(para))
        finally:
            publisher.top_path_bytes = self.meter.used - before
        if kind == ABSENT:
            publisher.root = EMPTY_TRIE_ROOT
        elif kind == VALUE and len(value) == len(EMPTY_TRIE_ROOT):
            publisher.root = Hash(value)
        else:
            raise Disabled(DisableReason.UNDECODABLE)
        publisher.unchanged = trusted and self.roots.get(para) == publisher.root
        return publisher

    # 5: items

    def items(self, publisher: PublisherPlan, low: int, high: int) -> None:
        """Resolve `keys[low:high]` in order.

        Meanwhile `item` is always the first item that is not resolved yet.
        """
        keys = publisher.keys
        cache = publisher.cache
        trie = self.children.get(publisher.para)
        if trie is None:
            trie = ChildTrie(self.view, self.meter, self.out.changes, publisher)
            self.children[publisher.para] = trie
        cache.end = high
        if self.meter.has_room(0):
            cache.begin()
        before = self.meter.used
        own_before = publisher.row_charges + cache.charges
        try:
            trie.enter(low)
            while low < high:
                low += trie.resolve(low)
        finally:
            self.item = (publisher.para, keys[trie.at])
            publisher.row_charges = trie.delivered.charges
            publisher.child_trie_bytes += self.meter.used - before
            self.charged += publisher.row_charges + cache.charges - own_before
