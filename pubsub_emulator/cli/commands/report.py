"""`pubsub report`, and the report that `pubsub audit --report` and the demonstration make."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.spark_audit.report import CHARTS, PAGE

FOLDER = "report"


@click.command(
    "report",
    cls=Command,
    needs=(Need("plot"),),
    epilog=(
        "\b\nExamples:\n  pubsub report out/demo/audit\n  pubsub report out/audit --out"
        " out/report-of-may\n"
    ),
)
@click.argument("audit", type=options.HISTORY)
@option(
    "--out",
    type=options.OUT,
    help="Folder for the report, AUDIT/report by default; an existing one is replaced.",
)
@with_json_option
def command(audit: str, out: Path | None) -> Result:
    """Write the report of an AUDIT: a page that opens offline, and its charts as SVG and PNG.

    The page is report.html. AUDIT is the output folder of `pubsub audit`; nothing else is read.
    Needs the extra `plot`.
    """
    from pubsub_emulator.cli.screen import files

    written = tuple(make_report(audit, out))
    files("written:", written)
    return Result({"page": written[0][0], "charts": written[1][0]})


def can_draw() -> bool:
    """Return whether the extra `plot` is installed."""
    return all(map(find_spec, ("altair", "jinja2", "vl_convert")))


def make_report(audit: str | Path, out: Path | None = None) -> Iterable[tuple[Path, str]]:
    """Write the report of an audit and return the files.

    They are written beside the audit's tables or to another folder, and replace an older report.
    Raises `ResultError`, `InputError`, `OSError`.
    """
    from pubsub_emulator.cli.screen import stage
    from pubsub_emulator.files.output import new_folder
    from pubsub_emulator.spark_audit.history.address import is_remote
    from pubsub_emulator.spark_audit.report.page import write_report

    if out is None and is_remote(audit):
        raise InputError(f"{audit}: a report is written to a local folder; name one with --out")
    target = Path(audit) / FOLDER if out is None else out
    with (
        stage("drawing the report") as advance,
        new_folder(target, replace=True, marker=PAGE) as folder,
    ):
        write_report(
            audit,
            folder,
            lambda done, total: advance(done, total, "drawing the report: charts of chains"),
        )
    return report_written(target)


def report_written(target: Path) -> Iterable[tuple[Path, str]]:
    """Return the paths of a report's files, each with a description."""
    return (
        (
            target / PAGE,
            "verified blocks, findings and use of bytes; opens in a browser, offline",
        ),
        (target / CHARTS, "its charts as SVG and PNG"),
    )
