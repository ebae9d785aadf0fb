"""`pubsub compare`: runs what has to be run, and shows what differs."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from pubsub_emulator.cli.base.figures import Line, lines_of, markdown, show_differences
from pubsub_emulator.cli.base.output import new_folder
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.compare.sides import Side, open_side
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import files, say, say_document
from pubsub_emulator.primitives.shown import marked, safe
from pubsub_emulator.runtime.rules import chosen


def run_compare(
    places: Sequence[str], scenario: str, tolerance: float | None, plot: Path | None, *, every: bool, as_markdown: bool
) -> Result:
    """Run the command. With `tolerance`, its exit code is 1 if a figure changes by more percent; `plot` is a folder."""
    if len(places) < 2:
        raise click.UsageError("two or more are compared, not one")
    with TemporaryDirectory(prefix="pubsub-compare-") as folder:
        sides = [open_side(text, scenario, chosen(), Path(folder) / str(at)) for at, text in enumerate(places)]
        lines = lines_of([side.figures for side in sides])
        names = [side.label for side in sides]
        labels = [name if names.count(name) == 1 else f"{name} ({at + 1})" for at, name in enumerate(names)]
        first = _first(labels, sides)
    shown = [line for line in lines if every or line.differs]
    if as_markdown:
        say_document(_markdown(labels, shown, first))
    else:
        show_differences(labels, shown)
        _show_first(labels, first)
    pictures = [] if plot is None else _draw(labels, shown, plot)
    beyond = [] if tolerance is None else [line.name for line in lines if line.beyond(tolerance)]
    if beyond:
        say(f"beyond {tolerance:g} %: {', '.join(beyond)}", aside=as_markdown)
    document = {
        "sides": labels,
        "figures": {line.name: _document(line) for line in lines},
        "first": first,
        "beyond": beyond,
        "files": pictures,
    }
    return Result(document, FINDINGS if beyond else 0)


def _draw(labels: Sequence[str], lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draw the relative changes of all figures. Raises `NoPlotLibrary`."""
    from pubsub_emulator.cli.commands.experiment.plot import draw
    from pubsub_emulator.laboratory.experiments.presets import Figure, Row

    rows: tuple[Row, ...] = tuple(
        {"figure": line.name, "change, %": round(share, 3), "side": labels[at]}
        for line in lines
        for at in range(1, len(labels))
        if (share := line.share(at)) is not None and isfinite(share)
    )
    if not rows:
        return []
    with new_folder(folder) as made:
        title = f"Change against {labels[0]}"
        written = draw(Figure("changes", title, rows, "change, %", "figure", "side", bars=True), made)
    files("written:", [(folder / path.name, "the changes") for path in written])
    return [folder / path.name for path in written]


def _show_first(labels: Sequence[str], first: dict[str, list[str]]) -> None:
    for label, why in first.items():
        say(f"the first block in which {label} differs from {labels[0]}:" if why else f"{label}: no block differs")
        say(*(f"  {line}" for line in why))


def _first(labels: Sequence[str], sides: Sequence[Side]) -> dict[str, list[str]]:
    """For each further side, the first block that differs from the first side, where both have histories."""
    base = sides[0].history
    if base is None:
        return {}
    from pubsub_emulator.cli.commands.compare.first import first_difference

    return {
        label: first_difference(base, side.history, (labels[0], label))
        for label, side in zip(labels[1:], sides[1:], strict=True)
        if side.history is not None
    }


def _markdown(labels: Sequence[str], lines: Sequence[Line], first: dict[str, list[str]]) -> str:
    parts = [markdown(labels, lines) if lines else "No figure differs."]
    for label, why in first.items():
        if why:
            said = f"The first block in which {marked(label)} differs from {marked(labels[0])}:"
            parts += ["", said, "", *(f"    {safe(line)}" for line in why)]  # a fence could be closed by a line
    return "\n".join(parts)


def _document(line: Line) -> dict[str, object]:
    shares = [line.share(at) for at in range(1, len(line.values))]
    return {
        "values": list(line.values),
        "change": [line.change(at) for at in range(1, len(line.values))],
        "percent": [None if share is None or share == float("inf") else round(share, 3) for share in shares],
    }
