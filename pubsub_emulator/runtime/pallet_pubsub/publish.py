"""Writing and removing one entry, in O(log n) (PS-6).

This changes the child trie and every row derived from the entry. An update takes the value's length
and the TTL row of the replaced entry from that entry, whose last 8 bytes are its TTL row. So
`TtlData` is written here and never read.
"""

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import KEY_LENGTH
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import U32_MAX, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub.config import Config, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, Error
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    PublisherRows,
    TtlLapMark,
    ensure_key,
    rows_of,
)

_INFINITE = bytes(4)


def value_length(entry: bytes) -> int:
    """Return the length of the raw value inside an encoded `PublishedEntry`."""
    rest = len(entry) - 8
    # The length in front of the value takes one, two or four bytes.
    if rest <= 0x40:
        return rest - 1
    if rest <= 0x4001:
        return rest - 2
    return rest - 4


def publish(  # noqa: PLR0917  # who, under which rules, and the instruction's own three
    config: Config,
    storage: Storage,
    now: RelayBlockNumber,
    para: ParaId,
    key: PubsubKey,
    value: bytes,
    ttl: int,
) -> None:
    """Store `value` under `key` for `ttl` blocks from `now` (0: forever).

    All checks precede the first write, so a refusal changes nothing even without a storage layer
    (PS-10). An expired entry that is not swept yet is updated like any other (PS-17). At the size
    limit, only growth is refused.

    Raises `PublishNotAuthorized`, `ValueTooLong`, `TooManyStoredKeys`, `TotalStorageSizeExceeded`,
    in this order, and `ScaleError` for arguments that a `Publish` instruction cannot have. Emits
    `DataPublished`.
    """
    ensure_key(key)
    if not 0 <= ttl <= U32_MAX:
        raise ScaleError(f"a ttl is a u32, not {ttl}")
    rows = rows_of(para)
    rules = config.rules
    if rules.may_publish is not None:
        allowed = rules.may_publish(
            para, storage.get(rows.registration) is not None, config.is_system(para)
        )
    else:
        allowed = config.is_system(para) or storage.get(rows.registration) is not None
    if not allowed:
        raise ModuleError(Error.PublishNotAuthorized)
    size = len(value)
    if rules.lifetime is not None:
        ttl = rules.lifetime(ttl, para, size, now)
    if size > config.max_value_length:
        raise ModuleError(Error.ValueTooLong)

    child = rows.child
    stored_key = bytes(key)
    if rules.place is not None:
        child, (stored_key,) = rules.placed(para, (key,))
    old = storage.child_get(child, stored_key)
    if old is not None and rules.decode is not None:
        old = rules.from_stored(old)
    stored = 0
    if old is None:
        growth = KEY_LENGTH + size
        stored = _counter(storage, rows.published_keys)
        if stored >= config.max_stored_keys:
            raise ModuleError(Error.TooManyStoredKeys)
    else:
        growth = size - value_length(old)
    if growth:
        total = _counter(storage, rows.total_storage_size) + growth
        if growth > 0 and total > config.max_total_storage_size:
            raise ModuleError(Error.TotalStorageSizeExceeded)
        storage.put(rows.total_storage_size, total.to_bytes(4, "little"))
    if old is None:
        storage.put(rows.published_keys, (stored + 1).to_bytes(4, "little"))

    lifetime = (ttl | now << 32).to_bytes(8, "little")
    entry = encode_compact(size) + value + lifetime
    storage.child_put(child, stored_key, entry if rules.encode is None else rules.to_stored(entry))
    if ttl or (old is not None and old[-8:-4] != _INFINITE):
        _set_lifetime(config, storage, rows, key, None if old is None else old[-8:], lifetime)
    deposit(storage, DataPublished(para, key, size))


def remove_key(config: Config, storage: Storage, rows: PublisherRows, key: PubsubKey) -> bool:
    """Remove the entry under `key` and update every row derived from it.

    Returns whether there was an entry.
    """
    child, (stored_key,) = config.rules.placed(rows.para, (key,))
    old = storage.child_get(child, stored_key)
    if old is None:
        return False
    old = config.rules.from_stored(old)
    storage.child_kill(child, stored_key)
    _set_lifetime(config, storage, rows, key, old[-8:], _INFINITE)
    remaining = _counter(storage, rows.published_keys) - 1
    if remaining:
        total = _counter(storage, rows.total_storage_size) - KEY_LENGTH - value_length(old)
        storage.put(rows.published_keys, remaining.to_bytes(4, "little"))
        storage.put(rows.total_storage_size, total.to_bytes(4, "little"))
    else:
        storage.kill(rows.published_keys)
        storage.kill(rows.total_storage_size)
        TtlLapMark.remove(storage, rows.para)
    return True


def _counter(storage: Storage, key: bytes) -> int:
    raw = storage.get(key)
    return 0 if raw is None else int.from_bytes(raw, "little")


def _set_lifetime(  # noqa: PLR0917  # one place's lifetime, before and after
    config: Config, storage: Storage, rows: PublisherRows, key: bytes, old: bytes | None, new: bytes
) -> None:
    """Change the rows of TTL and expiry index from `old` to `new`.

    Both are the last 8 bytes of entries. An entry with a ttl of 0 has no such rows (PS-14).
    """
    was_finite = old is not None and old[:4] != _INFINITE
    is_finite = new[:4] != _INFINITE
    if is_finite:
        storage.put(rows.ttl_row(key), new)
    elif was_finite:
        storage.kill(rows.ttl_row(key))
    if config.ttl_policy is TtlPolicy.EXPIRY_INDEX and old != new:
        if old is not None and was_finite:
            storage.kill(rows.index_row(old, key))
        if is_finite:
            storage.put(rows.index_row(new, key), b"")
