"""`pubsub audit`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, tells


@click.command(
    "audit",
    epilog="\b\nExamples:\n  pubsub audit out/demo/history --out out/audit\n"
    "  pubsub audit out/demo/history --out out/audit --engine python\n"
    "  pubsub audit out/demo/history --out out/audit --master spark://127.0.0.1:7077\n"
    "  pubsub audit out/growing/history --out out/audit --follow --fail-on error\n"
    "\n\b\nExit codes:\n  0 clean, 1 findings, 2 usage, 3 quarantined or incomplete, 4 infrastructure\n",
)
@click.argument("history", type=options.FOLDER)
@click.option("--out", type=options.OUT, required=True, help="Folder for the audit's tables; a later audit adds to it.")
@options.master
@options.engine
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error", "never"]),
    default="warning",
    show_default=True,
    help="The least severity of a finding that makes the exit code 1.",
)
@click.option(
    "--trust",
    "trusted",
    multiple=True,
    metavar="HASH",
    help="Hash in hex of a header that a chain may start at instead of genesis; may be given repeatedly.",
)
@click.option("--follow", is_flag=True, help="Go on as segments are added to HISTORY, until interrupted.")
@click.option("--report", is_flag=True, help="Draw the report as well, into OUT/report; see `pubsub report`.")
@tells
def command(  # noqa: PLR0917  # click passes each option by name
    history: Path,
    out: Path,
    master: str | None,
    engine: str,
    fail_on: str,
    trusted: tuple[str, ...],
    *,
    follow: bool,
    report: bool,
) -> Result:
    """Verify every block of HISTORY again and say what its proof cost, who cheated, and what could not be read.

    The digest printed last is one hash over the rows of all tables: equal histories have equal digests.
    """
    from pubsub_emulator.cli.audit import Asked, run_audit

    return run_audit(Asked(history, out, master, engine, fail_on, trusted), growing=follow, report=report)
