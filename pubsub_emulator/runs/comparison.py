"""Several sides beside each other: figures that differ, then the first block that differs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory

from pubsub_emulator.files.progress import Stage, unwatched
from pubsub_emulator.files.shown import marked, safe
from pubsub_emulator.laboratory.experiments.presets import Figure, Row
from pubsub_emulator.runs.figures import ComparedFigure, lines_of, markdown
from pubsub_emulator.runs.sides import Side, opener
from pubsub_emulator.runtime.rules import SHIPPED, Rules


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of several sides. All other sides are compared with the first one."""

    labels: tuple[str, ...]
    """The names of the sides, all different."""
    lines: tuple[ComparedFigure, ...]
    """All figures of all sides."""
    first: dict[str, list[str]]
    """For each further side with a history, the first block that differs and why, line by line."""

    def beyond(self, tolerance: float | None) -> list[str]:
        """Return the figures that change by more percent than `tolerance`, if it is given."""
        if tolerance is None:
            return []
        return [line.name for line in self.lines if line.beyond(tolerance)]

    def shown(self, *, every: bool) -> list[ComparedFigure]:
        """Return the figures that differ, or all of them."""
        return [line for line in self.lines if every or line.differs]

    def document(self) -> dict[str, object]:
        """Return the sides, figures and first blocks as a JSON object."""
        return {
            "sides": list(self.labels),
            "figures": {line.name: _document(line) for line in self.lines},
            "first": self.first,
        }


def compare(
    places: Sequence[str],
    scenario: str = "demo",
    rules: Rules = SHIPPED,
    stage: Stage = unwatched,
) -> Comparison:
    """Compare the first of several places with the others.

    `scenario` is run if a place is a file of rules, `shipped` or a git revision. `rules` are used
    if a place is a scenario. `stage` shows the progress of each run. Raises `InputError`, and the
    errors of reading.
    """
    with TemporaryDirectory(prefix="pubsub-compare-") as folder:
        # All places are looked at before the first network runs, which can take minutes.
        openers = [opener(text, scenario, rules=rules, stage=stage) for text in places]
        sides = [open_side(Path(folder) / str(index)) for index, open_side in enumerate(openers)]
        lines = lines_of([side.figures for side in sides])
        names = [side.label for side in sides]
        labels = [
            name if names.count(name) == 1 else f"{name} ({index + 1})"
            for index, name in enumerate(names)
        ]
        return Comparison(tuple(labels), tuple(lines), _first(labels, sides))


def changes_figure(labels: Sequence[str], lines: Sequence[ComparedFigure]) -> Figure | None:
    """Return the relative changes of figures for a chart, or `None` if there are none."""
    rows: list[Row] = []
    for line in lines:
        for side, label in enumerate(labels[1:], start=1):
            share = line.share(side)
            if share is not None and isfinite(share):
                rows.append({"figure": line.name, "change, %": round(share, 3), "side": label})
    if not rows:
        return None
    title = f"Change against {labels[0]}"
    return Figure(
        "changes", title, tuple(rows), x="change, %", y="figure", series="side", bars=True
    )


def _first(labels: Sequence[str], sides: Sequence[Side]) -> dict[str, list[str]]:
    """Return the first block in which each further side differs from the first side.

    Sides without a history are left out.
    """
    base = sides[0].history
    if base is None:
        return {}
    from pubsub_emulator.runs.first_difference import first_difference

    return {
        label: first_difference(base, side.history, (labels[0], label))
        for label, side in zip(labels[1:], sides[1:], strict=True)
        if side.history is not None
    }


def as_markdown(compared: Comparison, lines: Sequence[ComparedFigure]) -> str:
    """Return some of the figures, and the first blocks that differ, for a pull request."""
    labels = compared.labels
    parts = [markdown(labels, lines) if lines else "No figure differs."]
    for label, reasons in compared.first.items():
        if reasons:
            heading = f"The first block in which {marked(label)} differs from {marked(labels[0])}:"
            # The code block is indented, because a line could close a fence.
            parts += ["", heading, "", *(f"    {safe(line)}" for line in reasons)]
    return "\n".join(parts)


def _document(line: ComparedFigure) -> dict[str, object]:
    """Return a line as a JSON object. A percentage is null if it is unknown or infinite."""
    changes: list[float | None] = []
    percentages: list[float | None] = []
    for side in range(1, len(line.values)):
        share = line.share(side)
        changes.append(line.change(side))
        percentages.append(None if share is None or share == float("inf") else round(share, 3))
    return {"values": list(line.values), "change": changes, "percent": percentages}
