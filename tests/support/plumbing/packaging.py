"""Fresh environments for the tests of packaging, and programs that run in them."""

import json
import os
import re
import signal
import subprocess
import venv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PATIENCE: Final = 120
"""Seconds that a program has to start, to answer or to end."""

DRIVER: Final = """
import contextlib, io, json, sys, traceback
from pubsub_emulator.cli.main import main

ran = []
for words in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["pubsub", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code or 0
    ran.append((code, out.getvalue(), err.getvalue()))
json.dump(ran, sys.stdout)
"""
"""A program that runs command lines one after the other.

Most of the time of a command is its start.
"""


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Return all that a program prints, run without this process's settings of Python and Java.

    Its exit code must be `code`.
    """
    done = subprocess.run(
        command, cwd=cwd, env=_variables(), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def _variables() -> dict[str, str]:
    """Return this process's variables without those for Python and Java."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "JDK_JAVA_"))
    }
    return {**variables, "PUBSUB_PURE": "1", "NO_COLOR": "1"}


class Ran(NamedTuple):
    """The end of a command."""

    code: int
    out: str
    err: str


class Environment:
    """A fresh virtual environment with a few of the packages that are installed here.

    Packages are linked, not installed again: that takes no package index, half a second, and
    exactly the versions that `constraints.txt` has.
    """

    def __init__(self, home: Path) -> None:
        venv.create(home, with_pip=False, symlinks=os.name != "nt")
        self.home = home
        self.python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.packages = Path(
            run(
                self.python, "-c", "import site; print(site.getsitepackages()[0])", cwd=home
            ).strip()
        )

    def link(self, requirements: Iterable[str]) -> set[str]:
        """Add the packages that pip would install for requirements. Return their names."""
        wanted = closure(requirements)
        for name, distribution in wanted.items():
            for place in _places(name):
                target = self.packages / place
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(Path(str(distribution.locate_file(place))))
        return set(wanted)

    def link_wheels(self, packages: Path, *names: str) -> None:
        """Add packages of this project as another environment has them installed, below `packages`.

        Each is given with its metadata.
        """
        for name in names:
            for place in (packages / name, *packages.glob(f"{name}-*.dist-info")):
                (self.packages / place.name).symlink_to(place)

    def pubsub(self, *lines: Iterable[object], cwd: Path, **variables: str) -> list[Ran]:
        """Run commands of `pubsub` one after the other in one process, each given as its words."""
        words = [[str(word) for word in line] for line in lines]
        done = subprocess.run(
            [self.python, "-c", DRIVER],
            cwd=cwd,
            env={**_variables(), **variables},
            input=json.dumps(words),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return [Ran(*ended) for ended in json.loads(done.stdout)]

    @contextmanager
    def serving(
        self, *words: object, cwd: Path, says: str, code: int = 130
    ) -> Iterator["re.Match[str]"]:
        """Run a command of `pubsub` that serves, and wait until it has printed a line that matches
        `says`.

        Interrupt it at the end. Its exit code must then be `code`.
        """
        process = subprocess.Popen(
            [self.python, "-m", "pubsub_emulator", *map(str, words)],
            cwd=cwd,
            env=_variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                found = re.search(says, line)
                if found is not None:
                    break
            else:
                raise AssertionError(f"{words} ended: {printed}")
            try:
                yield found
            finally:
                process.send_signal(signal.SIGINT)
                printed += process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == code, f"{words}: {process.returncode}\n{printed}"


def closure(requirements: Iterable[str]) -> Mapping[str, metadata.Distribution]:
    """Return the distributions that pip would install for requirements, by name, as far as they are
    installed here.

    Each has a version that all of its requirements allow.
    """
    waiting = [Requirement(requirement) for requirement in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    chosen: dict[str, metadata.Distribution] = {}
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        distribution = metadata.distribution(name)
        assert wanted.specifier.contains(distribution.version, prereleases=True), (
            f"{wanted}, not {distribution.version}"
        )
        extras = frozenset(wanted.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        chosen[name] = distribution
        further = map(Requirement, distribution.requires or ())
        waiting += [each for each in further if _applies(each, extras)]
    return chosen


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    """Return whether a requirement of a distribution applies here, if it is wanted with these
    extras.
    """
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


@cache
def _owners() -> Mapping[str, set[str]]:
    """Return the distributions that have files in a folder, by its path below `site-packages`."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for distribution in metadata.distributions():
        name = canonicalize_name(distribution.name)
        for file in distribution.files or ():
            for depth in range(1, len(file.parts)):
                owners["/".join(file.parts[:depth])].add(name)
    return owners


def _places(name: str) -> set[str]:
    """Return the folders that only this distribution has, and its other files, all below
    `site-packages`.
    """
    places: set[str] = set()
    for file in metadata.distribution(name).files or ():
        if file.parts[0] in {"..", "__pycache__"}:
            continue
        folders = ["/".join(file.parts[:depth]) for depth in range(1, len(file.parts))]
        own = [folder for folder in folders if _owners()[folder] == {name}]
        places.add(own[0] if own else file.as_posix())
    return places
