"""The pallet: its calls, the entry point of `Publish`, hooks, and checks.

The configuration is checked before block 1.
"""

from collections.abc import Iterable, Sequence

from pubsub_emulator.primitives import scale, storage_keys
from pubsub_emulator.primitives.types import (
    U32_MAX,
    U128_MAX,
    AccountId,
    Balance,
    ParaId,
    PubsubKey,
    RelayBlockNumber,
)
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.codecs import account_id, balance
from pubsub_emulator.runtime.framework.dispatch import (
    DispatchError,
    ModuleError,
    dispatchable,
    ensure,
    with_storage_layer,
)
from pubsub_emulator.runtime.framework.events import deposit as deposit_event
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.pallet import Constant, constant
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import expiry, registry, weights
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET, Config, ForcedDeposit, Registrar
from pubsub_emulator.runtime.pallet_pubsub.events import Error, KeysDeleted, KeysForcedDeleted
from pubsub_emulator.runtime.pallet_pubsub.publish import publish, remove_key
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    RegisteredPublishers,
    ensure_key,
    ensure_para,
    rows_of,
)
from pubsub_emulator.runtime.pallet_pubsub.try_state import try_state


class Broadcaster(Hooks):
    """The relay-side pallet: publishers, their entries, and the expiry of entries.

    A failed call leaves neither state nor event (PS-10). Arguments that an encoded call cannot have
    raise `ScaleError`.
    """

    pallet = PALLET

    def __init__(self, config: Config, balances: Balances, registrar: Registrar) -> None:
        self.config = config
        self.balances = balances
        self.registrar = registrar

    @dispatchable(0, weight=weights.register_publisher())
    def register_publisher(self, storage: Storage, origin: Origin, para: ParaId) -> None:
        """Register a para as publisher; the caller becomes its manager.

        `PublisherDeposit` of the caller's balance is held.

        Origin: the account that owns the para, or the para itself.
        Raises `BadOrigin`, `AlreadyRegistered`, `TooManyPublishers`, `NotAuthorized`, or why the
        hold failed. Emits `PublisherRegistered`.
        """
        ensure_para(para)
        manager = registry.caller_account(origin)
        registry.ensure_vacant(self.config, storage, para)
        registry.ensure_owner(self.registrar, storage, origin, para)
        registry.register(self.balances, storage, para, manager, self.config.deposit_of(para))

    @dispatchable(1, weight=weights.register_publisher())
    def force_register_publisher(
        self, storage: Storage, origin: Origin, manager: AccountId, deposit: Balance, para: ParaId
    ) -> None:
        """Register a para for `manager` with a deposit of any size.

        The deposit, which may be zero, is held from the manager's balance.

        Origin: root.
        Raises `BadOrigin`, `AlreadyRegistered`, `TooManyPublishers`, or why the hold failed.
        Emits `PublisherRegistered`.
        """
        ensure_para(para)
        account_id.encode(manager)
        balance.encode(deposit)
        ensure_root(origin)
        registry.ensure_vacant(self.config, storage, para)
        registry.register(self.balances, storage, para, manager, deposit)

    @dispatchable(2, weight=lambda self, _para: weights.deregister_publisher(self.config))
    def deregister_publisher(self, storage: Storage, origin: Origin, para: ParaId) -> Weight | None:
        """Remove a publisher with all its data and release its deposit, in one call.

        Origin: the publisher's manager, or the para itself.
        Raises `BadOrigin`, `NotRegistered`, `NotAuthorized`.
        Emits `PublisherDeregistered`.
        """
        ensure_para(para)
        registry.ensure_caller(origin)
        info = RegisteredPublishers.get(storage, para)
        if info is None:
            raise ModuleError(Error.NotRegistered)
        registry.ensure_manager(info, origin, para)
        keys = registry.remove(self.config, self.balances, storage, para)
        return weights.deregister_publisher(self.config, keys)

    @dispatchable(3, weight=lambda self, _para: weights.deregister_publisher(self.config))
    def force_deregister_publisher(
        self, storage: Storage, origin: Origin, para: ParaId
    ) -> Weight | None:
        """Remove a publisher, or a system para's data, whoever manages it.

        `forced_deposit` decides where the deposit goes.

        Origin: root.
        Raises `BadOrigin`; `NotRegistered` where there is neither a registration nor data.
        Emits `PublisherDeregistered`.
        """
        ensure_para(para)
        ensure_root(origin)
        if not registry.is_known(storage, para):
            raise ModuleError(Error.NotRegistered)
        slash = self.config.forced_deposit is ForcedDeposit.SLASHED
        keys = registry.remove(self.config, self.balances, storage, para, slash=slash)
        return weights.deregister_publisher(self.config, keys)

    @dispatchable(4, weight=lambda self, _para, keys: weights.delete_keys(self.config, len(keys)))
    def delete_keys(
        self, storage: Storage, origin: Origin, para: ParaId, keys: Sequence[PubsubKey]
    ) -> None:
        """Remove entries by key. Duplicates merge, keys that are not stored are ignored.

        Origin: the publisher's manager, or the para itself; a system para needs no registration.
        Raises `BadOrigin`, `NotRegistered`, `NotAuthorized`, and `NoKeysToDelete` when nothing was
        stored under any. Emits `KeysDeleted` with how many entries were removed.
        """
        _ensure_arguments(para, keys)
        registry.ensure_caller(origin)
        info = RegisteredPublishers.get(storage, para)
        if info is None and not self.config.is_system(para):
            raise ModuleError(Error.NotRegistered)
        registry.ensure_manager(info, origin, para)
        deposit_event(storage, KeysDeleted(para, self._remove(storage, para, keys)))

    @dispatchable(5, weight=lambda self, _para, keys: weights.delete_keys(self.config, len(keys)))
    def force_delete_keys(
        self, storage: Storage, origin: Origin, para: ParaId, keys: Sequence[PubsubKey]
    ) -> None:
        """Remove entries by key, as `delete_keys` does, of any publisher.

        Origin: root.
        Raises `BadOrigin`, `NoKeysToDelete`.
        Emits `KeysForcedDeleted` with how many entries were removed.
        """
        _ensure_arguments(para, keys)
        ensure_root(origin)
        deposit_event(storage, KeysForcedDeleted(para, self._remove(storage, para, keys)))

    def publish(
        self, storage: Storage, para: ParaId, key: PubsubKey, value: bytes, ttl: int
    ) -> None:
        """Store one entry of a para in the current block, for a `Publish` instruction.

        Raises and emits as `publish.publish`.
        """
        publish(
            self.config,
            storage,
            self._time(storage, system.block_number(storage)),
            para,
            key,
            value,
            ttl,
        )

    def on_idle(self, storage: Storage, now: int, remaining: Weight) -> Weight:
        """Remove expired entries (PS-15), as `expiry.sweep`."""
        return expiry.sweep(self.config, storage, self._time(storage, now), remaining).weight

    def on_offboard(self, storage: Storage, outgoing: Iterable[ParaId]) -> Weight:
        """Remove the data of paras that left the relay chain, and release their deposits (PS-11).

        Paras leave at a session change. The runtime lists the message queue's hook before this one:
        a `Publish` that ran afterwards would store data of a system para that nobody could remove.

        The removal must not fail. If a deposit cannot be released, because the manager's free
        balance would still be below the existential deposit, it is burnt.

        Returns the weight used. Emits `PublisherDeregistered` for each para that was registered or
        had data.
        """
        used = WEIGHT_ZERO
        for para in outgoing:
            keys = self._offboard(storage, para) if registry.is_known(storage, para) else 0
            used += weights.deregister_publisher(self.config, keys)
        return used

    def on_runtime_upgrade(self, storage: Storage) -> Weight:
        """Migrate the state to a changed TTL policy, as `expiry.migrate`."""
        return expiry.migrate(self.config, storage)

    def integrity_test(self) -> None:
        """Raise `IntegrityError` with the reason unless the configuration can work."""
        integrity_test(self.config)

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` unless counters, rows, child tries and holds agree."""
        try_state(self.config, storage)

    def constants(self) -> tuple[Constant, ...]:
        """Return the limits of publishers."""
        config = self.config
        size = "Bytes that a publisher may store."
        scans = "Entries looked at for expiry per block."
        system_paras = "Publishers below this id are system parachains."
        return (
            constant(
                "MaxValueLength", scale.u32, config.max_value_length, "Bytes of the longest value."
            ),
            constant(
                "MaxStoredKeys",
                scale.u32,
                config.max_stored_keys,
                "Keys that a publisher may store.",
            ),
            constant("MaxTotalStorageSize", scale.u32, config.max_total_storage_size, size),
            constant(
                "MaxPublishers",
                scale.u32,
                config.max_publishers,
                "Publishers that may be registered.",
            ),
            constant(
                "PublisherDeposit",
                scale.u128,
                config.publisher_deposit,
                "What a registration holds.",
            ),
            constant("SystemParaThreshold", scale.u32, config.system_para_threshold, system_paras),
            constant("MaxTtlScansPerIdle", scale.u32, config.max_ttl_scans_per_idle, scans),
        )

    def _time(self, storage: Storage, number: int) -> RelayBlockNumber:
        rules = self.config.rules
        return rules.time(
            number, None if rules.clock is None else storage.get(storage_keys.CURRENT_SLOT)
        )

    def _offboard(self, storage: Storage, para: ParaId) -> int:
        try:
            return with_storage_layer(
                storage, lambda: registry.remove(self.config, self.balances, storage, para)
            )
        except DispatchError:
            return registry.remove(self.config, self.balances, storage, para, slash=True)

    def _remove(self, storage: Storage, para: ParaId, keys: Iterable[PubsubKey]) -> int:
        """Remove the entries under `keys` and return their number.

        Raises `NoKeysToDelete` if there were none.
        """
        rows = rows_of(para)
        removed = sum(remove_key(self.config, storage, rows, key) for key in keys)
        if not removed:
            raise ModuleError(Error.NoKeysToDelete)
        return removed


def _ensure_arguments(para: ParaId, keys: Iterable[PubsubKey]) -> None:
    ensure_para(para)
    for key in keys:
        ensure_key(key)


def integrity_test(config: Config) -> None:
    """Raise `IntegrityError` with a value and its consequence unless a configuration can work."""
    limits = {
        "MaxValueLength": config.max_value_length,
        "MaxStoredKeys": config.max_stored_keys,
        "MaxTotalStorageSize": config.max_total_storage_size,
        "MaxPublishers": config.max_publishers,
        "MaxTtlScansPerIdle": config.max_ttl_scans_per_idle,
    }
    for name, value in limits.items():
        ensure(0 <= value <= U32_MAX, IntegrityError(f"{name} is a u32, not {value}"))
    for name in ("MaxStoredKeys", "MaxTotalStorageSize"):
        ensure(limits[name] != 0, IntegrityError(f"{name} of 0: nothing could ever be published"))
    ensure(
        config.max_ttl_scans_per_idle != 0,
        IntegrityError("MaxTtlScansPerIdle of 0: nothing would ever expire"),
    )
    if not 0 <= config.publisher_deposit <= U128_MAX:
        raise IntegrityError(f"PublisherDeposit is a u128, not {config.publisher_deposit}")
    if not 0 <= config.system_para_threshold <= U32_MAX:
        raise IntegrityError(
            f"the system threshold is a ParaId, not {config.system_para_threshold}"
        )
    if config.max_publishers == 0 and config.system_para_threshold == 0:
        raise IntegrityError("neither a registered nor a system para could ever publish")
    # Each limit must be within reach of those above it.
    largest = 32 + config.max_value_length
    if largest > config.max_total_storage_size:
        raise IntegrityError(
            f"MaxTotalStorageSize of {config.max_total_storage_size} does not hold one key with a"
            f" value of MaxValueLength {config.max_value_length}: {largest} bytes"
        )
    keys = 32 * config.max_stored_keys
    if keys > config.max_total_storage_size:
        raise IntegrityError(
            f"MaxTotalStorageSize of {config.max_total_storage_size} does not hold MaxStoredKeys "
            f"{config.max_stored_keys} keys, even with empty values: {keys} bytes"
        )
    # One block must hold the largest publish, a whole deregistration, and the expiry of one row.
    needs = {
        "a publish of MaxValueLength bytes could never be executed": weights.publish(
            config, config.max_value_length
        ),
        "a publisher of MaxStoredKeys keys could never be deregistered": (
            weights.deregister_publisher(config)
        ),
        "nothing would ever expire": expiry.least_weight(config),
    }
    for consequence, weight in needs.items():
        if weight.any_gt(config.max_block_weight):
            raise IntegrityError(
                f"{consequence}: it takes {weight}, a block has {config.max_block_weight}"
            )
