"""What a walk changes: `plan` decided everything; here, and here alone, it is written (PS-60 to PS-68)."""

from collections.abc import Mapping
from dataclasses import dataclass

from pubsub_emulator.primitives.pubsub import TtlState, ttl_state
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache import drop_cache
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import remove_stale_nodes
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, key_set_hash
from pubsub_emulator.runtime.pallet_subscriber.events import (
    DataProcessed,
    DataRemoved,
    HandlerFailed,
    PublisherDisabled,
)
from pubsub_emulator.runtime.pallet_subscriber.handler import HandlerContext, SubscriptionHandler
from pubsub_emulator.runtime.pallet_subscriber.plan import Change, Plan, PublisherPlan
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered


@dataclass(frozen=True, slots=True)
class Delivery:
    """One callback: `value` and `ttl_state` are none for a removal, `entry_hash` is then that of the entry removed."""

    publisher: ParaId
    key: PubsubKey
    entry_hash: Hash
    value: bytes | None
    ttl_state: TtlState | None
    failed: bool = False

    @property
    def kind(self) -> str:
        """`updated` or `removed`."""
        return "removed" if self.value is None else "updated"


def apply(
    storage: Storage, spec: RuntimeSpec, plan: Plan, relay_parent: RelayBlockNumber, handler: SubscriptionHandler
) -> tuple[Delivery, ...]:
    """Write what `plan` found and call the handler for every change, in the order of the walk.

    Emits `DataProcessed`, `DataRemoved`, `HandlerFailed`, `PublisherDisabled`.
    """
    roots = dict(items.PROCESSED_ROOTS.get(storage))
    _forget_changed_key_sets(storage, spec, plan, roots)
    for publisher in plan.publishers.values():
        _settle(storage, publisher, roots)
    items.LAST_RELAY_PARENT.put(storage, relay_parent)  # before any handler asks how fresh an entry is
    disabled = {para for para, publisher in plan.publishers.items() if publisher.disabled is not None}
    deliveries = tuple(
        _deliver(storage, spec, change, relay_parent, handler) for change in plan.changes if change.para not in disabled
    )
    _put_roots(storage, roots)
    if plan.cursor is None:
        items.PROCESSING_CURSOR.kill(storage)
    else:
        items.PROCESSING_CURSOR.put(storage, plan.cursor)
    remove_stale_nodes(storage, plan.stale)
    return deliveries


def _forget_changed_key_sets(storage: Storage, spec: RuntimeSpec, plan: Plan, roots: dict[ParaId, Hash]) -> None:
    """A changed key set loses its cache and root, met or not (PS-63). Dropped keys went with the upgrade: `repack`."""
    if not plan.changed_key_sets:
        return
    for para in plan.changed_key_sets:
        drop_cache(storage, para, spec.subscriptions.get(para, ()))
        roots.pop(para, None)
        if para not in spec.subscriptions:
            items.DISABLED_PUBLISHERS.remove(storage, para)
    hashes = {para: key_set_hash(keys) for para, keys in spec.subscriptions.items()}
    if hashes:
        items.SUBSCRIPTION_HASH.put(storage, hashes)
    else:
        items.SUBSCRIPTION_HASH.kill(storage)


def _settle(storage: Storage, publisher: PublisherPlan, roots: dict[ParaId, Hash]) -> None:
    """What becomes of a publisher's cache and processed root (PS-42, PS-60 to PS-62, PS-68)."""
    para, root = publisher.para, publisher.root
    if publisher.disabled is not None:
        drop_cache(storage, para, publisher.keys)
        roots.pop(para, None)
        items.DISABLED_PUBLISHERS.insert(storage, para, publisher.disabled)
        deposit(storage, PublisherDisabled(para, publisher.disabled))
    elif root is not None and not publisher.unchanged:
        kept = publisher.cache.settle(storage, publisher.walked, complete=publisher.exact)
        if publisher.complete and kept:
            roots[para] = root
        else:
            roots.pop(para, None)


def _deliver(
    storage: Storage, spec: RuntimeSpec, change: Change, relay_parent: RelayBlockNumber, handler: SubscriptionHandler
) -> Delivery:
    """Record what is delivered, then call the handler in a layer of its own (PS-64 to PS-66)."""
    para, key, entry = change.para, change.key, change.entry
    state = None
    if entry is None:
        delivered.put(storage, spec, para, key, None)
    else:
        state = ttl_state(entry.ttl, entry.when_inserted, relay_parent)
        row = LastDelivered(change.entry_hash, entry.ttl, entry.when_inserted)
        delivered.put(storage, spec, para, key, row)
    failed = not _call(storage, spec, change, state, handler)
    if failed:
        deposit(storage, HandlerFailed(para, key))
    elif entry is None:
        deposit(storage, DataRemoved(para, key))
    else:
        deposit(storage, DataProcessed(para, key, len(entry.value)))
    return Delivery(para, key, change.entry_hash, None if entry is None else entry.value, state, failed)


def _call(
    storage: Storage, spec: RuntimeSpec, change: Change, state: TtlState | None, handler: SubscriptionHandler
) -> bool:
    context = HandlerContext(storage, spec.handler_weight)
    try:
        with storage.transaction():
            if change.entry is None or state is None:
                handler.on_data_removed(context, change.para, change.key)
            else:
                handler.on_data_updated(context, change.para, change.key, change.entry.value, state)
            context.ensure_within_limit()
    except KeyboardInterrupt:
        raise  # it comes from outside, and is about the whole program
    except BaseException:  # noqa: BLE001  # a handler is a stranger's code: whatever it raises is its failure (PS-66)
        return False
    return True


def _put_roots(storage: Storage, roots: Mapping[ParaId, Hash]) -> None:
    if roots:
        items.PROCESSED_ROOTS.put(storage, dict(roots))
    else:
        items.PROCESSED_ROOTS.kill(storage)


def current_ttl_state(storage: Storage, spec: RuntimeSpec, para: ParaId, key: PubsubKey) -> TtlState | None:
    """Freshness of an item as last delivered, at the newest relay parent; none when it is absent (PS-65)."""
    row = delivered.get(storage, spec, para, key)
    now = items.LAST_RELAY_PARENT.get(storage)
    return None if row is None or now is None else ttl_state(row.ttl, row.when_inserted, now)
