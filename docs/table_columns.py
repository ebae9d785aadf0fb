"""Writes all tables and columns of histories and audits, from their schemas, for docs/tables.md."""

from collections import Counter

import pyarrow as pa

from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.schema import Column, Table
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES


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


TABLES = {**HISTORY_TABLES, **RESULT_TABLES}
NOTE = """A `?` after a type means that the value may be null.
Columns of a later version are in files with values for them."""
COMMON_FROM = 3
"""A column that means the same in so many tables is described once."""


def common() -> dict[tuple[str, str], int]:
    """The columns, by name and meaning, that many tables have, in the order of their first use."""
    counted = Counter(
        (column.name, column.doc) for table in TABLES.values() for column in table.columns
    )
    return {column: count for column, count in counted.items() if count >= COMMON_FROM}


def described_before(table: Table) -> dict[str, list[Column]]:
    """By earlier table, the columns of this one that it describes in the same words."""
    found: dict[str, list[Column]] = {}
    earlier = list(TABLES.values())[: list(TABLES).index(table.name)]
    for column in table.columns:
        if (column.name, column.doc) not in common():
            for other in earlier:
                if any(
                    (each.name, each.doc) == (column.name, column.doc) for each in other.columns
                ):
                    found.setdefault(other.name, []).append(column)
                    break
    return found


def type_of(column: Column) -> str:
    """A column's type, with a `?` where it may be null."""
    return kind(column.type) + "?" * column.nullable


def described(table: Table) -> str:
    """One table as the page shows it."""
    where = (
        ", row groups by chain"
        if table.name in HISTORY_TABLES and "chain" in table.partitions
        else ""
    )
    shared = [column for column in table.columns if (column.name, column.doc) in common()]
    key = ", ".join(f"`{name}`" for name in table.primary_key)
    lines = [f"### `{table.name}`, version {table.version}", ""]
    lines += [f"{table.doc} Primary key: {key}{where}.", ""]
    lines += ["```sql", table.example.strip(), "```", ""]
    for where_else, columns in {"Common columns": shared, **described_before(table)}.items():
        source = where_else if columns is shared else f"As in `{where_else}`"
        if columns:
            lines += [
                (
                    f"{source}:"
                    f" {', '.join(f'`{column.name}` {type_of(column)}' for column in columns)}."
                ),
                "",
            ]
    elsewhere = [
        *shared,
        *(column for columns in described_before(table).values() for column in columns),
    ]
    lines += ["| column | type | |", "|---|---|---|"]
    for column in table.columns:
        if column not in elsewhere:
            lines.append(f"| `{column.name}` | {type_of(column)} | {column.doc} |")
    for later, columns in zip(table.stages[1:], table.added, strict=True):
        lines += [
            f"| `{column.name}`, from version {later.version} | {type_of(column)} | {column.doc} |"
            for column in columns
        ]
    return "\n".join(lines) + "\n"


def columns() -> list[str]:
    """Every table and column, in the words of the schemas."""
    shared = [f"| `{name}` | {doc} |" for name, doc in common()]
    intro = [NOTE, "", "### Common columns", "", "| column | |", "|---|---|"]
    return [*intro, *shared, "", *map(described, TABLES.values())]
