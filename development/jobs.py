"""The jobs that `dev.py` runs in the finished set-up: tests, linters, builds, documentation.

A job of several tools, `tool(…) or tool(…)`, ends with the exit code of the first one that fails.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from development import biome, commits, sentences, statements
from development.environment import PIP, PYTHON, ROOT, VENV, quiet
from development.report import SetupError, last_line, say

MOST_TEST_WORKERS = 8
MEMORY = Path("/dev/shm")  # noqa: S108  # files go to a folder of their own below it
"""A file system in memory, on Linux. Tests write their files there if it has room."""
MEMORY_WANTED = 4 << 30
"""Bytes that must be free there."""
COMPILERS = ("cc", "gcc", "clang", "cl")
COMPILED_TESTS = (
    "tests/pubsub_emulator/primitives/test_hashing.py",
    "tests/pubsub_emulator/primitives/test_pubsub_types.py",
    "tests/pubsub_emulator/primitives/test_scale.py",
    "tests/pubsub_emulator/trie",
    "tests/pubsub_emulator/xcm",
    "tests/pubsub_emulator/runtime/pallet_subscriber",
    "tests/pubsub_emulator/runtime/parachain_system/test_verdicts.py",
    "tests/pubsub_emulator/runtime/test_storage.py",
    "tests/pubsub_emulator/runtime/test_message_queue.py",
    "tests/pubsub_emulator/runtime/relay_chain",
    "tests/pubsub_emulator/runtime/pallet_pubsub/test_broadcaster_encoding.py",
    "tests/pubsub_emulator/collator/test_fuzz.py",
    "tests/pubsub_emulator/emulator/test_fixtures.py",
    "tests/interchain_events/prism/test_wire.py",
    "tests/interchain_events/prism/test_process.py",
    "tests/interchain_events/prism/test_vectors.py",
)
"""The tests whose results could change when modules are compiled (`setup.py`).

They compare bytes with vectors and traces, check properties of bytes, or test compiled modules.
"""
CHECK_COMPILED = """
import sys
sys.path.insert(0, sys.argv[1])
from interchain_events.prism.core import wire
from pubsub_emulator.trie import step

sys.exit(any(not module.__file__.startswith(sys.argv[1]) or module.__file__.endswith(".py")
             for module in (step, wire)))
"""
"""A program that fails if a module of either package is not compiled, or is imported from another
folder than the first argument.
"""
RUST_VECTORS = ("broadcaster", "scale", "signatures", "tries", "worked", "xcm")
"""The folders of tests/vectors that the Rust programs read."""
RUST_PROOFS = "20000"
"""The number of random proofs that are compared with sp-trie and trie-db."""


def tool(name: str, *args: str, folder: Path = ROOT) -> int:
    """Run a tool of `.venv`, by default from the project's folder, and return its exit code.

    The tool handles Ctrl-C itself, because it may have to clean up or to continue. SIGTERM is
    passed on to it. Python writes its bytecode, because each process that a test starts would
    otherwise take a quarter of a second more. Raises `SetupError` if the tool is missing.
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
    # A handler is set instead of SIG_IGN, because the tool would inherit an ignored signal.
    interrupt = signal.signal(signal.SIGINT, lambda _signal, _frame: None)
    running = subprocess.Popen([path, *args], cwd=folder, env=environment)
    end = signal.signal(signal.SIGTERM, lambda _signal, _frame: running.terminate())
    try:
        code = running.wait()
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, end)
    return code if code >= 0 else 128 - code


def test(args: list[str]) -> int:
    """Run pytest on one process more than there are cores (at most 8).

    `-n` among the arguments overrides the number. Tests wait for the servers and programs that they
    start, and another process works meanwhile.
    """
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    workers = min(usable + 1, MOST_TEST_WORKERS) if usable > 1 else 1
    spread = ["-n", str(workers), "--dist", "loadgroup"] if workers > 1 else []
    with contextlib.ExitStack() as files:
        if memory_has_room():
            folder = files.enter_context(tempfile.TemporaryDirectory(prefix="tests-", dir=MEMORY))
            # For root, the database server of the tests runs as another user.
            Path(folder).chmod(0o755)
            os.environ["TMPDIR"] = folder
        return tool("pytest", *spread, *args)


def memory_has_room() -> bool:
    """Return whether the file system in memory can have the programs and files of tests."""
    try:
        memory = os.statvfs(MEMORY)
    except (OSError, AttributeError):
        return False
    executable = not memory.f_flag & os.ST_NOEXEC
    return (
        executable
        and os.access(MEMORY, os.W_OK)
        and memory.f_bavail * memory.f_frsize >= MEMORY_WANTED
    )


def missing_tool(job: str) -> str | None:
    """Return the reason why this machine cannot do a job, or `None` if it can."""
    if job in {"compile", "compiled"} and not any(shutil.which(compiler) for compiler in COMPILERS):
        return "no C compiler here: the compiled build is not made"
    if job == "prometheus" and shutil.which("apt-get") is None:
        return "no apt-get here: Prometheus does not scrape the distributor"
    if job == "interop" and shutil.which("cargo") is None:
        return "no cargo here: the Rust programs do not read our bytes"
    return None


def compile_packages() -> Path:
    """Build both packages with compiled modules and return their folder, `build/compiled`.

    The checkout itself stays pure Python: a compiled module beside its source would still run after
    the source has changed. Raises `SetupError` if a module cannot be compiled.
    """
    target = ROOT / "build" / "compiled"
    # setuptools would reuse the files of an earlier build.
    for build in (ROOT / "build", ROOT / "build" / "interchain_events"):
        for folder in (*build.glob("lib*"), *build.glob("temp*")):
            shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    # With this variable, `setup.py` fails if a module cannot be compiled.
    os.environ["PUBSUB_COMPILE"] = "1"
    say("building the compiled wheels (minutes)")
    options = ("--quiet", "--no-deps", "--target", target)
    built = quiet(PYTHON, *PIP, *options, ".", "./interchain_events")
    if built.returncode != 0:
        sys.stderr.write(built.stderr)
        raise SetupError(f"the compiled build failed: {last_line(built)}")
    if quiet(PYTHON, "-c", CHECK_COMPILED, target).returncode != 0:
        raise SetupError("the compiled build is not compiled")
    return target


def compile_and_say_how() -> int:
    """Build the compiled packages and print how they are used. Return the exit code."""
    target = compile_packages().relative_to(ROOT)
    say(f"compiled; use it with PYTHONPATH={target} before a command:")
    say(f"  PYTHONPATH={target} .venv/bin/pubsub run demo --out out/demo")
    say("after a change of the source, compile again")
    return 0


def compiled() -> int:
    """Build the compiled packages and run their tests. Return the exit code."""
    target = compile_packages()
    # test_descent.py subclasses a class of the kernel, which compiled code does not allow.
    return test(
        [
            "-o",
            f"pythonpath={target} tests",
            "--ignore=tests/pubsub_emulator/trie/test_descent.py",
            *COMPILED_TESTS,
        ]
    )


def interop() -> int:
    """Build the programs of `interop/rust` and run them on our data. Return the exit code.

    The programs read fixtures, vectors and metadata. They also judge proofs and fuzz cases, and
    must agree with our verifier.
    """
    say("building interop/rust (minutes, once)")
    manifest = ROOT / "interop" / "rust" / "Cargo.toml"
    cargo = (shutil.which("cargo") or "cargo", "build", "--release", "--package", "replay")
    built = subprocess.run([*cargo, "--manifest-path", str(manifest)], check=False)
    if built.returncode != 0:
        raise SetupError("the programs of interop/rust cannot be built")
    replay = manifest.parent / "target" / "release" / "replay"
    vectors = [str(ROOT / "tests" / "vectors" / kind) for kind in RUST_VECTORS]
    verifier = shlex.join((str(replay), "--verify-proofs"))
    with tempfile.TemporaryDirectory() as folder:
        fixtures = f"{folder}/fixtures"
        metadata = f"{folder}/metadata"
        judged = ("--cases", "500", "--verifier", verifier, "--out", f"{folder}/differences")
        return (
            tool("pubsub", "fixtures", "--out", fixtures)
            or tool("python", "interop/metadata.py", metadata)
            or subprocess.run([str(replay), *vectors, metadata, fixtures], check=False).returncode
            or tool("python", "interop/tries.py", str(replay), "--cases", RUST_PROOFS)
            or tool("python", "interop/inherent.py", str(replay), "--random", "500")
            or tool("pubsub", "fuzz", *judged)
        )


def docs(args: list[str]) -> int:
    """Build the site, follow its links, and return the exit code. Warnings are errors.

    Links to other sites are followed only with `--external`.
    """
    site = ROOT / "docs" / "_build"
    # Both builders share the pages that were read.
    read_once = ("--doctree-dir", str(site / ".doctrees"))
    sphinx = ("--fail-on-warning", "--keep-going", "--jobs", "auto", *read_once)
    code = tool("sphinx-build", *sphinx, "docs", str(site)) or tool(
        "python", "docs/links.py", str(site)
    )
    if not code and "--external" in args:
        code = tool("sphinx-build", *sphinx, "-b", "linkcheck", "docs", str(site / ".linkcheck"))
    if not code:
        say(f"the site is {site / 'index.html'}")
    return code


def lint() -> int:
    """Run all linters, even if one fails. Return the first exit code that is not 0."""
    codes = [
        tool("ruff", "check"),
        tool("ruff", "format", "--check"),
        tool("mypy"),
        tool("lint-imports"),
        scripts(),
        statements.check(),
        sentences.check(),
        commits.check(),
    ]
    return next((code for code in codes if code), 0)


def scripts(folder: Path = ROOT) -> int:
    """Check JavaScript, TypeScript and CSS, and return the exit code.

    If Biome cannot be fetched, the files are not checked, which is an error only if the variable CI
    is set.
    """
    try:
        biome.fetch()
    except SetupError as error:
        say(f"{error}: JavaScript and CSS are not checked")
        return 1 if os.environ.get("CI") else 0
    code = tool("biome", "check", "--error-on-warnings", folder=folder)
    long = biome.long_lines(folder)
    for place in long:
        say(f"{place}: the line has more than {biome.MAX_COLUMNS} columns")
    return code or (1 if long else 0)


def canisters(args: list[str]) -> int:
    """Build the example canisters, fetch the agents, and test both."""
    return (
        tool("python", "examples/canisters/build.py")
        or tool("python", "tests/canisters/install.py")
        or tool("pytest", "tests/canisters", "--canisters", *args)
    )


def clients(args: list[str]) -> int:
    """Fetch clients written by others and test them against a node.

    `--newest` fetches their newest versions.
    """
    newest = [arg for arg in args if arg == "--newest"]
    others = [arg for arg in args if arg != "--newest"]
    return tool("python", "tests/clients/install.py", *newest) or tool(
        "pytest", "tests/clients", "--clients", *others
    )


def worlds(args: list[str]) -> int:
    """Fetch development chains of other projects and test the distributor on them."""
    return tool("python", "tests/worlds/install.py") or tool(
        "pytest", "tests/worlds", "--worlds", *args
    )


def prometheus(args: list[str]) -> int:
    """Fetch Prometheus from Debian and let it scrape a distributor and evaluate the rules."""
    return tool("python", "tests/prometheus/install.py") or tool(
        "pytest", "tests/prometheus", "--prometheus", *args
    )
