"""The `scan` policy: a sweep continues where the last one stopped (PS-19).

It walks `TtlData` in storage-key order. A lap goes from the first row of the table to the last,
over the sweeps of many blocks. `TtlScanCursor` names a position and not a row, so rows inserted,
deleted or renewed between blocks do not move it (PS-18).

A publisher chooses its keys, and so the positions of its rows. By deleting rows behind the cursor
and inserting others just ahead of it, it could hold the cursor at its rows forever. So a lap visits
at most `MaxStoredKeys` rows of one publisher. `TtlLapMark` stores where it left, and the next lap
continues there. Without the mark, every lap would visit the same rows first and never reach those
after the cut.

    rows    P1 P2 P3 … P1024 │ P1025 P1026   Q1 Q2 …
    lap 1   ───────────────▶ cut: mark = P1024 ─▶ Q1 …
    lap 2                      ─────────────▶ Q1 …
    lap 3   from P1 again

A sweep that has visited the rest of the table goes on with the rows that it passed over at a mark.
So it leaves no due row if it has room for every row, and for one more visit for each lap that a
publisher's rows need.
"""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import para_id
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import storage as items
from pubsub_emulator.runtime.pallet_pubsub import weights
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    TtlData,
    TtlLapMark,
    TtlRow,
    TtlScanCursor,
    rows_of,
)

_PARA: Final = slice(len(TtlData.prefix) + 8, len(TtlData.prefix) + 12)
"""The publisher in a row's storage key, after its hash."""
_PAST_ALL_ROWS: Final = b"\xff" * 41
"""A suffix that is longer and greater than the hash and key after a publisher's prefix."""

_Place = tuple[bytes, PubsubKey, int]
"""A row: its encoded publisher, its key, and its number among that publisher's rows in this lap."""
_NOWHERE: Final[_Place] = (b"", PubsubKey(b""), 0)


class Lap:
    """The rows in the order of one sweep.

    It goes from the cursor to the end, then from the start to the cursor.
    """

    def __init__(self, storage: Storage, visits: int) -> None:
        """Start after the cursor; `visits` is the maximum of rows of one publisher in a lap."""
        self._storage = storage
        self._visits = visits
        self._wrapped = False
        self._seen: dict[bytes, None] = {}
        # The publishers that this sweep entered or left at a mark, in order.
        self._passed_over: dict[bytes, None] = {}
        self._lap_is_done = False
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
        """Return the next row, or `None` after all rows.

        A sweep visits a row once, even if a new lap begins in it. Only before it goes to a
        publisher that it passed over, it returns one row again. This row counts and is not due.
        """
        at_end = False
        while True:
            row = next(self._rows, None)
            if row is None:
                if (
                    at_end
                    or (self._wrapped and not self._passed_over)
                    or (self._whole and not self._read)
                ):
                    return None
                at_end = self._wrapped
                self._wrapped = True
                self._go_on(None, _NOWHERE)
                continue
            self._read += 1
            para, _, visited = self._place
            if row[0][_PARA] != para:
                para, visited = row[0][_PARA], 0
                row = self._enter(row)
            elif visited >= self._visits:
                self._leave()
                continue
            full, raw = row
            key = PubsubKey(full[-32:])
            if full not in self._seen:
                self._seen[full] = None
                self._place = (para, key, visited + 1)
                self._last = self._last if self._lap_is_done else self._place
            elif self._passed_over:
                self._lap_is_done = True
                passed_over = next(iter(self._passed_over))
                del self._passed_over[passed_over]
                self._go_on(rows_of(para_id.decode(passed_over)).ttl_prefix, _NOWHERE)
            else:
                return None
            expiry = int.from_bytes(raw[:4], "little") + int.from_bytes(raw[4:], "little")
            return TtlRow(ParaId(int.from_bytes(para, "little")), key, expiry)

    def cost(self) -> Weight:
        """Return the weight of finding the rows so far, and of reading and writing marks.

        The weight of finding the end of the table is part of `on_idle_base`.
        """
        return (
            weights.examine_row() * self._read
            + weights.enter_publisher() * self._entered
            + weights.leave_publisher() * self._left
            + weights.resume_publisher() * self._resumed
        )

    def save(self) -> None:
        """Store the position for the next sweep, or remove the cursor if the table is empty."""
        para, key, visited = self._last or _NOWHERE
        cursor = items.ScanCursor(para_id.decode(para), key, visited) if self._last else None
        TtlScanCursor.put_or_kill(self._storage, cursor)

    def _go_on(self, after: bytes | None, place: _Place) -> None:
        """Continue with the rows after the storage key `after`.

        `place` counts as the row that was visited last.
        """
        self._rows = self._storage.iter_prefix(TtlData.prefix, after)
        self._place = place

    def _enter(self, first: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return the row at which a lap begins with a publisher.

        `first` is the publisher's first row. If there is a mark, the lap begins with the row after
        it.
        """
        self._entered += 1
        para = para_id.decode(first[0][_PARA])
        mark = TtlLapMark.get(self._storage, para)
        if mark is None:
            return first
        rows = rows_of(para)
        row = next(self._storage.iter_prefix(rows.ttl_prefix, rows.ttl_row(mark)), None) or first
        self._resumed += 1
        if row != first:
            self._passed_over[first[0][_PARA]] = None
        TtlLapMark.remove(self._storage, para)
        self._go_on(row[0], _NOWHERE)
        return row

    def _leave(self) -> None:
        """Leave a publisher before its last row.

        The next lap continues after the row that was visited last.
        """
        self._left += 1
        self._passed_over[self._place[0]] = None
        para = para_id.decode(self._place[0])
        TtlLapMark.insert(self._storage, para, self._place[1])
        self._go_on(rows_of(para).ttl_prefix + _PAST_ALL_ROWS, self._place)


def worst_step() -> Weight:
    """Return the maximum weight of finding one more row.

    In this case, the lap leaves a publisher early and resumes another at its mark.
    """
    marks = weights.leave_publisher() + weights.enter_publisher() + weights.resume_publisher()
    return weights.examine_row() * 2 + marks
