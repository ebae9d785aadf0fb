"""`pubsub report`, and the report that `pubsub audit --report` and the demonstration make of their own output."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from pubsub_emulator.cli.output import OutputError, new_folder
from pubsub_emulator.cli.result import Result
from pubsub_emulator.cli.screen import files, stage
from pubsub_emulator.spark_audit.report import CHARTS, PAGE

FOLDER = "report"


def can_draw() -> bool:
    """Whether the extra `plot` is there."""
    return all(map(find_spec, ("altair", "jinja2", "vl_convert")))


def run_report(audit: str, out: Path | None) -> Result:
    """The command."""
    written = tuple(make_report(audit, out))
    files("written:", written)
    return Result({"page": written[0][0], "charts": written[1][0]})


def make_report(audit: str | Path, out: Path | None = None) -> Iterable[tuple[Path, str]]:
    """Write the report of an audit, beside its tables or elsewhere, and tell what was written.

    An earlier report is replaced. Raises `ResultError`, `OutputError`, `OSError`.
    """
    from pubsub_emulator.spark_audit.history.address import is_remote
    from pubsub_emulator.spark_audit.report.page import write_report

    if out is None and is_remote(audit):
        raise OutputError(f"{audit}: the report is drawn on this machine; name a folder with --out")
    target = Path(audit) / FOLDER if out is None else out
    with stage("drawing the report"), new_folder(target, replace=True, marker=PAGE) as folder:
        write_report(audit, folder)
    return report_written(target)


def report_written(target: Path) -> Iterable[tuple[Path, str]]:
    """What a report leaves behind."""
    return (
        (target / PAGE, "what was verified and found, where bytes go; opens in a browser, offline"),
        (target / CHARTS, "its charts as SVG and PNG"),
    )
