"""Results gathered into tables: one folder each, nothing in it but its files and its Delta log (AU-14, AU-15).

    <out>/tables/<table>/part-<digest>.parquet   rows of many results, 4 MiB and more where there are so many
    <out>/tables/<table>/_delta_log/             which parts are the table, version by version
    <out>/tables/sources.json                    which results each part is made of

Bringing the tables up to date reads what is new and the parts that are still small, never all of them: it costs the
same however long the history is. Parts of the version before stay until the next one, for those who still read them.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.audit.results import RESULT_TABLES, Results, read_groups
from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.tables.delta import LOG, DataFile, log_table

TABLES: Final = "tables"
SOURCES: Final = f"{TABLES}/sources.json"
LARGE: Final = 4 * 1_048_576
"""Bytes from which a part is left as it is."""
_UNPACKED: Final = 64 * 1_048_576
"""Bytes of rows in memory at which a part is written, whatever it packs to."""
_PACKS_TO: Final = 4
"""How many bytes of rows make one of a file, about."""


@dataclass(slots=True)
class Part:
    """One file of a table, and the results whose rows it holds."""

    name: str
    size: int
    rows: int
    time: int
    sources: list[str]

    def file(self) -> DataFile:
        """As the log names it."""
        return DataFile(self.name, self.size, self.rows, self.time)


@dataclass(slots=True)
class _State:
    """A table as it was published last; `before` are the parts of the version before."""

    version: int = -1
    schema: str = ""
    parts: list[Part] = field(default_factory=list)
    before: list[str] = field(default_factory=list)


def published_schema(table: Table) -> pa.Schema:
    """A table's columns, those of later versions too, in types that every engine knows."""
    return pa.schema([_fitting(each) for each in table.wider.schema])


def publish(results: Results) -> dict[str, list[str]]:
    """Bring the tables below `tables/` up to the report, and give each one's files.

    Raises `ResultError`, `DeltaError`, `OSError`.
    """
    store = results.store
    states = _read_states(store)
    now = time.time_ns() // 1_000_000
    changed = False
    for name, table in RESULT_TABLES.items():
        state = states.setdefault(name, _State())
        changed = _bring_up(store, table, state, results.files(table), now) or changed
    if changed:
        body = canonical_json({name: asdict(state) for name, state in states.items()})
        store.put(SOURCES, digest_of(body).encode() + b"\n" + body)
        for name, state in states.items():
            _sweep(store, f"{TABLES}/{name}", state)
    return {name: [f"{TABLES}/{name}/{part.name}" for part in states[name].parts] for name in RESULT_TABLES}


def _bring_up(store: Store, table: Table, state: _State, wanted: list[str], now: int) -> bool:
    """Whether a new version of a table was needed, and made."""
    schema = published_schema(table)
    shape = digest_of(schema.serialize().to_pybytes())
    folder = f"{TABLES}/{table.name}"
    if state.schema not in {"", shape} or not _is_logged(store, folder, state):
        _start_anew(store, folder, state)
    left = set(wanted)
    whole = [part for part in state.parts if left.issuperset(part.sources) and _is_there(store, folder, part)]
    covered = {source for part in whole for source in part.sources}
    fresh = [path for path in wanted if path not in covered]
    if not fresh and len(whole) == len(state.parts) and state.version >= 0:
        return False
    small = {id(part) for part in whole if part.size < LARGE} if fresh else set()
    kept = [part for part in whole if id(part) not in small]
    again = {source for part in whole if id(part) in small for source in part.sources}
    todo = [path for path in wanted if path in again or path not in covered]
    parts = [*kept, *_write(store, table, schema, folder, todo, now)]
    before = [part.file() for part in state.parts]
    log_table(store, folder, table.doc, schema, state.version + 1, before, [each.file() for each in parts], now)
    state.before = [part.name for part in state.parts]
    state.version, state.schema, state.parts = state.version + 1, shape, parts
    return True


def _write(  # noqa: PLR0917  # what parts are made of
    store: Store, table: Table, schema: pa.Schema, folder: str, sources: list[str], now: int
) -> Iterator[Part]:
    """Parts made of results, in their order."""
    held: list[pa.Table] = []
    names: list[str] = []
    weight = 0
    for source in sources:
        for group in read_groups(store, source, table):
            held.append(_fit(group, schema))
            weight += held[-1].nbytes
        names.append(source)
        if weight >= min(LARGE * _PACKS_TO, _UNPACKED):
            yield _part(store, folder, pa.concat_tables(held), names, now)
            held, names, weight = [], [], 0
    if names:
        yield _part(store, folder, pa.concat_tables(held), names, now)


def _part(store: Store, folder: str, rows: pa.Table, sources: list[str], now: int) -> Part:
    buffer = pa.BufferOutputStream()
    pq.write_table(rows, buffer, compression="zstd", compression_level=3, row_group_size=65_536)
    data = bytes(buffer.getvalue().to_pybytes())
    name = f"part-{digest_of(data)[:32]}.parquet"
    part = Part(name, len(data), rows.num_rows, now, list(sources))
    if not store.put_new(f"{folder}/{name}", data) and not _is_there(store, folder, part):
        store.put(f"{folder}/{name}", data)
    return part


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


def _is_there(store: Store, folder: str, part: Part) -> bool:
    found = store.stamp(f"{folder}/{part.name}")
    return found is not None and found.size == part.size


def _is_logged(store: Store, folder: str, state: _State) -> bool:
    """Whether the log goes as far as what was published, and no further."""
    if state.version < 0:
        return not store.names(f"{folder}/{LOG}")
    here = store.stamp(f"{folder}/{LOG}/{state.version:020d}.json")
    return here is not None and store.stamp(f"{folder}/{LOG}/{state.version + 1:020d}.json") is None


def _start_anew(store: Store, folder: str, state: _State) -> None:
    """A table of other columns, or one whose log is not this program's any more, is made again from nothing."""
    for path in store.walk(folder):
        with contextlib.suppress(OSError):
            store.remove(path)
    state.version, state.schema, state.parts, state.before = -1, "", [], []


def _sweep(store: Store, folder: str, state: _State) -> None:
    """Remove parts that neither this version nor the one before names."""
    named = {*(part.name for part in state.parts), *state.before}
    for name in store.names(folder):
        if name not in named:
            with contextlib.suppress(OSError):
                store.remove(f"{folder}/{name}")


def _read_states(store: Store) -> dict[str, _State]:
    """What was published last; nothing where that is not known any more."""
    try:
        stated, _, data = store.read(SOURCES).partition(b"\n")
        if stated != digest_of(data).encode():
            return {}
        body: dict[str, Any] = json.loads(data)
        return {
            name: _State(
                kept["version"], kept["schema"], [Part(**part) for part in kept["parts"]], list(kept["before"])
            )
            for name, kept in body.items()
            if name in RESULT_TABLES
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
