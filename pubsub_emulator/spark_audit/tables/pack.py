"""Parts of tables written from the rows of results, by units that any engine gives out: no row passes the driver."""

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
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES, TABLES, Rows, put_whole, read_some
from pubsub_emulator.spark_audit.tables.delta import DataFile

SOURCES: Final = "ledger/parts"
LARGE: Final = 4 * 1_048_576
"""Bytes from which a part is full."""
UNPACKED: Final = 256 * 1_048_576
"""Bytes of uncompressed rows at which a part is full."""
GROUP: Final = 4 * 1_048_576
"""Bytes of rows that make a row group."""
UNIT: Final = 256
"""Results whose rows one unit packs."""
BOUNDED: Final = ("network", "chain", "number", "day")
"""Columns of which the log has the least and the largest value of each file."""

Source = str
"""The name of a result."""


Packed = tuple[Source, Rows | pa.Table]
"""Rows of a result: where they are, or themselves."""

Runner = Callable[[Sequence[str], Store], Sequence[Answer]]
"""Has units of `pack` done, whose tasks these are, over this place."""


Sources = list[list[Any]]
"""A result's name and the number of its rows, in their order."""


@dataclass(slots=True)
class TablePart:
    """One file of a table; `sources` are the results whose rows it holds and how many, if no note has them."""

    name: str
    size: int
    rows: int
    time: int
    changed: int
    """When the file was written by the clock of where it is: tells that it was not written to since."""
    full: bool
    replaced: bool
    """Whether each run replaces its rows."""
    sources: Sources | None
    bounds: dict[str, list[object]] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As it travels and is kept; `asdict` would copy every source."""
        return fields_of(self, TablePart.__slots__)

    def file(self) -> DataFile:
        """The file's entry in the log."""
        return DataFile(self.name, self.size, self.rows, self.time, self.bounds)

    @property
    def note(self) -> str:
        """Where its sources are noted once it is full."""
        return f"{SOURCES}/{self.name.removesuffix('.parquet')}.json"


@dataclass(frozen=True, slots=True)
class Packing(UnitTask):
    """The task of a unit: rows of one table that become parts of it."""

    table: str
    now: int
    """Milliseconds since 1970."""
    replaced: bool
    rows: tuple[tuple[Source, Rows], ...]

    @staticmethod
    def from_json(text: str) -> "Packing":
        """The inverse of `to_json`."""
        data: dict[str, Any] = json.loads(text)
        rows = tuple((source, Rows(**rows)) for source, rows in data["rows"])
        return Packing(**{**data, "rows": rows})


def pack(text: str, out: str) -> Answer:
    """The unit that writes parts. Raises `ResultError`, `OSError`."""
    task = Packing.from_json(text)
    parts = write_parts(open_store(out), task.table, task.rows, task.now, replaced=task.replaced)
    return {"parts": [part.to_json() for part in parts]}


def pack_here(tasks: Sequence[str], store: Store) -> list[Answer]:
    """The units one after the other, in this process. Raises `ResultError`, `OSError`."""
    return [pack(text, store.uri) for text in tasks]


def write_parts(store: Store, name: str, rows: Iterable[Packed], now: int, *, replaced: bool) -> Iterator[TablePart]:
    """Write parts with these rows, one without rows if there are none. Raises `ResultError`, `OSError`."""
    shape = published_schema(RESULT_TABLES[name])
    draft, written = _Draft(shape), False
    for source, held in _read(store, RESULT_TABLES[name], rows):
        draft.add(source, in_schema(held, shape))
        if draft.is_full():
            yield _write_part(store, name, draft, now, replaced=replaced)
            draft, written = _Draft(shape), True
    if draft.sources or not written:
        yield _write_part(store, name, draft, now, replaced=replaced)


def _read(store: Store, table: Table, rows: Iterable[Packed]) -> Iterator[tuple[Source, pa.Table]]:
    """Rows of results; a file that several have rows in is read once for those that follow each other."""
    path, whole = "", pa.table({})
    for source, held in rows:
        if not isinstance(held, Rows):
            yield source, held
        elif held.count is None:
            yield source, read_some(store, held, table)
        else:
            if held.path != path:
                path, whole = held.path, read_some(store, Rows(held.path), table)
            yield source, whole.slice(held.start, held.count)


def _write_part(store: Store, name: str, draft: "_Draft", now: int, *, replaced: bool) -> TablePart:
    full, data = draft.is_full(), draft.close()
    full = full or len(data) >= LARGE
    file = f"part-{digest_of(data)[:32]}.parquet"
    put_whole(store, f"{TABLES}/{name}/{file}", data)
    stamp = store.stamp(f"{TABLES}/{name}/{file}")
    changed, rows = 0 if stamp is None else stamp.time, sum(count for _, count in draft.sources)
    part = TablePart(file, len(data), rows, now, changed, full, replaced, draft.sources, draft.bounds)
    if part.full and not replaced:
        store.put(part.note, sealed(draft.sources))
        part.sources = None
    return part


class _Draft:
    """A part that is being made: rows are packed as they come, so only a row group of them is held."""

    def __init__(self, shape: pa.Schema) -> None:
        self.sources: Sources = []
        self.bounds: dict[str, list[object]] = {}
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, shape, compression="zstd", compression_level=3)
        self._held: list[pa.Table] = []
        self._weight = 0
        self._written = 0

    def add(self, source: Source, rows: pa.Table) -> None:
        self.sources.append([source, rows.num_rows])
        self._held.append(rows)
        self._weight += rows.nbytes
        if self._weight >= min(GROUP, UNPACKED):
            self._pack()

    def is_full(self) -> bool:
        return self._written >= UNPACKED or self._sink.tell() >= LARGE

    def close(self) -> bytes:
        self._pack()
        self._writer.close()
        return bytes(self._sink.getvalue().to_pybytes())

    def _pack(self) -> None:
        if self._held:
            rows = pa.concat_tables(self._held)
            self._writer.write_table(rows)
            for name in (name for name in BOUNDED if name in rows.column_names):
                self.bounds[name] = _wider(self.bounds.get(name), rows.column(name))
        self._written += self._weight
        self._held, self._weight = [], 0


def _wider(known: list[Any] | None, column: pa.ChunkedArray) -> list[Any]:
    """Least and largest value of a column and what is known, and how many are empty; days as text."""
    ends = pc.min_max(column).as_py()
    found = [end.isoformat() if isinstance(end, date) else end for end in ends.values()]
    before = known or [None, None, 0]
    least, most = ([end for end in pair if end is not None] for pair in zip(found, before[:2], strict=True))
    return [min(least, default=None), max(most, default=None), column.null_count + before[2]]


def empty_part(table: Table) -> bytes:
    """A file of a table without rows."""
    return _Draft(published_schema(table)).close()


def published_schema(table: Table) -> pa.Schema:
    """A table's columns, those of later versions too, in types that every engine knows."""
    return plain_schema(table.wider.schema)
