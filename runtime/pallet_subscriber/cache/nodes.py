"""Policy `nodes`: the bytes of the trie nodes on subscribed paths stand in the parachain's state (PS-43, PS-60, PS-62).

Rows are filed under a generation. Dropping a cache only counts the generation up, so it reads nothing; the rows left
behind are removed a few at a time. A row a publisher says which generation lives, and how large it is.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from primitives.pubsub import node_cost
from primitives.types import Hash, ParaId, PubsubKey
from runtime.pallet_subscriber import storage as items
from runtime.pallet_subscriber.cache.base import Cache
from runtime.pallet_subscriber.config import ROW_COST
from runtime.pallet_subscriber.meter import Meter
from runtime.pallet_subscriber.storage import CacheInfo
from runtime.pallet_subscriber.view import SubscriberView
from runtime.storage import Storage

STALE_ROWS_A_BLOCK: Final = 100
_INFO_LENGTH: Final = 12


class NodeCache(Cache):
    """The cached nodes of one publisher."""

    keeps_nodes: ClassVar[bool] = True

    __slots__ = ("_hits", "_info", "_misses")

    def __init__(
        self, view: SubscriberView, meter: Meter, para: ParaId, keys: tuple[PubsubKey, ...], *, trusted: bool
    ) -> None:
        super().__init__(view, meter, para, keys, trusted=trusted)
        self._info: CacheInfo | None = None
        self._hits: dict[Hash, None] = {}
        self._misses: dict[Hash, None] = {}

    def lookup(self, node_hash: Hash) -> bytes | None:
        """A node from `CachedTrieNodes`, charged its cost + `ROW_COST`; the info row is charged with the first look."""
        if not self.trusted:
            return None
        if self._info is None:
            self._info = self.view.cache_info(self.para)
            self.charge(_INFO_LENGTH + ROW_COST)
            self.meter.check()
        if not self._info.nodes:
            return None
        node = self.view.cached_node(self.para, self._info.generation, node_hash)
        if node is None:
            self._misses[node_hash] = None
        else:
            cost = node_cost(len(node))
            self.saved += cost
            self.charge(cost + ROW_COST)
            self._hits[node_hash] = None
        return node

    def settle(self, storage: Storage, walked: Mapping[Hash, bytes], *, complete: bool) -> bool:
        """Add the nodes walked; when complete, they are all that stays. False above `max_cache_bytes`."""
        stored = info = items.CACHE_INFO.get(storage, self.para)
        if complete and info.nodes != len(self._hits):
            # Some cached node is on no subscribed path any more, and only a walk of the old trie could say which.
            info = _abandon(storage, self.para, info)
            self._hits = {}
        generation = (self.para, info.generation)
        nodes, size = info.nodes, info.bytes
        for node_hash, node in walked.items():
            if node_hash in self._hits:
                continue
            # One that was not looked up came for free, from another publisher's walk: it may be here as well.
            unknown = info.nodes and node_hash not in self._misses
            if unknown and items.CACHED_TRIE_NODES.contains(storage, generation, node_hash):
                continue
            items.CACHED_TRIE_NODES.insert(storage, generation, node_hash, node)
            nodes += 1
            size += node_cost(len(node))
        info = CacheInfo(info.generation, nodes, size)
        if info != stored:
            items.CACHE_INFO.insert(storage, self.para, info)
        if size > self.view.spec.max_cache_bytes:
            self.drop(storage, self.para)
            return False
        return True

    @staticmethod
    def drop(storage: Storage, para: ParaId) -> None:
        """Forget a publisher's nodes: a new generation, and the old one waits to be removed."""
        info = items.CACHE_INFO.get(storage, para)
        if info.nodes:
            items.CACHE_INFO.insert(storage, para, _abandon(storage, para, info))


def _abandon(storage: Storage, para: ParaId, info: CacheInfo) -> CacheInfo:
    if info.nodes:
        items.STALE_CACHES.mutate(storage, lambda waiting: [*waiting, (para, info.generation)])
    return CacheInfo(info.generation + 1)


def remove_stale_nodes(storage: Storage) -> int:
    """Remove at most `STALE_ROWS_A_BLOCK` rows of abandoned generations; returns how many went (PS-62)."""
    before = waiting = items.STALE_CACHES.get(storage)
    left = STALE_ROWS_A_BLOCK
    while waiting and left:
        removed = storage.clear_prefix(items.CACHED_TRIE_NODES.prefix_for(waiting[0]), left)
        if removed < left:
            (para, _), *waiting = waiting
            _forget_generation(storage, para, waiting)
        left -= removed
    if waiting:
        items.STALE_CACHES.put(storage, waiting)
    elif before:
        items.STALE_CACHES.kill(storage)
    return STALE_ROWS_A_BLOCK - left


def _forget_generation(storage: Storage, para: ParaId, waiting: list[tuple[ParaId, int]]) -> None:
    """With no row of any generation left, counting can start anew and the info row can go."""
    if all(other != para for other, _ in waiting) and not items.CACHE_INFO.get(storage, para).nodes:
        items.CACHE_INFO.remove(storage, para)
