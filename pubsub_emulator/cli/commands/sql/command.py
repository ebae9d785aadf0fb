"""`pubsub sql`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "sql",
    epilog="\b\nExamples:\n"
    '  pubsub sql out/audit "SELECT chain, cause, SUM(bytes) FROM waste GROUP BY chain, cause"\n'
    '  pubsub sql s3://bucket/audit "SELECT * FROM chains" --json\n',
)
@click.argument("place", metavar="AUDIT|HISTORY", type=options.HISTORY)
@click.argument("question")
@with_json_option
def command(place: str, question: str) -> Result:
    """Run the SQL query QUESTION on the tables of an AUDIT or a HISTORY, and print the result as a table.

    AUDIT is the output of `pubsub audit`. A HISTORY has the tables of what was recorded; each file is compared with
    its manifest before it is read. docs/tables.md documents the tables, docs/questions.md has ten queries. DuckDB runs
    the query in this process. Needs the extra `sql`.
    """
    from pubsub_emulator.cli.commands.sql.run import run_sql

    return run_sql(place, question)
