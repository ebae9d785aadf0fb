"""Storage as clients name it: pallet and item, keys and values as JSON; and full storage keys taken apart again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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

    @property
    def pallet(self) -> str:
        """Its pallet's name."""
        return self.item.pallet.name

    @property
    def prefix(self) -> bytes:
        """The first 32 bytes of its keys."""
        return self.item.prefix

    @property
    def name(self) -> str:
        """The item's name in its pallet."""
        return self.item.item

    @property
    def keys(self) -> tuple[tuple[Hasher, TypeInfo], ...]:
        """The hasher and the type of each of its keys."""
        return tuple((hasher, described(codec)) for hasher, codec in self.item.key_parts)

    def key(self, keys: Sequence[object]) -> bytes:
        """The full storage key, or with fewer keys the prefix of those below them. Raises `BadValue`."""
        if len(keys) > len(self.keys):
            raise BadValue(f"{self.item.name} takes {len(self.keys)} keys, not {len(keys)}")
        out = self.prefix
        for at, ((hasher, info), key) in enumerate(zip(self.keys, keys, strict=False)):
            out += hasher.hash(values.from_json(info, key, self.names, f"{self.item.name} key {at}"))
        return out

    def encode(self, value: object) -> bytes:
        """The bytes of a value. Raises `BadValue`."""
        return values.from_json(described(self.item.codec), value, self.names, self.item.name)

    def decode(self, data: bytes) -> object:
        """A stored value as JSON. Raises `ScaleError`."""
        return values.to_json(described(self.item.codec), data, self.names)

    def decode_keys(self, full: bytes) -> list[object]:
        """The keys in a full storage key. Raises `ScaleError`."""
        reader = Reader(full, len(self.prefix))
        out = []
        for hasher, info in self.keys:
            if hasher.skip is None:
                raise ScaleError(f"{hasher.name} does not keep its keys")
            reader.take(hasher.skip)
            out.append(values.read(info, reader, self.names))
        reader.end()
        return out


class Row(TypedDict):
    """A row of storage as clients name it: pallet, item, keys and value as JSON."""

    section: str
    method: str
    key: list[object]
    value: object


@lru_cache(maxsize=32)
def _names(runtime: RuntimeDefinition) -> Names:
    return {**xcm_names(), **type_names(runtime)}


@lru_cache(maxsize=32)
def _storage(runtime: RuntimeDefinition) -> Mapping[tuple[str, str] | bytes, StorageEntry]:
    """All items of a runtime, by their folded names and by their prefix."""
    items = (item for each in runtime.pallets for item in each.pallet.items.values() if item.codec.info is not None)
    entries = [StorageEntry(item, _names(runtime)) for item in items]
    found: dict[tuple[str, str] | bytes, StorageEntry] = {entry.prefix: entry for entry in entries}
    return found | {(folded(entry.pallet), folded(entry.name)): entry for entry in entries}


def names_of(at: At) -> Names:
    """Return the descriptions of a chain's named types."""
    return _names(at.runtime.definition)


def storage_entry(at: At, pallet: str, item: str) -> StorageEntry | None:
    """A storage item by its names, in whatever case; `None` when the chain has none of that name."""
    return _storage(at.runtime.definition).get((folded(pallet), folded(item)))


def storage_pairs(at: At, values: Mapping[str, object]) -> list[tuple[bytes, bytes | None]]:
    """Storage of `{Pallet: {Item: value}}`; maps have `[keys, value]`, `$removePrefix` empties. Raises `BadValue`."""
    pairs: dict[bytes, bytes | None] = {}
    for pallet, items in values.items():
        if not isinstance(items, Mapping):
            raise BadValue(f"{pallet}: an object of items is wanted")
        emptied = items.get("$removePrefix", ())
        if not isinstance(emptied, list | tuple):
            raise BadValue(f"{pallet}.$removePrefix: a list of items is wanted")
        for name in emptied:
            pairs.update(dict.fromkeys(at.state.top.keys(_entry(at, pallet, name).key(()))))
        for name, value in items.items():
            if name != "$removePrefix":
                pairs.update(_pairs(_entry(at, pallet, name), value))
    return list(pairs.items())


def _entry(at: At, pallet: str, item: object) -> StorageEntry:
    found = storage_entry(at, pallet, item) if isinstance(item, str) else None
    if found is None:
        raise BadValue(f"this chain has no item {pallet}.{item}")
    return found


def _pairs(entry: StorageEntry, value: object) -> Iterator[tuple[bytes, bytes | None]]:
    place = f"{entry.pallet}.{entry.name}"
    rows = value if entry.keys else [[[], value]]
    if not isinstance(rows, list):
        raise BadValue(f"{place}: a list of [keys, value] is wanted")
    for row in rows:
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], list):
            raise BadValue(f"{place}: [keys, value] is wanted, not {row!r}")
        yield entry.key(row[0]), None if row[1] is None else entry.encode(row[1])


def entry_of(at: At, key: bytes) -> StorageEntry | None:
    """The storage item that a full storage key belongs to."""
    return _storage(at.runtime.definition).get(key[:32])


def parse_row(at: At, key: bytes, value: bytes | None) -> Row | None:
    """A row of storage; `None` when it is no item's or does not decode."""
    entry = entry_of(at, key)
    if entry is None:
        return None
    try:
        keys = entry.decode_keys(key)
        decoded = None if value is None else entry.decode(value)
    except ScaleError:
        return None
    return {"section": camel(entry.pallet), "method": camel(entry.name), "key": keys, "value": decoded}
