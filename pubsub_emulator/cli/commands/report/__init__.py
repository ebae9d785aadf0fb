"""`pubsub report`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "report",
    epilog="\b\nExamples:\n  pubsub report out/demo/audit\n  pubsub report out/audit --out out/report-of-may\n",
)
@click.argument("audit", type=options.HISTORY)
@option("--out", type=options.OUT, help="Folder for the report, AUDIT/report by default; an existing one is replaced.")
@with_json_option
def command(audit: str, out: Path | None) -> Result:
    """Write the report of an AUDIT: report.html, one page that opens offline, and its charts as SVG and PNG.

    AUDIT is the output folder of `pubsub audit`; nothing else is read. Needs the extra `plot`.
    """
    from pubsub_emulator.cli.commands.report.run import run_report

    return run_report(audit, out)
