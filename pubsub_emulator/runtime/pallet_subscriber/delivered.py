"""The last deliveries, in one row per item or one row per sixteen items.

The policies `nodes` and `none` read one row per item (`LastDelivered`), at `ROW_COST` each. The
policy `slots` reads packed rows (`LastDeliveredPacked`), in which sixteen items share one path of
the parachain's trie.

    key          [u8; 8]       the start of the key set's hash (the mark), because positions have
                               another meaning under another set
                 u32           the number of the row
    value        40 bytes      for each of the next sixteen subscribed keys of the publisher, in key
                               order: entry hash, u32 ttl, u32 when_inserted; or zeros if nothing
                               was delivered

The mark is in the key and not in the value, so that equal rows are stored and proven only once. A
row of another key set is never read. So a leftover row could cause a second delivery, but it cannot
prevent one. `repack` moves rows when a runtime upgrade changes keys or policy.
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
    Keys,
    RuntimeSpec,
    key_set_hash,
)
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered, decode_last_delivered

PACK: Final = 16
"""The number of items in a packed row."""
_MARK: Final = 8
"""The length of the mark of a key set in bytes."""
_ROW: Final = 40
"""The length of an item's row, or of its cell in a packed row, in bytes."""
_HASH: Final = 32
"""The length of the entry hash, which is first in a row."""
NOTHING: Final = bytes(_ROW)
"""The cell of an item that has not been delivered."""


@lru_cache(maxsize=4096)
def _rows_prefix(para: ParaId) -> bytes:
    return items.LAST_DELIVERED.prefix_for(para)


@lru_cache(maxsize=4096)
def _packed_prefix(para: ParaId) -> bytes:
    return items.LAST_DELIVERED_PACKED.prefix_for(para)


_recent: Final[list[tuple[ParaId, Keys, bytes]]] = [(ParaId(-1), (), b"")]
"""The last publisher and key set, with the prefix of their packed rows.

An ordinary cache would hash all keys of the publisher for each row, in quadratic time.
"""


def _packed_rows(para: ParaId, keys: Keys) -> bytes:
    """Return the prefix of the storage keys of a publisher's packed rows."""
    known_para, known_keys, prefix = _recent[0]
    if known_keys is not keys or known_para != para:
        prefix = _packed_prefix(para) + key_set_hash(keys)[:_MARK]
        _recent[0] = para, keys, prefix
    return prefix


def _packed_key(para: ParaId, keys: Keys, number: int) -> bytes:
    return _packed_rows(para, keys) + number.to_bytes(4, "little")


def _current(row: bytes | None, keys: Keys, number: int) -> bytes:
    """Return the stored packed row, or an empty one if there is none."""
    return NOTHING * len(keys[number * PACK : (number + 1) * PACK]) if row is None else row


def _cell(row: bytes, at: int) -> LastDelivered | None:
    """Return the last delivery of the item with the index `at` in its packed row, or `None`."""
    start = at % PACK * _ROW
    cell = row[start : start + _ROW]
    return None if cell == NOTHING else decode_last_delivered(cell)


class DeliveredReader:
    """A reader of one publisher's rows for a walk.

    Each row is read once the stop rule allows it, and charged once (PS-45).
    """

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
        """Return the hash of the last delivered entry of `keys[at]`, or `None`.

        The read is charged `ROW_COST`.
        """
        if self._at != at:
            self._meter.check()
            self._meter.used += ROW_COST
            self.charges += ROW_COST
            row = self._get(self._prefix + self._keys[at])
            self._entry = None if row is None else Hash(row[:_HASH])
            self._at = at
        return self._entry


class PackedReader(DeliveredReader):
    """A reader of packed rows. A row is charged `ROW_COST` and its stored length."""

    def __init__(self, storage: Storage, meter: Meter, para: ParaId, keys: Keys) -> None:
        super().__init__(storage, meter, para, keys)
        self._row_prefix = _packed_rows(para, keys)
        self._packs: dict[int, bytes] = {}

    def read(self, at: int) -> Hash | None:
        """Return the hash of the last delivered entry of `keys[at]`, or `None`.

        Each row is charged once.
        """
        number = at // PACK
        row = self._packs.get(number)
        if row is None:
            self._meter.check()
            stored = self._get(self._row_prefix + number.to_bytes(4, "little"))
            cost = ROW_COST + len(stored or b"")
            self._meter.used += cost
            self.charges += cost
            row = stored or b""
            self._packs[number] = row
        if not row:
            return None
        start = at % PACK * _ROW
        cell = row[start : start + _ROW]
        return None if cell == NOTHING else cell[:_HASH]  # type: ignore[return-value]  # without a NewType's call


def get(storage: Storage, spec: RuntimeSpec, para: ParaId, key: PubsubKey) -> LastDelivered | None:
    """Return the last delivery of one item, or `None` if it is absent or not subscribed."""
    if spec.cache is not CachePolicy.SLOTS:
        return items.LAST_DELIVERED.get(storage, para, key)
    keys = spec.subscriptions.get(para, ())
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        return None
    return _cell(_current(storage.get(_packed_key(para, keys, at // PACK)), keys, at // PACK), at)


class DeliveredWriter:
    """Records deliveries of subscribed items.

    It is fastest if the items of a publisher follow each other in the order of their keys.
    """

    def __init__(self, storage: Storage, spec: RuntimeSpec) -> None:
        self._storage = storage
        self._spec = spec
        self._packed = spec.cache is CachePolicy.SLOTS
        self._para = ParaId(-1)
        self._keys: Keys = ()
        self._prefix = b""
        self._next = 0

    def put(self, para: ParaId, key: PubsubKey, cell: bytes) -> None:
        """Record an item's encoded `LastDelivered`, or `NOTHING` for a removal."""
        if para != self._para:
            self._para = para
            self._keys = self._spec.subscriptions[para]
            self._next = 0
            self._prefix = _packed_rows(para, self._keys) if self._packed else _rows_prefix(para)
        storage = self._storage
        if not self._packed:
            if cell == NOTHING:
                storage.kill(self._prefix + key)
            else:
                storage.put(self._prefix + key, cell)
            return
        keys = self._keys
        at = self._next
        if at >= len(keys) or keys[at] != key:
            at = bisect_left(keys, key)
        self._next = at + 1
        number = at // PACK
        full = self._prefix + number.to_bytes(4, "little")
        stored: bytes | None = storage.get(full)
        row = stored if stored is not None else _current(stored, keys, number)
        start = at % PACK * _ROW
        row = row[:start] + cell + row[start + _ROW :]
        if cell != NOTHING or any(row):
            storage.put(full, row)
        else:
            storage.kill(full)


def put(
    storage: Storage,
    spec: RuntimeSpec,
    para: ParaId,
    key: PubsubKey,
    delivered: LastDelivered | None,
) -> None:
    """Record a delivery of a subscribed item, or `None` for a removal."""
    cell = NOTHING if delivered is None else items.last_delivered.encode(delivered)
    DeliveredWriter(storage, spec).put(para, key, cell)


def clear(storage: Storage, para: ParaId, keys: Keys) -> None:
    """Remove the rows of a publisher's items, in both forms.

    This needs no reads, because the keys determine the rows.
    """
    for key in keys:
        items.LAST_DELIVERED.remove(storage, para, key)
    for number in range(-(-len(keys) // PACK)):
        storage.kill(_packed_key(para, keys, number))


def carried_over(before: RuntimeSpec, after: RuntimeSpec) -> list[tuple[ParaId, PubsubKey]]:
    """Return the items whose rows an upgrade reads, to write them in another form or place."""
    moved = []
    for para, keys in before.subscriptions.items():
        if not _stays(before, after, para):
            still_subscribed = frozenset(after.subscriptions.get(para, ()))
            moved += [(para, key) for key in keys if key in still_subscribed]
    return moved


def _stays(before: RuntimeSpec, after: RuntimeSpec, para: ParaId) -> bool:
    """Return whether an upgrade leaves the rows of a publisher's items in place.

    Only items that stay subscribed are considered.
    """
    packed = CachePolicy.SLOTS
    if (before.cache is packed) != (after.cache is packed):
        return False
    return after.cache is not packed or before.subscriptions.get(para) == after.subscriptions.get(
        para
    )


def repack(storage: Storage, before: RuntimeSpec, after: RuntimeSpec) -> None:
    """Move the rows to another runtime's keys and form (PS-33).

    Rows of items that are no longer subscribed are removed (PS-63).
    """
    rows = [
        (para, key, get(storage, before, para, key)) for para, key in carried_over(before, after)
    ]
    for para, keys in before.subscriptions.items():
        if not _stays(before, after, para):
            clear(storage, para, keys)
        elif before.subscriptions[para] != after.subscriptions.get(para):
            still_subscribed = frozenset(after.subscriptions.get(para, ()))
            for key in keys:
                if key not in still_subscribed:
                    items.LAST_DELIVERED.remove(storage, para, key)
    for para, key, row in rows:
        if row is not None:
            put(storage, after, para, key, row)
