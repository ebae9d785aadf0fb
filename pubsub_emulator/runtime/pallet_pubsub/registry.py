"""Registrations of publishers, their deposits, and the removal of publishers.

A deposit is a hold on the manager's balance (PS-12). A removal releases the part that is left of
it, so a smaller hold cannot prevent the removal.
"""

from typing import Final

from pubsub_emulator.primitives.types import AccountId, Balance, ParaId
from pubsub_emulator.runtime.balances import Balances, HoldReason, Precision
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, ModuleError
from pubsub_emulator.runtime.framework.events import deposit as deposit_event
from pubsub_emulator.runtime.framework.origin import Origin, Parachain, Signed
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import storage as items
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET, Config, Registrar, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import (
    Error,
    PublisherDeregistered,
    PublisherRegistered,
)
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    PublisherInfo,
    RegisteredPublishers,
    TotalStorageSize,
    TtlData,
)

PUBLISHER_DEPOSIT: Final = HoldReason(PALLET.index, 0)
"""`HoldReason::PublisherDeposit`."""


def sovereign_account(para: ParaId) -> AccountId:
    """Return the account of a parachain on its relay chain: `"para"`, the id, zeros."""
    return AccountId(b"para" + para.to_bytes(4, "little") + bytes(24))


def caller_account(origin: Origin) -> AccountId:
    """Return the account of a caller, which is an account or a parachain.

    Raises `BadOrigin` for any other origin.
    """
    match origin:
        case Signed(account):
            return account
        case Parachain(para):
            return sovereign_account(para)
        case _:
            raise BadOrigin


def ensure_caller(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is an account or a parachain."""
    caller_account(origin)


def register(
    balances: Balances, storage: Storage, para: ParaId, manager: AccountId, amount: Balance
) -> None:
    """Store a registration and hold its deposit.

    Call it after `ensure_vacant` and in a storage layer. Raises the errors of holding `amount`.
    Emits `PublisherRegistered`.
    """
    balances.hold(storage, PUBLISHER_DEPOSIT, manager, amount)
    RegisteredPublishers.insert(storage, para, PublisherInfo(manager, amount))
    items.CounterForRegisteredPublishers.put(
        storage, items.CounterForRegisteredPublishers.get(storage) + 1
    )
    deposit_event(storage, PublisherRegistered(para, manager))


def ensure_vacant(config: Config, storage: Storage, para: ParaId) -> None:
    """Raise `AlreadyRegistered` or `TooManyPublishers` unless `para` can be registered now."""
    if RegisteredPublishers.contains(storage, para):
        raise ModuleError(Error.AlreadyRegistered)
    if items.CounterForRegisteredPublishers.get(storage) >= config.max_publishers:
        raise ModuleError(Error.TooManyPublishers)


def ensure_owner(registrar: Registrar, storage: Storage, origin: Origin, para: ParaId) -> None:
    """Raise `NotAuthorized` unless the origin is the para or its owner.

    Only they may appoint a manager, because a manager can delete the para's data.
    """
    if origin == Parachain(para):
        return
    owner = registrar.owner_of(storage, para)
    if owner is None or origin != Signed(owner):
        raise ModuleError(Error.NotAuthorized)


def ensure_manager(info: PublisherInfo | None, origin: Origin, para: ParaId) -> None:
    """Raise `NotAuthorized` unless the origin is the para itself or the manager in `info`."""
    if origin == Parachain(para):
        return
    if info is None or caller_account(origin) != info.manager:
        raise ModuleError(Error.NotAuthorized)


def is_known(storage: Storage, para: ParaId) -> bool:
    """Return whether there is anything to deregister.

    This is a registration, or data of a system para.
    """
    return RegisteredPublishers.contains(storage, para) or items.PublishedKeys.contains(
        storage, para
    )


def remove(
    config: Config, balances: Balances, storage: Storage, para: ParaId, *, slash: bool = False
) -> int:
    """Remove a publisher's data, TTL rows, counters and registration.

    Its deposit is released, or slashed. Returns the number of removed keys. Emits
    `PublisherDeregistered`, also for a system para that only had data.
    """
    keys = _remove_data(config, storage, para)
    info = RegisteredPublishers.take(storage, para)
    if info is not None:
        items.CounterForRegisteredPublishers.put(
            storage, items.CounterForRegisteredPublishers.get(storage) - 1
        )
        if slash:
            balances.slash_held(storage, PUBLISHER_DEPOSIT, info.manager, info.deposit)
        else:
            balances.release(
                storage, PUBLISHER_DEPOSIT, info.manager, info.deposit, Precision.BEST_EFFORT
            )
    deposit_event(storage, PublisherDeregistered(para))
    return keys


def _remove_data(config: Config, storage: Storage, para: ParaId) -> int:
    if config.ttl_policy is TtlPolicy.EXPIRY_INDEX:
        for key, (ttl, when_inserted) in TtlData.items(storage, para):
            items.ExpiryIndex.remove(storage, when_inserted + ttl, (para, key))
    TtlData.clear(storage, para)
    items.PublishedKeys.remove(storage, para)
    TotalStorageSize.remove(storage, para)
    items.TtlLapMark.remove(storage, para)
    child, (prefix,) = config.rules.placed(para, (b"",))
    return storage.child_clear(child, prefix)
