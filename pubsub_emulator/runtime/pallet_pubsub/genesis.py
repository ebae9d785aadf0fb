"""Publishers at genesis.

All rows that their publishes would have written are made at once, for `State.from_entries`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pubsub_emulator.primitives.pubsub import KEY_LENGTH, PublishedEntry
from pubsub_emulator.primitives.types import AccountId, Balance, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.hooks import IntegrityError
from pubsub_emulator.runtime.pallet_pubsub import storage as items
from pubsub_emulator.runtime.pallet_pubsub.config import Config, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    ExpiryIndex,
    PublisherInfo,
    ensure_key,
    rows_of,
)

Rows = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class GenesisPublisher:
    """A publisher's entries, and its manager if it is registered.

    It has no deposit, because only a call can hold one.
    """

    entries: Iterable[tuple[PubsubKey, PublishedEntry]] = ()
    manager: AccountId | None = None


def genesis_rows(
    config: Config, publishers: Mapping[ParaId, GenesisPublisher]
) -> tuple[Rows, dict[bytes, Rows]]:
    """Return the top entries, and the child entries by child storage key, of a genesis state.

    Raises `IntegrityError` for a state that calls could not write: an exceeded limit, a key twice,
    or an unregistered publisher.
    """
    top: Rows = []
    children: dict[bytes, Rows] = {}
    registered = 0
    for para, publisher in publishers.items():
        rows = rows_of(para)
        if publisher.manager is not None:
            registered += 1
            info = PublisherInfo(publisher.manager, Balance(0))
            top.append((rows.registration, items.RegisteredPublishers.codec.encode(info)))
        child, size = _entries(config, para, publisher.entries, top)
        if not child:
            continue
        allowed = config.is_system(para) or publisher.manager is not None
        _ensure(allowed, f"publisher {para} has data and is not registered")
        _ensure(len(child) <= config.max_stored_keys, f"publisher {para} stores {len(child)} keys")
        _ensure(size <= config.max_total_storage_size, f"publisher {para} stores {size} bytes")
        _ensure(len(dict(child)) == len(child), f"publisher {para} stores a key twice")
        place, keys = config.rules.placed(para, (key for key, _ in child))
        children.setdefault(place, []).extend(zip(keys, (raw for _, raw in child), strict=True))
        top.append((rows.published_keys, len(child).to_bytes(4, "little")))
        top.append((rows.total_storage_size, size.to_bytes(4, "little")))
    _ensure(registered <= config.max_publishers, f"{registered} publishers are registered")
    if registered:
        top.append((items.CounterForRegisteredPublishers.key, registered.to_bytes(4, "little")))
    return top, children


def _entries(
    config: Config, para: ParaId, entries: Iterable[tuple[PubsubKey, PublishedEntry]], top: Rows
) -> tuple[Rows, int]:
    """Return the child entries and their counted size.

    Their TTL and index rows are added to `top`.
    """
    rows = rows_of(para)
    by_index = config.ttl_policy is TtlPolicy.EXPIRY_INDEX
    child: Rows = []
    size = 0
    for key, entry in entries:
        ensure_key(key)
        length = len(entry.value)
        raw = entry.encode()
        _ensure(
            length <= config.max_value_length, f"publisher {para} stores a value of {length} bytes"
        )
        child.append((key, config.rules.to_stored(raw)))
        size += KEY_LENGTH + length
        if entry.ttl:
            top.append((rows.ttl_row(key), raw[-8:]))
            if by_index:
                top.append((ExpiryIndex.key_for(entry.when_inserted + entry.ttl, (para, key)), b""))
    return child, size


def _ensure(condition: bool, fault: str) -> None:
    if not condition:
        raise IntegrityError(fault)
