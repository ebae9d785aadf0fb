"""The sides of a comparison: runs, audits, histories, scenarios, files of rules and revisions.

Scenarios, rules and revisions are run first.
"""

import os
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.emulator.scenario.file import BUNDLE, find_scenario
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.output import MARKER
from pubsub_emulator.files.progress import Stage, unwatched
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.runs.figures import Figures, of_audit, of_run
from pubsub_emulator.runs.run import ARROW, HISTORY, simulate
from pubsub_emulator.runtime.rules import SHIPPED, Rules

SHIPPED_NAME: Final = "shipped"
REVISION: Final = "git:"
REPORT: Final = "run_report.json"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison, with its name, its figures and perhaps its history."""

    label: str
    figures: Figures
    history: Path | None = None


def opener(
    text: str,
    scenario: str,
    rules: Rules = SHIPPED,
    stage: Stage = unwatched,
) -> Callable[[Path], Side]:
    """Check that an argument names a side, and return the function that opens it.

    The function takes a folder to write into. It runs a network first if necessary: a scenario by
    `rules`, or `scenario` for the other kinds. Raises `InputError`, and the errors of reading.
    """
    path = Path(text)
    if text.startswith(REVISION):
        revision = _revision(text.removeprefix(REVISION))
        return lambda folder: _of_revision(revision, scenario, folder)
    if text == SHIPPED_NAME:
        return _runner(text, scenario, SHIPPED, stage)
    if path.suffix == ".py":
        return _runner(path.stem, scenario, read_rules(path), stage)
    if path.suffix == ".toml" or (text in BUNDLE.names() and not path.exists()):
        return _runner(path.stem, text, rules, stage)
    if path.is_dir():
        _ensure_output(path)
        return lambda _folder: _of_folder(path)
    raise InputError(
        f"{text}: not a run, history, audit, scenario, file of rules, {SHIPPED_NAME!r} or"
        f" {REVISION}REVISION"
    )


def _runner(label: str, name: str, rules: Rules, stage: Stage) -> Callable[[Path], Side]:
    """Return the function that runs the scenario `name` by `rules` and returns its side."""
    scenario = find_scenario(name, rules)

    def run(folder: Path) -> Side:
        history = find_spec(ARROW) is not None
        folder.mkdir()
        result = simulate(scenario, folder, history=history, rules=rules, stage=stage)
        return Side(label, of_run(result.document()), folder / HISTORY if history else None)

    return run


def _ensure_output(path: Path) -> None:
    """Check that a folder is an output that can be compared. Raises `InputError`."""
    run_folder = path.parent if path.name == HISTORY else path
    marks = (path / REPORT, path / MARKER, run_folder / MARKER)
    if not any(mark.is_file() for mark in marks) and not (path / "_commits").is_dir():
        raise InputError(
            f"{path}: neither a run ({MARKER}), nor an audit ({REPORT}), nor a history (_commits/)"
        )


def _of_folder(path: Path) -> Side:
    """Return the side of an audit, a run or a history. The history of a run counts as the run."""
    if (path / REPORT).is_file():
        return Side(path.name, _figures(path / REPORT, of_audit))
    run_folder = path
    if path.name == HISTORY and not (path / MARKER).is_file():
        run_folder = path.parent
    if (run_folder / MARKER).is_file():
        history = run_folder / HISTORY
        return Side(
            run_folder.name,
            _figures(run_folder / MARKER, of_run),
            history if history.is_dir() else None,
        )
    return Side(path.name, _of_history(path), path)


def _figures(path: Path, figures_in: Callable[[Any], Figures]) -> Figures:
    """Return the figures in a JSON file. Raises `InputError` if a figure is missing or infinite."""
    document = read_json(path, error=InputError)
    try:
        figures = figures_in(document)
        all_finite = all(map(isfinite, figures.values()))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not a file that this program wrote: {type(error).__name__}: {error}"
        ) from error
    if not all_finite:
        raise InputError(f"{path}: not a file that this program wrote: a figure is not a number")
    return figures


def _of_history(path: Path) -> Figures:
    """Return the figures of a history's rows, which are not judged."""
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
            for delivery in block.deliveries:
                figures["removals delivered" if delivery[2] == "removed" else "deliveries"] += 1
    figures["refused blocks"] = verdicts.total()
    return figures | {f"refused: {name}": count for name, count in sorted(verdicts.items())}


def _revision(text: str) -> str:
    """Check that the git repository of the current directory has a revision, and return its name.

    Raises `InputError`.
    """
    if text.startswith("-"):
        raise InputError(f"{REVISION}{text}: not a revision")
    _call("git", "rev-parse", "--verify", f"{text}^{{commit}}")
    return text


def _of_revision(revision: str, scenario: str, folder: Path) -> Side:
    """Run a scenario with another revision of this program, in a source tree of its own."""
    place = str(Path(scenario).absolute()) if scenario.endswith(".toml") else scenario
    tree = folder / "tree"
    out = folder / "run"
    tree.mkdir(parents=True)
    with tarfile.open(
        fileobj=BytesIO(_call("git", "archive", "--format=tar", revision))
    ) as archive:
        # Python has the filter since 3.11.4. Older releases extract without the filter, which is
        # acceptable because the files are from the user's own repository.
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
    """Run a program and return its output.

    Raises `InputError` if it is missing or fails, with the last line of its errors.
    """
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
