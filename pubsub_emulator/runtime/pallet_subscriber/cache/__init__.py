"""The cache of a publisher's trie: three policies with one interface (PS-69).

    none    nothing; every walk starts from the child root
    nodes   the bytes of the nodes on subscribed paths                      (nodes.py)
    slots   the hashes of resolved subtrees, by position in the key space   (slots.py)

A `Cache` is opened when the walk reaches a publisher. It can return the bytes of a node (`lookup`)
and the number of items that are already resolved (`covers`, `covers_absence`). Each of these reads
is charged, and is made only if the stop rule allows it. Nothing is written until `apply` calls
`store`. The code of the walk is the same for all policies.
"""

from typing import Final

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.cache.base import Cache
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import NodeCache
from pubsub_emulator.runtime.pallet_subscriber.cache.slots import SlotCache, leaf_reference
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, Keys
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView

_POLICIES: Final[dict[CachePolicy, type[Cache]]] = {
    CachePolicy.NONE: Cache,
    CachePolicy.NODES: NodeCache,
    CachePolicy.SLOTS: SlotCache,
}


def open_cache(
    view: SubscriberView, meter: Meter, para: ParaId, keys: Keys, *, trusted: bool
) -> Cache:
    """Return the cache of one publisher for one walk.

    If it is not `trusted`, its stored contents are not used (PS-63).
    """
    return _POLICIES[view.spec.cache](view, meter, para, keys, trusted=trusted)


def drop_cache(storage: Storage, para: ParaId, keys: Keys) -> None:
    """Drop the caches of all policies for these keys of a publisher (PS-33)."""
    for policy in _POLICIES.values():
        policy.drop(storage, para, keys)


__all__ = ["Cache", "drop_cache", "leaf_reference", "open_cache"]
