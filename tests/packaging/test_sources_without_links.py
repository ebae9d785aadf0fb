"""The repository as an archive that has no symbolic links: its sources run, and their tests
pass.
"""

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

CORE = ("tests/pubsub_emulator/trie", "tests/pubsub_emulator/xcm", "tests/pubsub_emulator/collator")
"""Tests of rooms that need the core, pytest and hypothesis alone."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the package, its tests and examples; a link becomes a text file that names its
    target.
    """
    folder = tmp_path_factory.mktemp("archive")
    links = [path for path in ROOT.iterdir() if path.is_symlink()]
    with zipfile.ZipFile(folder / "sources.zip", "w") as archive:
        for link in links:
            archive.writestr(link.name, str(link.readlink()))
        packages = ("pubsub_emulator", "interchain_events")
        for room in (*packages, *CORE, "tests/support", "tests/vectors", "examples"):
            for path in (ROOT / room).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
        for name in ("pyproject.toml", "tests/conftest.py"):
            archive.write(ROOT / name, name)
    with zipfile.ZipFile(folder / "sources.zip") as archive:
        archive.extractall(folder / "sources")
    assert {link.name for link in links} == {"collator", "runtime", "spark_audit", "trie", "xcm"}
    assert all((folder / "sources" / link.name).is_file() for link in links)
    return folder / "sources"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has nothing but what the core, pytest and hypothesis ask
    for.
    """
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    core = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    waiting, held = [*core, "pytest", "hypothesis"], set[str]()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name in held or not (
            wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        ):
            continue
        held.add(wanted.name)
        found = metadata.distribution(wanted.name)
        waiting += found.requires or ()
        for part in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (packages / part).symlink_to(Path(str(found.locate_file(part))))
    assert not {"playwright", "pyspark", "aiohttp", "pytest-xdist"} & held
    return home / "bin"


def _run(folder: Path, *arguments: str | Path) -> str:
    without = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    done = subprocess.run(
        arguments, cwd=folder, env=without, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_network_runs(unpacked: Path) -> None:
    place = "import pubsub_emulator; print(pubsub_emulator.__file__)"
    assert Path(_run(unpacked, sys.executable, "-c", place).strip()).is_relative_to(unpacked)
    example = (unpacked / "examples" / "publish_subscribe.py").read_text("utf-8")
    assert "ValidFor" in _run(unpacked, sys.executable, "-c", example)


def test_a_rooms_tests_pass_with_only_the_core_and_pytest(unpacked: Path, bare: Path) -> None:
    files = [
        f"tests/pubsub_emulator/trie/test_{name}.py" for name in ("step", "descent", "trie_vectors")
    ]
    assert " passed" in _run(
        unpacked, bare / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *files
    )


def test_pytest_alone_finds_the_tests_that_python_finds(unpacked: Path, bare: Path) -> None:
    def found(*program: str | Path) -> list[str]:
        return _run(
            unpacked, *program, "--collect-only", "-qq", "-p", "no:cacheprovider", *CORE
        ).splitlines()

    (script := bare / "pytest").write_text(
        f"#!{bare / 'python'}\nimport pytest\nraise SystemExit(pytest.main())\n"
    )
    script.chmod(0o755)
    by_script = found(script)
    assert len(by_script) > 10
    assert by_script == found(bare / "python", "-m", "pytest")
