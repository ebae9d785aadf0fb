"""Typed storage items under FRAME's keys (`primitives.storage_keys`).

Each method takes the `Storage` on which it works. If no value is stored, an item without a default
reads as `None` (`OptionQuery`), and one with a default as a fresh copy of the default
(`ValueQuery`).
"""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar, overload

from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.codecs import para_id
from pubsub_emulator.runtime.framework.hashers import Hasher, Twox64Concat
from pubsub_emulator.runtime.framework.pallet import Pallet, StorageItem
from pubsub_emulator.runtime.framework.storage import Storage

T = TypeVar("T")
K = TypeVar("K")
K1 = TypeVar("K1")
K2 = TypeVar("K2")
D = TypeVar("D")
"""The type of the default: either that of the value, or `None`."""


class _Unset:
    """The type of the marker of an item without default."""


_UNSET: Final = _Unset()


def _encoded(codec: Codec[T], default: T | _Unset) -> bytes | None:
    return None if isinstance(default, _Unset) else codec.encode(default)


class StorageValue(StorageItem[T, D]):
    """One value."""

    @overload
    def __init__(
        self: "StorageValue[T, None]", pallet: Pallet, item: str, docs: str, codec: Codec[T]
    ) -> None: ...
    @overload
    def __init__(
        self: "StorageValue[T, T]",
        pallet: Pallet,
        item: str,
        docs: str,
        codec: Codec[T],
        default: T,
    ) -> None: ...
    def __init__(
        self, pallet: Pallet, item: str, docs: str, codec: Codec[T], default: T | _Unset = _UNSET
    ) -> None:
        super().__init__(pallet, item, docs, codec, _encoded(codec, default))
        self.key = self.prefix

    def get(self, storage: Storage) -> T | D:
        """Return the value, or the default."""
        return self._read(storage, self.key)

    def put(self, storage: Storage, value: T) -> None:
        """Set the value."""
        storage.put(self.key, self.codec.encode(value))

    def put_or_kill(self, storage: Storage, value: T | None) -> None:
        """Set the value, or remove it if it is `None` or empty."""
        if value:
            self.put(storage, value)
        else:
            self.kill(storage)

    def kill(self, storage: Storage) -> None:
        """Remove the value."""
        storage.kill(self.key)

    def exists(self, storage: Storage) -> bool:
        """Return whether a value is stored; a default does not count."""
        return storage.exists(self.key)


class StorageMap(StorageItem[T, D], Generic[K, T, D]):
    """Values by one key."""

    @overload
    def __init__(
        self: "StorageMap[K, T, None]",
        pallet: Pallet,
        item: str,
        docs: str,
        hasher: Hasher,
        key: Codec[K],
        codec: Codec[T],
    ) -> None: ...
    @overload
    def __init__(
        self: "StorageMap[K, T, T]",
        pallet: Pallet,
        item: str,
        docs: str,
        hasher: Hasher,
        key: Codec[K],
        codec: Codec[T],
        default: T,
    ) -> None: ...
    def __init__(  # noqa: PLR0917  # in the order of FRAME's type
        self,
        pallet: Pallet,
        item: str,
        docs: str,
        hasher: Hasher,
        key: Codec[K],
        codec: Codec[T],
        default: T | _Unset = _UNSET,
    ) -> None:
        super().__init__(pallet, item, docs, codec, _encoded(codec, default))
        self.hasher = hasher
        self.key_codec = key

    @property
    def key_parts(self) -> tuple[tuple[Hasher, AnyCodec], ...]:
        """Return the hasher and the codec of the key."""
        return ((self.hasher, self.key_codec),)

    def key_for(self, key: K) -> bytes:
        """Return the full storage key."""
        return self.prefix + self.hasher.hash(self.key_codec.encode(key))

    def get(self, storage: Storage, key: K) -> T | D:
        """Return the value under `key`, or the default."""
        return self._read(storage, self.key_for(key))

    def insert(self, storage: Storage, key: K, value: T) -> None:
        """Set the value under `key`."""
        storage.put(self.key_for(key), self.codec.encode(value))

    def insert_or_remove(self, storage: Storage, key: K, value: T) -> None:
        """Set the value under `key`, or remove it if it is empty."""
        if value:
            self.insert(storage, key, value)
        else:
            self.remove(storage, key)

    def remove(self, storage: Storage, key: K) -> None:
        """Remove the value under `key`."""
        storage.kill(self.key_for(key))

    def contains(self, storage: Storage, key: K) -> bool:
        """Return whether a value is stored under `key`."""
        return storage.exists(self.key_for(key))

    def take(self, storage: Storage, key: K) -> T | D:
        """Return the value under `key` or the default, and remove it."""
        full = self.key_for(key)
        value = self._read(storage, full)
        storage.kill(full)
        return value

    def items(self, storage: Storage, after: bytes | None = None) -> Iterator[tuple[K, T]]:
        """Return keys and values in storage-key order, strictly after the storage key `after`.

        Storage may be written meanwhile.
        """
        return ((key, value) for (key,), value in self.entries(storage, after=after))

    def keys(self, storage: Storage, after: bytes | None = None) -> Iterator[K]:
        """Yield the keys in storage-key order, strictly after the full storage key `after`.

        Values are not decoded.
        """
        skip = len(self.prefix)
        for full in storage.next_keys(self.prefix, after):
            yield self.hasher.read(Reader(full, skip), self.key_codec)

    def clear(self, storage: Storage, limit: int | None = None) -> int:
        """Remove at most `limit` values in storage-key order.

        Returns how many were removed.
        """
        return storage.clear_prefix(self.prefix, limit)


@overload
def para_map(
    pallet: Pallet, item: str, docs: str, codec: Codec[T]
) -> StorageMap[ParaId, T, None]: ...
@overload
def para_map(
    pallet: Pallet, item: str, docs: str, codec: Codec[T], default: T
) -> StorageMap[ParaId, T, T]: ...
def para_map(
    pallet: Pallet, item: str, docs: str, codec: Codec[T], default: T | _Unset = _UNSET
) -> StorageMap[ParaId, T, None] | StorageMap[ParaId, T, T]:
    """Make a map by para under `Twox64Concat`, the form of most maps of a relay chain."""
    if isinstance(default, _Unset):
        return StorageMap(pallet, item, docs, Twox64Concat, para_id, codec)
    return StorageMap(pallet, item, docs, Twox64Concat, para_id, codec, default)


class StorageDoubleMap(StorageItem[T, D], Generic[K1, K2, T, D]):
    """Values by two keys.

    The values of one first key share a prefix.
    """

    @overload
    def __init__(
        self: "StorageDoubleMap[K1, K2, T, None]",
        pallet: Pallet,
        item: str,
        docs: str,
        hasher1: Hasher,
        key1: Codec[K1],
        hasher2: Hasher,
        key2: Codec[K2],
        codec: Codec[T],
    ) -> None: ...
    @overload
    def __init__(
        self: "StorageDoubleMap[K1, K2, T, T]",
        pallet: Pallet,
        item: str,
        docs: str,
        hasher1: Hasher,
        key1: Codec[K1],
        hasher2: Hasher,
        key2: Codec[K2],
        codec: Codec[T],
        default: T,
    ) -> None: ...
    def __init__(  # noqa: PLR0917  # in the order of FRAME's type
        self,
        pallet: Pallet,
        item: str,
        docs: str,
        hasher1: Hasher,
        key1: Codec[K1],
        hasher2: Hasher,
        key2: Codec[K2],
        codec: Codec[T],
        default: T | _Unset = _UNSET,
    ) -> None:
        super().__init__(pallet, item, docs, codec, _encoded(codec, default))
        self.hasher1 = hasher1
        self.hasher2 = hasher2
        self.key1_codec = key1
        self.key2_codec = key2

    @property
    def key_parts(self) -> tuple[tuple[Hasher, AnyCodec], ...]:
        """Return the hashers and the codecs of both keys."""
        return (self.hasher1, self.key1_codec), (self.hasher2, self.key2_codec)

    def prefix_for(self, key1: K1) -> bytes:
        """Return the storage prefix of all values under `key1`."""
        return self.prefix + self.hasher1.hash(self.key1_codec.encode(key1))

    def key_for(self, key1: K1, key2: K2) -> bytes:
        """Return the full storage key."""
        return self.prefix_for(key1) + self.hasher2.hash(self.key2_codec.encode(key2))

    def get(self, storage: Storage, key1: K1, key2: K2) -> T | D:
        """Return the value under both keys, or the default."""
        return self._read(storage, self.key_for(key1, key2))

    def insert(self, storage: Storage, key1: K1, key2: K2, value: T) -> None:
        """Set the value under both keys."""
        storage.put(self.key_for(key1, key2), self.codec.encode(value))

    def remove(self, storage: Storage, key1: K1, key2: K2) -> None:
        """Remove the value under both keys."""
        storage.kill(self.key_for(key1, key2))

    def contains(self, storage: Storage, key1: K1, key2: K2) -> bool:
        """Return whether a value is stored under both keys."""
        return storage.exists(self.key_for(key1, key2))

    def items(
        self, storage: Storage, key1: K1, after: bytes | None = None
    ) -> Iterator[tuple[K2, T]]:
        """Return second keys and values under `key1` in storage-key order.

        They begin strictly after the full storage key `after`.
        """
        return (
            (key2, value)
            for (_, key2), value in self.entries(storage, self.prefix_for(key1), after)
        )

    def rows(self, storage: Storage, after: bytes | None = None) -> Iterator[tuple[K1, K2, T]]:
        """Return all keys and values in storage-key order.

        They begin strictly after the full storage key `after`.
        """
        return ((key1, key2, value) for (key1, key2), value in self.entries(storage, after=after))

    def clear(self, storage: Storage, key1: K1, limit: int | None = None) -> int:
        """Remove at most `limit` values under `key1` in storage-key order.

        Returns how many were removed.
        """
        return storage.clear_prefix(self.prefix_for(key1), limit)
