"""The pallet as the relay runtime composes it: calls, the entry point of `Publish`, and what happens around blocks."""

from collections.abc import Iterable
from typing import ClassVar

from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.dispatch import DispatchError, with_storage_layer
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import expiry, expiry_index, registry, weights
from pubsub_emulator.runtime.pallet_pubsub.calls import Calls
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET
from pubsub_emulator.runtime.pallet_pubsub.integrity import integrity_test
from pubsub_emulator.runtime.pallet_pubsub.publish import publish
from pubsub_emulator.runtime.pallet_pubsub.try_state import try_state


class Broadcaster(Calls, Hooks):
    """The relay-side pallet: publishers, their entries, and the expiry of those."""

    NAME: ClassVar[str] = PALLET

    # The entry point of the XCM instruction `Publish`

    def publish(self, storage: Storage, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Store one entry of a para in the current block; see `publish.publish` for what it raises and emits."""
        publish(self.config, storage, RelayBlockNumber(system.block_number(storage)), para, key, value, ttl)

    def publish_weight(self, value_length: int) -> Weight:
        """What the weigher charges for a `Publish` of a value of `value_length` bytes."""
        return weights.publish(self.config, value_length)

    # Hooks

    def on_idle(self, storage: Storage, now: int, remaining: Weight) -> Weight:
        """Remove entries whose time has come (PS-15); `expiry.sweep` says more of what it did."""
        return expiry.sweep(self.config, storage, RelayBlockNumber(now), remaining).weight

    def on_offboard(self, storage: Storage, outgoing: Iterable[ParaId]) -> Weight:
        """Paras left the relay chain at a change of session: all that they published goes, deposits return (PS-11).

        The runtime lists the message queue's hook before this one. A `Publish` that ran after this would bring a
        system para's data back, and nobody would be left to remove it. Nothing may keep a para that left: a deposit
        that its manager's account cannot take back, which by itself is too little for an account to live, is burned.

        Returns what it took. Emits `PublisherDeregistered` for each that was registered or had data.
        """
        used = WEIGHT_ZERO
        for para in outgoing:
            keys = self._offboard(storage, para) if registry.is_known(storage, para) else 0
            used += weights.deregister_publisher(self.config, keys)
        return used

    def _offboard(self, storage: Storage, para: ParaId) -> int:
        try:
            return with_storage_layer(storage, lambda: registry.remove(self.config, self.balances, storage, para))
        except DispatchError:
            return registry.remove(self.config, self.balances, storage, para, slash=True)

    def on_runtime_upgrade(self, storage: Storage) -> Weight:
        """Make state fit a configuration whose TTL policy has changed; see `expiry_index.migrate`."""
        return expiry_index.migrate(self.config, storage)

    def integrity_test(self) -> None:
        """Raises `IntegrityError` when the configuration cannot work, with the reason."""
        integrity_test(self.config)

    def try_state(self, storage: Storage) -> None:
        """Raises `StateError` when counters, rows, child tries and holds do not agree."""
        try_state(self.config, storage)
