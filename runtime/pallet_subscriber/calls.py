"""The pallet's calls, all for governance only (PS-67). Each names the publisher it is about."""

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import ModuleError, dispatchable
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache import drop_cache
from pubsub_emulator.runtime.pallet_subscriber.errors import Error
from pubsub_emulator.runtime.pallet_subscriber.events import (
    PublisherCacheCleared,
    PublisherEnabled,
    RedeliveryRequested,
)
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET, para_id

_CALL_WEIGHT = Weight(50_000_000, 4096)


class SubscriberCalls:
    """`Subscriber` as a pallet of the runtime."""

    @dispatchable(0, para_id, weight=_CALL_WEIGHT)
    def clear_publisher_cache(self, storage: Storage, origin: Origin, para: ParaId, /) -> None:
        """Drop what is remembered of a publisher's trie, and its processed root: it is walked anew.

        Errors: `BadOrigin`, `NothingToClear`. Emits `PublisherCacheCleared`.
        """
        ensure_root(origin)
        if not forget(storage, para):
            raise ModuleError(PALLET, Error.NothingToClear)
        deposit(storage, PublisherCacheCleared(para))

    @dispatchable(1, para_id, weight=_CALL_WEIGHT)
    def redeliver(self, storage: Storage, origin: Origin, para: ParaId, /) -> None:
        """As `clear_publisher_cache`, and forget what was delivered: every entry is delivered again.

        Errors: `BadOrigin`. Emits `RedeliveryRequested`.
        """
        ensure_root(origin)
        forget(storage, para)
        delivered.clear(storage, para)
        deposit(storage, RedeliveryRequested(para))

    @dispatchable(2, para_id, weight=_CALL_WEIGHT)
    def enable_publisher(self, storage: Storage, origin: Origin, para: ParaId, /) -> None:
        """Read a disabled publisher again; if it is as it was it will be disabled again.

        Errors: `BadOrigin`, `PublisherNotDisabled`. Emits `PublisherEnabled`.
        """
        ensure_root(origin)
        if items.DISABLED_PUBLISHERS.take(storage, para) is None:
            raise ModuleError(PALLET, Error.PublisherNotDisabled)
        deposit(storage, PublisherEnabled(para))


def forget(storage: Storage, para: ParaId) -> bool:
    """Drop a publisher's cache and processed root; false when there was neither."""
    roots = dict(items.PROCESSED_ROOTS.get(storage))
    known = roots.pop(para, None) is not None
    cached = bool(items.CACHE_INFO.get(storage, para).nodes)
    slots = next(iter(items.CACHE_SLOTS.items(storage, para)), None) is not None
    drop_cache(storage, para)
    if roots:
        items.PROCESSED_ROOTS.put(storage, roots)
    else:
        items.PROCESSED_ROOTS.kill(storage)
    return known or cached or slots
