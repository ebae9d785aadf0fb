"""SQL over an audit's tables, in this process: DuckDB on the files of one version, nothing copied."""

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.audit.results import RESULT_TABLES, Results
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.tables.publish import publish, published_schema


class AskError(PubsubError):
    """A question that DuckDB cannot answer; the message is its own, in one line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of columns, and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def open_tables(audit: Address | Store) -> dict[str, ds.Dataset]:
    """The tables of an audit, brought up to date, each as an Arrow dataset. Raises `ResultError`, `OSError`."""
    results = Results.open(audit)
    system, base = results.store.arrow()
    out: dict[str, ds.Dataset] = {}
    for name, files in publish(results).items():
        schema = published_schema(RESULT_TABLES[name])
        if files:
            paths = [f"{base}/{path}" for path in files]
            out[name] = ds.dataset(paths, schema=schema, format="parquet", filesystem=system)
        else:
            out[name] = ds.dataset(pa.Table.from_batches([], schema=schema))
    return out


def ask(audit: Address | Store, question: str) -> Answer:
    """What a SQL question about an audit's tables is answered with. Raises `AskError`, `ResultError`, `OSError`."""
    tables = open_tables(audit)
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        try:
            found = connection.execute(question)
            columns = tuple(column[0] for column in found.description or ())
            return Answer(columns, found.fetchall())
        except duckdb.Error as error:
            said = " ".join(str(error).split())
            raise AskError(f"{said}; the tables are {', '.join(tables)}") from None
