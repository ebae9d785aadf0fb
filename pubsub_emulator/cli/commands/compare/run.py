"""`pubsub compare`: shows what differs between runs, audits, histories, rules and revisions."""

from collections.abc import Sequence
from pathlib import Path

import click

from pubsub_emulator.cli.base.figures import show_differences
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import files, say, say_document, stage
from pubsub_emulator.files.output import new_folder
from pubsub_emulator.runs.comparison import as_markdown, changes_figure, compare
from pubsub_emulator.runs.figures import ComparedFigure
from pubsub_emulator.runtime.rules import Rules


def run_compare(
    places: Sequence[str],
    scenario: str,
    tolerance: float | None,
    plot: Path | None,
    *,
    rules: Rules,
    every: bool,
    markdown: bool,
) -> Result:
    """Compare places and print the figures that differ, and the first blocks that differ.

    With `tolerance`, the exit code is 1 if a figure changes by more percent. `plot` is the folder
    for pictures of the changes.
    """
    if len(places) < 2:
        raise click.UsageError("give at least two sources to compare")
    compared = compare(places, scenario, rules, stage)
    labels = compared.labels
    shown = compared.shown(every=every)
    if markdown:
        say_document(as_markdown(compared, shown))
    else:
        show_differences(labels, shown)
        for label, reasons in compared.first.items():
            if reasons:
                say(
                    f"the first block in which {label} differs from {labels[0]}:",
                    *(f"  {line}" for line in reasons),
                )
            else:
                say(f"{label}: no block differs", "")
    pictures = [] if plot is None else _draw(labels, shown, plot)
    beyond = compared.beyond(tolerance)
    if beyond:
        say(f"beyond {tolerance:g} %: {', '.join(beyond)}", aside=markdown)
    document = {**compared.document(), "beyond": beyond, "files": pictures}
    return Result(document, FINDINGS if beyond else 0)


def _draw(labels: Sequence[str], lines: Sequence[ComparedFigure], folder: Path) -> list[Path]:
    """Draw the relative changes of all figures. Raises `NoPlotLibrary`."""
    from pubsub_emulator.laboratory.experiments.charts import draw

    figure = changes_figure(labels, lines)
    if figure is None:
        return []
    with new_folder(folder) as new:
        written = draw(figure, new)
    files("written:", [(folder / path.name, "the changes") for path in written])
    return [folder / path.name for path in written]
