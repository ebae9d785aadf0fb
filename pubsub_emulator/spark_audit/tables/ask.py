"""SQL over the tables of an audit or of a history, in this process, with DuckDB.

DuckDB reads the files itself, not through Arrow. Arrow's threads could still be running when a
short program ends, and would abort it.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain as chained
from pathlib import Path
from typing import Final

import duckdb

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import COMMITS, HISTORY_TABLES
from pubsub_emulator.spark_audit.history.reader import History, check_file
from pubsub_emulator.spark_audit.history.storage import LocalStore, Store, open_store
from pubsub_emulator.spark_audit.judge.results import REPORT, RESULT_TABLES, Results
from pubsub_emulator.spark_audit.tables.pack import empty_part

MOST_BYTES: Final = 1_073_741_824
"""The maximum memory of DuckDB, in bytes."""
MOST_ANSWER: Final = 256 * 1_048_576
"""The approximate maximum size of an answer, in bytes."""


class AskError(PubsubError):
    """SQL that DuckDB cannot run, or files that it cannot read. The message is one line."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query."""

    columns: tuple[str, ...]
    """Names of the columns."""
    rows: list[tuple[object, ...]]


@contextmanager
def local_tables(place: Address | Store) -> Iterator[dict[str, list[str]]]:
    """Yield the local paths of the files of every table of an audit or a history.

    Remote files are downloaded to a temporary folder that is removed at the end of the `with`
    block. A table without files gets a file without rows, so that it can be queried. Each file is
    compared with its digest first. Raises `AskError`, `ResultError`, `CommitError`, `OSError`.
    """
    store = open_store(place)
    if store.stamp(REPORT) is None and store.names(COMMITS):
        tables = _history_tables(store)
        schemas = HISTORY_TABLES
    else:
        tables = Results.open(store).tables()
        schemas = RESULT_TABLES
    with tempfile.TemporaryDirectory(prefix="pubsub-sql-") as folder:
        local_paths: dict[str, list[str]] = {}
        for name, files in tables.items():
            if files and isinstance(store, LocalStore):
                local_paths[name] = [f"{store.uri}/{path}" for path in files]
                continue
            contents: Iterable[bytes] = (empty_part(schemas[name]),)
            if files:
                contents = map(store.read, files)
            local_paths[name] = []
            for index, data in enumerate(contents):
                path = f"{folder}/{name}-{index}.parquet"
                Path(path).write_bytes(data)
                local_paths[name].append(path)
        yield local_paths


def _history_tables(store: Store) -> dict[str, list[str]]:
    """Return the paths of the files of a history's tables.

    Raises `AskError` for the first manifest or file that is damaged or missing.
    """
    history = History.open(store)
    # A file that several chains share has an entry for each of them.
    entries = list(chained.from_iterable(commit.files for commit in history.commits))
    faults = [*history.faults]
    for entry in entries:
        faults += check_file(store, entry)
    if faults:
        raise AskError(f"{store}/{faults[0].path}: {faults[0].error}")
    paths: dict[str, list[str]] = {}
    for name in HISTORY_TABLES:
        # `dict.fromkeys` removes repetitions and keeps the order.
        paths[name] = list(dict.fromkeys(entry.path for entry in entries if entry.table == name))
    return paths


def ask(place: Address | Store, sql: str, *, unsafe: bool = False) -> QueryResult:
    """Run SQL on the tables of an audit or of a history, and return the result.

    `sql` is one statement. It reads the files of the tables and no others, writes no files,
    and loads no extensions, unless `unsafe` is set.

    Raises `AskError` if DuckDB cannot run it or the answer is too large, and everything that
    `local_tables` raises.
    """
    with local_tables(place) as tables, duckdb.connect(":memory:") as connection:
        # Without a temporary directory, a query that needs too much memory fails instead of filling
        # a disk.
        connection.execute(
            f"SET TimeZone = 'UTC'; SET temp_directory = ''; SET memory_limit = '{MOST_BYTES}B'"
        )
        if not unsafe:
            _restrict(connection, list(chained.from_iterable(tables.values())))
        is_history = "blocks" in tables
        # Segments that were written in different versions of a table have different columns.
        union_option = ", union_by_name = true" if is_history else ""
        for name, files in tables.items():
            source = (
                f"read_parquet([{', '.join(map(_quoted, files))}], hive_partitioning ="
                f" false{union_option})"
            )
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")  # noqa: S608  # names of our own
        try:
            count = len(connection.extract_statements(sql))
            if count != 1:
                problem = "the SQL is empty" if count == 0 else f"the SQL has {count} statements"
                raise AskError(f"{problem}; give exactly one")
            result = connection.execute(sql)
            names = tuple(column[0] for column in result.description or ())
            return QueryResult(names, _rows(result))
        except duckdb.Error as error:
            problem = " ".join(str(error).split())
            hint = f"; `pubsub audit` makes {', '.join(RESULT_TABLES)}" if is_history else ""
            raise AskError(f"{problem}; the tables are {', '.join(tables)}{hint}") from None


def _restrict(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    """Restrict DuckDB to reading these files. Statements cannot undo that.

    DuckDB checks a path as it is written in a statement as well as the path of the file that it
    finds. So both spellings of a path must be allowed.
    """
    spellings = ["'" + path.replace("'", "''") + "'" for path in paths]
    spellings += map(_quoted, paths)
    allowed = ", ".join(dict.fromkeys(spellings))
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _rows(result: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Return all rows of an answer. Raises `AskError` if it is too large."""
    rows: list[tuple[object, ...]] = []
    remaining = MOST_ANSWER
    while row := result.fetchone():
        remaining -= sum(map(_weight, row))
        if remaining < 0:
            raise AskError(
                f"the answer has more than {MOST_ANSWER:,} bytes; a LIMIT makes it shorter"
            )
        rows.append(row)
    return rows


def _weight(cell: object) -> int:
    """Return the approximate number of bytes that a value takes in Python."""
    if isinstance(cell, str | bytes):
        return 64 + len(cell)
    parts: Sequence[object] = ()
    if isinstance(cell, dict):
        parts = (*cell, *cell.values())
    elif isinstance(cell, list | tuple):
        parts = cell
    return 64 + sum(map(_weight, parts))


def _quoted(path: str) -> str:
    """Quote a path for DuckDB, so that `*`, `?` and `[` are not patterns."""
    return "'" + re.sub(r"[*?\[]", r"[\g<0>]", path).replace("'", "''") + "'"
