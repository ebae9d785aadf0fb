"""The audit's output: one folder per judged task, one per fold of a network, one summary; named by a report at last.

    <out>/items/network=…/<segment>-<fingerprint>/    receipt.json and tables, all chains of the task in each
    <out>/chains/network=…/<segment>-<fingerprint>/   receipt.json, patterns as findings, sizes as summaries, the state
    <out>/summary/<fingerprint>/                      receipt.json, chains, findings, quarantine
    <out>/ledger.json                                 the receipts of the last run, and how their files looked
    <out>/run_report.json                             names the files of this run; written last

A file's name ends in the digest of its content and is checked whenever it is read: one that is not there, is shorter or
differs is an error, never an empty table (AU-11). A receipt is written after the files that it names, so an audit that
was killed goes on where it stopped and nothing that a report names is half-written (AU-6). What rests on a failed read
has no receipt: the next run judges it again.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import encode_parquet
from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of
from pubsub_emulator.spark_audit.history.reader import ATTEMPTS, WAIT_SECONDS
from pubsub_emulator.spark_audit.history.rows import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Stamp, Store, open_store

RECEIPT: Final = "receipt.json"
REPORT: Final = "run_report.json"
LEDGER: Final = "ledger.json"
FOLDERS: Final = ("items", "chains", "summary")
RESULT_TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        schema.BLOCK_MEASURES,
        schema.PUBLISHER_MEASURES,
        schema.WASTE,
        schema.PROOF_PARTS,
        schema.FINDINGS,
        schema.QUARANTINE,
        schema.SUMMARIES,
        schema.CHAINS,
    )
}
_READABLE: Final = 100
"""Folders that a report names in lines of their own."""

_DIGITS: Final = 32
"""Hex digits of a file's digest that are part of its name."""

Receipt = dict[str, Any]
Stamps = Mapping[str, Stamp]


class ResultError(PubsubError):
    """Output that is not there, is not what was written, or is of another version."""


def write_result(
    store: Store,
    folder: str,
    tables: Mapping[str, tuple[Table, list[Row]]],
    receipt: Receipt,
    *,
    others: Mapping[str, bytes] | None = None,
    keep: bool = True,
) -> Receipt:
    """Write one result and return its receipt, which gains `files`: path and size by name.

    `tables` are rows by the name of their file, `others` further files. Tables without rows have no file. Unless
    `keep`, no receipt is written, so no later run takes the result for its own. Raises `OSError`, `SchemaError`.
    """
    contents = {f"{name}.parquet": encode_parquet(table, rows) for name, (table, rows) in tables.items() if rows}
    contents |= dict(others or {})
    files: dict[str, list[Any]] = {}
    for name in sorted(contents):
        data = contents[name]
        stem, _, ending = name.rpartition(".")
        path = f"{folder}/{stem}-{digest_of(data)[:_DIGITS]}.{ending}"
        if not store.put_new(path, data) and not _is_whole(store, path):
            store.put(path, data)
        files[stem] = [path, len(data)]
    full: Receipt = {**receipt, "folder": folder, "files": files, "kept": keep}
    if keep:
        body = canonical_json({**full, "receipt": digest_of(canonical_json(full))})
        store.put(f"{folder}/{RECEIPT}", body)
    return full


def read_receipt(store: Store, folder: str) -> Receipt | None:
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


def files_are_whole(store: Store, receipt: Receipt, now: Stamps, known: Stamps) -> bool:
    """Whether the files of a receipt are what was written; those that look as they did (`known`) are not read."""
    for path, size in receipt["files"].values():
        found = now.get(path)
        if found is None or found.size != size:
            return False
        if known.get(path) != found and not _is_whole(store, path):
            return False
    return True


def read_file(store: Store, path: str) -> bytes:
    """A file of a result, held against the digest in its name; a read that fails is tried again.

    Raises `ResultError`.
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
        raise ResultError(f"{store}/{path}: the file is not what was written")
    return data


def read_rows(store: Store, path: str, table: Table, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of one result file, all columns or some. Raises `ResultError`."""
    for part in read_groups(store, path, table, columns):
        yield from part.to_pylist()


def read_groups(store: Store, path: str, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of one result file, with all columns or some. Raises `ResultError`."""
    data = read_file(store, path)
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
        table.check(parquet.schema_arrow)
        for at in range(parquet.num_row_groups):
            # Arrow's threads gain nothing here, and one that still winds up when a program ends aborts it.
            wanted = None if columns is None else list(columns)
            yield parquet.read_row_group(at, columns=wanted, use_threads=False)
    except (OSError, pa.ArrowException, schema.SchemaError) as error:
        raise ResultError(f"{store}/{path}: {error}") from None


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
            raise ResultError(f"there is no audit at {store}: it has no {REPORT}") from None
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
        """The files of a table, by network and segment."""
        return list(self.report["tables"].get(table.name, []))

    def groups(self, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows of a table, a part at a time. Raises `ResultError`."""
        for path in self.files(table):
            yield from read_groups(self.store, path, table, columns)

    def rows(self, table: Table) -> Iterator[Row]:
        """The rows of a table. Raises `ResultError`."""
        for part in self.groups(table):
            yield from part.to_pylist()


def network_of(path: str) -> str | None:
    """The network in whose folder a result file is."""
    found = next((part for part in path.split("/") if part.startswith("network=")), None)
    return None if found is None else found.partition("=")[2]


def write_report(store: Store, report: Mapping[str, Any]) -> None:
    """Replace the report whole. Raises `OSError`."""
    lines = 1 if len(report["folders"]) <= _READABLE else None  # lines cost ten times as much as the rest
    store.put(REPORT, json.dumps(report, indent=lines, sort_keys=True).encode() + b"\n")


def write_ledger(store: Store, receipts: Mapping[str, Receipt], stamps: Stamps) -> None:
    """Keep what this run took and made, so that the next one need not read it all. Raises `OSError`."""
    body = {"receipts": receipts, "stamps": {path: [stamp.size, stamp.time] for path, stamp in stamps.items()}}
    data = canonical_json(body)
    store.put(LEDGER, digest_of(data).encode() + b"\n" + data)


def read_ledger(store: Store) -> tuple[dict[str, Receipt], dict[str, Stamp]]:
    """Receipts by folder and stamps by path of the last run; nothing when there is none or it is damaged."""
    try:
        stated, _, data = store.read(LEDGER).partition(b"\n")
        if stated != digest_of(data).encode():
            return {}, {}
        body = json.loads(data)
        stamps = {path: Stamp(*stamp) for path, stamp in body["stamps"].items()}
        return dict(body["receipts"]), stamps
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, {}


def sweep(store: Store, found: Iterable[str], named: Iterable[str]) -> None:
    """Remove what was found among the results and is in no named folder, or was left behind half-written."""
    kept = set(named)
    for path in found:
        folder, _, name = path.rpartition("/")
        below = path.startswith(tuple(f"{each}/" for each in FOLDERS))
        if (below and folder not in kept) or name.startswith("."):
            with contextlib.suppress(OSError):
                store.remove(path)


def _is_result_path(path: object) -> bool:
    return (
        isinstance(path, str)
        and path.startswith(tuple(f"{each}/" for each in FOLDERS))
        and not any(part in {"", ".", ".."} for part in path.split("/"))
        and "\\" not in path
    )


def _is_whole(store: Store, path: str) -> bool:
    try:
        read_file(store, path)
    except ResultError:
        return False
    return True
