"""`pubsub report`, and the report that `pubsub audit --report` makes of its own output."""

from collections.abc import Iterable
from pathlib import Path

from cli.output import new_folder
from cli.screen import stage
from spark_audit.report.page import CHARTS, PAGE, write_report

FOLDER = "report"


def make_report(audit: Path, out: Path | None = None) -> Iterable[tuple[Path, str]]:
    """Write the report of an audit, beside its tables or elsewhere, and tell what was written.

    An earlier report is replaced. Raises `ResultError`, `OutputError`, `OSError`.
    """
    target = audit / FOLDER if out is None else out
    with stage("drawing the report"), new_folder(target, replace=True, marker=PAGE) as folder:
        write_report(audit, folder)
    return (
        (target / PAGE, "what was verified and found, where bytes go; opens in a browser, offline"),
        (target / CHARTS, "its charts as SVG and PNG"),
    )
