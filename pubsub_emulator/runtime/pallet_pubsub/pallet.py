"""The pallet as a whole: calls, the entry point of `Publish`, and hooks."""

from collections.abc import Iterable

from pubsub_emulator.primitives import scale, storage_keys
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.dispatch import DispatchError, with_storage_layer
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.pallet import Constant, constant
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import expiry, expiry_index, registry, weights
from pubsub_emulator.runtime.pallet_pubsub.calls import Calls
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET
from pubsub_emulator.runtime.pallet_pubsub.integrity import integrity_test
from pubsub_emulator.runtime.pallet_pubsub.publish import publish
from pubsub_emulator.runtime.pallet_pubsub.try_state import try_state


class Broadcaster(Calls, Hooks):
    """The relay-side pallet: publishers, their entries, and the expiry of those."""

    pallet = PALLET

    # The entry point of the XCM instruction `Publish`

    def publish(self, storage: Storage, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Store one entry of a para in the current block. Raises and emits as `publish.publish`."""
        publish(self.config, storage, self._time(storage, system.block_number(storage)), para, key, value, ttl)

    # Hooks

    def on_idle(self, storage: Storage, now: int, remaining: Weight) -> Weight:
        """Remove expired entries (PS-15), as `expiry.sweep`."""
        return expiry.sweep(self.config, storage, self._time(storage, now), remaining).weight

    def on_offboard(self, storage: Storage, outgoing: Iterable[ParaId]) -> Weight:
        """Remove the data of paras that left the relay chain at a session change and release their deposits (PS-11).

        The runtime lists the message queue's hook before this one: a `Publish` that ran afterwards would store data of
        a system para that nobody could remove. Nothing may prevent the removal: a deposit that its manager's account
        cannot take back, since it is below the existential deposit, is burnt.

        Returns the weight used. Emits `PublisherDeregistered` for each para that was registered or had data.
        """
        used = WEIGHT_ZERO
        for para in outgoing:
            keys = self._offboard(storage, para) if registry.is_known(storage, para) else 0
            used += weights.deregister_publisher(self.config, keys)
        return used

    def on_runtime_upgrade(self, storage: Storage) -> Weight:
        """Migrate the state to a changed TTL policy, as `expiry_index.migrate`."""
        return expiry_index.migrate(self.config, storage)

    def integrity_test(self) -> None:
        """Raise `IntegrityError` with the reason if the configuration cannot work."""
        integrity_test(self.config)

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if counters, rows, child tries and holds disagree."""
        try_state(self.config, storage)

    def constants(self) -> tuple[Constant, ...]:
        """The limits of publishers."""
        config = self.config
        size, scans = "Bytes that a publisher may store.", "Entries looked at for expiry per block."
        system_paras = "Publishers below this id are system parachains."
        return (
            constant("MaxValueLength", scale.u32, config.max_value_length, "Bytes of the longest value."),
            constant("MaxStoredKeys", scale.u32, config.max_stored_keys, "Keys that a publisher may store."),
            constant("MaxTotalStorageSize", scale.u32, config.max_total_storage_size, size),
            constant("MaxPublishers", scale.u32, config.max_publishers, "Publishers that may be registered."),
            constant("PublisherDeposit", scale.u128, config.publisher_deposit, "What a registration holds."),
            constant("SystemParaThreshold", scale.u32, config.system_para_threshold, system_paras),
            constant("MaxTtlScansPerIdle", scale.u32, config.max_ttl_scans_per_idle, scans),
        )

    # Implementation

    def _time(self, storage: Storage, number: int) -> RelayBlockNumber:
        rules = self.config.rules
        return rules.time(number, None if rules.clock is None else storage.get(storage_keys.CURRENT_SLOT))

    def _offboard(self, storage: Storage, para: ParaId) -> int:
        try:
            return with_storage_layer(storage, lambda: registry.remove(self.config, self.balances, storage, para))
        except DispatchError:
            return registry.remove(self.config, self.balances, storage, para, slash=True)
