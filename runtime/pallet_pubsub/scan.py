"""The `scan` policy: a sweep walks `TtlData` in storage-key order and takes up where the last one stopped (PS-19).

A lap goes from the first row of the table to the last. It is cut into the sweeps of many blocks by `TtlScanCursor`,
which names a position and not a row: what is inserted, deleted or renewed around it between blocks moves nothing
(PS-18).

A publisher chooses its keys, and so where its rows stand. One that deletes rows behind the cursor and inserts others
just ahead of it would keep the cursor with itself for ever. So a lap visits at most `MaxStoredKeys` rows of one
publisher and goes on to the next; `TtlLapMark` keeps where it left, and the next lap takes that publisher up there.
Without the mark the rows behind the cut would be passed over in every lap, since the busy part comes first each time.

    rows    P1 P2 P3 … P1024 │ P1025 P1026   Q1 Q2 …
    lap 1   ───────────────▶ cut: mark = P1024 ─▶ Q1 …
    lap 2                      ─────────────▶ Q1 …
    lap 3   from P1 again
"""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.message_chains import para_id
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import weights
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    ScanCursor,
    TtlData,
    TtlLapMark,
    TtlRow,
    TtlScanCursor,
    rows_of,
)

_PARA: Final = slice(len(TtlData.prefix) + 8, len(TtlData.prefix) + 12)
"""Where a row's storage key names its publisher: behind the hash of it."""
_PAST_ALL_ROWS: Final = b"\xff" * 41
"""Longer and greater than the hash and key that follow a publisher's prefix."""

_Place = tuple[bytes, PubsubKey, int]
"""A row that was met: its publisher encoded, its key, and how many of that publisher's rows this lap has visited."""
_NOWHERE: Final[_Place] = (b"", PubsubKey(b""), 0)


class Lap:
    """The order in which one sweep meets the rows, from the cursor on and around once."""

    def __init__(self, storage: Storage, visits: int) -> None:
        """Start behind the cursor; `visits` is the most that a lap sees of one publisher."""
        self._storage = storage
        self._visits = visits
        self._wrapped = False
        self._seen: dict[bytes, None] = {}
        self._rows: Iterator[tuple[bytes, bytes]]
        self._place: _Place
        self._last: _Place | None = None
        self._read = self._entered = self._left = self._resumed = 0
        cursor = TtlScanCursor.get(storage)
        self._whole = cursor is None
        if cursor is None:
            self._go_on(None, _NOWHERE)
        else:
            place = (para_id.encode(cursor.para), cursor.key, cursor.visited)
            self._go_on(TtlData.key_for(cursor.para, cursor.key), place)

    def next(self) -> TtlRow | None:
        """The next row; none when all rows were met, a row being met once in a sweep however the lap turns."""
        while True:
            found = next(self._rows, None)
            if found is None:
                if self._wrapped or (self._whole and not self._read):
                    return None
                self._wrapped = True
                self._go_on(None, _NOWHERE)
                continue
            self._read += 1
            para, _, visited = self._place
            if found[0][_PARA] != para:
                para, visited = found[0][_PARA], 0
                found = self._enter(found)
            elif visited >= self._visits:
                self._leave()
                continue
            full, raw = found
            if full in self._seen:
                return None
            self._seen[full] = None
            key = PubsubKey(full[-32:])
            self._place = self._last = (para, key, visited + 1)
            expiry = int.from_bytes(raw[:4], "little") + int.from_bytes(raw[4:], "little")
            return TtlRow(ParaId(int.from_bytes(para, "little")), key, expiry)

    def cost(self) -> Weight:
        """What finding the rows so far has cost, marks included; finding the end of the table is in `on_idle_base`."""
        return (
            weights.examine_row() * self._read
            + weights.enter_publisher() * self._entered
            + weights.leave_publisher() * self._left
            + weights.resume_publisher() * self._resumed
        )

    def save(self) -> None:
        """Keep the position for the next sweep; one that found the table empty leaves no cursor behind."""
        if self._last is None:
            TtlScanCursor.kill(self._storage)
        else:
            para, key, visited = self._last
            TtlScanCursor.put(self._storage, ScanCursor(para_id.decode(para), key, visited))

    def _go_on(self, after: bytes | None, place: _Place) -> None:
        """Go on with the rows behind the storage key `after`, as if `place` had been met last."""
        self._rows = self._storage.iter_prefix(TtlData.prefix, after)
        self._place = place

    def _enter(self, first: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Where a lap begins with the publisher whose first row this is: there, or behind the mark."""
        self._entered += 1
        para = para_id.decode(first[0][_PARA])
        mark = TtlLapMark.get(self._storage, para)
        if mark is None:
            return first
        rows = rows_of(para)
        row = next(self._storage.iter_prefix(rows.ttl_prefix, rows.ttl_row(mark)), None) or first
        self._resumed += 1
        TtlLapMark.remove(self._storage, para)
        self._go_on(row[0], _NOWHERE)
        return row

    def _leave(self) -> None:
        """Leave a publisher before its last row: the next lap takes it up behind the row met last."""
        self._left += 1
        para = para_id.decode(self._place[0])
        TtlLapMark.insert(self._storage, para, self._place[1])
        self._go_on(rows_of(para).ttl_prefix + _PAST_ALL_ROWS, self._place)


def worst_step() -> Weight:
    """The most that meeting one more row can cost: leaving one publisher early and taking another up at its mark."""
    return (
        weights.examine_row() * 2 + weights.leave_publisher() + weights.enter_publisher() + weights.resume_publisher()
    )
