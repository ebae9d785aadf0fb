"""Reading a history row group by row group: what cannot be read becomes a `Fault`, and nothing else is lost (AU-5)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import (
    COMMITS,
    Commit,
    CommitError,
    FileEntry,
    digest_stretches,
    outside,
    read_manifest,
)
from pubsub_emulator.spark_audit.history.schema import SchemaError, Table

HISTORY_TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        schema.RELAY_HEADERS,
        schema.AUTHORITIES,
        schema.SUBSCRIPTIONS,
        schema.CHECKPOINTS,
        schema.BLOCKS,
        schema.DELIVERIES,
        schema.EVENTS,
        schema.NODES,
        schema.TRUTH,
    )
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A unit that could not be read or judged: a row of `quarantine`."""

    path: str
    error: str
    row_group: int | None = None
    network: str | None = None
    chain: int | None = None
    segment: int | None = None
    position: int | None = None

    def row(self) -> dict[str, Any]:
        """As it stands in the table."""
        return {column.name: getattr(self, column.name) for column in schema.QUARANTINE.columns}


@dataclass(frozen=True, slots=True)
class History:
    """What the manifests of a history name, in a fixed order, and the faults met on the way."""

    root: Path
    commits: tuple[Commit, ...]
    faults: tuple[Fault, ...]

    @staticmethod
    def open(root: Path) -> "History":
        """Read all manifests. Raises `CommitError` when there is no history at `root`."""
        folder = root / COMMITS
        if not folder.is_dir():
            raise CommitError(f"there is no history at {root}: it has no {COMMITS}/")
        commits: list[Commit] = []
        faults: list[Fault] = []
        for path in sorted(folder.glob("[!.]*.json")):
            try:
                commits.append(read_manifest(path))
            except (CommitError, KeyError, TypeError, ValueError, AttributeError) as error:
                reason = str(error) if isinstance(error, CommitError) else f"the manifest lacks or misstates {error}"
                network, *rest = path.stem.rsplit("-", 2)
                faults.append(Fault(f"{COMMITS}/{path.name}", reason, network=network if len(rest) == 2 else None))
        commits.sort(key=lambda commit: (commit.network, commit.segment, commit.name))
        return History(root, tuple(commits), tuple(faults))

    def files(
        self, table: Table, network: str | None = None, chain: int | None = None, segment: int | None = None
    ) -> list[FileEntry]:
        """The files of a table, in commit order; an argument that is none selects nothing out."""
        return [
            entry
            for commit in self.commits
            for entry in commit.files
            if entry.table == table.name
            and network in {None, entry.network}
            and chain in {None, entry.chain}
            and segment in {None, entry.segment}
        ]

    def read(self, entry: FileEntry) -> Iterator[pa.Table | Fault]:
        """The row groups of one file."""
        return read_file(self.root, entry)

    def rows(self, entries: list[FileEntry], faults: list[Fault]) -> Iterator[dict[str, Any]]:
        """The rows of files in order, as dictionaries; what cannot be read is added to `faults`."""
        for entry in entries:
            for unit in self.read(entry):
                if isinstance(unit, Fault):
                    faults.append(unit)
                else:
                    yield from unit.to_pylist()


def read_file(root: Path, entry: FileEntry) -> Iterator[pa.Table | Fault]:
    """The row groups of one file, each checked against its manifest; a `Fault` for each that is not well."""

    def fault(error: str, row_group: int | None = None) -> Fault:
        return Fault(entry.path, error, row_group, entry.network, entry.chain, entry.segment)

    table = HISTORY_TABLES.get(entry.table)
    if table is None:
        yield fault(f"a table named {entry.table!r} is not known")
        return
    if entry.version != table.version:
        yield fault(f"{table.name} version {entry.version} is not known, only version {table.version} is")
        return
    path = root / entry.path
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size != entry.size:
                yield fault(f"the file has {size} bytes, not the {entry.size} that were committed")
                return
            if digest_stretches(file, outside(size, entry.row_groups)) != entry.frame:
                yield fault("header or footer differ from what was committed")
                return
            parquet = pq.ParquetFile(file)
            table.check(parquet.schema_arrow)
            for at, extent in enumerate(entry.row_groups):
                if digest_stretches(file, iter(((extent.offset, extent.length),))) != extent.digest:
                    yield fault("the row group differs from what was committed", at)
                    continue
                yield parquet.read_row_group(at, use_threads=False)  # as in `results.read_groups`
    except FileNotFoundError:
        yield fault("the file is missing")
    except SchemaError as error:
        yield fault(str(error))
    except (OSError, pa.ArrowException) as error:
        yield fault(f"unreadable: {type(error).__name__}")


def check_file(history: History, entry: FileEntry) -> list[Fault]:
    """The faults of a file that nothing is read from."""
    return [unit for unit in history.read(entry) if isinstance(unit, Fault)]


def count_uncommitted(root: Path, history: History) -> int:
    """Data files that no manifest names: left by a writer that was killed, and no part of the history."""
    named = {entry.path for commit in history.commits for entry in commit.files}
    return sum(
        path.relative_to(root).as_posix() not in named
        for table in HISTORY_TABLES
        for path in (root / table).rglob("*.parquet")
    )


def describe(value: object) -> str:
    """A value as one line of JSON, bytes as hex: for details and reports."""
    return json.dumps(value, sort_keys=True, default=lambda item: item.hex() if isinstance(item, bytes) else str(item))
