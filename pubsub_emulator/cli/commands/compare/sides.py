"""The sides of `pubsub compare`: each argument becomes figures and, where there is one, a history."""

import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.cli.base.errors import InputError
from pubsub_emulator.cli.base.figures import Figures, of_audit, of_run
from pubsub_emulator.cli.base.output import MARKER
from pubsub_emulator.cli.commands.run.run import HISTORY, find_scenario, simulate
from pubsub_emulator.emulator.scenario.file import BUNDLE
from pubsub_emulator.emulator.untrusted import read_json
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.runtime.rules import SHIPPED, Rules, using

SHIPPED_NAME: Final = "shipped"
REVISION: Final = "git:"
REPORT: Final = "run_report.json"


@dataclass(frozen=True, slots=True)
class Side:
    """One argument: its name in the table, its figures, and its history if it has one."""

    label: str
    figures: Figures
    history: Path | None = None


def open_side(text: str, scenario: str, rules: Rules, folder: Path) -> Side:
    """The side that an argument names; what has to be run is run with `scenario` and `rules`, into `folder`.

    Raises `InputError`, and what reading or running raises.
    """
    path = Path(text)
    if text.startswith(REVISION):
        return _of_revision(text.removeprefix(REVISION), scenario, folder)
    if text == SHIPPED_NAME:
        return _run(text, scenario, SHIPPED, folder)
    if path.suffix == ".py":
        return _run(path.stem, scenario, read_rules(path), folder)
    if path.suffix == ".toml" or (text in BUNDLE.names() and not path.exists()):
        return _run(path.stem, text, rules, folder)
    if path.is_dir():
        return _of_folder(path)
    raise InputError(f"{text}: no run, history, audit, scenario, file of rules, {SHIPPED_NAME!r} or {REVISION}REVISION")


def _run(label: str, scenario: str, rules: Rules, folder: Path) -> Side:
    from importlib.util import find_spec

    history = find_spec("pyarrow") is not None
    folder.mkdir()
    with using(rules):
        run = simulate(find_scenario(scenario), folder, history=history)
    return Side(label, of_run(run.document()), folder / HISTORY if history else None)


def _of_folder(path: Path) -> Side:
    if (path / REPORT).is_file():
        return Side(path.name, _figures(path / REPORT, of_audit))
    of_a_run = path if (path / MARKER).is_file() else path.parent if path.name == HISTORY else None
    if of_a_run is not None and (of_a_run / MARKER).is_file():
        history = of_a_run / HISTORY
        return Side(of_a_run.name, _figures(of_a_run / MARKER, of_run), history if history.is_dir() else None)
    if (path / "_commits").is_dir():
        return Side(path.name, _of_history(path), path)
    raise InputError(f"{path}: neither a run ({MARKER}), nor an audit ({REPORT}), nor a history (_commits/)")


def _figures(path: Path, figures_in: Callable[[Any], Figures]) -> Figures:
    found = read_json(path, error=InputError)
    try:
        figures = figures_in(found)
        sound = all(map(isfinite, figures.values()))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not what this program writes there: {type(error).__name__}: {error}") from error
    if not sound:
        raise InputError(f"{path}: not what this program writes there: a figure is no number")
    return figures


def _of_history(path: Path) -> Figures:
    """The figures of a history's rows, unjudged."""
    from pubsub_emulator.spark_audit.compare import HistoryRecord

    record = HistoryRecord(path)
    figures: Figures = dict.fromkeys(("parachain blocks", "refused blocks", "deliveries", "removals delivered"), 0)
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


def _of_revision(revision: str, scenario: str, folder: Path) -> Side:
    """A run of another revision of this program, from the repository of the current directory, in its own tree."""
    if revision.startswith("-"):
        raise InputError(f"{REVISION}{revision}: no revision")
    place = str(Path(scenario).absolute()) if scenario.endswith(".toml") else scenario
    tree, out = folder / "tree", folder / "run"
    tree.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(_call("git", "archive", "--format=tar", revision))) as archive:
        archive.extractall(tree, filter="data")
    _call(sys.executable, "-m", "pubsub_emulator", "run", place, "--out", str(out), folder=tree)
    return replace(_of_folder(out), label=revision)


def _call(*arguments: str, folder: Path | None = None) -> bytes:
    try:
        done = subprocess.run(arguments, cwd=folder, capture_output=True, check=False)  # noqa: S603  # no shell
    except FileNotFoundError as error:
        raise InputError(f"{arguments[0]}: not found") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise InputError(f"{' '.join(arguments[:3])} …: {last[0]}")
    return done.stdout
