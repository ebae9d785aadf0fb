"""`pubsub sql`: its arguments and help."""

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option


@click.command(
    "sql",
    epilog="\b\nExamples:\n"
    '  pubsub sql out/audit "SELECT chain, cause, SUM(bytes) FROM waste GROUP BY chain, cause"\n'
    '  pubsub sql s3://bucket/audit "SELECT * FROM chains" --json\n',
)
@click.argument("audit", type=options.HISTORY)
@click.argument("question")
@with_json_option
def command(audit: str, question: str) -> Result:
    """Ask the tables of an AUDIT a QUESTION in SQL, and print the answer as a table.

    AUDIT is the output of `pubsub audit`; docs/tables.md has its tables, and docs/questions.md ten questions to begin
    with. DuckDB answers, in this process. Needs the extra `sql`.
    """
    from pubsub_emulator.cli.sql import run_sql

    return run_sql(audit, question)
