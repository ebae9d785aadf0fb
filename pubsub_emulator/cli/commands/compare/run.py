"""`pubsub compare`: runs what has to be run, and shows what differs; the sides are below."""

import os
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from pubsub_emulator.cli.base.figures import (
    Figures,
    Line,
    lines_of,
    markdown,
    of_audit,
    of_run,
    show_differences,
)
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.run.run import HISTORY, simulate
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import files, say, say_document
from pubsub_emulator.emulator.scenario.file import BUNDLE, find_scenario
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.output import MARKER, new_folder
from pubsub_emulator.files.shown import marked, safe
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.runtime.rules import SHIPPED, Rules

SHIPPED_NAME: Final = "shipped"
REVISION: Final = "git:"
REPORT: Final = "run_report.json"


@dataclass(frozen=True, slots=True)
class Side:
    """One argument: its name in the table, its figures, and its history if it has one."""

    label: str
    figures: Figures
    history: Path | None = None


def run_compare(
    places: Sequence[str],
    scenario: str,
    tolerance: float | None,
    plot: Path | None,
    *,
    rules: Rules,
    every: bool,
    as_markdown: bool,
) -> Result:
    """Run the command.

    With `tolerance`, its exit code is 1 if a figure changes by more percent; `plot` is a folder.
    """
    if len(places) < 2:
        raise click.UsageError("give at least two sources to compare")
    with TemporaryDirectory(prefix="pubsub-compare-") as folder:
        # All arguments are looked at before the first network runs, which can take minutes.
        openers = [_opener(text, scenario, rules) for text in places]
        sides = [opener(Path(folder) / str(at)) for at, opener in enumerate(openers)]
        lines = lines_of([side.figures for side in sides])
        names = [side.label for side in sides]
        labels = [
            name if names.count(name) == 1 else f"{name} ({at + 1})"
            for at, name in enumerate(names)
        ]
        first = _first(labels, sides)
    shown = [line for line in lines if every or line.differs]
    if as_markdown:
        say_document(_markdown(labels, shown, first))
    else:
        show_differences(labels, shown)
        for label, why in first.items():
            if why:
                say(
                    f"the first block in which {label} differs from {labels[0]}:",
                    *(f"  {line}" for line in why),
                )
            else:
                say(f"{label}: no block differs", "")
    pictures = [] if plot is None else _draw(labels, shown, plot)
    beyond = [] if tolerance is None else [line.name for line in lines if line.beyond(tolerance)]
    if beyond:
        say(f"beyond {tolerance:g} %: {', '.join(beyond)}", aside=as_markdown)
    figures = {line.name: _document(line) for line in lines}
    document = {
        "sides": labels,
        "figures": figures,
        "first": first,
        "beyond": beyond,
        "files": pictures,
    }
    return Result(document, FINDINGS if beyond else 0)


def _draw(labels: Sequence[str], lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draw the relative changes of all figures. Raises `NoPlotLibrary`."""
    from pubsub_emulator.laboratory.experiments.charts import draw
    from pubsub_emulator.laboratory.experiments.presets import Figure, Row

    rows: list[Row] = []
    for line in lines:
        for at, label in enumerate(labels[1:], start=1):
            share = line.share(at)
            if share is not None and isfinite(share):
                rows.append({"figure": line.name, "change, %": round(share, 3), "side": label})
    if not rows:
        return []
    with new_folder(folder) as made:
        title = f"Change against {labels[0]}"
        written = draw(
            Figure("changes", title, tuple(rows), "change, %", "figure", "side", bars=True), made
        )
    files("written:", [(folder / path.name, "the changes") for path in written])
    return [folder / path.name for path in written]


def _first(labels: Sequence[str], sides: Sequence[Side]) -> dict[str, list[str]]:
    """Return the first block in which each further side differs from the first side.

    Sides without a history are left out.
    """
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
            parts += [
                "",
                said,
                "",
                *(f"    {safe(line)}" for line in why),
            ]  # a fence could be closed by a line
    return "\n".join(parts)


def _document(line: Line) -> dict[str, object]:
    shares = [line.share(at) for at in range(1, len(line.values))]
    return {
        "values": list(line.values),
        "change": [line.change(at) for at in range(1, len(line.values))],
        "percent": [
            None if share is None or share == float("inf") else round(share, 3) for share in shares
        ],
    }


# The sides


def _opener(text: str, scenario: str, rules: Rules) -> Callable[[Path], Side]:
    """Check that an argument names a side, and return the function that opens it.

    The function writes into the folder that it is given, and runs a network first if necessary,
    with `scenario` and `rules`. Raises `InputError`, and the errors of reading.
    """
    path = Path(text)
    if text.startswith(REVISION):
        revision = _revision(text.removeprefix(REVISION))
        return lambda folder: _of_revision(revision, scenario, folder)
    if text == SHIPPED_NAME:
        return _runner(text, scenario, SHIPPED)
    if path.suffix == ".py":
        return _runner(path.stem, scenario, read_rules(path))
    if path.suffix == ".toml" or (text in BUNDLE.names() and not path.exists()):
        return _runner(path.stem, text, rules)
    if path.is_dir():
        _ensure_output(path)
        return lambda _folder: _of_folder(path)
    raise InputError(
        f"{text}: not a run, history, audit, scenario, file of rules, {SHIPPED_NAME!r} or"
        f" {REVISION}REVISION"
    )


def _runner(label: str, name: str, rules: Rules) -> Callable[[Path], Side]:
    scenario = find_scenario(name, rules)

    def run(folder: Path) -> Side:
        history = find_spec("pyarrow") is not None
        folder.mkdir()
        done = simulate(scenario, folder, history=history, rules=rules)
        return Side(label, of_run(done.document()), folder / HISTORY if history else None)

    return run


def _ensure_output(path: Path) -> None:
    """Check that a folder is an output that can be compared. Raises `InputError`."""
    of_a_run = path.parent if path.name == HISTORY else path
    marks = (path / REPORT, path / MARKER, of_a_run / MARKER)
    if not any(mark.is_file() for mark in marks) and not (path / "_commits").is_dir():
        raise InputError(
            f"{path}: neither a run ({MARKER}), nor an audit ({REPORT}), nor a history (_commits/)"
        )


def _of_folder(path: Path) -> Side:
    if (path / REPORT).is_file():
        return Side(path.name, _figures(path / REPORT, of_audit))
    of_a_run = path
    if path.name == HISTORY and not (path / MARKER).is_file():
        of_a_run = path.parent
    if (of_a_run / MARKER).is_file():
        history = of_a_run / HISTORY
        return Side(
            of_a_run.name,
            _figures(of_a_run / MARKER, of_run),
            history if history.is_dir() else None,
        )
    return Side(path.name, _of_history(path), path)


def _figures(path: Path, figures_in: Callable[[Any], Figures]) -> Figures:
    found = read_json(path, error=InputError)
    try:
        figures = figures_in(found)
        sound = all(map(isfinite, figures.values()))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not what this program writes there: {type(error).__name__}: {error}"
        ) from error
    if not sound:
        raise InputError(f"{path}: not what this program writes there: a figure is not a number")
    return figures


def _of_history(path: Path) -> Figures:
    """The figures of a history's rows, unjudged."""
    from pubsub_emulator.spark_audit.compare import HistoryRecord

    record = HistoryRecord(path)
    figures: Figures = dict.fromkeys(
        ("parachain blocks", "refused blocks", "deliveries", "removals delivered"), 0
    )
    verdicts: Counter[str] = Counter()
    figures["proof bytes"] = 0
    for network, chain in record.chains:
        for block in record.blocks(network, chain):
            if block.verdict is not None:
                verdicts[block.verdict] += 1
                continue
            figures["parachain blocks"] += 1
            figures["proof bytes"] += sum(map(len, block.candidate.inherent.proof))
            for each in block.deliveries:
                figures["removals delivered" if each[2] == "removed" else "deliveries"] += 1
    figures["refused blocks"] = verdicts.total()
    return figures | {f"refused: {name}": count for name, count in sorted(verdicts.items())}


def _revision(text: str) -> str:
    """Return a revision of the git repository of the current directory. Raises `InputError`."""
    if text.startswith("-"):
        raise InputError(f"{REVISION}{text}: not a revision")
    _call("git", "rev-parse", "--verify", f"{text}^{{commit}}")
    return text


def _of_revision(revision: str, scenario: str, folder: Path) -> Side:
    """Run another revision of this program in a source tree of its own."""
    place = str(Path(scenario).absolute()) if scenario.endswith(".toml") else scenario
    tree, out = folder / "tree", folder / "run"
    tree.mkdir(parents=True)
    with tarfile.open(
        fileobj=BytesIO(_call("git", "archive", "--format=tar", revision))
    ) as archive:
        # Python 3.11.4 brought the filter; older releases extract the files of the user's own
        # repository without it
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tree)  # noqa: S202  # filtered where Python can
    _call(
        *(sys.executable, "-m", "pubsub_emulator", "run", place, "--out", str(out)),
        folder=tree,
        environment=_importing(tree),
    )
    return replace(_of_folder(out), label=revision)


def _importing(tree: Path) -> dict[str, str]:
    """Return this process's environment, changed so that Python imports from a tree first.

    With `PYTHONSAFEPATH`, Python would not look into the current directory, and would run the
    installed program instead of the revision.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    paths = [str(tree), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {"PYTHONPATH": os.pathsep.join(paths)}


def _call(
    *arguments: str, folder: Path | None = None, environment: dict[str, str] | None = None
) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603  # no shell
            arguments, cwd=folder, env=environment, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise InputError(f"{arguments[0]}: not found") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [
            f"exit code {done.returncode}"
        ]
        raise InputError(f"{' '.join(arguments[:3])} …: {last[0]}")
    return done.stdout
