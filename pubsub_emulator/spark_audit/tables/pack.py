"""Packing, which writes the rows of many results into the parts of a table.

It is done by units on any engine, so that rows need not pass through the driver.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.engine.engine import Answer, UnitTask
from pubsub_emulator.spark_audit.history.columns import in_schema, plain_schema
from pubsub_emulator.spark_audit.history.manifest import digest_of, sealed
from pubsub_emulator.spark_audit.history.row import fields_of
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.judge.results import (
    RESULT_TABLES,
    TABLES,
    RowRange,
    put_whole,
    read_some,
)
from pubsub_emulator.spark_audit.tables.delta import DataFile

SOURCES: Final = "ledger/parts"
"""The folder with the notes, which list the sources of full parts."""
LARGE: Final = 4 * 1_048_576
"""A part is full if its file has at least this many bytes."""
UNPACKED: Final = 256 * 1_048_576
"""A part is also full if its rows have at least this many bytes before compression."""
GROUP: Final = 4 * 1_048_576
"""The size of a row group before compression, in bytes."""
UNIT: Final = 256
"""The number of results whose rows one unit packs."""
BOUNDED: Final = ("network", "chain", "number", "day")
"""Columns for which the log states the minimum and maximum in each file."""

Source = str
"""The name of the result from which rows come."""


Packed = tuple[Source, RowRange | pa.Table]
"""The rows of a result: a reference to them, or the rows themselves."""

Runner = Callable[[Sequence[str], Store], Sequence[Answer]]
"""Runs units of `pack` with these tasks, in this output, and returns their receipts."""


Sources = list[list[Any]]
"""Names of results and numbers of their rows, in the order of the rows in a part."""


@dataclass(slots=True)
class TablePart:
    """One file of a table."""

    name: str
    """The file's name in the table's folder."""
    size: int
    """Its bytes."""
    rows: int
    time: int
    """When it was written, in milliseconds since 1970, by this machine's clock."""
    changed: int
    """When it was written, in nanoseconds since 1970, by the clock of its storage. If the storage
    still states this time, nobody has written to the file since."""
    full: bool
    """Whether it is so large that it is not merged with further rows."""
    replaced: bool
    """Whether its rows are replaced in each run."""
    sources: Sources | None
    """The results whose rows it has, with their numbers of rows; `None` if they are in a note."""
    bounds: dict[str, list[object]] = field(default_factory=dict)
    """Minimum, maximum and number of nulls of the columns `BOUNDED`."""

    def to_json(self) -> dict[str, object]:
        """Return the part in a form for receipts and the ledger.

        `asdict` would copy the sources, of which there may be many.
        """
        return fields_of(self, TablePart.__slots__)

    def file(self) -> DataFile:
        """Return the part as the log describes it."""
        return DataFile(self.name, self.size, self.rows, time=self.time, bounds=self.bounds)

    @property
    def note(self) -> str:
        """The path of the note with its sources. Only a full part has a note."""
        return f"{SOURCES}/{self.name.removesuffix('.parquet')}.json"


@dataclass(frozen=True, slots=True)
class Packing(UnitTask):
    """The task of packing rows into parts of one table."""

    table: str
    now: int
    """The time that the parts state, in milliseconds since 1970."""
    replaced: bool
    """Whether the rows are replaced in each run."""
    rows: tuple[tuple[Source, RowRange], ...]

    @staticmethod
    def from_json(text: str) -> "Packing":
        """Return the task that `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        rows = tuple((source, RowRange(**rows)) for source, rows in data["rows"])
        return Packing(**{**data, "rows": rows})


def pack(text: str, out: str) -> Answer:
    """Write parts of a table and return them. This is a unit. Raises `ResultError`, `OSError`."""
    task = Packing.from_json(text)
    parts = write_parts(
        open_store(out), task.table, task.rows, now=task.now, replaced=task.replaced
    )
    return {"parts": [part.to_json() for part in parts]}


def pack_here(tasks: Sequence[str], store: Store) -> list[Answer]:
    """Run units of `pack` one after another in this process. Raises `ResultError`, `OSError`."""
    return [pack(text, store.uri) for text in tasks]


def write_parts(
    store: Store, name: str, rows: Iterable[Packed], now: int, *, replaced: bool
) -> Iterator[TablePart]:
    """Write rows into as many parts as necessary, and yield the parts.

    If there are no rows, one part without rows is written, so that every table has a file. Raises
    `ResultError`, `OSError`.
    """
    shape = published_schema(RESULT_TABLES[name])
    draft = _Draft(shape)
    written = False
    for source, source_rows in _read(store, RESULT_TABLES[name], rows):
        draft.add(source, in_schema(source_rows, shape))
        if draft.is_full():
            yield _write_part(store, name, draft, now=now, replaced=replaced)
            draft = _Draft(shape)
            written = True
    if draft.sources or not written:
        yield _write_part(store, name, draft, now=now, replaced=replaced)


def _read(store: Store, table: Table, rows: Iterable[Packed]) -> Iterator[tuple[Source, pa.Table]]:
    """Yield the rows of results.

    If consecutive results have their rows in the same file, that file is read once.
    """
    path = ""
    file_rows = pa.table({})
    for source, source_rows in rows:
        if not isinstance(source_rows, RowRange):
            yield source, source_rows
        elif source_rows.count is None:
            yield source, read_some(store, source_rows, table)
        else:
            if source_rows.path != path:
                path = source_rows.path
                file_rows = read_some(store, RowRange(source_rows.path), table)
            yield source, file_rows.slice(source_rows.start, source_rows.count)


def _write_part(store: Store, name: str, draft: "_Draft", now: int, *, replaced: bool) -> TablePart:
    """Write a part.

    If it is full and its rows stay from run to run, its sources are written to a note. That keeps
    the ledger small.
    """
    # Closing writes the remaining rows, which may make the file large enough.
    full = draft.is_full()
    data = draft.close()
    full = full or len(data) >= LARGE
    file = f"part-{digest_of(data)[:32]}.parquet"
    put_whole(store, f"{TABLES}/{name}/{file}", data)
    stamp = store.stamp(f"{TABLES}/{name}/{file}")
    changed = 0 if stamp is None else stamp.time
    rows = sum(count for _, count in draft.sources)
    part = TablePart(
        name=file,
        size=len(data),
        rows=rows,
        time=now,
        changed=changed,
        full=full,
        replaced=replaced,
        sources=draft.sources,
        bounds=draft.bounds,
    )
    if part.full and not replaced:
        store.put(part.note, sealed(draft.sources))
        part.sources = None
    return part


class _Draft:
    """A part that is being made.

    Rows are compressed as soon as there is a row group of them, so only one row group is in memory
    uncompressed.
    """

    def __init__(self, shape: pa.Schema) -> None:
        self.sources: Sources = []
        self.bounds: dict[str, list[object]] = {}
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, shape, compression="zstd", compression_level=3)
        self._waiting: list[pa.Table] = []
        self._weight = 0
        self._written = 0

    def add(self, source: Source, rows: pa.Table) -> None:
        """Add the rows of a result."""
        self.sources.append([source, rows.num_rows])
        self._waiting.append(rows)
        self._weight += rows.nbytes
        if self._weight >= min(GROUP, UNPACKED):
            self._pack()

    def is_full(self) -> bool:
        """Return whether the rows written so far make a full part."""
        return self._written >= UNPACKED or self._sink.tell() >= LARGE

    def close(self) -> bytes:
        """Write the waiting rows and return the content of the file."""
        self._pack()
        self._writer.close()
        return bytes(self._sink.getvalue().to_pybytes())

    def _pack(self) -> None:
        """Write the waiting rows as a row group."""
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._writer.write_table(rows)
            for name in BOUNDED:
                if name in rows.column_names:
                    self.bounds[name] = _widened(self.bounds.get(name), rows.column(name))
        self._written += self._weight
        self._waiting = []
        self._weight = 0


def _widened(bounds: list[Any] | None, column: pa.ChunkedArray) -> list[Any]:
    """Widen the bounds of a column (minimum, maximum, number of nulls) by further values."""
    ends = pc.min_max(column).as_py()
    known_minimum, known_maximum, known_nulls = bounds or [None, None, 0]
    minima = [end for end in (_in_json(ends["min"]), known_minimum) if end is not None]
    maxima = [end for end in (_in_json(ends["max"]), known_maximum) if end is not None]
    return [min(minima, default=None), max(maxima, default=None), column.null_count + known_nulls]


def _in_json(end: object) -> Any:
    """Return a minimum or maximum in the form of the log, which has dates as text."""
    return end.isoformat() if isinstance(end, date) else end


def empty_part(table: Table) -> bytes:
    """Return the content of a file of a table that has no rows."""
    return _Draft(published_schema(table)).close()


def published_schema(table: Table) -> pa.Schema:
    """Return a table's columns, with those of later versions, in types that every engine knows."""
    return plain_schema(table.wider.schema)
