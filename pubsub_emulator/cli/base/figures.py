"""The table of figures that differ between runs."""

from collections.abc import Iterable, Sequence

from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.moved import renamed
from pubsub_emulator.runs.figures import ComparedFigure, header

__getattr__ = renamed(
    __name__,
    dict.fromkeys(
        ("Figures", "lines_of", "markdown", "of_audit", "of_run"),
        "pubsub_emulator.runs.figures",
    ),
)


def show_differences(labels: Sequence[str], lines: Iterable[ComparedFigure]) -> None:
    """Print the table."""
    rows = [line.cells() for line in lines]
    if rows:
        table("differences", header(labels), rows)
    else:
        say("no figure differs")
