"""Policy `nodes`: the parachain stores the trie nodes on subscribed paths (PS-43, PS-60, PS-62).

Rows belong to a generation. To drop a cache, the generation is incremented, without reading its
rows. Later blocks remove a few of the old rows each. One row per publisher, the info row, has the
current generation and its size. When a publisher completes and its cache was complete before, the
nodes that are no longer on subscribed paths are removed if they are few. Otherwise the generation
is abandoned.

All reads are made during the walk, by `begin`, `lookup`, `foresee` and `stale_rows`, so that they
are charged.
"""

from collections.abc import Mapping
from itertools import islice
from typing import ClassVar, Final, NamedTuple

from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.base import Cache
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, Keys
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.storage import CacheInfo
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.trie.step import CHILD, step

STALE_ROWS_A_BLOCK: Final = 100
"""The maximum number of rows of abandoned generations that a block removes."""
MOST_WAITING: Final = 2
"""The maximum number of abandoned generations of one publisher.

When it is reached, new nodes are not stored, so that the publisher's rows are bounded.
"""
FEW_STALE_NODES: Final = 16
"""The limit up to which nodes that are no longer on a publisher's paths are removed one by one.

Their number may exceed that of the new nodes by this limit.
"""
_INFO_LENGTH: Final = 12


class StaleRows(NamedTuple):
    """Rows of abandoned generations that a block removes."""

    keys: tuple[bytes, ...] = ()
    """The storage keys of the rows."""
    finished: int = 0
    """The number of generations that end with these rows."""


class NodeCache(Cache):
    """The cached nodes of one publisher."""

    keeps_nodes: ClassVar[bool] = True

    def __init__(
        self, view: SubscriberView, meter: Meter, para: ParaId, keys: Keys, *, trusted: bool
    ) -> None:
        super().__init__(view, meter, para, keys, trusted=trusted)
        self._info: CacheInfo | None = None
        """The info row, once it has been charged."""
        self._hits: dict[Hash, None] = {}
        """The hashes of the nodes that `lookup` returned. The dictionary is an ordered set."""
        self._gone: dict[Hash, bytes] | None = None
        """The nodes that left the publisher's paths, or `None` if they are many or unknown."""

    def lookup(self, node_hash: Hash) -> bytes | None:
        """Return a node of `CachedTrieNodes`, and charge its cost and `ROW_COST`.

        The first lookup also charges the info row.
        """
        if not self.trusted:
            return None
        if self._info is None:
            self._info = self.view.cache_info(self.para)
            self.charge(_INFO_LENGTH + ROW_COST)
            self.meter.check()
        if not self._info.nodes:
            return None
        node = self.view.cached_node(self.para, self._info.generation, node_hash)
        if node is not None:
            cost = node_cost(len(node))
            self.saved += cost
            self.charge(cost + ROW_COST)
            self._hits[node_hash] = None
        return node

    def store(self, storage: Storage, visited: Mapping[Hash, bytes], *, complete: bool) -> bool:
        """Add the visited nodes. If the publisher is complete, remove all others.

        Returns `False` if they exceed `max_cache_bytes`.
        """
        stored = items.CACHE_INFO.get(storage, self.para)
        info = stored
        # A changed key set does not lead here, because its cache has already been dropped.
        if complete and info.nodes != len(self._hits):
            stale = self._gone
            if stale is not None and info.nodes - len(stale) == len(self._hits):
                info = self._remove(storage, info, stale)
            else:
                # The other nodes are too many to find, or they belong to several roots, or they
                # are on subscribed paths and were not looked up.
                info = _abandon(storage, self.para, info)
                self._hits = {}
        if _waiting(storage, self.para) < MOST_WAITING:
            info = self._add(storage, info, visited)
        if info != stored:
            items.CACHE_INFO.insert(storage, self.para, info)
        if info.bytes > self.view.spec.max_cache_bytes:
            self.drop(storage, self.para, self.keys)
            return False
        return True

    def store_only(self, storage: Storage, nodes: Mapping[Hash, bytes]) -> bool:
        """Store these nodes in a generation of their own, and abandon the previous one."""
        self.drop(storage, self.para, self.keys)
        self._hits = {}
        return self.store(storage, nodes, complete=False)

    def begin(self) -> None:
        """Read the info row. The first lookup of a node charges it."""
        self.view.cache_info(self.para)

    def foresee(self, visited: Mapping[Hash, bytes]) -> None:
        """Read the nodes that left the publisher's paths, if they are few."""
        info = self.view.cache_info(self.para)
        if self.trusted and info.nodes != len(self._hits):
            self._gone = self._stale(info.generation, visited)

    def _add(self, storage: Storage, info: CacheInfo, visited: Mapping[Hash, bytes]) -> CacheInfo:
        """Store the visited nodes that were not in the cache, and return the new info row."""
        # If another publisher's walk has already taken a node, the node was free and was not looked
        # up in this cache, where it may be stored. Checking this would be an uncharged read. Such a
        # node is counted twice, and the next completion then starts a new generation.
        generation = (self.para, info.generation)
        nodes = info.nodes
        size = info.bytes
        for node_hash, node in visited.items():
            if node_hash not in self._hits:
                items.CACHED_TRIE_NODES.insert(storage, generation, node_hash, node)
                nodes += 1
                size += node_cost(len(node))
        return CacheInfo(info.generation, nodes, size)

    def _remove(self, storage: Storage, info: CacheInfo, stale: Mapping[Hash, bytes]) -> CacheInfo:
        """Remove nodes one by one, and return the new info row."""
        for node_hash in stale:
            items.CACHED_TRIE_NODES.remove(storage, (self.para, info.generation), node_hash)
        removed = sum(node_cost(len(node)) for node in stale.values())
        return CacheInfo(info.generation, info.nodes - len(stale), info.bytes - removed)

    def _stale(self, generation: int, visited: Mapping[Hash, bytes]) -> dict[Hash, bytes] | None:
        """Return the nodes that left the subscribed paths since the last processed root.

        Returns `None` if they are clearly more than the nodes that the proof added. Otherwise the
        removal of a large trie would cause reads of all its nodes.
        """
        stale: dict[Hash, bytes] = {}
        most = len(visited) - len(self._hits) + FEW_STALE_NODES
        root = self.view.processed_roots()[0].get(self.para)
        todo = [] if root is None else [(root, 0, 0, len(self.keys))]
        while todo:
            node_hash, depth, low, high = todo.pop()
            if node_hash in visited or node_hash in stale:
                continue
            if len(stale) > most or not self.meter.has_room(0):
                return None
            node = self.view.cached_node(self.para, generation, node_hash)
            if node is None:
                continue
            stale[node_hash] = node
            last_child: tuple[Hash, int] | None = None
            for index in range(low, high):
                child = _child_of(node, self.keys[index], depth)
                if child is not None:
                    if child == last_child:
                        todo[-1] = (*child, todo[-1][2], index + 1)
                    else:
                        todo.append((*child, index, index + 1))
                last_child = child
        return stale

    @staticmethod
    def drop(storage: Storage, para: ParaId, keys: Keys) -> None:  # noqa: ARG004  # any keys
        """Drop a publisher's nodes: start a new generation and list the old one for removal."""
        info = items.CACHE_INFO.get(storage, para)
        if info.nodes:
            items.CACHE_INFO.insert(storage, para, _abandon(storage, para, info))


def _child_of(node: bytes, key: PubsubKey, depth: int) -> tuple[Hash, int] | None:
    """Return the hash of the next node towards `key`, and the nibble at which it starts.

    Returns `None` if the path ends or the next node is inline.
    """
    kind, payload, depth = step(node, key, depth)
    return (Hash(payload), depth) if kind == CHILD else None


def _waiting(storage: Storage, para: ParaId) -> int:
    """Return the number of abandoned generations of a publisher."""
    return sum(other == para for other, _ in items.STALE_CACHES.get(storage))


def _abandon(storage: Storage, para: ParaId, info: CacheInfo) -> CacheInfo:
    """List a generation for removal, and return the info row of the next one, which is empty."""
    items.STALE_CACHES.put(storage, [*items.STALE_CACHES.get(storage), (para, info.generation)])
    return CacheInfo(info.generation + 1)


def stale_rows(storage: Storage) -> StaleRows:
    """Return up to `STALE_ROWS_A_BLOCK` rows of generations abandoned before this block (PS-62)."""
    keys: list[bytes] = []
    finished = 0
    for generation in items.STALE_CACHES.get(storage):
        limit = STALE_ROWS_A_BLOCK - len(keys)
        rows = list(
            islice(storage.next_keys(items.CACHED_TRIE_NODES.prefix_for(generation)), limit)
        )
        keys += rows
        if len(rows) == limit:
            break
        # `remove_stale_nodes` reads this row, so it is read here, where reads are charged.
        items.CACHE_INFO.get(storage, generation[0])
        finished += 1
    return StaleRows(tuple(keys), finished)


def remove_stale_nodes(storage: Storage, stale: StaleRows) -> None:
    """Remove these rows, and the generations that end with them."""
    for key in stale.keys:
        storage.kill(key)
    if not stale.finished:
        return
    waiting = items.STALE_CACHES.get(storage)
    for _ in range(stale.finished):
        (para, _), *waiting = waiting
        if (
            all(other != para for other, _ in waiting)
            and not items.CACHE_INFO.get(storage, para).nodes
        ):
            # The publisher has no rows any more, so its generations can count from 0 again.
            items.CACHE_INFO.remove(storage, para)
    items.STALE_CACHES.put_or_kill(storage, waiting)
