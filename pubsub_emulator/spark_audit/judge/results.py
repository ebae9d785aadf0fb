"""The audit's output: what units write, and the tables that their rows are gathered into.

    <out>/items/network=…/<segment>-<fingerprint>/    receipt.json and tables, all chains of the task in each
    <out>/chains/network=…/<segment>-<fingerprint>/   receipt.json, patterns as findings, sizes as summaries, the state
    <out>/tables/<table>/                             the rows of all of them, see `tables.parts`
    <out>/ledger/                                     what was judged, see `ledger`
    <out>/run_report.json                             names the files of the tables; written last

A file's name ends in its digest, which is checked whenever it is read (AU-11). A receipt is written after its files, so
a killed audit goes on where it stopped (AU-6). What rests on a failed read has none: the next run judges it again.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.engine.engine import Answer
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import encode_parquet
from pubsub_emulator.spark_audit.history.manifest import COMMITS, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.reader import ATTEMPTS, WAIT_SECONDS
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Stamp, Store, open_store
from pubsub_emulator.spark_audit.history.unpack import TooLarge, check_group, read_group

RECEIPT: Final = "receipt.json"
REPORT: Final = "run_report.json"
TABLES: Final = "tables"
ITEMS: Final = "items"
"""Where results of segments are."""
FOLDERS: Final = (ITEMS, "chains")
OF_BEFORE: Final = ("items/", "chains/", "summary/")
"""Where earlier versions kept the files that a report names."""
RESULT_TABLES: Final[dict[str, Table]] = {table.name: table for table in schema.OF_AUDIT}
_DIGITS: Final = 32  # hex digits of a file's digest that are part of its name

Counts = list[list[Any]]
"""Severity, code and number of findings."""
Stored = tuple[str, int]
"""Path and size of a file."""


class Written(TypedDict):
    """What every receipt says, and the files that it names."""

    network: str
    fingerprint: str
    quarantined: int
    folder: str
    files: dict[str, Stored]
    kept: bool
    """Whether a later run may take the result for its own."""
    unread: NotRequired[list[Row]]
    """Rows of its quarantine, once it is accounted for."""


ChainReceipt = Answer
"""A chain's part of a segment: `notes.Receipt`, `digests` of its rows by table, and its `findings` as `Counts`."""


class SegmentReceipt(Written):
    """The receipt of judging a segment of some chains."""

    segment: int
    chains: list[ChainReceipt]


class FoldReceipt(Written):
    """The receipt of chains' segments up to `last`; by chain digests of settled and open findings, and of sizes."""

    first: int
    last: int
    settled: Counts
    open: Counts
    chains: dict[str, list[str]]


Stamps = Mapping[str, Stamp]


class ResultError(PubsubError):
    """Output that is not there, is not what was written, or is of another version."""


def write_result(
    store: Store,
    folder: str,
    tables: Mapping[str, tuple[Table, list[Row]]],
    receipt: Mapping[str, object],
    *,
    others: Mapping[str, bytes] | None = None,
    keep: bool = True,
) -> Answer:
    """Write one result and return its receipt, which gains `files`: path and size by name.

    `tables` are rows by file name, `others` further files; no rows, no file. Unless `keep`, no receipt is written, so
    no later run takes the result for its own. Raises `OSError`, `SchemaError`.
    """
    contents = {f"{name}.parquet": encode_parquet(table, rows) for name, (table, rows) in tables.items() if rows}
    contents |= dict(others or {})
    files: dict[str, Stored] = {}
    for name in sorted(contents):
        data = contents[name]
        stem, _, ending = name.rpartition(".")
        path = f"{folder}/{stem}-{digest_of(data)[:_DIGITS]}.{ending}"
        put_whole(store, path, data)
        files[stem] = path, len(data)
    full: Answer = {**receipt, "folder": folder, "files": files, "kept": keep}
    if keep:
        body = canonical_json({**full, "receipt": digest_of(canonical_json(full))})
        store.put(f"{folder}/{RECEIPT}", body)
    return full


def put_whole(store: Store, path: str, data: bytes) -> None:
    """Write a file whose name ends in its digest, unless it is there and is what was written. Raises `OSError`."""
    if not store.put_new(path, data) and not _is_whole(store, path):
        store.put(path, data)


def read_receipt(store: Store, folder: str) -> Answer | None:
    """The receipt of a result; `None` when it is not there, or not what was written. Says nothing of its files."""
    try:
        receipt = json.loads(store.read(f"{folder}/{RECEIPT}"))
        if not isinstance(receipt, dict) or receipt.pop("receipt", None) != digest_of(canonical_json(receipt)):
            return None
        files = receipt["files"]
        named = all(path.startswith(f"{folder}/") and isinstance(size, int) for path, size in files.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return receipt if named and receipt.get("folder") == folder else None


def files_are_whole(store: Store, receipt: Written, there: Stamps) -> bool:
    """Whether the files of a receipt, of those that are there, are what was written."""
    for path, size in receipt["files"].values():
        found = there.get(path)
        if found is None or found.size != size or not _is_whole(store, path):
            return False
    return True


def read_file(store: Store, path: str) -> bytes:
    """A result's file, verified by the digest in its name; a failed read is tried again. Raises `ResultError`."""
    data = b""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            data = store.read(path)
            break
        except OSError as error:
            if attempt == ATTEMPTS or isinstance(error, FileNotFoundError):
                raise ResultError(f"{store}/{path}: {error.strerror or error}") from None
            time.sleep(WAIT_SECONDS * attempt)
    if digest_of(data)[:_DIGITS] != path.rpartition(".")[0].rpartition("-")[2]:
        raise ResultError(f"{store}/{path}: the file is not what was written")
    return data


def read_rows(store: Store, path: str, table: Table, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of one result file, all columns or some. Raises `ResultError`."""
    for part in read_groups(store, path, table, columns):
        yield from part.to_pylist()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file: `count` of them from row `start` on, or all."""

    path: str
    start: int = 0
    count: int | None = None


def read_some(store: Store, rows: Rows, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Some rows of a file, all columns or some. Raises `ResultError`."""
    parts = list(read_groups(store, rows.path, table, columns))
    whole = pa.concat_tables(parts) if parts else _selected(table, columns).empty_table()
    if rows.count is None:
        return whole
    if rows.start + rows.count > whole.num_rows:
        raise ResultError(f"{store}/{rows.path}: it has {whole.num_rows} rows, not {rows.start + rows.count}")
    return whole.slice(rows.start, rows.count)


def read_groups(store: Store, path: str, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of one file of a result or table, with all columns or some. Raises `ResultError`."""
    data = read_file(store, path)
    published = path.startswith(f"{TABLES}/")
    wanted = None if columns is None else list(columns)
    try:
        source = pa.BufferReader(data)
        parquet = pq.ParquetFile(source, pre_buffer=False)
        if not published:
            table.check(parquet.schema_arrow)
        for at in range(parquet.num_row_groups):
            group = read_group(parquet, source, at, wanted)
            yield _as_rows_are(group, table, columns) if published else group
    except (OSError, ValueError, pa.ArrowException, TooLarge, schema.SchemaError) as error:
        raise ResultError(f"{store}/{path}: {error}") from None


def _check(store: Store, path: str) -> None:
    """Raises `ResultError` for a file that is not what was written, or that unpacks to more than it may."""
    source = pa.BufferReader(read_file(store, path))
    try:
        parquet = pq.ParquetFile(source, pre_buffer=False)
        for at in range(parquet.num_row_groups):
            check_group(parquet, source, at)
    except (OSError, ValueError, pa.ArrowException, TooLarge) as error:
        raise ResultError(f"{store}/{path}: {error}") from None


def _as_rows_are(group: pa.Table, table: Table, columns: Sequence[str] | None) -> pa.Table:
    """Rows of a table's last version: of one without the columns that were added later, they have no value."""
    wanted = _selected(table, columns)
    for name in wanted.names:
        if name not in group.column_names and wanted.field(name).nullable:
            group = group.append_column(name, pa.nulls(group.num_rows, wanted.field(name).type))
    return group.select(wanted.names).cast(wanted)


def _selected(table: Table, columns: Sequence[str] | None) -> pa.Schema:
    """Some columns of a table's last version, as rows have them; they may have no value in rows of earlier ones."""
    found = table.wider.schema
    return pa.schema([found.field(name).remove_metadata() for name in columns or found.names])


@dataclass(frozen=True, slots=True)
class Results:
    """The output that a report names."""

    store: Store
    report: dict[str, Any]

    @staticmethod
    def open(out: Address | Store) -> "Results":
        """Raises `ResultError` when there is no report."""
        store = open_store(out)
        try:
            report = json.loads(store.read(REPORT))
        except FileNotFoundError:
            hint = "; it is a history: `pubsub audit` judges it" if store.exists(COMMITS) else ""
            if store.exists(f"history/{COMMITS}"):
                hint = "; do you mean the folder `history` in it?"
            raise ResultError(f"there is no audit at {store}: it has no {REPORT}{hint}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise ResultError(f"{store}/{REPORT}: {error}") from None
        try:
            tables = report["tables"]
            right = all(
                name in RESULT_TABLES and all(_is_result_path(path) for path in paths) for name, paths in tables.items()
            )
        except (TypeError, KeyError, AttributeError):
            right = False
        if not right:
            raise ResultError(f"{store}/{REPORT}: not a report of this version")
        return Results(store, report)

    def files(self, table: Table) -> list[str]:
        """The files of a table, in the order in which rows came."""
        return list(self.report["tables"].get(table.name, []))

    def tables(self, *, checked: bool = True) -> dict[str, list[str]]:
        """The files of every table, `checked` if wanted. Raises `ResultError`, also for a much earlier version."""
        found = {name: self.report["tables"].get(name, []) for name in RESULT_TABLES}
        for paths in found.values():
            if not all(path.startswith(f"{TABLES}/") for path in paths):
                raise ResultError(f"{self.store}: an audit of an earlier version; `pubsub audit` brings it up to date")
            for path in paths if checked else ():
                _check(self.store, path)
        return found

    def groups(self, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows of a table, a part at a time. Raises `ResultError`."""
        for path in self.files(table):
            yield from read_groups(self.store, path, table, columns)

    def rows(self, table: Table) -> Iterator[Row]:
        """The rows of a table. Raises `ResultError`."""
        for part in self.groups(table):
            yield from part.to_pylist()


def write_report(store: Store, report: Mapping[str, object]) -> None:
    """Replace the report whole. Raises `OSError`."""
    store.put(REPORT, json.dumps(report, indent=1, sort_keys=True).encode() + b"\n")


def _is_result_path(path: object) -> bool:
    if not isinstance(path, str) or "\\" in path or not path.startswith((f"{TABLES}/", *OF_BEFORE)):
        return False
    return {"", ".", ".."}.isdisjoint(path.split("/"))


def _is_whole(store: Store, path: str) -> bool:
    try:
        read_file(store, path)
    except ResultError:
        return False
    return True
