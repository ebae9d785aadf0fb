"""SQL over the tables of an audit or of a history, in this process: DuckDB on the files of one version.

DuckDB reads the files itself. Arrow's threads could still be at work when a short program ends, and would abort it.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
"""Bytes of memory that answering a question may take."""
MOST_ANSWER: Final = 256 * 1_048_576


class AskError(PubsubError):
    """A question that DuckDB cannot answer; the message is its own, in one line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of columns, and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


@contextmanager
def local_tables(place: Address | Store) -> Iterator[dict[str, list[str]]]:
    """The tables of an audit or a history: the paths of each one's files here, as they were written, for as long.

    Each file of a history is compared with its manifest. Raises `AskError`, `ResultError`, `CommitError`, `OSError`.
    """
    store = open_store(place)
    if store.stamp(REPORT) is None and store.names(COMMITS):
        tables, schemas = _history_tables(store), HISTORY_TABLES
    else:
        tables, schemas = Results.open(store).tables(), RESULT_TABLES
    with tempfile.TemporaryDirectory(prefix="pubsub-sql-") as folder:
        here: dict[str, list[str]] = {}
        for name, files in tables.items():
            if files and isinstance(store, LocalStore):
                here[name] = [f"{store.uri}/{path}" for path in files]
                continue
            parts = (store.read(path) for path in files) if files else (empty_part(schemas[name]),)
            here[name] = [f"{folder}/{name}-{at}.parquet" for at in range(len(files) or 1)]
            for path, data in zip(here[name], parts, strict=True):
                Path(path).write_bytes(data)
        yield here


def _history_tables(store: Store) -> dict[str, list[str]]:
    """The files of a history's tables. Raises `AskError` for a manifest or a file that is not as it was written."""
    history = History.open(store)
    entries = [entry for commit in history.commits for entry in commit.files]
    for fault in (*history.faults, *(fault for entry in entries for fault in check_file(store, entry))):
        raise AskError(f"{store}/{fault.path}: {fault.error}")
    return {name: list(dict.fromkeys(each.path for each in entries if each.table == name)) for name in HISTORY_TABLES}


def ask(place: Address | Store, question: str) -> Answer:
    """Answer a SQL question about the tables of an audit or a history. Raises as `local_tables`."""
    with local_tables(place) as tables, duckdb.connect(":memory:") as connection:
        connection.execute(f"SET TimeZone = 'UTC'; SET temp_directory = ''; SET memory_limit = '{MOST_BYTES}B'")
        is_history = "blocks" in tables
        later = ", union_by_name = true" if is_history else ""  # segments of several versions have other columns
        for name, files in tables.items():
            source = f"read_parquet([{', '.join(map(_quoted, files))}], hive_partitioning = false{later})"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")  # noqa: S608  # names of our own
        try:
            found = connection.execute(question)
            names = tuple(column[0] for column in found.description or ())
            return Answer(names, _rows(found))
        except duckdb.Error as error:
            said = " ".join(str(error).split())
            more = f"; `pubsub audit` makes {', '.join(RESULT_TABLES)}" if is_history else ""
            raise AskError(f"{said}; the tables are {', '.join(tables)}{more}") from None


def _rows(found: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """All rows of an answer. Raises `AskError` for one that is too large."""
    rows: list[tuple[object, ...]] = []
    left = MOST_ANSWER
    while row := found.fetchone():
        left -= sum(map(_weight, row))
        if left < 0:
            raise AskError(f"the answer has more than {MOST_ANSWER:,} bytes; a LIMIT makes it shorter")
        rows.append(row)
    return rows


def _weight(cell: object) -> int:
    if isinstance(cell, str | bytes):
        return 64 + len(cell)
    inside = (*cell, *cell.values()) if isinstance(cell, dict) else cell if isinstance(cell, list | tuple) else ()
    return 64 + sum(map(_weight, inside))


def _quoted(path: str) -> str:
    """A path as DuckDB takes it: the letters of its patterns stand for themselves in brackets."""
    return "'" + re.sub(r"[*?\[]", r"[\g<0>]", path).replace("'", "''") + "'"
