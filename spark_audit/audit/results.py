"""The audit's output: one directory a judged segment, one a chain, one the summary; named by a report at last.

    <out>/items/network=…/chain=…/<segment>-<fingerprint>/   receipt.json and tables
    <out>/chains/network=…/chain=…/<fingerprint>/            receipt.json, habits as findings, sizes as summaries
    <out>/summary/<fingerprint>/                             receipt.json, chains, findings, quarantine
    <out>/run_report.json                                    names the directories of this run; written last

A directory appears whole, by renaming, so an audit that was killed goes on where it stopped and nothing that a report
names is ever half-written (AU-6). A receipt holds the digest of each file beside it and its own, and is checked before
anything is taken from it: a directory that was damaged since is made again.
"""

import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import digest_rows
from pubsub_emulator.spark_audit.history.commit import (
    canonical_json,
    digest_of,
    sync_directory,
    write_atomically,
    write_parquet,
)
from pubsub_emulator.spark_audit.history.rows import Row
from pubsub_emulator.spark_audit.history.schema import Table

RECEIPT: Final = "receipt.json"
REPORT: Final = "run_report.json"
RESULT_TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        schema.BLOCK_MEASURES,
        schema.PUBLISHER_MEASURES,
        schema.PROOF_PARTS,
        schema.FINDINGS,
        schema.QUARANTINE,
        schema.SUMMARIES,
        schema.CHAINS,
    )
}


class ResultError(PubsubError):
    """Output that cannot be read, or is of another version."""


def write_result(folder: Path, tables: dict[Table, list[Row]], receipt: dict[str, Any]) -> dict[str, Any]:
    """Write one result directory, whole or not at all, and return its receipt.

    It gains the digests of the tables and of their files, and the number of findings by severity and code. Tables
    without rows have no file. Raises `OSError`, `SchemaError`.
    """
    found = Counter((row["severity"], row["code"]) for row in tables.get(schema.FINDINGS, ()))
    full: dict[str, Any] = {
        **receipt,
        "findings": [[severity, code, count] for (severity, code), count in sorted(found.items())],
        "digests": {table.name: digest_rows(table, rows).hex() for table, rows in tables.items()},
        "rows": {table.name: len(rows) for table, rows in tables.items() if rows},
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        staging.mkdir()
        for table, rows in tables.items():
            if rows:
                write_parquet(staging / f"{table.name}.parquet", table, rows)
        full["files"] = {name: digest_of((staging / f"{name}.parquet").read_bytes()) for name in full["rows"]}
        write_atomically(staging / RECEIPT, canonical_json({**full, "receipt": digest_of(canonical_json(full))}))
        sync_directory(staging)
        # Another attempt at the same task may have been first; equal inputs made equal results.
        with suppress(OSError):
            staging.rename(folder)
        if read_receipt(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            staging.rename(folder)
        sync_directory(folder.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return full


def read_receipt(folder: Path) -> dict[str, Any] | None:
    """The receipt of a result directory; none when it is not there, or not what was written."""
    try:
        receipt = json.loads((folder / RECEIPT).read_bytes())
        if not isinstance(receipt, dict) or receipt.pop("receipt", None) != digest_of(canonical_json(receipt)):
            return None
        files: dict[str, str] = receipt["files"]
        whole = all(digest_of((folder / f"{name}.parquet").read_bytes()) == files[name] for name in receipt["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return receipt if whole else None


def read_rows(path: Path, table: Table, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of one result file, all columns or some. Raises `ResultError`."""
    for part in read_groups(path, table, columns):
        yield from part.to_pylist()


def read_groups(path: Path, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of one result file, with all columns or some. Raises `ResultError`."""
    try:
        with path.open("rb") as file:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            table.check(parquet.schema_arrow)
            for at in range(parquet.num_row_groups):
                # Arrow's threads gain nothing here, and one that still winds up when a program ends aborts it.
                wanted = None if columns is None else list(columns)
                yield parquet.read_row_group(at, columns=wanted, use_threads=False)
    except (OSError, pa.ArrowException, schema.SchemaError) as error:
        raise ResultError(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True)
class Results:
    """The output that a report names."""

    out: Path
    report: dict[str, Any]

    @staticmethod
    def open(out: Path) -> "Results":
        """Raises `ResultError` when there is no report."""
        try:
            return Results(out, json.loads((out / REPORT).read_bytes()))
        except (OSError, ValueError) as error:
            raise ResultError(f"there is no audit at {out}: {error}") from None

    def files(self, table: Table) -> list[Path]:
        """The files of a table, by network, chain and segment."""
        return [self.out / path for path in self.report["tables"].get(table.name, [])]

    def rows(self, table: Table) -> Iterator[Row]:
        """The rows of a table. Raises `ResultError`."""
        for path in self.files(table):
            yield from read_rows(path, table)


def write_report(out: Path, report: dict[str, Any]) -> None:
    """Commit a run: the report is replaced whole, then what no report names any more is removed. Raises `OSError`."""
    write_atomically(out / REPORT, json.dumps(report, indent=2, sort_keys=True).encode() + b"\n")
    named = {(out / folder).resolve() for folder in report["folders"]}
    _sweep(out / "items", lambda path: path.resolve() not in named, 3)
    _sweep(out / "chains", lambda path: path.resolve() not in named, 3)
    _sweep(out / "summary", lambda path: path.resolve() not in named, 1)


def _sweep(folder: Path, doomed: Callable[[Path], bool], depth: int) -> None:
    for path in list_directories(folder):
        if depth > 1:
            _sweep(path, doomed, depth - 1)
        elif doomed(path):
            shutil.rmtree(path, ignore_errors=True)


def list_directories(folder: Path) -> Iterable[Path]:
    """The directories in a directory, none when there is no such directory."""
    try:
        with os.scandir(folder) as found:
            return sorted(Path(entry.path) for entry in found if entry.is_dir())
    except OSError:
        return ()
