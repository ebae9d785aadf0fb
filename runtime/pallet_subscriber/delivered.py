"""What was last delivered of each item, in one of two forms: one row per item, or one per sixteen items.

Rows an item (`LastDelivered`) are what policies `nodes` and `none` read, as the rules have it: `ROW_COST` each. Packed
rows (`LastDeliveredPacked`) belong to policy `slots`: where many items are walked, sixteen share one path of the
parachain's trie.

    key          [u8; 8]       the start of the key set's hash: positions mean nothing under another set
                 u32           the number of the row
    value        40 bytes      for each of the next sixteen subscribed keys of the publisher, in key order:
                               entry hash, u32 ttl, u32 when_inserted; zeros when nothing was delivered

The mark of the key set stands in the key, not in the value, so that equal rows are stored, and proven, once. A row of
another key set is never read: left behind, it could cost a second delivery and never hide one. `repack` carries rows
over when a runtime upgrade changes keys or policy.
"""

from bisect import bisect_left
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ROW_COST,
    CachePolicy,
    RuntimeSpec,
    key_set_hash,
)
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered, decode_last_delivered

Keys = tuple[PubsubKey, ...]

PACK: Final = 16
"""Items in a packed row."""

_MARK: Final = 8
_ROW: Final = 40
_HASH: Final = 32
"""The entry hash comes first in a row."""
NOTHING: Final = bytes(_ROW)
"""Instead of a row: nothing was delivered."""


@lru_cache(maxsize=4096)
def _rows_prefix(para: ParaId) -> bytes:
    return items.LAST_DELIVERED.prefix_for(para)


@lru_cache(maxsize=4096)
def _packed_prefix(para: ParaId) -> bytes:
    return items.LAST_DELIVERED_PACKED.prefix_for(para)


_recent: Final[list[tuple[ParaId, Keys, bytes]]] = [(ParaId(-1), (), b"")]
"""The publisher whose rows were asked for last: finding its keys in a cache anew for each of its rows would take time
that grows with the square of their number."""


def _packed_rows(para: ParaId, keys: Keys) -> bytes:
    """What the storage keys of a publisher's packed rows begin with."""
    known_para, known_keys, prefix = _recent[0]
    if known_keys is not keys or known_para != para:
        prefix = _packed_prefix(para) + key_set_hash(keys)[:_MARK]
        _recent[0] = para, keys, prefix
    return prefix


def _packed_key(para: ParaId, keys: Keys, number: int) -> bytes:
    return _packed_rows(para, keys) + number.to_bytes(4, "little")


def _current(row: bytes | None, keys: Keys, number: int) -> bytes:
    """A packed row as it stands, or a fresh one where there is none."""
    return NOTHING * len(keys[number * PACK : (number + 1) * PACK]) if row is None else row


def _cell(row: bytes, at: int) -> LastDelivered | None:
    start = at % PACK * _ROW
    cell = row[start : start + _ROW]
    return None if cell == NOTHING else decode_last_delivered(cell)


class DeliveredReader:
    """Reads one publisher's rows for a walk, each after the stop rule and charged once (PS-45)."""

    __slots__ = ("_at", "_entry", "_get", "_keys", "_meter", "_para", "_prefix", "charges")

    def __init__(self, storage: Storage, meter: Meter, para: ParaId, keys: Keys) -> None:
        self._get = storage.get
        self._meter = meter
        self._para = para
        self._prefix = _rows_prefix(para)
        self._keys = keys
        self._at: int | None = None
        self._entry: Hash | None = None
        self.charges = 0

    def read(self, at: int) -> Hash | None:
        """The hash of the entry of `keys[at]` that was last delivered, charged `ROW_COST`; none where none was."""
        if self._at != at:
            self._meter.check()
            self._meter.used += ROW_COST
            self.charges += ROW_COST
            row = self._get(self._prefix + self._keys[at])
            self._entry = None if row is None else Hash(row[:_HASH])
            self._at = at
        return self._entry


class PackedReader(DeliveredReader):
    """The same over packed rows: charged `ROW_COST` and the row's stored length."""

    __slots__ = ("_mine", "_packs")

    def __init__(self, storage: Storage, meter: Meter, para: ParaId, keys: Keys) -> None:
        super().__init__(storage, meter, para, keys)
        self._mine = _packed_rows(para, keys)
        self._packs: dict[int, bytes] = {}

    def read(self, at: int) -> Hash | None:
        """As in the class above."""
        number = at // PACK
        row = self._packs.get(number)
        if row is None:
            self._meter.check()
            stored = self._get(self._mine + number.to_bytes(4, "little"))
            cost = ROW_COST + len(stored or b"")
            self._meter.used += cost
            self.charges += cost
            row = self._packs[number] = stored or b""
        if not row:
            return None
        start = at % PACK * _ROW
        cell = row[start : start + _ROW]
        return None if cell == NOTHING else cell[:_HASH]  # type: ignore[return-value]  # without a NewType's call


def get(storage: Storage, spec: RuntimeSpec, para: ParaId, key: PubsubKey) -> LastDelivered | None:
    """What was last delivered of one item, none when it is absent or not subscribed."""
    if spec.cache is not CachePolicy.SLOTS:
        return items.LAST_DELIVERED.get(storage, para, key)
    keys = spec.subscriptions.get(para, ())
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        return None
    return _cell(_current(storage.get(_packed_key(para, keys, at // PACK)), keys, at // PACK), at)


class DeliveredWriter:
    """Records what was delivered of subscribed items. Quickest when items of one publisher come one after the other."""

    __slots__ = ("_keys", "_next", "_packed", "_para", "_prefix", "_spec", "_storage")

    def __init__(self, storage: Storage, spec: RuntimeSpec) -> None:
        self._storage = storage
        self._spec = spec
        self._packed = spec.cache is CachePolicy.SLOTS
        self._para = ParaId(-1)
        self._keys: Keys = ()
        self._prefix = b""
        self._next = 0

    def put(self, para: ParaId, key: PubsubKey, cell: bytes) -> None:
        """Record an item's encoded `LastDelivered`; `NOTHING` when it was removed."""
        if para != self._para:
            self._para, self._keys, self._next = para, self._spec.subscriptions[para], 0
            self._prefix = _packed_rows(para, self._keys) if self._packed else _rows_prefix(para)
        storage = self._storage
        if not self._packed:
            if cell == NOTHING:
                storage.kill(self._prefix + key)
            else:
                storage.put(self._prefix + key, cell)
            return
        keys, at = self._keys, self._next
        if at >= len(keys) or keys[at] != key:
            at = bisect_left(keys, key)
        self._next = at + 1
        number = at // PACK
        full = self._prefix + number.to_bytes(4, "little")
        row = _current(storage.get(full), keys, number)
        start = at % PACK * _ROW
        row = row[:start] + cell + row[start + _ROW :]
        if cell != NOTHING or any(row):
            storage.put(full, row)
        else:
            storage.kill(full)


def put(storage: Storage, spec: RuntimeSpec, para: ParaId, key: PubsubKey, delivered: LastDelivered | None) -> None:
    """Record what was delivered of a subscribed item; none when it was removed."""
    cell = NOTHING if delivered is None else items.last_delivered.encode(delivered)
    DeliveredWriter(storage, spec).put(para, key, cell)


def clear(storage: Storage, para: ParaId, keys: Keys) -> None:
    """Forget what was delivered of a publisher's items, in both forms. Reads nothing: the keys say where rows are."""
    for key in keys:
        items.LAST_DELIVERED.remove(storage, para, key)
    for number in range(-(-len(keys) // PACK)):
        storage.kill(_packed_key(para, keys, number))


def carried_over(before: RuntimeSpec, after: RuntimeSpec) -> list[tuple[ParaId, PubsubKey]]:
    """The items of which an upgrade reads what was delivered, to write it in another form or place."""
    out = []
    for para, keys in before.subscriptions.items():
        if not _stays(before, after, para):
            kept = frozenset(after.subscriptions.get(para, ()))
            out += [(para, key) for key in keys if key in kept]
    return out


def _stays(before: RuntimeSpec, after: RuntimeSpec, para: ParaId) -> bool:
    """Whether an upgrade leaves the rows of a publisher's kept items where they are."""
    packed = CachePolicy.SLOTS
    if (before.cache is packed) != (after.cache is packed):
        return False
    return after.cache is not packed or before.subscriptions.get(para) == after.subscriptions.get(para)


def repack(storage: Storage, before: RuntimeSpec, after: RuntimeSpec) -> None:
    """Carry what was delivered over to another runtime's keys and form; part of a runtime upgrade (PS-33).

    Items that are not subscribed any more are forgotten (PS-63).
    """
    rows = [(para, key, get(storage, before, para, key)) for para, key in carried_over(before, after)]
    for para, keys in before.subscriptions.items():
        if not _stays(before, after, para):
            clear(storage, para, keys)
        elif before.subscriptions[para] != after.subscriptions.get(para):
            kept = frozenset(after.subscriptions.get(para, ()))
            for key in keys:
                if key not in kept:
                    items.LAST_DELIVERED.remove(storage, para, key)
    for para, key, row in rows:
        if row is not None:
            put(storage, after, para, key, row)
