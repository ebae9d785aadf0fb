"""A Parquet file of a history or an audit: its columns with their meaning, and its first rows."""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.files.program import program
from pubsub_emulator.inspection.view import View, view
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.unpack import ParquetSource, TooLarge, check_group
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES
from pubsub_emulator.spark_audit.tables.pack import published_schema

MOST_ROWS: Final = 3
MOST_BYTES: Final = 64 * 1_048_576
"""Bytes that the first row group may take once unpacked, for its rows to be shown."""

_PREVIEW: Final = 12


def parquet(path: Path) -> View:
    """Return the view of a Parquet file, of a table of this program or of another origin.

    Raises `InputError`, `OSError`.
    """
    with path.open("rb") as file:
        try:
            with pq.ParquetFile(file, pre_buffer=False) as opened:
                return _view(path, opened, _first_rows(opened, file))
        # Arrow reports damage by all of these.
        except (OSError, ValueError, pa.ArrowException) as error:
            first_line = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"{path}: it begins like a Parquet file but cannot be read: {first_line}"
            ) from None


def _view(path: Path, opened: pq.ParquetFile, rows: list[dict[str, object]]) -> View:
    """Return the view of an open file, of which `rows` are the first ones."""
    footer = opened.metadata
    columns = opened.schema_arrow
    owner, table = _table(columns)
    figures: dict[str, object] = {
        "table": "not a table of this program" if table is None else table.name,
        "of": owner,
        "holds": None if table is None else table.doc,
        "version": (
            (columns.metadata or {}).get(b"pubsub.version", b"").decode(errors="replace") or None
        ),
        "rows": footer.num_rows,
        "row_groups": footer.num_row_groups,
        "bytes": path.stat().st_size,
        "columns": [
            {"name": column.name, "type": str(column.type), "means": _doc(column)}
            for column in columns
        ],
        "first_rows": rows,
    }
    column_rows = tuple((column.name, _type(column), _doc(column)) for column in columns)
    pages: list[Shown] = [Grid("columns", ("column", "type", "description"), column_rows)]
    for index, row in enumerate(rows):
        pages.append(
            Grid(
                f"row {index}",
                ("", ""),
                tuple((name, words(cell, _PREVIEW)) for name, cell in row.items()),
            )
        )
    if owner == "an audit":
        pages.append(Line(f'`{program()} sql AUDIT "SELECT …"` queries all rows of the table'))
    elif owner == "a history":
        pages.append(
            Line(f"`{program()} inspect HISTORY` shows the whole history and checks its files")
        )
    return view(
        "Parquet file",
        path,
        {name: value for name, value in figures.items() if value is not None},
        pages,
    )


def _table(columns: pa.Schema) -> tuple[str | None, Table | None]:
    """Return the kind of output that a file with these columns is part of, and its table.

    The kind is `a history` or `an audit`. Files of a published table do not name it, so they are
    recognised by their columns. Both results are `None` for a file of another program.
    """
    table_name = (columns.metadata or {}).get(b"pubsub.table", b"").decode(errors="replace")
    for owner, tables in (("a history", HISTORY_TABLES), ("an audit", RESULT_TABLES)):
        if table_name in tables:
            return owner, tables[table_name]
    published = (
        table for table in RESULT_TABLES.values() if published_schema(table).names == columns.names
    )
    table = next(published, None)
    return None if table is None else "an audit", table


def _first_rows(opened: pq.ParquetFile, file: ParquetSource) -> list[dict[str, object]]:
    """Return the first rows of a file, or an empty list if its first row group is too large."""
    if not opened.metadata.num_row_groups:
        return []
    try:
        check_group(opened, file, 0, limit=MOST_BYTES)
    except TooLarge:
        return []
    batch = next(opened.iter_batches(batch_size=MOST_ROWS, row_groups=[0], use_threads=False), None)
    return [] if batch is None else batch.to_pylist()


def _doc(field: pa.Field) -> str:
    """Return the description of a column, which is in its metadata."""
    return bytes((field.metadata or {}).get(b"doc", b"")).decode(errors="replace")


def _type(field: pa.Field) -> str:
    return str(field.type).replace("fixed_size_binary", "bytes").replace(" not null", "")
