"""`pubsub sql`: a query on the tables of an audit or a history."""

from datetime import date, datetime
from decimal import Decimal

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.spark_audit.tables.ask import ask


def run_sql(place: str, question: str) -> Result:
    """Run a query on the tables of an audit or a history, and print the result."""
    answer = ask(place, question)
    rows = [tuple(_plain(cell) for cell in row) for row in answer.rows]
    table("", answer.columns, [tuple(_shown(cell) for cell in row) for row in rows])
    say(f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}")
    return Result({"columns": list(answer.columns), "rows": [list(row) for row in rows]})


def _plain(cell: object) -> object:
    """A value for JSON and people: bytes in hex, times in ISO format."""
    if isinstance(cell, bytes):
        return "0x" + cell.hex()
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, list | tuple):
        return [_plain(each) for each in cell]
    if isinstance(cell, dict):
        return {str(name): _plain(each) for name, each in cell.items()}
    return cell


def _shown(cell: object) -> str:
    """Write numbers without separators, so that ids can be copied into the next query."""
    return "none" if cell is None else str(cell)
