"""All storage items of the relay chain and of parachains by name, for inspecting a state."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.runtime.accounts import sudo, timestamp, transaction_payment
from pubsub_emulator.runtime.balances import pallet as balances
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageMap, StorageValue
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import storage as broadcaster
from pubsub_emulator.runtime.pallet_subscriber import handler as consumer
from pubsub_emulator.runtime.pallet_subscriber import storage as subscriber
from pubsub_emulator.runtime.parachain import storage as parachain
from pubsub_emulator.runtime.relay import babe, configuration, dmp, host_configuration, hrmp, paras, registrar, session
from pubsub_emulator.runtime.relay.message_queue import types as message_queue

Item = StorageValue[Any, Any] | StorageMap[Any, Any, Any] | StorageDoubleMap[Any, Any, Any, Any]

_RELAY: Final[tuple[ModuleType, ...]] = (
    system,
    events,
    babe,
    balances,
    session,
    host_configuration,
    configuration,
    paras,
    dmp,
    hrmp,
    registrar,
    message_queue,
    broadcaster,
    timestamp,
    transaction_payment,
    sudo,
)
_PARACHAIN: Final[tuple[ModuleType, ...]] = (
    system,
    events,
    parachain,
    subscriber,
    consumer,
    balances,
    timestamp,
    transaction_payment,
    sudo,
)


@lru_cache(maxsize=1)
def relay_items() -> Mapping[str, Item]:
    """The relay chain's items by `Pallet.Item`, in the order of their names."""
    return _items(_RELAY)


@lru_cache(maxsize=1)
def parachain_items() -> Mapping[str, Item]:
    """A parachain's items, as `relay_items`."""
    return _items(_PARACHAIN)


def _items(modules: tuple[ModuleType, ...]) -> dict[str, Item]:
    found = {
        f"{item.pallet}.{item.item}": item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, StorageValue | StorageMap | StorageDoubleMap)
    }
    return {name: found[name] for name in sorted(found)}


def rows(storage: Storage, item: Item) -> Iterator[tuple[tuple[object, ...], object]]:
    """The stored values of an item as (keys, value) in storage-key order; a `StorageValue` has no keys.

    Defaults are not included.
    """
    if isinstance(item, StorageValue):
        if item.exists(storage):
            yield (), item.get(storage)
    elif isinstance(item, StorageMap):
        for key, value in item.items(storage):
            yield (key,), value
    else:
        for key1, key2, value in item.rows(storage):
            yield (key1, key2), value


@lru_cache(maxsize=1)
def _prefixes() -> Mapping[bytes, str]:
    return {item.prefix: name for name, item in (*relay_items().items(), *parachain_items().items())}


def name_of(key: bytes) -> str | None:
    """The item of a full storage key of any chain, or `None`."""
    return _prefixes().get(key[:32])


@lru_cache(maxsize=2)
def _by_prefix(relay: bool) -> Mapping[bytes, tuple[str, Item]]:
    return {item.prefix: (name, item) for name, item in (relay_items() if relay else parachain_items()).items()}


def decoded_key(key: bytes, *, relay: bool) -> tuple[str, tuple[object, ...], Item] | None:
    """The item's name, keys and item of a full storage key; `None` if it is of no item or does not decode."""
    found = _by_prefix(relay).get(key[:32])
    if found is None:
        return None
    name, item = found
    reader = Reader(key, 32)
    keys: tuple[object, ...] = ()
    try:
        if isinstance(item, StorageMap):
            keys = (item.hasher.read(reader, item.key_codec),)
        elif isinstance(item, StorageDoubleMap):
            keys = (item.hasher1.read(reader, item.key1_codec), item.hasher2.read(reader, item.key2_codec))
        reader.end()
    except (ScaleError, DefensiveFailure):
        return None
    return name, keys, item
