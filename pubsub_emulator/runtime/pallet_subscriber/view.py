"""The part of the parachain's state before the block that a walk reads.

A walk reads some rows by the thousand. They bypass the generic storage items, so that the prefix is
hashed once per publisher and not once per row. A test checks that the keys are the same.
"""

from collections.abc import Mapping
from functools import lru_cache

from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.delivered import DeliveredReader, PackedReader
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.storage import CacheInfo
from pubsub_emulator.runtime.rules import SHIPPED, Rules

Item = tuple[ParaId, PubsubKey]
Hashes = Mapping[ParaId, Hash]


@lru_cache(maxsize=4096)
def _cached_nodes_prefix(para: ParaId, generation: int) -> bytes:
    return items.CACHED_TRIE_NODES.prefix_for((para, generation))


@lru_cache(maxsize=4096)
def _disabled_key(para: ParaId) -> bytes:
    return items.DISABLED_PUBLISHERS.key_for(para)


@lru_cache(maxsize=4096)
def _slots_prefix(para: ParaId) -> bytes:
    return items.CACHE_SLOTS.prefix_for(para)


class SubscriberView:
    """Read access for `plan`, without any writes."""

    def __init__(self, storage: Storage, spec: RuntimeSpec, rules: Rules = SHIPPED) -> None:
        """Open a view. Raises `RulesError` if `spec` names neither `rules` nor the shipped ones."""
        self.storage = storage
        self.spec = spec
        self.rules = rules.named(spec.rules)

    def processed_roots(self) -> tuple[Mapping[ParaId, Hash], int]:
        """Return `ProcessedRoots` and its stored length, which is zero if it is absent."""
        return self._with_length(items.PROCESSED_ROOTS)

    def subscription_hashes(self) -> tuple[Mapping[ParaId, Hash], int]:
        """Return `SubscriptionHash` and its stored length, which is zero if it is absent."""
        return self._with_length(items.SUBSCRIPTION_HASH)

    def cursor(self) -> Item | None:
        """Return `ProcessingCursor`."""
        return items.PROCESSING_CURSOR.get(self.storage)

    def is_disabled(self, para: ParaId) -> bool:
        """Return whether `para` is in `DisabledPublishers`."""
        return self.storage.exists(_disabled_key(para))

    def delivered(self, meter: Meter, para: ParaId, keys: tuple[PubsubKey, ...]) -> DeliveredReader:
        """Return a reader of the last deliveries of one publisher's items."""
        reader = PackedReader if self.spec.cache is CachePolicy.SLOTS else DeliveredReader
        return reader(self.storage, meter, para, keys)

    def cache_info(self, para: ParaId) -> CacheInfo:
        """Return `CacheInfo` of one publisher."""
        return items.CACHE_INFO.get(self.storage, para)

    def cached_node(self, para: ParaId, generation: int, node_hash: Hash) -> bytes | None:
        """Return one node of `CachedTrieNodes`."""
        return self.storage.get(_cached_nodes_prefix(para, generation) + node_hash)

    def cache_slots(self, para: ParaId, prefix: bytes) -> bytes | None:
        """Return one row of `CacheSlots`."""
        return self.storage.get(_slots_prefix(para) + prefix)

    def _with_length(self, item: StorageValue[Hashes, Hashes]) -> tuple[Hashes, int]:
        stored = self.storage.get(item.key)
        return ({}, 0) if stored is None else (item.codec.decode(stored), len(stored))
