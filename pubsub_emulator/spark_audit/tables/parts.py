"""The tables of an audit's output, each with its files and its Delta log (AU-14, AU-15).

    <out>/tables/<table>/part-<digest>.parquet   rows of many results
    <out>/tables/<table>/_delta_log/             the files of each version of the table
    <out>/ledger/parts/<digest>.json             the results whose rows a full part has

A part is full at 4 MiB. It then stays as it is, as long as its results do not change. If there are
`MOST_SMALL` parts that are not full, they are merged. So the cost of adding a result does not grow
with the table. Rows that each run replaces are in parts of their own.

A file that is no longer a part stays for a while, since readers may still read an older version of
the table. A table's folder has only its files and its log, so that every engine can read it.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain as chained
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of, unsealed
from pubsub_emulator.spark_audit.history.row import fields_of
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.results import (
    FORMER,
    RESULT_TABLES,
    TABLES,
    ResultError,
    RowRange,
    read_file,
)
from pubsub_emulator.spark_audit.tables import pack
from pubsub_emulator.spark_audit.tables.delta import LOG, DataFile, log_table, read_log

MOST_SMALL: Final = 8
"""If there are this many parts that are not full, they are merged with the next rows."""
RETAIN: Final = 24 * 3_600_000
"""The default time for which files stay after they stopped being parts, in milliseconds."""


@dataclass(slots=True)
class _State:
    """One table: its parts, and the state of its log."""

    parts: list[pack.TablePart] = field(default_factory=list)
    """The parts of the table now."""
    version: int = -1
    """The last version of the log, -1 if there is none."""
    logged: list[list[Any]] = field(default_factory=list)
    """Name, size, rows and time of the files in the log's last version."""
    columns: list[str] = field(default_factory=list)
    """The columns that the log names."""
    removed: dict[str, int] = field(default_factory=dict)
    """Files that stopped being parts, with the time at which they did, in milliseconds since 1970.
    """

    def to_json(self) -> dict[str, object]:
        """Return the state in a form for the ledger."""
        return {
            **fields_of(self, _State.__slots__),
            "parts": [part.to_json() for part in self.parts],
        }


class _Added(NamedTuple):
    """Rows of a result that are to be added to a table."""

    table: str
    source: pack.Source
    rows: RowRange | pa.Table
    replaced: bool
    """Whether each run replaces the rows."""


@dataclass(slots=True)
class Tables:
    """The tables of one audit.

    `add` and `drop` only record changes. `flush` writes them to parts, `log` publishes the parts in
    the Delta logs, and `sweep` removes old files.
    """

    store: Store
    retain: int = RETAIN
    """Milliseconds for which files stay after they stopped being parts."""
    states: dict[str, _State] = field(
        default_factory=lambda: {name: _State() for name in RESULT_TABLES}
    )
    _added: list[_Added] = field(default_factory=list)
    _dropped: dict[bool, set[pack.Source]] = field(
        default_factory=lambda: {False: set(), True: set()}
    )
    """Results whose rows are to be removed, by whether each run replaces the rows."""

    @staticmethod
    def open(store: Store, stored: Any, retain: int = RETAIN) -> "Tables":
        """Return the tables in the state that `to_json` gave, or new ones if it is `None`.

        Raises `ResultError` if this program's tables have other columns.
        """
        tables = Tables(store, retain)
        if stored is None:
            return tables
        try:
            if stored["shape"] != _shape():
                raise ResultError(f"{store}/{TABLES}: tables of another version")
            for name in tables.states:
                body = stored["tables"][name]
                tables.states[name] = _State(
                    **{**body, "parts": [pack.TablePart(**part) for part in body["parts"]]}
                )
        except (TypeError, KeyError, AttributeError):
            raise ResultError(f"{store}/{TABLES}: tables of another version") from None
        return tables

    def to_json(self) -> dict[str, object]:
        """Return the state with which the next run opens the tables."""
        return {
            "shape": _shape(),
            "tables": {name: state.to_json() for name, state in self.states.items()},
        }

    def lost(self) -> set[pack.Source]:
        """Remove damaged or missing parts, and return the results that had rows in them."""
        lost: set[pack.Source] = set()
        for name, state in self.states.items():
            damaged = [part for part in state.parts if not self._is_whole(name, part)]
            for part in damaged:
                state.parts.remove(part)
                lost.update(source for source, _ in self._sources(part))
        return lost

    def sources(self, *, replaced: bool) -> set[pack.Source]:
        """Return the results that have rows in the tables.

        With `replaced`, only those whose rows each run replaces, otherwise only the others.
        """
        sources: set[pack.Source] = set()
        for part in chained.from_iterable(state.parts for state in self.states.values()):
            if part.replaced == replaced:
                sources.update(source for source, _ in self._sources(part))
        return sources

    def find(self, table: str, wanted: Iterable[pack.Source]) -> dict[pack.Source, RowRange]:
        """Return where the rows of these results are in a table."""
        names = set(wanted)
        places: dict[pack.Source, RowRange] = {}
        for part in self.states[table].parts:
            places.update(
                (source, rows) for source, rows in self._rows(table, part) if source in names
            )
        return places

    def add(
        self, table: str, source: pack.Source, rows: RowRange | pa.Table, *, replaced: bool = False
    ) -> None:
        """Record rows of a result to be added to a table, which must not have rows of it yet."""
        self._added.append(_Added(table, source, rows, replaced=replaced))

    def drop(self, sources: Iterable[pack.Source], *, replaced: bool = False) -> None:
        """Record that the rows of these results are to be removed, before others are added."""
        self._dropped[replaced].update(sources)

    def flush(self, run: pack.Runner = pack.pack_here) -> None:
        """Write parts with the recorded changes.

        `run` runs units of `pack`, on an engine or in this process. Rows that are in memory are
        written in this process. Raises `ResultError`, `OSError`, and everything that `run` raises.
        """
        now = time.time_ns() // 1_000_000
        results: list[tuple[_State, list[pack.TablePart]]] = []
        tasks: list[pack.Packing] = []
        owners: list[list[pack.TablePart]] = []
        for name, state in self.states.items():
            for replaced in (False, True):
                new_rows = [
                    (added.source, added.rows)
                    for added in self._added
                    if added.table == name and added.replaced == replaced
                ]
                rows = self._renew(name, state, new_rows, replaced=replaced)
                parts: list[pack.TablePart] = []
                results.append((state, parts))
                if any(isinstance(source_rows, pa.Table) for _, source_rows in rows):
                    parts += pack.write_parts(self.store, name, rows, now=now, replaced=replaced)
                    continue
                for start in range(0, len(rows), pack.UNIT):
                    tasks.append(
                        pack.Packing(name, now, replaced, tuple(rows[start : start + pack.UNIT]))
                    )
                    owners.append(parts)
        answers = run([task.to_json() for task in tasks], self.store)
        # The units' parts go into the lists that `results` refers to.
        for parts, answer in zip(owners, answers, strict=True):
            parts += [pack.TablePart(**part) for part in answer["parts"]]
        for state, parts in results:
            state.parts += parts
        for name, state in self.states.items():
            filled = [part for part in state.parts if part.rows]
            # A table without rows has exactly one part, without rows.
            if filled:
                state.parts = filled
            elif state.parts:
                state.parts = state.parts[:1]
            else:
                empty = pack.write_parts(self.store, name, (), now=now, replaced=False)
                state.parts = list(empty)
        self._added.clear()
        for dropped in self._dropped.values():
            dropped.clear()

    def log(self) -> None:
        """Publish the parts as a new version of each table's Delta log, if they changed.

        Raises `DeltaError`, `OSError`.
        """
        now = time.time_ns() // 1_000_000
        for name, state in self.states.items():
            table = RESULT_TABLES[name]
            folder = f"{TABLES}/{name}"
            files = [part.file() for part in state.parts]
            logged = [DataFile(*file) for file in state.logged]
            # Another engine wrote to the log, or the last run was killed before it wrote the
            # ledger.
            if not _is_logged(self.store, folder, state.version):
                log = read_log(self.store, folder)
                state.version = log.version
                state.columns = log.columns
                logged = list(log.files.values())
            shape = pack.published_schema(table)
            reshaped = state.columns != shape.names
            dropped = {file.name for file in logged} - {file.name for file in files}
            if state.version < 0 or reshaped or dropped or len(logged) != len(files):
                state.version += 1
                log_table(
                    self.store,
                    folder,
                    table.doc,
                    schema=shape,
                    version=state.version,
                    before=logged,
                    now=files,
                    time=now,
                    reshaped=reshaped,
                    since=now - self.retain,
                )
            state.removed |= {file: now for file in dropped if file not in state.removed}
            state.logged = [[file.name, file.size, file.rows, file.time] for file in files]
            state.columns = shape.names

    def sweep(self) -> None:
        """Remove files that stopped being parts long ago, and notes of parts that are gone."""
        oldest = time.time_ns() // 1_000_000 - self.retain
        notes: set[str] = set()
        for name, state in self.states.items():
            parts = {part.name for part in state.parts}
            notes.update(part.note for part in state.parts if part.sources is None)
            state.removed = {
                file: removed_at
                for file, removed_at in state.removed.items()
                if removed_at > oldest and file not in parts
            }
            for file_name in self.store.names(f"{TABLES}/{name}"):
                if file_name not in parts and file_name not in state.removed:
                    self._remove(f"{TABLES}/{name}/{file_name}")
            for file_name in self.store.names(f"{TABLES}/{name}/{LOG}"):
                # The temporary file of a run that was killed.
                if file_name.startswith("."):
                    self._remove(f"{TABLES}/{name}/{LOG}/{file_name}")
        # The folders of tables that this version does not have.
        for name in FORMER:
            self.store.clear(f"{TABLES}/{name}")
        for file_name in self.store.names(pack.SOURCES):
            if f"{pack.SOURCES}/{file_name}" not in notes:
                self._remove(f"{pack.SOURCES}/{file_name}")

    def files(self) -> dict[str, list[str]]:
        """Return the paths of each table's files."""
        return {
            name: [f"{TABLES}/{name}/{part.name}" for part in state.parts]
            for name, state in self.states.items()
        }

    # Parts

    def _renew(
        self, name: str, state: _State, new_rows: Sequence[pack.Packed], *, replaced: bool
    ) -> list[pack.Packed]:
        """Remove the parts that must be rewritten, and return all rows for new parts.

        Parts with dropped rows must be rewritten, and small parts if there are `MOST_SMALL`. The
        result has their remaining rows and the new ones.
        """
        dropped = self._dropped[replaced]
        parts = [part for part in state.parts if part.replaced == replaced]
        affected = [
            part
            for part in parts
            if dropped and any(source in dropped for source, _ in self._sources(part))
        ]
        if not new_rows and not affected:
            return []
        small_parts = [part for part in parts if not part.full and part not in affected]
        rewritten = list(affected)
        if len(small_parts) >= MOST_SMALL:
            rewritten += small_parts
        rows: list[pack.Packed] = []
        for part in rewritten:
            rows += [
                (source, part_rows)
                for source, part_rows in self._rows(name, part)
                if source not in dropped
            ]
        state.parts = [part for part in state.parts if part not in rewritten]
        return [*rows, *new_rows]

    def _rows(self, table: str, part: pack.TablePart) -> Iterator[tuple[pack.Source, RowRange]]:
        """Yield the results of a part with the place of their rows."""
        start = 0
        for source, count in self._sources(part):
            yield source, RowRange(f"{TABLES}/{table}/{part.name}", start, count)
            start += count

    def _sources(self, part: pack.TablePart) -> pack.Sources:
        """Return the results of a part, with their numbers of rows.

        Raises `ResultError` if the part's note is missing or damaged. Then it is not known whose
        rows the part has.
        """
        if part.sources is not None:
            return part.sources
        try:
            sources: pack.Sources = unsealed(self.store.read(part.note))
        except (OSError, ValueError) as error:
            raise ResultError(
                f"{self.store}/{part.note}: {getattr(error, 'strerror', None) or error}"
            ) from None
        return sources

    def _is_whole(self, name: str, part: pack.TablePart) -> bool:
        """Return whether a part's file is undamaged.

        It is only read if its time has changed.
        """
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
        """Remove a file. If that fails, it stays until a later run."""
        with contextlib.suppress(OSError):
            self.store.remove(path)


def _shape() -> str:
    """Return one digest over the columns of all tables."""
    shapes: list[list[str]] = []
    for name, table in RESULT_TABLES.items():
        columns = pack.published_schema(table).to_string(show_field_metadata=False)
        shapes.append([name, columns])
    return digest_of(canonical_json(shapes))


def _is_logged(store: Store, folder: str, version: int) -> bool:
    """Return whether a version is the last one in a table's log."""
    if version < 0:
        return not store.names(f"{folder}/{LOG}")
    stamp = store.stamp(f"{folder}/{LOG}/{version:020d}.json")
    return stamp is not None and store.stamp(f"{folder}/{LOG}/{version + 1:020d}.json") is None
