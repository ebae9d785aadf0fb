"""The output of an audit: the results of units, and the tables that collect their rows.

    <out>/items/network=…/<segment>-<fingerprint>/    result of judging a segment of some chains
    <out>/chains/network=…/<segment>-<fingerprint>/   result of folding: patterns, sizes, the state
    <out>/tables/<table>/                             the rows of all results, see `tables.parts`
    <out>/ledger/                                     receipts for the next run, see `ledger`
    <out>/run_report.json                             names the tables' files; written last

The name of a result's file ends in its digest, which is checked whenever the file is read (AU-11).
The receipt of a result is written after its files, so that a run that was killed can continue where
it stopped (AU-6). If a read failed, the result gets no receipt, and the next run makes it again.
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
"""The folder with the results of segments."""
FOLDERS: Final = (ITEMS, "chains")
"""The folders with results."""
_FORMER_FOLDERS: Final = ("items/", "chains/", "summary/")
"""Folders in which reports of earlier versions may have files."""
FORMER: Final = ("quarantine",)
"""Tables of earlier versions, which this program does not read."""
_EARLIER: Final = "an audit of an earlier version; `pubsub audit` brings it up to date"
RESULT_TABLES: Final[dict[str, Table]] = {table.name: table for table in schema.OF_AUDIT}
_DIGITS: Final = 32
"""Hex digits of a file's digest that are part of its name."""

Counts = list[list[Any]]
"""Findings, as lists of severity, code and number."""
Stored = tuple[str, int]
"""Path and size in bytes of a file."""


class CommonReceipt(TypedDict):
    """The part of a receipt that is the same for all results."""

    network: str
    fingerprint: str
    read_errors: int
    """Number of its read errors."""
    folder: str
    """The result's folder."""
    files: dict[str, Stored]
    """The result's files by name, without the digest and the ending."""
    kept: bool
    """Whether a later run may use the result, that is, whether the receipt was written."""
    unread: NotRequired[list[Row]]
    """Its read errors. The key is added when the rows of the result go into the tables, so its
    presence also means that they are there."""


ChainReceipt = Answer
"""A chain's part of a segment's receipt: the fields of `notes.Receipt`, `digests` of the chain's
rows by table, and its `findings` as `Counts`."""


class SegmentReceipt(CommonReceipt):
    """The receipt of judging a segment of some chains."""

    segment: int
    chains: list[ChainReceipt]


class FoldReceipt(CommonReceipt):
    """The receipt of folding some chains' segments from `first` to `last`."""

    first: int
    last: int
    settled: Counts
    """The findings that no later segment can change."""
    open: Counts
    """The findings that later segments may still change."""
    chains: dict[str, list[str]]
    """By chain, in decimal: digests of its settled findings, of its open ones, and of its sizes."""


Stamps = Mapping[str, Stamp]
"""Sizes and times of files by path."""


class ResultError(PubsubError):
    """Output that is missing, damaged, or of another version."""


def write_result(
    store: Store,
    folder: str,
    tables: Mapping[str, tuple[Table, list[Row]]],
    receipt: Mapping[str, object],
    *,
    others: Mapping[str, bytes] | None = None,
    keep: bool = True,
) -> Answer:
    """Write a result and return its receipt.

    `tables` has the rows by file name. A table without rows gets no file. `others` has the contents
    of further files. The returned receipt is `receipt` with `folder`, `files` and `kept`. It is
    written only if `keep` is set, because a later run uses every result that has a receipt. Raises
    `OSError`, `SchemaError`.
    """
    contents = {
        f"{name}.parquet": encode_parquet(table, rows)
        for name, (table, rows) in tables.items()
        if rows
    }
    contents |= dict(others or {})
    files: dict[str, Stored] = {}
    for name in sorted(contents):
        data = contents[name]
        stem, _, ending = name.rpartition(".")
        path = f"{folder}/{stem}-{digest_of(data)[:_DIGITS]}.{ending}"
        put_whole(store, path, data)
        files[stem] = (path, len(data))
    written: Answer = {**receipt, "folder": folder, "files": files, "kept": keep}
    if keep:
        body = canonical_json({**written, "receipt": digest_of(canonical_json(written))})
        store.put(f"{folder}/{RECEIPT}", body)
    return written


def put_whole(store: Store, path: str, data: bytes) -> None:
    """Write a file whose name ends in its digest, unless it exists and is undamaged.

    Raises `OSError`.
    """
    if not store.put_same(path, data) and not _is_whole(store, path):
        store.put(path, data)


def read_receipt(store: Store, folder: str) -> Answer | None:
    """Return the receipt in a result's folder.

    Returns `None` if it is missing or damaged. The files that it names are not read.
    """
    try:
        receipt = json.loads(store.read(f"{folder}/{RECEIPT}"))
        if not isinstance(receipt, dict) or receipt.pop("receipt", None) != digest_of(
            canonical_json(receipt)
        ):
            return None
        files = receipt["files"]
        in_folder = all(
            path.startswith(f"{folder}/") and isinstance(size, int) for path, size in files.values()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return receipt if in_folder and receipt.get("folder") == folder else None


def files_are_whole(store: Store, receipt: CommonReceipt, present: Stamps) -> bool:
    """Return whether the files of a receipt exist and are undamaged.

    `present` has sizes and times of the output's files. A file of a wrong size is not read.
    """
    for path, size in receipt["files"].values():
        stamp = present.get(path)
        if stamp is None or stamp.size != size or not _is_whole(store, path):
            return False
    return True


def read_file(store: Store, path: str) -> bytes:
    """Return the content of a result's file, checked against the digest in its name.

    A failed read is tried again. Raises `ResultError` if the file is missing, unreadable or
    damaged.
    """
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
        raise ResultError(f"{store}/{path}: the file was changed after it was written")
    return data


def read_rows(
    store: Store, path: str, table: Table, columns: Sequence[str] | None = None
) -> Iterator[Row]:
    """Yield the rows of a file, with all or some columns. Raises `ResultError`."""
    for part in read_groups(store, path, table, columns=columns):
        yield from part.to_pylist()


@dataclass(frozen=True, slots=True)
class RowRange:
    """A stretch of rows in a file."""

    path: str
    start: int = 0
    count: int | None = None
    """Number of rows, `None` for all rows of the file."""


def read_some(
    store: Store, rows: RowRange, table: Table, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return some rows of a file, with all or some columns. Raises `ResultError`."""
    parts = list(read_groups(store, rows.path, table, columns=columns))
    all_rows = pa.concat_tables(parts) if parts else _selected(table, columns).empty_table()
    if rows.count is None:
        return all_rows
    if rows.start + rows.count > all_rows.num_rows:
        raise ResultError(
            f"{store}/{rows.path}: it has {all_rows.num_rows} rows, not {rows.start + rows.count}"
        )
    return all_rows.slice(rows.start, rows.count)


def read_groups(
    store: Store, path: str, table: Table, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the row groups of a file, with all or some columns.

    Files below `tables/` have plain types that every engine knows. Their rows are converted back to
    the table's types. Raises `ResultError`.
    """
    data = read_file(store, path)
    published = path.startswith(f"{TABLES}/")
    wanted = None if columns is None else list(columns)
    try:
        source = pa.BufferReader(data)
        parquet = pq.ParquetFile(source, pre_buffer=False)
        if not published:
            table.check(parquet.schema_arrow)
        for index in range(parquet.num_row_groups):
            group = read_group(parquet, source, index, columns=wanted)
            yield _restore_types(group, table, columns) if published else group
    except (OSError, ValueError, pa.ArrowException, TooLarge, schema.SchemaError) as error:
        raise ResultError(f"{store}/{path}: {error}") from None


def _check(store: Store, path: str) -> None:
    """Raise `ResultError` if a file is damaged or too large when unpacked."""
    source = pa.BufferReader(read_file(store, path))
    try:
        parquet = pq.ParquetFile(source, pre_buffer=False)
        for index in range(parquet.num_row_groups):
            check_group(parquet, source, index)
    except (OSError, ValueError, pa.ArrowException, TooLarge) as error:
        raise ResultError(f"{store}/{path}: {error}") from None


def _restore_types(group: pa.Table, table: Table, columns: Sequence[str] | None) -> pa.Table:
    """Convert published rows to the types of a table's last version.

    Columns that a later version of the table added are filled with nulls if the file lacks them.
    """
    wanted = _selected(table, columns)
    for name in wanted.names:
        if name not in group.column_names and wanted.field(name).nullable:
            group = group.append_column(name, pa.nulls(group.num_rows, wanted.field(name).type))
    return group.select(wanted.names).cast(wanted)


def _selected(table: Table, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of some columns of a table, by default of all.

    The table is in its last version, which has all columns.
    """
    schema_now = table.wider.schema
    return pa.schema(
        [schema_now.field(name).remove_metadata() for name in columns or schema_now.names]
    )


@dataclass(frozen=True, slots=True)
class Results:
    """The tables of an audit's output, with the files that its report names."""

    store: Store
    report: dict[str, Any]

    @staticmethod
    def open(out: Address | Store) -> "Results":
        """Open the output of an audit. Raises `ResultError` if there is no valid report."""
        store = open_store(out)
        try:
            report = json.loads(store.read(REPORT))
        except FileNotFoundError:
            hint = ""
            if store.exists(f"history/{COMMITS}"):
                hint = "; do you mean the folder `history` in it?"
            elif store.exists(COMMITS):
                hint = "; it is a history: `pubsub audit` judges it"
            raise ResultError(f"there is no audit at {store}: it has no {REPORT}{hint}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise ResultError(f"{store}/{REPORT}: {error}") from None
        try:
            tables = report["tables"]
            earlier = any(name in tables for name in FORMER)
            # A report may have been written by a stranger: its paths must not lead out of the
            # output.
            well_formed = all(
                name in RESULT_TABLES and all(_is_result_path(path) for path in paths)
                for name, paths in tables.items()
            )
        except (TypeError, KeyError, AttributeError):
            earlier = False
            well_formed = False
        if earlier:
            raise ResultError(f"{store}: {_EARLIER}")
        if not well_formed:
            raise ResultError(f"{store}/{REPORT}: not a report of this version")
        return Results(store, report)

    def files(self, table: Table) -> list[str]:
        """Return the paths of a table's files, in the order in which the rows were added."""
        return list(self.report["tables"].get(table.name, []))

    def tables(self, *, checked: bool = True) -> dict[str, list[str]]:
        """Return the paths of every table's files.

        With `checked`, each file is read and compared with its digest. Raises `ResultError` for a
        damaged file, and for the output of an earlier version that had no folder `tables`.
        """
        by_table = {name: self.report["tables"].get(name, []) for name in RESULT_TABLES}
        for paths in by_table.values():
            if not all(path.startswith(f"{TABLES}/") for path in paths):
                raise ResultError(f"{self.store}: {_EARLIER}")
            if checked:
                for path in paths:
                    _check(self.store, path)
        return by_table

    def groups(self, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a table, one row group after another. Raises `ResultError`."""
        for path in self.files(table):
            yield from read_groups(self.store, path, table, columns=columns)

    def rows(self, table: Table) -> Iterator[Row]:
        """Yield the rows of a table. Raises `ResultError`."""
        for part in self.groups(table):
            yield from part.to_pylist()


def write_report(store: Store, report: Mapping[str, object]) -> None:
    """Replace the report. Readers see the old or the new one, never a part. Raises `OSError`."""
    store.put(REPORT, json.dumps(report, indent=1, sort_keys=True).encode() + b"\n")


def _is_result_path(path: object) -> bool:
    """Return whether a path in a report is in a folder for tables, also of earlier versions."""
    if (
        not isinstance(path, str)
        or "\\" in path
        or not path.startswith((f"{TABLES}/", *_FORMER_FOLDERS))
    ):
        return False
    return {"", ".", ".."}.isdisjoint(path.split("/"))


def _is_whole(store: Store, path: str) -> bool:
    try:
        read_file(store, path)
    except ResultError:
        return False
    return True
