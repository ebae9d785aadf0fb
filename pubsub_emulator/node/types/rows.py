"""Storage entries as JSON, by pallet, item, keys and value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain as chained
from typing import TypedDict

from pubsub_emulator.node.at import At
from pubsub_emulator.node.types import values
from pubsub_emulator.node.types.values import BadValue, Names, camel, folded
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.type_info import TypeInfo
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.hashers import Hasher
from pubsub_emulator.runtime.framework.pallet import AnyItem, described
from pubsub_emulator.runtime.metadata import type_names
from pubsub_emulator.xcm.description import type_names as xcm_names


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """One storage item of a chain."""

    item: AnyItem
    names: Names
    """The descriptions of named types."""

    @property
    def pallet(self) -> str:
        """Return the name of the pallet."""
        return self.item.pallet.name

    @property
    def prefix(self) -> bytes:
        """Return the first 32 bytes of the item's keys."""
        return self.item.prefix

    @property
    def name(self) -> str:
        """Return the item's name in its pallet."""
        return self.item.item

    @property
    def keys(self) -> tuple[tuple[Hasher, TypeInfo], ...]:
        """Return the hasher and the type of each key of the map."""
        return tuple((hasher, described(codec)) for hasher, codec in self.item.key_parts)

    def key(self, keys: Sequence[object]) -> bytes:
        """Return the full storage key. With fewer keys, return the prefix of all keys below them.

        Raises `BadValue`.
        """
        if len(keys) > len(self.keys):
            raise BadValue(f"{self.item.name} takes {len(self.keys)} keys, not {len(keys)}")
        full = self.prefix
        for index, ((hasher, info), key) in enumerate(zip(self.keys, keys, strict=False)):
            place = f"{self.item.name} key {index}"
            full += hasher.hash(values.from_json(info, key, self.names, place))
        return full

    def encode(self, value: object) -> bytes:
        """Return the bytes of a value. Raises `BadValue`."""
        return values.from_json(described(self.item.codec), value, self.names, self.item.name)

    def decode(self, data: bytes) -> object:
        """Return a stored value as JSON. Raises `ScaleError`."""
        return values.to_json(described(self.item.codec), data, self.names)

    def decode_keys(self, full: bytes) -> list[object]:
        """Return the keys in a full storage key.

        Raises `ScaleError` if it is invalid, or if a hasher's output does not contain the key.
        """
        reader = Reader(full, len(self.prefix))
        keys = []
        for hasher, info in self.keys:
            if hasher.skip is None:
                raise ScaleError(f"{hasher.name} does not keep its keys")
            reader.take(hasher.skip)
            keys.append(values.read(info, reader, self.names))
        reader.end()
        return keys


class StorageRow(TypedDict):
    """A row of storage, with the names that clients use for pallet and item."""

    section: str
    """The pallet in camel case."""
    method: str
    """The item in camel case."""
    key: list[object]
    value: object


@lru_cache(maxsize=32)
def _names(runtime: RuntimeDefinition) -> Names:
    return {**xcm_names(), **type_names(runtime)}


@lru_cache(maxsize=32)
def _storage(runtime: RuntimeDefinition) -> Mapping[tuple[str, str] | bytes, StorageEntry]:
    """Return all items of a runtime by their folded names and by their prefixes."""
    items = chained.from_iterable(instance.pallet.items.values() for instance in runtime.pallets)
    entries = [StorageEntry(item, _names(runtime)) for item in items if item.codec.info is not None]
    index: dict[tuple[str, str] | bytes, StorageEntry] = {}
    for entry in entries:
        index[entry.prefix] = entry
        index[folded(entry.pallet), folded(entry.name)] = entry
    return index


def names_of(at: At) -> Names:
    """Return the descriptions of a chain's named types."""
    return _names(at.runtime.definition)


def storage_entry(at: At, pallet: str, item: str) -> StorageEntry | None:
    """Return a storage item by the names of its pallet and item, in any case, or `None`."""
    return _storage(at.runtime.definition).get((folded(pallet), folded(item)))


def storage_pairs(at: At, values: Mapping[str, object]) -> list[tuple[bytes, bytes | None]]:
    """Return the storage keys and values of a document `{Pallet: {Item: value}}`.

    The value of a map is a list of `[keys, value]`. A value of `None` removes the key. Beside the
    items of a pallet, `$removePrefix` lists items whose existing entries are all removed first.
    Raises `BadValue`.
    """
    pairs: dict[bytes, bytes | None] = {}
    for pallet, items in values.items():
        if not isinstance(items, Mapping):
            raise BadValue(f"{pallet}: an object of items is expected")
        emptied = items.get("$removePrefix", ())
        if not isinstance(emptied, list | tuple):
            raise BadValue(f"{pallet}.$removePrefix: a list of items is expected")
        for name in emptied:
            pairs.update(dict.fromkeys(at.state.top.keys(_entry(at, pallet, name).key(()))))
        for name, value in items.items():
            if name != "$removePrefix":
                pairs.update(_pairs(_entry(at, pallet, name), value))
    return list(pairs.items())


def _entry(at: At, pallet: str, item: object) -> StorageEntry:
    """Return a storage item by its names in a document. Raises `BadValue`."""
    entry = storage_entry(at, pallet, item) if isinstance(item, str) else None
    if entry is None:
        raise BadValue(f"this chain has no item {pallet}.{item}")
    return entry


def _pairs(entry: StorageEntry, value: object) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the storage keys and values of one item in a document. Raises `BadValue`."""
    place = f"{entry.pallet}.{entry.name}"
    rows = value if entry.keys else [[[], value]]
    if not isinstance(rows, list):
        raise BadValue(f"{place}: a list of [keys, value] is expected")
    for row in rows:
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], list):
            raise BadValue(f"{place}: [keys, value] is expected, not {row!r}")
        yield entry.key(row[0]), None if row[1] is None else entry.encode(row[1])


def entry_of(at: At, key: bytes) -> StorageEntry | None:
    """Return the storage item that a full storage key belongs to, or `None`."""
    return _storage(at.runtime.definition).get(key[:32])


def parse_row(at: At, key: bytes, value: bytes | None) -> StorageRow | None:
    """Return a key and value as a row, or `None` if the item is unknown or they do not decode."""
    entry = entry_of(at, key)
    if entry is None:
        return None
    try:
        keys = entry.decode_keys(key)
        decoded = None if value is None else entry.decode(value)
    except ScaleError:
        return None
    return {
        "section": camel(entry.pallet),
        "method": camel(entry.name),
        "key": keys,
        "value": decoded,
    }
