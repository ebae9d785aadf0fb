"""Who may publish: registrations, the deposits held for them, and what goes with a publisher that goes.

A deposit is a hold on the manager's balance (PS-12). Leaving releases what is still held of it, so that nothing another
pallet did to that balance can keep a registration alive.
"""

from typing import Final

from pubsub_emulator.primitives.types import AccountId, Balance, ParaId
from pubsub_emulator.runtime.balances import Balances, HoldReason, Precision
from pubsub_emulator.runtime.framework.dispatch import BadOrigin
from pubsub_emulator.runtime.framework.events import deposit as deposit_event
from pubsub_emulator.runtime.framework.origin import Origin, Parachain, Signed
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET, Config, Registrar, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.errors import Error, failure
from pubsub_emulator.runtime.pallet_pubsub.events import PublisherDeregistered, PublisherRegistered
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    ExpiryIndex,
    PublishedKeys,
    PublisherInfo,
    RegisteredPublishers,
    TotalStorageSize,
    TtlData,
    TtlLapMark,
    rows_of,
)

PUBLISHER_DEPOSIT: Final = HoldReason(PALLET, 0)
"""`HoldReason::PublisherDeposit`."""


def sovereign_account(para: ParaId) -> AccountId:
    """The account that a parachain has on its relay chain: `"para"`, the id, zeros."""
    return AccountId(b"para" + para.to_bytes(4, "little") + bytes(24))


def caller_account(origin: Origin) -> AccountId:
    """The account behind a call that an account or a parachain may make. Raises `BadOrigin` for any other origin."""
    match origin:
        case Signed(account):
            return account
        case Parachain(para):
            return sovereign_account(para)
        case _:
            raise BadOrigin


def register(balances: Balances, storage: Storage, para: ParaId, manager: AccountId, amount: Balance) -> None:
    """Write a registration and hold its deposit. The caller has asked `ensure_vacant` and its storage layer is open.

    Raises what holding `amount` raises.
    Emits `PublisherRegistered`.
    """
    balances.hold(storage, PUBLISHER_DEPOSIT, manager, amount)
    RegisteredPublishers.insert(storage, para, PublisherInfo(manager, amount))
    CounterForRegisteredPublishers.put(storage, CounterForRegisteredPublishers.get(storage) + 1)
    deposit_event(storage, PublisherRegistered(para, manager))


def ensure_vacant(config: Config, storage: Storage, para: ParaId) -> None:
    """Raises `AlreadyRegistered` or `TooManyPublishers` where `para` cannot be registered now."""
    if RegisteredPublishers.contains(storage, para):
        raise failure(Error.AlreadyRegistered)
    if CounterForRegisteredPublishers.get(storage) >= config.max_publishers:
        raise failure(Error.TooManyPublishers)


def ensure_owner(registrar: Registrar, storage: Storage, origin: Origin, para: ParaId) -> None:
    """Raises `NotAuthorized` unless the origin is the para itself or the account that owns it.

    Nobody else may register it: whoever manages a publisher can delete its data.
    """
    if origin == Parachain(para):
        return
    owner = registrar.owner_of(storage, para)
    if owner is None or origin != Signed(owner):
        raise failure(Error.NotAuthorized)


def ensure_manager(info: PublisherInfo | None, origin: Origin, para: ParaId) -> None:
    """Raises `NotAuthorized` unless the origin is the para itself or the manager in `info`.

    A manager that is a parachain's account is that parachain.
    """
    if origin == Parachain(para):
        return
    if info is None or caller_account(origin) != info.manager:
        raise failure(Error.NotAuthorized)


def is_known(storage: Storage, para: ParaId) -> bool:
    """Whether there is anything to deregister: a registration, or the data of a system para without one."""
    return RegisteredPublishers.contains(storage, para) or PublishedKeys.contains(storage, para)


def remove(config: Config, balances: Balances, storage: Storage, para: ParaId, *, slash: bool = False) -> int:
    """Everything of a publisher goes: data, TTL rows, counters, registration; its deposit is released, or slashed.

    Returns how many keys were removed.
    Emits `PublisherDeregistered`, also for a system para that only had data.
    """
    keys = _remove_data(config, storage, para)
    info = RegisteredPublishers.take(storage, para)
    if info is not None:
        CounterForRegisteredPublishers.put(storage, CounterForRegisteredPublishers.get(storage) - 1)
        if slash:
            balances.slash_held(storage, PUBLISHER_DEPOSIT, info.manager, info.deposit)
        else:
            balances.release(storage, PUBLISHER_DEPOSIT, info.manager, info.deposit, Precision.BEST_EFFORT)
    deposit_event(storage, PublisherDeregistered(para))
    return keys


def _remove_data(config: Config, storage: Storage, para: ParaId) -> int:
    if config.ttl_policy is TtlPolicy.EXPIRY_INDEX:
        for key, (ttl, when_inserted) in TtlData.items(storage, para):
            ExpiryIndex.remove(storage, when_inserted + ttl, (para, key))
    TtlData.clear(storage, para)
    PublishedKeys.remove(storage, para)
    TotalStorageSize.remove(storage, para)
    TtlLapMark.remove(storage, para)
    return storage.child_clear(rows_of(para).child)
