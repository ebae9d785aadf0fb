"""The pallet's calls, each with its origin, its errors in the order in which they are checked, and its event."""

from collections.abc import Iterable, Sequence

from pubsub_emulator.primitives.types import AccountId, Balance, ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.codecs import account_id, balance
from pubsub_emulator.runtime.framework.dispatch import ModuleError, dispatchable
from pubsub_emulator.runtime.framework.events import deposit as deposit_event
from pubsub_emulator.runtime.framework.origin import Origin, ensure_root
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import registry, weights
from pubsub_emulator.runtime.pallet_pubsub.config import Config, ForcedDeposit, Registrar
from pubsub_emulator.runtime.pallet_pubsub.errors import Error
from pubsub_emulator.runtime.pallet_pubsub.events import KeysDeleted, KeysForcedDeleted
from pubsub_emulator.runtime.pallet_pubsub.publish import remove_key
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers, ensure_key, rows_of


class Calls:
    """The calls of accounts, parachains and root. A call that raises leaves neither state nor event (PS-10).

    Arguments that no encoded call can carry (an id beyond u32, a key that is not 32 bytes) raise `ScaleError`.
    """

    def __init__(self, config: Config, balances: Balances, registrar: Registrar) -> None:
        self.config = config
        self.balances = balances
        self.registrar = registrar

    @dispatchable(0, weight=weights.register_publisher())
    def register_publisher(self, storage: Storage, origin: Origin, para: ParaId) -> Weight | None:
        """Register a para as publisher; the caller becomes its manager and `PublisherDeposit` of its balance is held.

        Origin: the account that owns the para, or the para itself.
        Raises `BadOrigin`, `AlreadyRegistered`, `TooManyPublishers`, `NotAuthorized`, or why the hold failed.
        Emits `PublisherRegistered`.
        """
        rows_of(para)
        manager = registry.caller_account(origin)
        registry.ensure_vacant(self.config, storage, para)
        registry.ensure_owner(self.registrar, storage, origin, para)
        registry.register(self.balances, storage, para, manager, self.config.deposit_of(para))
        return None

    @dispatchable(1, weight=weights.register_publisher())
    def force_register_publisher(
        self, storage: Storage, origin: Origin, manager: AccountId, deposit: Balance, para: ParaId
    ) -> Weight | None:
        """Register a para for `manager` with a deposit of any size, zero included, held from the manager's balance.

        Origin: root.
        Raises `BadOrigin`, `AlreadyRegistered`, `TooManyPublishers`, or why the hold failed.
        Emits `PublisherRegistered`.
        """
        rows_of(para)
        account_id.encode(manager)
        balance.encode(deposit)
        ensure_root(origin)
        registry.ensure_vacant(self.config, storage, para)
        registry.register(self.balances, storage, para, manager, deposit)
        return None

    @dispatchable(2, weight=lambda self, _para: weights.deregister_publisher(self.config))
    def deregister_publisher(self, storage: Storage, origin: Origin, para: ParaId) -> Weight | None:
        """Remove a publisher with all its data and release its deposit, in one call.

        Origin: the publisher's manager, or the para itself.
        Raises `BadOrigin`, `NotRegistered`, `NotAuthorized`.
        Emits `PublisherDeregistered`.
        """
        rows_of(para)
        registry.caller_account(origin)
        info = RegisteredPublishers.get(storage, para)
        if info is None:
            raise ModuleError(Error.NotRegistered)
        registry.ensure_manager(info, origin, para)
        keys = registry.remove(self.config, self.balances, storage, para)
        return weights.deregister_publisher(self.config, keys)

    @dispatchable(3, weight=lambda self, _para: weights.deregister_publisher(self.config))
    def force_deregister_publisher(self, storage: Storage, origin: Origin, para: ParaId) -> Weight | None:
        """Remove a publisher, or a system para's data, whoever manages it; the deposit goes as `forced_deposit` says.

        Origin: root.
        Raises `BadOrigin`; `NotRegistered` where there is neither a registration nor data.
        Emits `PublisherDeregistered`.
        """
        rows_of(para)
        ensure_root(origin)
        if not registry.is_known(storage, para):
            raise ModuleError(Error.NotRegistered)
        slash = self.config.forced_deposit is ForcedDeposit.SLASHED
        keys = registry.remove(self.config, self.balances, storage, para, slash=slash)
        return weights.deregister_publisher(self.config, keys)

    @dispatchable(4, weight=lambda self, _para, keys: weights.delete_keys(self.config, len(keys)))
    def delete_keys(self, storage: Storage, origin: Origin, para: ParaId, keys: Sequence[PubsubKey]) -> Weight | None:
        """Remove entries by key. Duplicates merge, keys that are not stored are ignored.

        Origin: the publisher's manager, or the para itself; a system para needs no registration.
        Raises `BadOrigin`, `NotRegistered`, `NotAuthorized`, and `NoKeysToDelete` when nothing was stored under any.
        Emits `KeysDeleted` with how many entries were removed.
        """
        _ensure_arguments(para, keys)
        registry.caller_account(origin)
        info = RegisteredPublishers.get(storage, para)
        if info is None and not self.config.is_system(para):
            raise ModuleError(Error.NotRegistered)
        registry.ensure_manager(info, origin, para)
        deposit_event(storage, KeysDeleted(para, self._remove(storage, para, keys)))
        return None

    @dispatchable(5, weight=lambda self, _para, keys: weights.delete_keys(self.config, len(keys)))
    def force_delete_keys(
        self, storage: Storage, origin: Origin, para: ParaId, keys: Sequence[PubsubKey]
    ) -> Weight | None:
        """Remove entries by key, as `delete_keys` does, of any publisher.

        Origin: root.
        Raises `BadOrigin`, `NoKeysToDelete`.
        Emits `KeysForcedDeleted` with how many entries were removed.
        """
        _ensure_arguments(para, keys)
        ensure_root(origin)
        deposit_event(storage, KeysForcedDeleted(para, self._remove(storage, para, keys)))
        return None

    def _remove(self, storage: Storage, para: ParaId, keys: Iterable[PubsubKey]) -> int:
        """Remove the entries under `keys` and return how many there were. Raises `NoKeysToDelete` if none."""
        rows = rows_of(para)
        removed = sum(remove_key(self.config, storage, rows, key) for key in keys)
        if not removed:
            raise ModuleError(Error.NoKeysToDelete)
        return removed


def _ensure_arguments(para: ParaId, keys: Iterable[PubsubKey]) -> None:
    rows_of(para)
    for key in keys:
        ensure_key(key)
