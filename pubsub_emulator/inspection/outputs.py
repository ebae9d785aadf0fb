"""Find the outputs of this program in a folder by their content.

A name alone never makes something an output that is removed: a folder is kept as soon as there is
something in it that its command does not write. Links are not followed, so that nothing outside of
the folder is listed.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from pubsub_emulator.files.output import MARKER
from pubsub_emulator.files.untrusted import Unreadable, read_json

HISTORY: Final = "history"
COMMITS: Final = "_commits"
AUDIT: Final = "run_report.json"
MOST_ENTRIES: Final = 1_000_000
"""Files and folders that are looked at. A folder with more is listed in part."""
MOST_NETWORKS: Final = 3
"""Networks of a history that are named."""
UNTOUCHED_SECONDS: Final = 600
"""A command that is still writing touches its output more often than this."""

_DEMO_AUDIT: Final = "audit"
_OF_RUNS: Final = frozenset({MARKER, HISTORY, "explorer.html", _DEMO_AUDIT})
_OF_AUDITS: Final = frozenset(
    {"chains", "items", "ledger", "ledger.json", "report", AUDIT, "tables"}
)
_HEAD: Final = 256
"""Bytes of a JSON file that show its format: the program writes the format first."""
_FORMAT: Final = re.compile(rb'^\s*\{\s*"format":\s*"pubsub-(session|finding)/')
_PART: Final = re.compile(r"\.(.+)-[0-9a-f]{8}\.(?:part|old)")
_MANIFEST: Final = re.compile(r"(.+)-\d{8,}-[0-9a-f]{16}\.json")


class OutputKind(Enum):
    """The kind of an output."""

    RUN = "run"
    HISTORY = "history"
    AUDIT = "audit"
    SESSION = "session"
    FINDING = "finding"
    PART = "unfinished"


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a command."""

    path: Path
    kind: OutputKind
    size: int
    """Bytes of all its files."""
    changed: float
    """The time at which one of its files was last written, in seconds since 1970."""
    made_by: str
    """The command that made it, as far as the output tells."""
    kept_for: str
    """The reason why `pubsub clean` keeps the output. It is empty if the output can be removed."""


@dataclass(slots=True)
class Found:
    """The outputs in a folder."""

    outputs: list[Output]
    most: int
    """The maximum number of files and folders that are read."""
    is_whole: bool
    """Whether all files and folders were read."""


@dataclass(slots=True)
class _Budget:
    """The number of entries of folders that may still be read."""

    left: int

    def take(self) -> bool:
        """Count an entry, and return whether it may be read."""
        # A count below 0 also tells that some entries were not read.
        self.left -= 1
        return self.left >= 0


def find(folder: Path, now: float) -> Found:
    """Return the outputs in a folder and the folders below it, sorted by path.

    `now` is the present time in seconds since 1970. An output within another one, such as the
    history of a run, is not listed by itself. Raises `OSError` if `folder` itself cannot be read.
    """
    most = MOST_ENTRIES
    budget = _Budget(most)
    # Folders below that cannot be read are skipped, but this one must be readable.
    with os.scandir(folder):
        pass
    outputs = sorted(_within(folder, budget, now), key=lambda output: output.path)
    return Found(outputs, most, is_whole=budget.left >= 0)


def removable(outputs: Iterable[Output], *, unfinished: bool = False) -> list[Output]:
    """Return the outputs that can be removed, in the order in which to do it.

    Audits come first, because an audit is only removed while its history is there. With
    `unfinished`, only the outputs of commands that were stopped are returned.
    """
    offered = [output for output in outputs if not output.kept_for]
    if unfinished:
        offered = [output for output in offered if output.kind is OutputKind.PART]
    return sorted(offered, key=lambda output: output.kind is not OutputKind.AUDIT)


def look(path: Path, now: float) -> Output | None:
    """Return the output at a path, or `None` if this program did not make it."""
    return _output_at(path, _Budget(MOST_ENTRIES), now)


def _within(folder: Path, budget: _Budget, now: float) -> Iterator[Output]:
    """Yield the outputs in a folder and below it, without looking into an output."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        output = _output_at(path, budget, now)
        if output is not None:
            yield output
        elif path.is_dir():
            waiting += [
                Path(entry.path)
                for entry in _entries(path, budget)
                if entry.is_dir(follow_symlinks=False) or entry.name.endswith(".json")
            ]


def _entries(folder: Path, budget: _Budget) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder until the budget is used up.

    Nothing is yielded for a folder that cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not budget.take():
                    return
                yield entry
    except OSError:
        return


def _output_at(path: Path, budget: _Budget, now: float) -> Output | None:
    """Return the output at a path, or `None` if it is not an output. Links are not followed."""
    if path.is_symlink():
        return None
    kind = _kind(path)
    if kind is None:
        return None
    size, changed = _extent(path, budget)
    made_by, kept_for = _origin(path, kind)
    foreign = _foreign(path, kind)
    if foreign:
        kept_for = f"it contains {foreign}, which is unknown"
    if kind is OutputKind.PART and now - changed < UNTOUCHED_SECONDS:
        kept_for = "a command may be writing it"
    return Output(path, kind, size, changed=changed, made_by=made_by, kept_for=kept_for)


def _kind(path: Path) -> OutputKind | None:
    """Return the kind of a file or folder, or `None` if it is not an output."""
    if not path.is_dir():
        return _kind_of_file(path)
    if _PART.fullmatch(path.name):
        return OutputKind.PART
    if _run_of(path) is not None:
        return OutputKind.RUN
    if (path / COMMITS).is_dir():
        return OutputKind.HISTORY
    return OutputKind.AUDIT if _audited(path) is not None else None


def _kind_of_file(path: Path) -> OutputKind | None:
    """Return the kind of a JSON file, by the format with which it begins."""
    try:
        with path.open("rb") as file:
            match = _FORMAT.match(file.read(_HEAD))
    except OSError:
        return None
    return None if match is None else OutputKind(match[1].decode())


def _run_of(folder: Path) -> str | None:
    """Return the scenario of a run, or `None` if a folder is not one."""
    summary = _document(folder / MARKER)
    if not {"scenario", "digest", "chains"} <= summary.keys():
        return None
    return str(summary["scenario"])


def _audited(folder: Path) -> str | None:
    """Return the history of an audit, or `None` if a folder is not one."""
    report = _document(folder / AUDIT)
    return str(report["history"]) if {"history", "digest", "verifier"} <= report.keys() else None


def _document(path: Path) -> dict[str, object]:
    """Return the JSON object in a file.

    It is empty if there is no such file, or if the file has something else.
    """
    try:
        content = read_json(path)
    except (Unreadable, OSError):
        return {}
    return content if isinstance(content, dict) else {}


def _origin(path: Path, kind: OutputKind) -> tuple[str, str]:
    """Return the command that made an output, and the reason to keep it, which may be empty."""
    match kind:
        case OutputKind.RUN:
            if (path / _DEMO_AUDIT).is_dir():
                return "pubsub demo", ""
            made_by = f"pubsub run, scenario {_run_of(path)}"
            # Blocks of a node or of another network may have been added to its history.
            is_shared = len(_networks(path / HISTORY)) > 1
            return made_by, "its history has blocks that the run did not make" if is_shared else ""
        case OutputKind.HISTORY:
            networks = _networks(path)
            first = ", ".join(networks[:MOST_NETWORKS])
            others = len(networks) - MOST_NETWORKS
            more = f" and {others:,} more" if others > 0 else ""
            return f"networks {first}{more}", "its blocks may be nowhere else"
        case OutputKind.AUDIT:
            history = _audited(path) or ""
            exists = "://" in history or Path(history).is_dir()
            kept_for = "" if exists else "its history is gone"
            return f"pubsub audit {history}", kept_for
        case OutputKind.SESSION:
            return "pubsub step or lab", "its commands are nowhere else"
        case OutputKind.FINDING:
            return "pubsub evidence", "it proves a finding"
        case OutputKind.PART:
            part = _PART.fullmatch(path.name)
            return f"a command that was stopped, for {part[1] if part else path.name}", ""


def _foreign(path: Path, kind: OutputKind) -> str:
    """Return the name of something in an output that its command did not write, or an empty text.

    The output is then kept, because a stranger's file would be removed with it.
    """
    own = {
        OutputKind.RUN: _OF_RUNS,
        OutputKind.AUDIT: _OF_AUDITS,
        OutputKind.PART: _OF_RUNS | _OF_AUDITS,
    }.get(kind)
    if own is None:
        return ""
    names = sorted(entry.name for entry in _entries(path, _Budget(MOST_ENTRIES)))
    return next((name for name in names if name not in own), "")


def _networks(history: Path) -> list[str]:
    """Return the names of the networks in a history, as its manifests' file names show them."""
    names: set[str] = set()
    for entry in _entries(history / COMMITS, _Budget(MOST_ENTRIES)):
        manifest = _MANIFEST.fullmatch(entry.name)
        if manifest is not None:
            names.add(manifest[1])
    return sorted(names)


def _extent(path: Path, budget: _Budget) -> tuple[int, float]:
    """Return the bytes of all files of an output, and when the newest of them was written."""
    sizes = 0
    changed = 0.0
    for stats in _stats(path, budget):
        sizes += stats.st_size if stat.S_ISREG(stats.st_mode) else 0
        changed = max(changed, stats.st_mtime)
    return sizes, changed


def _stats(path: Path, budget: _Budget) -> Iterator[os.stat_result]:
    """Yield the `stat` results of a file, or of a folder and everything in it."""
    try:
        yield path.lstat()
    except OSError:
        return
    waiting = [path] if path.is_dir() else []
    while waiting:
        for entry in _entries(waiting.pop(), budget):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            with suppress(OSError):  # it may be gone by now
                yield entry.stat(follow_symlinks=False)
