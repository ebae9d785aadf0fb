"""`pubsub sql`: its arguments and help."""

from datetime import date, datetime
from decimal import Decimal

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option


def _decoded(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Refuse a query with bytes that the locale cannot decode.

    DuckDB fails at the lone surrogates that they become.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(
            "the query has bytes that are not text in the encoding of this locale"
        ) from None
    return value


@click.command(
    "sql",
    cls=Command,
    needs=(Need("sql"),),
    epilog=(
        '\b\nExamples:\n  pubsub sql out/audit "SELECT chain, cause, SUM(bytes) FROM waste GROUP BY'
        ' chain, cause"\n  pubsub sql s3://bucket/audit "SELECT * FROM chains" --json\n'
    ),
)
@click.argument("place", metavar="AUDIT|HISTORY", type=options.HISTORY)
@click.argument("sql", metavar="SQL", callback=_decoded)
@option(
    "--unsafe",
    is_flag=True,
    help="Let the query read and write other files, and load extensions of DuckDB.",
)
@with_json_option
def command(*, place: str, sql: str, unsafe: bool) -> Result:
    """Run a statement in SQL on the tables of an AUDIT or a HISTORY, and print the result.

    AUDIT is the output of `pubsub audit`. A HISTORY has the tables of what was recorded; each file
    is compared with its manifest before it is read. docs/tables.md documents the tables,
    docs/questions.md has queries. DuckDB runs the query, which is one statement, in this process.
    It can read no other files and write none. Needs the extra `sql`.
    """
    from pubsub_emulator.cli.screen import say, table
    from pubsub_emulator.spark_audit.tables.ask import ask

    answer = ask(place, sql, unsafe=unsafe)
    rows = [list(map(_plain, row)) for row in answer.rows]
    # numbers without separators, so that ids can be copied into the next query
    table("", answer.columns, [list(map(_shown, row)) for row in rows])
    say(f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}")
    return Result({"columns": list(answer.columns), "rows": rows})


def _shown(cell: object) -> str:
    """Return a plain value as people read it. A null is `NULL`, also within lists and structs."""
    if cell is None:
        return "NULL"
    if isinstance(cell, list):
        return f"[{', '.join(map(_within, cell))}]"
    if isinstance(cell, dict):
        parts = (f"{name!r}: {_within(part)}" for name, part in cell.items())
        return f"{{{', '.join(parts)}}}"
    return str(cell)


def _within(cell: object) -> str:
    """Return a part of a list or a struct. Texts have quotes, so that their ends can be seen."""
    return repr(cell) if isinstance(cell, str) else _shown(cell)


def _plain(cell: object) -> object:
    """Return a value for JSON and people: bytes in hex, times in ISO format."""
    if isinstance(cell, bytes):
        return "0x" + cell.hex()
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, list | tuple):
        return [_plain(part) for part in cell]
    if isinstance(cell, dict):
        return {str(name): _plain(part) for name, part in cell.items()}
    return cell
