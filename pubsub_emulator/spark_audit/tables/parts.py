"""The rows of all results in tables: one folder each, nothing in it but its files and its Delta log (AU-14, AU-15).

    <out>/tables/<table>/part-<digest>.parquet   rows of many results, 4 MiB and more where there are so many
    <out>/tables/<table>/_delta_log/             which parts are the table, version by version
    <out>/ledger/parts/<digest>.json             which results a full part holds rows of

What was a part stays for a time, for readers of an older version. A full part is not touched again while its results
are what they were; of others there are at most `MOST_SMALL`, so one more result costs the same however many there are.
Rows that are replaced from run to run are in parts of their own.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of, unsealed
from pubsub_emulator.spark_audit.history.row import fields_of
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES, TABLES, ResultError, Rows, read_file
from pubsub_emulator.spark_audit.tables import pack
from pubsub_emulator.spark_audit.tables.delta import LOG, DataFile, log_table, read_log

MOST_SMALL: Final = 8
RETAIN: Final = 24 * 3_600_000
"""Milliseconds for which files stay that are no part any more, unless the caller says otherwise."""


@dataclass(slots=True)
class _State:
    """A table: its parts now, and the last version of its log with the parts that this names."""

    parts: list[pack.TablePart] = field(default_factory=list)
    version: int = -1
    logged: list[list[Any]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)  # those that the log names
    removed: dict[str, int] = field(default_factory=dict)  # what was a part, and since when it is none

    def to_json(self) -> dict[str, object]:
        """As it is kept."""
        return {**fields_of(self, _State.__slots__), "parts": [part.to_json() for part in self.parts]}


@dataclass(slots=True)
class Tables:
    """The tables of one audit. `flush` writes added and dropped rows to the files, `log` to the Delta logs."""

    store: Store
    retain: int = RETAIN
    states: dict[str, _State] = field(default_factory=lambda: {name: _State() for name in RESULT_TABLES})
    _fresh: list[tuple[str, pack.Source, Rows | pa.Table, bool]] = field(default_factory=list)
    _dropped: tuple[set[pack.Source], set[pack.Source]] = field(default_factory=lambda: (set(), set()))

    @staticmethod
    def open(store: Store, kept: Any, retain: int = RETAIN) -> "Tables":
        """The tables as `to_json` gave them. Raises `ResultError` where they have other columns now."""
        out = Tables(store, retain)
        if kept is None:
            return out
        try:
            if kept["shape"] != _shape():
                raise ResultError(f"{store}/{TABLES}: tables of another version")
            for name in out.states:
                body = kept["tables"][name]
                out.states[name] = _State(**{**body, "parts": [pack.TablePart(**part) for part in body["parts"]]})
        except (TypeError, KeyError, AttributeError):
            raise ResultError(f"{store}/{TABLES}: tables of another version") from None
        return out

    def to_json(self) -> dict[str, object]:
        """The state that the next run opens them with."""
        return {"shape": _shape(), "tables": {name: state.to_json() for name, state in self.states.items()}}

    def lost(self) -> set[pack.Source]:
        """Leave out parts that are not what was written, and name the results of which rows are gone."""
        out: set[pack.Source] = set()
        for name, state in self.states.items():
            for part in [part for part in state.parts if not self._is_whole(name, part)]:
                state.parts.remove(part)
                out.update(source for source, _ in self._sources(part))
        return out

    def sources(self, *, replaced: bool) -> set[pack.Source]:
        """The results that have rows in a table: those that are replaced from run to run, or those that stay."""
        parts = (part for state in self.states.values() for part in state.parts if part.replaced == replaced)
        return {source for part in parts for source, _ in self._sources(part)}

    def find(self, table: str, wanted: Iterable[pack.Source]) -> dict[pack.Source, Rows]:
        """The files that hold the rows of results."""
        names = set(wanted)
        out: dict[pack.Source, Rows] = {}
        for part in self.states[table].parts:
            out.update((source, rows) for source, rows in self._rows(table, part) if source in names)
        return out

    def add(self, table: str, source: pack.Source, rows: Rows | pa.Table, *, replaced: bool = False) -> None:
        """Add the rows of a result that has none in the table yet."""
        self._fresh.append((table, source, rows, replaced))

    def drop(self, sources: Iterable[pack.Source], *, replaced: bool = False) -> None:
        """Leave out the rows of results, before those that are added."""
        self._dropped[replaced].update(sources)

    def flush(self, run: pack.Runner = pack.pack_here) -> None:
        """Write what was added, leave out what was dropped. Raises `ResultError`, `OSError`, and what `run` raises."""
        now = time.time_ns() // 1_000_000
        made: list[tuple[_State, list[pack.TablePart]]] = []
        tasks: list[pack.Packing] = []
        owners: list[list[pack.TablePart]] = []
        for name, state in self.states.items():
            for replaced in (False, True):
                fresh = [each[1:3] for each in self._fresh if (each[0], each[3]) == (name, replaced)]
                rows = self._renew(name, state, fresh, replaced=replaced)
                parts: list[pack.TablePart] = []
                made.append((state, parts))
                if any(isinstance(held, pa.Table) for _, held in rows):
                    parts += pack.write_parts(self.store, name, rows, now, replaced=replaced)
                    continue
                for at in range(0, len(rows), pack.UNIT):
                    tasks.append(pack.Packing(name, now, replaced, tuple(rows[at : at + pack.UNIT])))
                    owners.append(parts)
        for parts, answer in zip(owners, run([task.to_json() for task in tasks], self.store), strict=True):
            parts += [pack.TablePart(**part) for part in answer["parts"]]
        for state, parts in made:
            state.parts += parts
        for name, state in self.states.items():
            filled = [part for part in state.parts if part.rows]
            state.parts = filled or state.parts[:1] or list(pack.write_parts(self.store, name, (), now, replaced=False))
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
            shape = pack.published_schema(table)
            reshaped = state.columns != shape.names
            gone = {each.name for each in logged} - {each.name for each in here}
            if state.version < 0 or reshaped or gone or len(logged) != len(here):
                state.version += 1
                given = (self.store, folder, table.doc, shape, state.version, logged, here, now)
                log_table(*given, reshaped=reshaped, since=now - self.retain)
            state.removed |= {each: now for each in gone if each not in state.removed}
            state.logged = [[each.name, each.size, each.rows, each.time] for each in here]
            state.columns = shape.names

    def sweep(self) -> None:
        """Remove files that are no part and have not been one for a while, and notes on parts that are gone."""
        since = time.time_ns() // 1_000_000 - self.retain
        notes: set[str] = set()
        for name, state in self.states.items():
            parts = {part.name for part in state.parts}
            notes.update(part.note for part in state.parts if part.sources is None)
            state.removed = {each: at for each, at in state.removed.items() if at > since and each not in parts}
            for found in self.store.names(f"{TABLES}/{name}"):
                if found not in parts and found not in state.removed:
                    self._remove(f"{TABLES}/{name}/{found}")
            for found in self.store.names(f"{TABLES}/{name}/{LOG}"):
                if found.startswith("."):  # what a killed run was at
                    self._remove(f"{TABLES}/{name}/{LOG}/{found}")
        for found in self.store.names(pack.SOURCES):
            if f"{pack.SOURCES}/{found}" not in notes:
                self._remove(f"{pack.SOURCES}/{found}")

    def files(self) -> dict[str, list[str]]:
        """The paths of each table's files."""
        return {name: [f"{TABLES}/{name}/{part.name}" for part in state.parts] for name, state in self.states.items()}

    # Parts

    def _renew(self, name: str, state: _State, fresh: Sequence[pack.Packed], *, replaced: bool) -> list[pack.Packed]:
        """Take away the parts that are to be written anew; their rows that stay, and the fresh ones."""
        dropped = self._dropped[replaced]
        mine = [part for part in state.parts if part.replaced == replaced]
        hit = [part for part in mine if dropped and any(source in dropped for source, _ in self._sources(part))]
        if not fresh and not hit:
            return []
        small = [part for part in mine if not part.full and part not in hit]
        again = [*hit, *(small if len(small) >= MOST_SMALL else ())]
        rows: list[pack.Packed] = []
        for part in again:
            rows += [(source, held) for source, held in self._rows(name, part) if source not in dropped]
        state.parts = [part for part in state.parts if part not in again]
        return [*rows, *fresh]

    def _rows(self, table: str, part: pack.TablePart) -> Iterator[tuple[pack.Source, Rows]]:
        """The rows of each result of a part."""
        at = 0
        for source, count in self._sources(part):
            yield source, Rows(f"{TABLES}/{table}/{part.name}", at, count)
            at += count

    def _sources(self, part: pack.TablePart) -> pack.Sources:
        """The results of a part; none when its note is gone, and then it is no part any more. Raises `ResultError`."""
        if part.sources is not None:
            return part.sources
        try:
            found: pack.Sources = unsealed(self.store.read(part.note))
        except (OSError, ValueError) as error:
            raise ResultError(f"{self.store}/{part.note}: {getattr(error, 'strerror', None) or error}") from None
        return found

    def _is_whole(self, name: str, part: pack.TablePart) -> bool:
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


def _shape() -> str:
    """One digest over the columns of all tables."""
    shapes = ((name, pack.published_schema(table)) for name, table in RESULT_TABLES.items())
    return digest_of(canonical_json([[name, shape.to_string(show_field_metadata=False)] for name, shape in shapes]))


def _is_logged(store: Store, folder: str, version: int) -> bool:
    if version < 0:
        return not store.names(f"{folder}/{LOG}")
    here = store.stamp(f"{folder}/{LOG}/{version:020d}.json")
    return here is not None and store.stamp(f"{folder}/{LOG}/{version + 1:020d}.json") is None
