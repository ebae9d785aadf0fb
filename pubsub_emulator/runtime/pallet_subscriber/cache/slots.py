"""Policy `slots`: the hashes of resolved subtrees, by position in the key space (PS-69).

It does not store nodes. The layout depends only on the subscribed keys. For each prefix that at
least `MIN_KEYS` of them share and after which they diverge, there is one row, with a 32-byte slot
for each nibble that follows the prefix in a subscribed key. The position Q of a slot is the prefix
and the nibble. The slot holds the reference of the trie node that starts exactly at depth |Q|, or
the empty trie's root if the trie has nothing there, or zeros.

    invariant   a slot holds R only if every item below Q was last resolved under a trie that has
                R at Q

So if a walk finds R at Q again, everything below Q is unchanged. Neither the collator nor the chain
reads it. This costs one row of the parachain's own state for up to sixteen subtrees. A reference is
the hash of a subtree, so an attacker cannot make another subtree look like the resolved one.

If there is only one subscribed key below a node, its leaf need not be read either. A trie has only
one encoding of the leaf with the last delivered entry, so its hash can be computed
(`leaf_reference`). `step` also accepts other encodings, for example with bytes after the end. Such
a leaf is not recognised and is read.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache.base import Cache
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, Keys
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.trie.codec import HASHED_LEAF_HEADS, ODD_HASHED_LEAF_HEADS
from pubsub_emulator.trie.nibbles import shared_digits

MIN_KEYS: Final = 6
"""The minimum number of keys below a row. With fewer keys, a row costs more than it saves."""
NOTHING: Final = bytes(32)
"""An unset slot, which is not the hash of any node."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A position Q in the key space."""

    depth: int
    """The number of nibbles of Q."""
    above: int
    """The index of the next slot above, or -1."""
    row: int
    """The row that has the slot's hash."""
    place: int
    """The place of the hash in the row."""
    low: int
    """The index of the first key below Q."""
    high: int
    """The index after the last key below Q."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All slots of one set of keys."""

    slots: tuple[Slot, ...]
    rows: tuple[tuple[bytes, int], ...]
    """The storage suffix of each row, and its number of slots."""
    paths: tuple[Mapping[int, int], ...]
    """The slots above each key, as indices by depth, shallowest first.

    Keys with the same slots above them share one mapping.
    """
    deepest: tuple[int, ...]
    """The index of the deepest slot above each key, or -1."""
    alone: tuple[int, ...]
    """The depth in nibbles for each key from which it is the only subscribed key."""


@lru_cache(maxsize=1024)
def layout_of(keys: Keys) -> Layout:
    """Return the layout of sorted, distinct 32-byte keys.

    The last results are cached, because each walk needs the layout again.
    """
    texts = [key.hex() for key in keys]
    shared = [shared_digits(a, b, 0) for a, b in pairwise(texts)]
    alone = tuple(
        max(shared[i - 1] if i else -1, shared[i] if i < len(shared) else -1) + 1
        for i in range(len(keys))
    )
    slots: list[Slot] = []
    rows: list[tuple[bytes, int]] = []
    paths: list[dict[int, int]] = [{}] * len(keys)
    deepest = [-1] * len(keys)
    todo = [(0, len(keys))]
    while todo:
        low, high = todo.pop()
        if high - low < MIN_KEYS:
            continue
        split = shared_digits(texts[low], texts[high - 1], 0)
        row = len(rows)
        place = 0
        start = low
        above = deepest[low]
        while start < high:
            end = bisect_left(
                texts, chr(ord(texts[start][split]) + 1), start, high, key=lambda text: text[split]
            )
            paths[start:end] = [{**paths[start], split + 1: len(slots)}] * (end - start)
            deepest[start:end] = [len(slots)] * (end - start)
            slots.append(Slot(split + 1, above, row, place, start, end))
            todo.append((start, end))
            place += 1
            start = end
        rows.append((_row_suffix(texts[low][:split]), place))
    return Layout(tuple(slots), tuple(rows), tuple(paths), tuple(deepest), alone)


def _row_suffix(prefix: str) -> bytes:
    """Return a row's prefix of nibbles in the form of the storage key.

    The form is the number of nibbles in one byte, then the nibbles in pairs, padded with zero.
    """
    return bytes((len(prefix),)) + bytes.fromhex(prefix + "0" * (len(prefix) % 2))


def leaf_reference(key: bytes, depth: int, entry_hash: Hash) -> Hash:
    """Return the hash of the leaf at nibble `depth` of `key` with a detached value.

    `entry_hash` is the hash of the value. Such a leaf is over 32 bytes long, so its reference is
    always a hash.
    """
    remaining = 2 * len(key) - depth
    half = depth >> 1
    if depth & 1:
        return blake2_256(
            ODD_HASHED_LEAF_HEADS[remaining][key[half] & 15] + key[half + 1 :] + entry_hash
        )
    return blake2_256(HASHED_LEAF_HEADS[remaining] + key[half:] + entry_hash)


class SlotCache(Cache):
    """The slots of one publisher.

    `_rows` has the rows that were read, by number. `_seen` has the references that this walk found,
    by slot. If a node spans the position of a slot, it has no reference. `_covered` has the number
    of items that the slots directly below a slot covered, by slot, and at -1 those that the
    outermost slots covered.
    """

    keeps_references: ClassVar[bool] = True

    def __init__(
        self, view: SubscriberView, meter: Meter, para: ParaId, keys: Keys, *, trusted: bool
    ) -> None:
        super().__init__(view, meter, para, keys, trusted=trusted)
        self._layout = layout_of(keys)
        self._rows: dict[int, bytes] = {}
        self._seen: dict[int, Hash] = {}
        self._covered: dict[int, int] = {}
        self.places = self._layout.paths
        self.alone_from = self._layout.alone

    def covers(self, at: int, place: int, reference: Hash) -> int:
        """Return the number of items below the slot `place` if it holds `reference`, else 0.

        Slots of another key set are not compared, but the reference is noted for `store`.
        """
        if not self.trusted:
            self._seen[place] = reference
            return 0
        slot = self._layout.slots[place]
        row = self._rows.get(slot.row)
        if row is None:
            row = self._read(slot.row)
        self._seen[place] = reference
        begin = 32 * slot.place
        if row[begin : begin + 32] != reference:
            return 0
        count = min(slot.high, self.end) - at
        self._covered[slot.above] = self._covered.get(slot.above, 0) + count
        return count

    def covers_absence(self, at: int, depth: int) -> int:
        """Return the number of resolved items, given that nothing exists from `depth` on.

        The first slot below that depth is compared with the empty trie. The slots below it are
        noted as empty.
        """
        empty_from = None
        for below, index in self._layout.paths[at].items():
            if below <= depth:
                continue
            if empty_from is None:
                empty_from = index
            else:
                self._seen[index] = EMPTY_TRIE_ROOT
        return 0 if empty_from is None else self.covers(at, empty_from, EMPTY_TRIE_ROOT)

    def _read(self, number: int) -> bytes:
        """Return a row, and charge its stored length and `ROW_COST`."""
        suffix, width = self._layout.rows[number]
        self.meter.check()
        stored = self.view.cache_slots(self.para, suffix)
        self.charge(ROW_COST + len(stored or b""))
        row = stored or NOTHING * width
        self._rows[number] = row
        return row

    def _done(self) -> dict[int, int]:
        """Return the number of items below each slot that this walk resolved.

        They include the items that deeper slots covered.
        """
        slots = self._layout.slots
        deepest_above = self._layout.deepest
        counts = dict(self._covered)
        for at in self.resolved:
            slot = deepest_above[at]
            counts[slot] = counts.get(slot, 0) + 1
        done: dict[int, int] = {}
        for deepest, count in counts.items():
            index = deepest
            while index >= 0:
                done[index] = done.get(index, 0) + count
                index = slots[index].above
        return done

    def store(self, storage: Storage, visited: Mapping[Hash, bytes], *, complete: bool) -> bool:  # noqa: ARG002
        """Write the seen reference to each slot whose items are all resolved.

        The other visited slots are cleared. Returns `True`, because slots always fit.
        """
        changed: dict[int, bytearray] = {}
        for index, done in self._done().items():
            slot = self._layout.slots[index]
            row = changed.get(slot.row)
            if row is None:
                # A row that the walk did not read must not be read now, because reads are charged
                # during the walk. Its other slots are lost.
                before = self._rows.get(slot.row, NOTHING * self._layout.rows[slot.row][1])
                row = bytearray(before)
                changed[slot.row] = row
            all_resolved = done == slot.high - slot.low
            reference = self._seen.get(index, NOTHING) if all_resolved else NOTHING
            row[32 * slot.place : 32 * slot.place + 32] = reference
        for number, row in changed.items():
            suffix, _ = self._layout.rows[number]
            value = bytes(row)
            if value == self._rows.get(number):
                continue
            if any(value):
                items.CACHE_SLOTS.insert(storage, self.para, suffix, value)
            else:
                items.CACHE_SLOTS.remove(storage, self.para, suffix)
        return True

    @staticmethod
    def drop(storage: Storage, para: ParaId, keys: Keys) -> None:
        """Remove a publisher's rows without reading them. At most one row exists for five keys."""
        for suffix, _ in layout_of(keys).rows:
            items.CACHE_SLOTS.remove(storage, para, suffix)
