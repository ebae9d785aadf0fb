"""Draws a block's proof as a trie.

It shows the nodes read for each publisher, the cached nodes, and the nodes left for later blocks.
"""

from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate

from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.explorer.tree import Below, Drawn, Fate, Sources, TreeQuery, draw
from pubsub_emulator.explorer.words import DisplayNames, static_labels
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost, publisher_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, PublisherPlan
from pubsub_emulator.runtime.pallet_subscriber.view import Item


def draw_block(
    record: BlockRecord, plan: Plan | None, names: DisplayNames, start: Item | None = None
) -> list[Drawn]:
    """Draw the proof of a candidate as `plan` read it.

    Without a plan, draw the nodes under the root that the candidate claims. `start` is the cursor
    at which the walk began. It distinguishes items that the walk did not reach from items that it
    passed unread.
    """
    inherent = record.candidate.inherent
    proof = {blake2_256(node): node for node in inherent.proof}
    root = record.relay_storage_root or inherent.relay_parent_storage_root
    if plan is None:
        return draw(
            root, TreeQuery((), everything=True, fate=lambda *_: Fate.PRUNED), Sources(proof)
        )
    own: dict[Hash, bytes] = {}
    for publisher in plan.publishers.values():
        visited = publisher.visited.items()
        own |= {name: node for name, node in visited if name not in proof}
    static = static_nodes(plan)

    def used(name: Hash) -> Fate:
        if name in plan.taken:
            return Fate.STATIC if name in static else Fate.PROVEN
        # If a node is missing, the walk is incomplete, and the node may be needed after it.
        return Fate.UNUSED if plan.missing is None else Fate.WAITING

    sources = Sources(proof, own, used, loose=plan.missing is not None)
    return draw(root, _top(record.chain, plan, names, reach=_Reach(plan, start)), sources)


def static_nodes(plan: Plan) -> frozenset[Hash]:
    """Return the nodes of the static keys, which the walk takes first (PS-44)."""
    costs = accumulate(node_cost(len(node)) for node in plan.taken.values())
    return frozenset(
        name for name, cost in zip(plan.taken, costs, strict=True) if cost <= plan.static_bytes
    )


def _top(para: ParaId, plan: Plan, names: DisplayNames, reach: "_Reach") -> TreeQuery:
    """Return the keys of the top trie: static keys and the roots of publishers."""
    static = [*fixed_keys(para), *plan.statics.values]
    if plan.missing is not None and not plan.publishers:
        # The key of a channel. The walk has learned from the proof which channels exist.
        static.append(plan.missing.key)
    labels = static_labels(static)
    below: dict[str, Below] = {}
    owners: dict[str, PublisherPlan] = {}
    for publisher in plan.publishers.values():
        key = publisher_root_key(publisher.para).hex()
        labels[key] = f"publisher {names.chain(publisher.para)}"
        below[key] = _child(publisher, names, reach)
        owners[key] = publisher
    keys = tuple(sorted(labels))

    def fate(reference: bytes, low: int, high: int) -> Fate:
        if reach.is_missing(reference):
            return Fate.MISSING
        publishers = [owners[key] for key in keys[low:high] if key in owners]
        return Fate.PRUNED if any(publisher.disabled for publisher in publishers) else Fate.WAITING

    return TreeQuery(keys, labels, below, fate=fate)


def _child(publisher: PublisherPlan, names: DisplayNames, reach: "_Reach") -> Below:
    """Return the keys of a publisher's child trie, and whether it is drawn."""
    closed = publisher.unchanged or publisher.disabled is not None
    labels = {} if closed else {key.hex(): names.key(key) for key in publisher.keys}

    def fate(reference: bytes, low: int, high: int) -> Fate:
        if reach.is_missing(reference):
            return Fate.MISSING
        if publisher.disabled is not None:
            return Fate.PRUNED
        return Fate.REMEMBERED if reach.visited(publisher, low, high) else Fate.WAITING

    query = TreeQuery(_digits(publisher.keys), labels, fate=fate)
    if publisher.disabled is not None:
        return Below(query, Fate.PRUNED, f"disabled: {publisher.disabled.value}")
    if publisher.unchanged:
        return Below(query, Fate.REMEMBERED, "same root as processed before: not read")
    return Below(query, None, "no keys" if publisher.root == EMPTY_TRIE_ROOT else "root moved")


@lru_cache(maxsize=4096)
def _digits(keys: tuple[PubsubKey, ...]) -> tuple[str, ...]:
    """Return keys as hexadecimal digits, cached because blocks share subscriptions."""
    return tuple(key.hex() for key in keys)


class _Reach:
    """The part of the items that a walk reached.

    The walk goes around all items and begins at the cursor.
    """

    def __init__(self, plan: Plan, start: Item | None) -> None:
        self.missing = None if plan.missing is None else plan.missing.node_hash
        self.start: Item = start or (ParaId(0), PubsubKey(b""))
        self.end = plan.cursor or _cut_at(plan)

    def is_missing(self, reference: bytes) -> bool:
        """Return whether the walk ended at this reference, because its node is missing."""
        return reference == self.missing

    def visited(self, publisher: PublisherPlan, low: int, high: int) -> bool:
        """Return whether the walk visited all of a publisher's keys `[low, high)`."""
        if self.end is None or publisher.complete:
            return True
        first = _place(publisher, self.start)
        end = _place(publisher, self.end)
        # If the end is before the start, the walk passed the last item and continued at the first.
        if self.start <= self.end:
            return first <= low and high <= end
        return first <= low or high <= end


def _place(publisher: PublisherPlan, item: Item) -> int:
    """Return the number of a publisher's keys before an item."""
    para, key = item
    if para != publisher.para:
        return 0 if para < publisher.para else len(publisher.keys)
    return bisect_left(publisher.keys, key)


def _cut_at(plan: Plan) -> Item | None:
    """Return the item at which a walk ended because a node was missing.

    Returns `None` if no node was missing, or if it was missing before the first item.
    """
    if plan.missing is None:
        return None
    publishers = list(plan.publishers.values())
    for publisher in reversed(publishers):
        key = PubsubKey(plan.missing.key)
        if key in publisher.keys:
            return publisher.para, key
    return (publishers[-1].para, publishers[-1].keys[0]) if publishers else None
