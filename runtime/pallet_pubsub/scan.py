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

from primitives.types import ParaId, PubsubKey
from primitives.weights import WEIGHT_ZERO, Weight
from runtime.pallet_pubsub import weights
from runtime.pallet_pubsub.storage import ScanCursor, TtlData, TtlLapMark, TtlRow, TtlScanCursor, rows_of
from runtime.storage import Storage

_SKIP = len(TtlData.prefix) + 8
_PAST_ALL_ROWS = b"\xff" * 48  # hash and key of a row are 40 bytes


class Lap:
    """The order in which one sweep meets the rows, from the cursor on and around once."""

    def __init__(self, storage: Storage, visits: int) -> None:
        """Start behind the cursor; `visits` is the most that a lap sees of one publisher."""
        self._storage = storage
        self._visits = visits
        self._cursor = TtlScanCursor.get(storage)
        self._last: ScanCursor | None = None
        self._wrapped = False
        self._seen: dict[bytes, None] = {}
        self.cost = WEIGHT_ZERO
        """What finding rows cost so far, all reads and writes of marks included."""
        cursor = self._cursor
        self._go_on(None if cursor is None else TtlData.key_for(cursor.para, cursor.key))

    def next(self) -> TtlRow | None:
        """The next row; none when all rows were met, a row being met once in a sweep however the lap turns."""
        storage = self._storage
        while True:
            found = next(self._rows, None)
            self.cost += weights.examine_row()
            if found is None:
                if self._wrapped:
                    return None
                self._wrapped = True
                self._cursor = None
                self._go_on(None)
                continue
            full, raw = found
            para = ParaId(int.from_bytes(full[_SKIP : _SKIP + 4], "little"))
            cursor = self._cursor
            visited = 0
            resumed = False
            if cursor is None or para != cursor.para:
                self.cost += weights.enter_publisher()
                mark = TtlLapMark.get(storage, para)
                if mark is not None:
                    resumed = True
                    full, raw = self._behind(para, mark) or found
            else:
                visited = cursor.visited
                if visited >= self._visits:
                    self._cut(cursor)
                    continue
            if full in self._seen:
                return None
            if resumed:
                TtlLapMark.remove(storage, para)
                self.cost += weights.resume_publisher()
                self._go_on(full)
            self._seen[full] = None
            key = PubsubKey(full[-32:])
            self._cursor = self._last = ScanCursor(para, key, visited + 1)
            return TtlRow(para, key, int.from_bytes(raw[:4], "little") + int.from_bytes(raw[4:], "little"))

    def save(self) -> None:
        """Keep the position for the next sweep; one that found the table empty leaves no cursor behind."""
        if self._last is None:
            TtlScanCursor.kill(self._storage)
        else:
            TtlScanCursor.put(self._storage, self._last)

    def _go_on(self, after: bytes | None) -> None:
        self._rows = self._storage.iter_prefix(TtlData.prefix, after)

    def _behind(self, para: ParaId, mark: PubsubKey) -> tuple[bytes, bytes] | None:
        rows = rows_of(para)
        return next(self._storage.iter_prefix(rows.ttl_prefix, rows.ttl_row(mark)), None)

    def _cut(self, cursor: ScanCursor) -> None:
        self.cost += weights.cut_publisher()
        TtlLapMark.insert(self._storage, cursor.para, cursor.key)
        self._go_on(rows_of(cursor.para).ttl_prefix + _PAST_ALL_ROWS)


def worst_step() -> Weight:
    """The most that meeting one more row can cost: leaving one publisher early and taking another up at its mark."""
    return weights.examine_row() * 2 + weights.cut_publisher() + weights.enter_publisher() + weights.resume_publisher()
