"""The rows of all results in tables: one folder each, nothing in it but its files and its Delta log (AU-14, AU-15).

    <out>/tables/<table>/part-<digest>.parquet   rows of many results, 4 MiB and more where there are so many
    <out>/tables/<table>/_delta_log/             which parts are the table, version by version
    <out>/ledger/parts/<digest>.json             which results a full part holds rows of

What was a part stays for a time, so that a reader of an older version finds its files; all files of a folder together
are therefore no table. A table without rows has a part without rows.

A part is full once it is large, and is not touched again while its results are what they were. Of parts that are not
full there are a few: more than `MOST_SMALL` become one. So one more result costs the same however many there are. Rows
that are replaced from run to run, such as those about whole chains, are in parts of their own.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of
from pubsub_emulator.spark_audit.history.schema import CHAINS, Table
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.results import (
    RESULT_TABLES,
    TABLES,
    ResultError,
    Rows,
    put_whole,
    read_file,
    read_some,
)
from pubsub_emulator.spark_audit.tables.delta import LOG, DataFile, log_table, read_log

SOURCES: Final = "ledger/parts"
LARGE: Final = 4 * 1_048_576
"""Bytes from which a part is full."""
UNPACKED: Final = 256 * 1_048_576
"""Bytes of uncompressed rows at which a part is full."""
GROUP: Final = 4 * 1_048_576
"""Bytes of rows that make a row group."""
MOST_SMALL: Final = 8
RETAIN: Final = 24 * 3_600_000
"""Milliseconds for which files stay that are no part any more, unless the caller says otherwise."""
BOUNDED: Final = ("network", "chain", "number", "day")
"""Columns of which the log has the least and the largest value of each file."""

Source = str
"""The name of a result."""


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
    sources: list[list[Any]] | None
    bounds: dict[str, list[Any]] = field(default_factory=dict)

    def file(self) -> DataFile:
        """The file's entry in the log."""
        return DataFile(self.name, self.size, self.rows, self.time, self.bounds)


@dataclass(slots=True)
class _State:
    """A table: its parts now, and the last version of its log with the parts that this names."""

    parts: list[TablePart] = field(default_factory=list)
    version: int = -1
    logged: list[list[Any]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    """Those that the log names."""
    removed: dict[str, int] = field(default_factory=dict)
    """What was a part, and since when it is none."""

    def to_json(self) -> dict[str, Any]:
        """As it is kept; `asdict` would copy every source."""
        parts = [{name: getattr(part, name) for name in TablePart.__slots__} for part in self.parts]
        log = {"version": self.version, "logged": self.logged, "columns": self.columns}
        return {"parts": parts, **log, "removed": self.removed}


@dataclass(slots=True)
class _Chunk:
    """Rows of one result."""

    source: Source
    rows: pa.Table


@dataclass(slots=True)
class Tables:
    """The tables of one audit. `flush` writes added and dropped rows to the files, `log` to the Delta logs."""

    store: Store
    retain: int = RETAIN
    """Milliseconds for which files stay that are no part any more."""
    states: dict[str, _State] = field(default_factory=lambda: {name: _State() for name in RESULT_TABLES})
    _fresh: list[tuple[str, Source, Rows | pa.Table, bool]] = field(default_factory=list)
    _dropped: tuple[set[Source], set[Source]] = field(default_factory=lambda: (set(), set()))

    @staticmethod
    def open(store: Store, kept: Any, retain: int = RETAIN) -> "Tables":
        """The tables as `to_json` gave them. Raises `ResultError` where they have other columns now."""
        out = Tables(store, retain)
        if kept is None:
            return out
        try:
            if kept["shape"] != _shape():
                raise ResultError(f"{store}/{TABLES}: tables of another version")
            for name, state in out.states.items():
                body = kept["tables"][name]
                state.parts = [TablePart(**part) for part in body["parts"]]
                state.version, state.logged = body["version"], body["logged"]
                state.columns = body.get("columns", _first_columns(RESULT_TABLES[name]))
                state.removed = dict(body.get("removed", {}))
        except (TypeError, KeyError, AttributeError):
            raise ResultError(f"{store}/{TABLES}: tables of another version") from None
        return out

    def to_json(self) -> dict[str, Any]:
        """The state that the next run opens them with."""
        return {"shape": _shape(), "tables": {name: state.to_json() for name, state in self.states.items()}}

    def lost(self) -> set[Source]:
        """Leave out parts that are not what was written, and name the results of which rows are gone."""
        out: set[Source] = set()
        for name, state in self.states.items():
            for part in [part for part in state.parts if not self._is_whole(name, part)]:
                state.parts.remove(part)
                out.update(source for source, _ in self._sources(part))
        return out

    def all_sources(self) -> set[Source]:
        """Every result that has rows in a table; those of tables whose rows are replaced are left out."""
        parts = (part for state in self.states.values() for part in state.parts if not part.replaced)
        return {source for part in parts for source, _ in self._sources(part)}

    def replaced_sources(self) -> set[Source]:
        """The results whose rows are replaced from run to run."""
        parts = (part for state in self.states.values() for part in state.parts if part.replaced)
        return {source for part in parts for source, _ in self._sources(part)}

    def find(self, table: str, wanted: Iterable[Source]) -> dict[Source, Rows]:
        """The files that hold the rows of results."""
        names = set(wanted)
        out: dict[Source, Rows] = {}
        for part in self.states[table].parts:
            at = 0
            for source, count in self._sources(part):
                if source in names:
                    out[source] = Rows(f"{TABLES}/{table}/{part.name}", at, count)
                at += count
        return out

    def add(self, table: str, source: Source, rows: Rows | pa.Table, *, replaced: bool = False) -> None:
        """Add the rows of a result that has none in the table yet."""
        self._fresh.append((table, source, rows, replaced))

    def drop(self, sources: Iterable[Source], *, replaced: bool = False) -> None:
        """Leave out the rows of results, before those that are added."""
        self._dropped[replaced].update(sources)

    def flush(self) -> None:
        """Write what was added, and without what was dropped. Raises `ResultError`, `OSError`."""
        now = time.time_ns() // 1_000_000
        for name, state in self.states.items():
            for replaced in (False, True):
                fresh = [
                    (source, rows) for table, source, rows, group in self._fresh if (table, group) == (name, replaced)
                ]
                self._bring_up(RESULT_TABLES[name], state, fresh, now, replaced=replaced)
            state.parts = [part for part in state.parts if part.rows] or [self._empty(RESULT_TABLES[name], now)]
        self._fresh.clear()
        for dropped in self._dropped:
            dropped.clear()

    def log(self) -> None:
        """Write the present parts as the last version of each table's log. Raises `DeltaError`, `OSError`."""
        now = time.time_ns() // 1_000_000
        for name, state in self.states.items():
            table, folder = RESULT_TABLES[name], f"{TABLES}/{name}"
            here = [part.file() for part in state.parts]
            logged = [DataFile(*each) for each in state.logged]
            if not _is_logged(self.store, folder, state.version):  # another engine wrote, or this one was killed
                log = read_log(self.store, folder)
                state.version, state.columns, logged = log.version, log.columns, list(log.files.values())
            shape = published_schema(table)
            reshaped = state.columns != shape.names
            gone = {each.name for each in logged} - {each.name for each in here}
            if state.version < 0 or reshaped or gone or len(logged) != len(here):
                state.version += 1
                since = now - self.retain
                log_table(
                    self.store,
                    folder,
                    table.doc,
                    shape,
                    state.version,
                    logged,
                    here,
                    now,
                    reshaped=reshaped,
                    since=since,
                )
            state.removed |= {each: now for each in gone if each not in state.removed}
            state.logged = [[each.name, each.size, each.rows, each.time] for each in here]
            state.columns = shape.names

    def sweep(self) -> None:
        """Remove files that are no part and have not been one for a while, and notes on parts that are gone."""
        since = time.time_ns() // 1_000_000 - self.retain
        stems: set[str] = set()
        for name, state in self.states.items():
            parts = {part.name for part in state.parts}
            stems.update(f"{_stem(part)}.json" for part in state.parts if part.sources is None)
            state.removed = {each: at for each, at in state.removed.items() if at > since and each not in parts}
            for found in self.store.names(f"{TABLES}/{name}"):
                if found not in parts and found not in state.removed:
                    self._remove(f"{TABLES}/{name}/{found}")
            for found in self.store.names(f"{TABLES}/{name}/{LOG}"):
                if found.startswith("."):  # what a killed run was at
                    self._remove(f"{TABLES}/{name}/{LOG}/{found}")
        for found in self.store.names(SOURCES):
            if found not in stems:
                self._remove(f"{SOURCES}/{found}")

    def files(self) -> dict[str, list[str]]:
        """The paths of each table's files."""
        return {name: [f"{TABLES}/{name}/{part.name}" for part in state.parts] for name, state in self.states.items()}

    # Parts

    def _bring_up(  # what a table is brought up from
        self, table: Table, state: _State, fresh: Sequence[tuple[Source, Rows | pa.Table]], now: int, *, replaced: bool
    ) -> None:
        dropped = self._dropped[replaced]
        mine = [part for part in state.parts if part.replaced == replaced]
        hit = [part for part in mine if dropped and any(source in dropped for source, _ in self._sources(part))]
        if not fresh and not hit:
            return
        small = [part for part in mine if not part.full and part not in hit]
        again = [*hit, *(small if len(small) >= MOST_SMALL else ())]
        chunks = self._chunks(table, again, dropped, fresh)
        made = list(self._write(table, chunks, now, replaced=replaced))
        state.parts = [*(part for part in state.parts if part not in again), *made]

    def _chunks(
        self,
        table: Table,
        parts: Sequence[TablePart],
        dropped: set[Source],
        fresh: Iterable[tuple[Source, Rows | pa.Table]],
    ) -> Iterator[_Chunk]:
        shape = published_schema(table)
        for part in parts:
            at = 0
            whole = read_some(self.store, Rows(f"{TABLES}/{table.name}/{part.name}"), table)
            for source, count in self._sources(part):
                if source not in dropped:
                    yield _Chunk(source, _fit(whole.slice(at, count), shape))
                at += count
        for source, rows in fresh:
            yield _Chunk(source, _fit(read_some(self.store, rows, table) if isinstance(rows, Rows) else rows, shape))

    def _write(self, table: Table, chunks: Iterable[_Chunk], now: int, *, replaced: bool) -> Iterator[TablePart]:
        draft = _Draft(published_schema(table))
        for chunk in chunks:
            draft.add(chunk)
            if draft.is_full():
                yield self._part(table, draft, now, replaced=replaced)
                draft = _Draft(published_schema(table))
        if draft.sources:
            yield self._part(table, draft, now, replaced=replaced)

    def _part(self, table: Table, draft: "_Draft", now: int, *, replaced: bool) -> TablePart:
        full, data = draft.is_full(), draft.close()
        path = f"{TABLES}/{table.name}/part-{digest_of(data)[:32]}.parquet"
        put_whole(self.store, path, data)
        stamp = self.store.stamp(path)
        part = TablePart(
            path.rpartition("/")[2],
            len(data),
            sum(count for _, count in draft.sources),
            now,
            0 if stamp is None else stamp.time,
            full or len(data) >= LARGE,
            replaced,
            draft.sources,
            draft.bounds,
        )
        if part.full and not replaced:
            body = canonical_json(draft.sources)
            self.store.put(f"{SOURCES}/{_stem(part)}.json", digest_of(body).encode() + b"\n" + body)
            part.sources = None
        return part

    def _empty(self, table: Table, now: int) -> TablePart:
        return self._part(table, _Draft(published_schema(table)), now, replaced=False)

    def _sources(self, part: TablePart) -> list[list[Any]]:
        """The results of a part; none when its note is gone, and then it is no part any more. Raises `ResultError`."""
        if part.sources is not None:
            return part.sources
        path = f"{SOURCES}/{_stem(part)}.json"
        try:
            stated, _, data = self.store.read(path).partition(b"\n")
        except OSError as error:
            raise ResultError(f"{self.store}/{path}: {error.strerror or error}") from None
        if stated != digest_of(data).encode():
            raise ResultError(f"{self.store}/{path}: the file is not what was written")
        found: list[list[Any]] = json.loads(data)
        return found

    def _is_whole(self, name: str, part: TablePart) -> bool:
        path = f"{TABLES}/{name}/{part.name}"
        stamp = self.store.stamp(path)
        if stamp is None or stamp.size != part.size:
            return False
        if stamp.time != part.changed:
            try:
                read_file(self.store, path)
            except ResultError:
                return False
            part.changed = stamp.time
        return True

    def _remove(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self.store.remove(path)


class _Draft:
    """A part that is being made: rows are packed as they come, so only a row group of them is held."""

    def __init__(self, shape: pa.Schema) -> None:
        self.sources: list[list[Any]] = []
        self.bounds: dict[str, list[Any]] = {}
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, shape, compression="zstd", compression_level=3)
        self._held: list[pa.Table] = []
        self._weight = 0
        self._written = 0

    def add(self, chunk: _Chunk) -> None:
        """Add the rows of a result."""
        self.sources.append([chunk.source, chunk.rows.num_rows])
        self._held.append(chunk.rows)
        self._weight += chunk.rows.nbytes
        if self._weight >= min(GROUP, UNPACKED):
            self._pack()

    def is_full(self) -> bool:
        """Whether the part is full."""
        return self._written >= UNPACKED or self._sink.tell() >= LARGE

    def close(self) -> bytes:
        """The file."""
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
    found = [None if end is None else end.isoformat() if isinstance(end, date) else end for end in ends.values()]
    least, most = (
        [end for end in pair if end is not None] for pair in zip(found, (known or [None] * 3)[:2], strict=True)
    )
    return [min(least, default=None), max(most, default=None), column.null_count + (known[2] if known else 0)]


def empty_part(table: Table) -> bytes:
    """A file of a table without rows."""
    return _Draft(published_schema(table)).close()


def published_schema(table: Table) -> pa.Schema:
    """A table's columns, those of later versions too, in types that every engine knows."""
    return pa.schema([_fitting(each) for each in table.wider.schema])


def _first_columns(table: Table) -> list[str]:
    """The columns that a table's log names where no note tells: `chains` was then without those added to it."""
    return list(published_schema(_known_by(table)).names)


def _known_by(table: Table) -> Table:
    """The table without columns added to `chains`: each run replaces its rows, so results fit without them."""
    return replace(table, added=()) if table == CHAINS else table


def _shape() -> str:
    """One digest over the columns of all tables."""
    shapes = [
        [name, published_schema(_known_by(table)).to_string(show_field_metadata=False)]
        for name, table in RESULT_TABLES.items()
    ]
    return digest_of(canonical_json(shapes))


def _stem(part: TablePart) -> str:
    return part.name.removesuffix(".parquet")


def _fit(group: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with all columns of the last version, which are empty where their file had none."""
    columns = []
    for each in schema:
        if each.name in group.column_names:
            columns.append(group.column(each.name).cast(each.type))
        else:
            columns.append(pa.nulls(group.num_rows, each.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _fitting(column: pa.Field) -> pa.Field:
    kind = pa.binary() if pa.types.is_fixed_size_binary(column.type) else column.type
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", tz="UTC")
    return pa.field(column.name, kind, nullable=True, metadata=column.metadata)


def _is_logged(store: Store, folder: str, version: int) -> bool:
    """Whether the log ends with this version."""
    if version < 0:
        return not store.names(f"{folder}/{LOG}")
    here = store.stamp(f"{folder}/{LOG}/{version:020d}.json")
    return here is not None and store.stamp(f"{folder}/{LOG}/{version + 1:020d}.json") is None
