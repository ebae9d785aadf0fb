"""SQL over an audit's tables, in this process: DuckDB on the files of one version.

DuckDB reads the files itself. Arrow's threads could still be at work when a short program ends, and would abort it.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.audit.results import RESULT_TABLES, Results
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.storage import LocalStore, Store
from pubsub_emulator.spark_audit.tables.parts import published_schema

_TYPES: Final = {"string": "VARCHAR", "int64": "BIGINT", "bool": "BOOLEAN", "binary": "BLOB", "date32[day]": "DATE"}


class AskError(PubsubError):
    """A question that DuckDB cannot answer; the message is its own, in one line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of columns, and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@contextmanager
def local_tables(audit: Address | Store) -> Iterator[dict[str, list[str]]]:
    """The tables of an audit: the paths of each one's files on this machine, which are as they were written.

    Those that are elsewhere are here as long as this lasts. Raises `ResultError`, `OSError`.
    """
    results = Results.open(audit)
    tables = results.tables()
    store = results.store
    if isinstance(store, LocalStore):
        yield {name: [f"{store.uri}/{path}" for path in files] for name, files in tables.items()}
        return
    with tempfile.TemporaryDirectory(prefix="pubsub-sql-") as folder:
        here: dict[str, list[str]] = {}
        for name, files in tables.items():
            here[name] = [str(Path(folder) / f"{name}-{at}.parquet") for at in range(len(files))]
            for source, target in zip(files, here[name], strict=True):
                Path(target).write_bytes(store.read(source))
        yield here


def ask(audit: Address | Store, question: str) -> Answer:
    """Answer a SQL question about an audit's tables. Raises `AskError`, `ResultError`, `OSError`."""
    with local_tables(audit) as tables, duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, files in tables.items():
            if files:
                listed = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
                view = f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}])"  # noqa: S608  # names of our own
                connection.execute(view)
            else:
                columns = ", ".join(
                    f'"{each.name}" {_type(each.type)}' for each in published_schema(RESULT_TABLES[name])
                )
                connection.execute(f"CREATE TABLE {name} ({columns})")
        try:
            found = connection.execute(question)
            names = tuple(column[0] for column in found.description or ())
            return Answer(names, found.fetchall())
        except duckdb.Error as error:
            said = " ".join(str(error).split())
            raise AskError(f"{said}; the tables are {', '.join(tables)}") from None


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_type(kind.value_type)}[]"
    return "TIMESTAMPTZ" if pa.types.is_timestamp(kind) else _TYPES[str(kind)]
