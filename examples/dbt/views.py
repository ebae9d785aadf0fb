"""Make a DuckDB database with views of an audit's tables, for dbt: `views.py AUDIT DATABASE`.

With `--sources`, print the tables as dbt's sources instead, with grain, key and columns. So
`models/sources.yml` is the contract between an audit and the models.
"""

import json
import sys

import duckdb

from pubsub_emulator import Results
from pubsub_emulator.spark_audit.history.schema import OF_AUDIT, Table


def sources() -> str:
    """Return the tables as dbt's sources. JSON texts are YAML."""
    lines = [
        "# Made by `python examples/dbt/views.py --sources`.",
        "version: 2",
        "sources:",
        "  - name: audit",
        "    schema: audit",
        "    tables:",
    ]
    for table in OF_AUDIT:
        lines += described(table)
    return "\n".join(lines) + "\n"


def described(table: Table) -> list[str]:
    """Return the lines about one table, with tests of its key."""
    key = ", ".join(table.primary_key)
    lines = [
        f"      - name: {table.name}",
        f"        description: {json.dumps(f'{table.doc} Primary key: {key}.')}",
        f"        data_tests: [{{unique: {{column_name: '({key})'}}}}]",
        "        columns:",
    ]
    for column in table.wider.columns:
        lines.append(f"          - name: {column.name}")
        lines.append(f"            description: {json.dumps(column.doc)}")
        if column.name in table.primary_key and not column.nullable:
            lines.append("            data_tests: [not_null]")
    return lines


def make_views(audit: str, database: str) -> None:
    """Make the database. Each file of the tables is compared with its digest first."""
    results = Results.open(audit)
    with duckdb.connect() as connection:
        # Under a name of its own, whatever the file is called: it may be `audit`, as the schema is.
        path = database.replace("'", "''")
        connection.execute(f"ATTACH '{path}' AS made")
        connection.execute("CREATE SCHEMA IF NOT EXISTS made.audit")
        for name, paths in results.tables().items():
            files = ", ".join(f"'{results.store.uri}/{path}'" for path in paths)
            rows = f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)"  # noqa: S608  # names of our own
            connection.execute(f"CREATE OR REPLACE VIEW made.audit.{name} AS {rows}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--sources"]:
        print(sources(), end="")
    else:
        make_views(*sys.argv[1:])
