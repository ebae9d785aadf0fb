"""`pubsub report`: its arguments and help."""

from pathlib import Path

import click

from cli import options


@click.command(
    "report",
    epilog="\b\nExamples:\n  pubsub report out/demo/audit\n  pubsub report out/audit --out out/report-of-may\n",
)
@click.argument("audit", type=options.FOLDER)
@click.option(
    "--out",
    type=options.OUT,
    default=None,
    help="Folder for the report, AUDIT/report by default; an older one there goes.",
)
def command(audit: Path, out: Path | None) -> None:
    """Draw what an AUDIT found: report.html, one page that opens offline, and its charts as SVG and PNG.

    AUDIT is the output folder of `pubsub audit`; nothing else is read. Needs the extra `plot`.
    """
    from cli.report import make_report
    from cli.screen import files

    files("written:", make_report(audit, out))
