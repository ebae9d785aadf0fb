"""The repository as an archive that has no symbolic links: its sources run, and their tests pass."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the package, its tests and examples; a link becomes a text file that names its target."""
    folder = tmp_path_factory.mktemp("archive")
    links = [path for path in ROOT.iterdir() if path.is_symlink()]
    with zipfile.ZipFile(folder / "sources.zip", "w") as archive:
        for link in links:
            archive.writestr(link.name, str(link.readlink()))
        for room in ("pubsub_emulator", "tests/trie", "tests/support", "tests/vectors/tries", "examples"):
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


def _run(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_network_runs(unpacked: Path) -> None:
    place = "import pubsub_emulator; print(pubsub_emulator.__file__)"
    assert Path(_run(unpacked, "-c", place).strip()).is_relative_to(unpacked)
    assert "ValidFor" in _run(unpacked, "-c", (unpacked / "examples" / "publish_subscribe.py").read_text("utf-8"))


def test_tests_of_a_room_pass(unpacked: Path) -> None:
    assert " passed" in _run(unpacked, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/trie")
