"""docs/tables.md names every table and column that there is, in the words of `spark_audit/history/schema.py`."""

from pathlib import Path

import pyarrow as pa

from pubsub_emulator.spark_audit.audit.results import RESULT_TABLES
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.schema import Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"
START = "## Every column\n"


def kind(arrow: pa.DataType) -> str:
    """An Arrow type as a person says it."""
    if pa.types.is_list(arrow):
        return f"list of {kind(arrow.value_type)}"
    if pa.types.is_struct(arrow):
        return "(" + ", ".join(f"{field.name} {kind(field.type)}" for field in arrow) + ")"
    if pa.types.is_fixed_size_binary(arrow):
        return f"{arrow.byte_width} bytes"
    if pa.types.is_timestamp(arrow):
        return "time in milliseconds, UTC"
    if pa.types.is_date(arrow):
        return "day"
    return {"binary": "bytes", "string": "text", "bool": "yes or no"}.get(str(arrow), str(arrow))


def described(table: Table) -> str:
    """One table as the page shows it."""
    where = f", a folder for each {' and '.join(table.partitions)}" if table.partitions else ""
    lines = [
        f"### `{table.name}`, version {table.version}",
        "",
        f"{table.doc} Unique by {', '.join(table.key)}{where}.",
        "",
        "| column | type | |",
        "|---|---|---|",
    ]
    for column in table.columns:
        empty = "; may be empty" if column.nullable else ""
        lines.append(f"| `{column.name}` | {kind(column.type)}{empty} | {column.doc} |")
    for later, columns in zip(table.stages[1:], table.added, strict=True):
        for column in columns:
            doc = f"{column.doc}; version {later.version}, of files that have something to put there"
            lines.append(f"| `{column.name}` | {kind(column.type)}{'; may be empty' * column.nullable} | {doc} |")
    return "\n".join(lines) + "\n"


def reference() -> str:
    """The section of the page that follows from the schemas."""
    return "\n".join(described(table) for table in {**HISTORY_TABLES, **RESULT_TABLES}.values())


def test_the_page_shows_every_column_in_the_words_of_the_schema() -> None:
    """After a change of a schema: `python tests/docs/test_tables_page.py` writes the section anew."""
    section = PAGE.read_text(encoding="utf-8").partition(START)[2].strip()
    assert section == reference().strip()


if __name__ == "__main__":
    head, start, _old = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{head}{start}\n{reference()}", encoding="utf-8")
