"""Writes the result of a walk to the state (PS-60 to PS-68).

All decisions were made by `plan`, which writes nothing.
"""

from collections.abc import Callable

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.pubsub import TimedOut, TtlState, ValidFor, ttl_state
from pubsub_emulator.primitives.storage_keys import CURRENT_SLOT
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.relay_state import RelayStateProof
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered, events
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache import drop_cache
from pubsub_emulator.runtime.pallet_subscriber.cache.nodes import remove_stale_nodes
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, key_set_hash
from pubsub_emulator.runtime.pallet_subscriber.delivered import NOTHING, DeliveredWriter
from pubsub_emulator.runtime.pallet_subscriber.handler import (
    HandlerContext,
    SubscriptionHandler,
)
from pubsub_emulator.runtime.pallet_subscriber.plan import Change, Plan, PublisherPlan
from pubsub_emulator.runtime.pallet_subscriber.relay_state import RelayStateHandler
from pubsub_emulator.runtime.rules import Rules


@value_type
class Delivery:
    """One callback."""

    publisher: ParaId
    key: PubsubKey
    entry_hash: Hash
    """The hash of the delivered entry, or of the removed one."""
    value: bytes | None
    """The delivered value, or `None` for a removal."""
    ttl_state: TtlState | None
    """The freshness of the entry, or `None` for a removal."""
    failed: bool = False

    @property
    def kind(self) -> str:
        """Return `updated` or `removed`."""
        return "removed" if self.value is None else "updated"


def apply(
    storage: Storage,
    spec: RuntimeSpec,
    plan: Plan,
    relay_parent: RelayBlockNumber,
    handler: SubscriptionHandler,
) -> tuple[Delivery, ...]:
    """Write the result of `plan` and call the handler for every change, in the order of the walk.

    Emits `DataProcessed`, `DataRemoved`, `HandlerFailed`, `PublisherDisabled`.
    """
    rules = plan.rules
    before = items.PROCESSED_ROOTS.get(storage)
    roots = dict(before)
    _forget_changed_key_sets(storage, spec, plan, roots)
    for publisher in plan.publishers.values():
        _store_result(storage, publisher, roots, rules)
    if rules.roots is not None:
        roots = dict(sorted(rules.roots(before, roots).items()))
    # Handlers can compute the remaining lifetime of an entry, so the relay parent is stored first.
    items.LAST_RELAY_PARENT.put(storage, relay_parent)
    disabled = {
        para for para, publisher in plan.publishers.items() if publisher.disabled is not None
    }
    now = rules.time(relay_parent, plan.statics.values.get(CURRENT_SLOT))
    relay = RelayStateProof(plan.requested, plan.statics)
    deliverer = _Deliverer(storage, spec, now, handler, relay, rule=rules.deliver)
    deliver = deliverer.deliver
    results = [deliver(change) for change in plan.changes if change.para not in disabled]
    if spec.extra_keys and isinstance(handler, RelayStateHandler):
        deliverer.relay_state(handler)
    deliveries = tuple([delivery for delivery in results if delivery is not None])
    items.PROCESSED_ROOTS.put_or_kill(storage, roots)
    items.PROCESSING_CURSOR.put_or_kill(storage, plan.cursor)
    remove_stale_nodes(storage, plan.stale)
    return deliveries


def _forget_changed_key_sets(
    storage: Storage, spec: RuntimeSpec, plan: Plan, roots: dict[ParaId, Hash]
) -> None:
    """Drop the cache and root of each publisher whose key set changed (PS-63).

    This does not depend on whether the walk visited it. `repack` has already moved or removed the
    rows of deliveries.
    """
    if not plan.changed_key_sets:
        return
    for para in plan.changed_key_sets:
        drop_cache(storage, para, spec.subscriptions.get(para, ()))
        roots.pop(para, None)
        if para not in spec.subscriptions:
            items.DISABLED_PUBLISHERS.remove(storage, para)
    hashes = {para: key_set_hash(keys) for para, keys in spec.subscriptions.items()}
    items.SUBSCRIPTION_HASH.put_or_kill(storage, hashes)


def _store_result(
    storage: Storage, publisher: PublisherPlan, roots: dict[ParaId, Hash], rules: Rules
) -> None:
    """Update a publisher's cache and processed root (PS-42, PS-60 to PS-62, PS-68)."""
    para = publisher.para
    root = publisher.root
    if publisher.disabled is not None:
        drop_cache(storage, para, publisher.keys)
        roots.pop(para, None)
        items.DISABLED_PUBLISHERS.insert(storage, para, publisher.disabled)
        deposit(storage, events.PublisherDisabled(para, publisher.disabled))
    elif root is not None and not publisher.unchanged:
        if rules.keep is not None and publisher.cache.keeps_nodes:
            is_stored = publisher.cache.store_only(
                storage, rules.keep(para, publisher.visited, publisher.keys)
            )
        else:
            is_stored = publisher.cache.store(
                storage, publisher.visited, complete=publisher.has_all_nodes
            )
        if publisher.complete and is_stored:
            roots[para] = root
        else:
            roots.pop(para, None)


class _Deliverer:
    """Records the deliveries of a block.

    For each of them, it calls the handler in a storage layer of its own (PS-64 to PS-66). `rule`
    decides whether a change is delivered, given the publisher, the key and the remaining blocks.
    """

    def __init__(
        self,
        storage: Storage,
        spec: RuntimeSpec,
        now: RelayBlockNumber,
        handler: SubscriptionHandler,
        relay: RelayStateProof,
        *,
        rule: Callable[[int, bytes, int | None], bool] | None,
    ) -> None:
        self._storage = storage
        self._relay = relay
        self._writer = DeliveredWriter(storage, spec)
        self._now = now
        self._handler = handler
        self._limit = spec.handler_weight
        self._layer = storage.transaction()
        self._rule = rule

    def deliver(self, change: Change) -> Delivery | None:
        """Record one change, call the handler, and deposit the event.

        Returns `None` if a rule withholds the change.
        """
        para, key, entry_hash, entry = change
        value = state = None
        cell = NOTHING
        if entry is not None:
            value, ttl, inserted = entry
            state = ttl_state(ttl, inserted, self._now)
            cell = entry_hash + (ttl | inserted << 32).to_bytes(8, "little")
        self._writer.put(para, key, cell)
        if self._rule is not None:
            remaining: int | None = None
            if isinstance(state, ValidFor):
                remaining = state.blocks
            elif isinstance(state, TimedOut):
                remaining = 0
            if not self._rule(para, key, remaining):
                return None
        failed = not self._call(para, key, value, state)
        if failed:
            deposit(self._storage, events.HandlerFailed(para, key))
        elif value is None:
            deposit(self._storage, events.DataRemoved(para, key))
        else:
            deposit(self._storage, events.DataProcessed(para, key, len(value)))
        return Delivery(para, key, entry_hash, value, state, failed)

    def _call(
        self, para: ParaId, key: PubsubKey, value: bytes | None, state: TtlState | None
    ) -> bool:
        """Call the handler for one change, and return whether it succeeded."""
        if value is None or state is None:
            return self._succeeds(self._removed, para, key)
        return self._succeeds(self._updated, para, key, value, state)

    # A handler without such a method fails like any other, so it is looked up within the call.

    def _updated(
        self,
        context: HandlerContext,
        para: ParaId,
        key: PubsubKey,
        value: bytes,
        state: TtlState,
    ) -> None:
        self._handler.on_data_updated(context, para, key, value, state)

    def _removed(self, context: HandlerContext, para: ParaId, key: PubsubKey) -> None:
        self._handler.on_data_removed(context, para, key)

    def relay_state(self, handler: RelayStateHandler) -> None:
        """Call the handler for the requested keys, and deposit an event if it fails (UP-14)."""
        if not self._succeeds(handler.on_relay_state):
            deposit(self._storage, events.RelayStateHandlerFailed())

    def _succeeds(self, call: Callable[..., None], *arguments: object) -> bool:
        """Make a call in a storage layer, and return whether it succeeded.

        The call gets a context before its `arguments`.
        """
        context = HandlerContext(self._storage, self._limit, self._relay)
        try:
            with self._layer:
                call(context, *arguments)
                context.ensure_within_limit()
        except KeyboardInterrupt:
            # The user interrupts the whole program. The handler did not fail.
            raise
        # A handler is untrusted code, so any exception is its failure (PS-66).
        except BaseException as error:
            if isinstance(error, PubsubError) and error.is_infrastructure:
                # If the state cannot be read, the handler did not fail.
                raise
            return False
        return True


def current_ttl_state(
    storage: Storage, spec: RuntimeSpec, para: ParaId, key: PubsubKey
) -> TtlState | None:
    """Return the remaining lifetime of an item's last delivery at the newest relay parent (PS-65).

    Returns `None` if the item is absent.
    """
    row = delivered.get(storage, spec, para, key)
    now = items.LAST_RELAY_PARENT.get(storage)
    return None if row is None or now is None else ttl_state(row.ttl, row.when_inserted, now)
