"""The pallet's calls, for governance only (PS-67).

Each concerns one publisher.
"""

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight, encode_weight, weight_info
from pubsub_emulator.runtime.framework.dispatch import ModuleError, dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.pallet import Constant, constant
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered, events
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache import drop_cache
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET

_CALL_WEIGHT = Weight(50_000_000, 4096)


class SubscriberCalls(Hooks):
    """The calls of the pallet `Subscriber`.

    `spec` gives the pallet's constants. Without it, there are none.
    """

    pallet = PALLET

    def __init__(self, spec: RuntimeSpec | None = None) -> None:
        self._spec = spec

    @dispatchable(0, weight=_CALL_WEIGHT)
    def clear_publisher_cache(self, storage: Storage, origin: Origin, para: ParaId, /) -> None:
        """Drop what is remembered of a publisher's trie, and its processed root: it is walked anew.

        Errors: `BadOrigin`, `NothingToClear`. Emits `PublisherCacheCleared`.
        """
        ensure_root(origin)
        has_cache = look_up(storage, para)
        has_root = forget(storage, para, _keys(storage, para))
        ensure(has_cache or has_root, events.Error.NothingToClear)
        deposit(storage, events.PublisherCacheCleared(para))

    @dispatchable(1, weight=_CALL_WEIGHT)
    def redeliver(self, storage: Storage, origin: Origin, para: ParaId, /) -> None:
        """Do as `clear_publisher_cache`, and deliver every entry again.

        The pallet forgets what was delivered. Errors: `BadOrigin`. Emits `RedeliveryRequested`.
        """
        ensure_root(origin)
        keys = _keys(storage, para)
        forget(storage, para, keys)
        delivered.clear(storage, para, keys)
        deposit(storage, events.RedeliveryRequested(para))

    @dispatchable(2, weight=_CALL_WEIGHT)
    def enable_publisher(self, storage: Storage, origin: Origin, para: ParaId, /) -> None:
        """Read a disabled publisher again; if it is as it was it will be disabled again.

        Errors: `BadOrigin`, `PublisherNotDisabled`. Emits `PublisherEnabled`.
        """
        ensure_root(origin)
        if items.DISABLED_PUBLISHERS.take(storage, para) is None:
            raise ModuleError(events.Error.PublisherNotDisabled)
        deposit(storage, events.PublisherEnabled(para))

    def constants(self) -> tuple[Constant, ...]:
        """Return the runtime's figures, without its subscriptions."""
        spec = self._spec
        policies = tuple(CachePolicy)
        if spec is None:
            return ()
        policy_type = type_info.enum(
            "pallet_subscriber::CachePolicy", *(policy.value.capitalize() for policy in policies)
        )
        return (
            constant("MaxPovSize", scale.u32, spec.max_pov_size, "Bytes of the largest block."),
            constant(
                "ReserveMinimum",
                scale.boolean,
                spec.reserve_minimum,
                "Whether messages leave 1 MiB free.",
            ),
            Constant(
                "CachePolicy",
                policy_type,
                bytes((policies.index(spec.cache),)),
                "What is remembered of a trie.",
            ),
            constant(
                "MeterCacheReads",
                scale.boolean,
                spec.meter_cache_reads,
                "Whether reading the cache is charged.",
            ),
            constant(
                "MaxCacheBytes", scale.u32, spec.max_cache_bytes, "Bytes cached of one publisher."
            ),
            constant(
                "MaxTrieDepth",
                scale.option(scale.u32),
                spec.max_trie_depth,
                "Child nodes on a path.",
            ),
            constant(
                "MaxValueLength", scale.u32, spec.max_value_length, "Bytes of the longest value."
            ),
            constant(
                "MaxStoredKeys",
                scale.u32,
                spec.max_stored_keys,
                "Keys that one publisher may store.",
            ),
            Constant(
                "Handler",
                type_info.STR,
                scale.encode_bytes(spec.handler.encode()),
                "Who gets deliveries.",
            ),
            Constant(
                "HandlerWeight",
                weight_info,
                encode_weight(spec.handler_weight),
                "What one callback may take.",
            ),
        )


def _keys(storage: Storage, para: ParaId) -> tuple[PubsubKey, ...]:
    """Return the keys of a publisher to which the runtime subscribes."""
    return runtime_spec(storage).subscriptions.get(para, ())


def look_up(storage: Storage, para: ParaId) -> bool:
    """Read the rows that every call about a publisher reads.

    Returns whether the publisher has cached nodes or slots.
    """
    # The result is not needed, but a call may read this row, and reads must be charged.
    items.DISABLED_PUBLISHERS.contains(storage, para)
    has_nodes = bool(items.CACHE_INFO.get(storage, para).nodes)
    return next(iter(items.CACHE_SLOTS.items(storage, para)), None) is not None or has_nodes


def forget(storage: Storage, para: ParaId, keys: tuple[PubsubKey, ...]) -> bool:
    """Drop a publisher's processed root and its cache for `keys`.

    Returns whether there was a root.
    """
    roots = dict(items.PROCESSED_ROOTS.get(storage))
    had_root = roots.pop(para, None) is not None
    drop_cache(storage, para, keys)
    items.PROCESSED_ROOTS.put_or_kill(storage, roots)
    return had_root
