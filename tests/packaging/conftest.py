"""The sdists, the wheels made of them, and an environment with both wheels, for all tests of
packaging.
"""

import os
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from support.plumbing.packaging import run

ROOT = Path(__file__).resolve().parents[2]
MADE = (".git", ".venv", ".*cache", "build", "dist", "out", "mutants", "target", "*.egg-info")
"""Large folders of a checkout that were made from its sources.

MANIFEST.in leaves out the small ones.
"""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout."""
    copy = tmp_path_factory.mktemp("source") / "source"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*MADE))
    return copy


@pytest.fixture(scope="session")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of pubsub-emulator, alone in its folder."""
    return _make_sdist(source, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def event_sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of interchain-events, alone in its folder."""
    return _make_sdist(source / "interchain_events", tmp_path_factory.mktemp("event-sdist"))


def _make_sdist(source: Path, folder: Path) -> Path:
    run(
        sys.executable,
        "-c",
        f"from setuptools import build_meta as b; b.build_sdist({str(folder)!r})",
        cwd=source,
    )
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="session")
def wheel(sdist: Path) -> Path:
    """The wheel of pubsub-emulator."""
    return _make_wheel(sdist)


@pytest.fixture(scope="session")
def event_wheel(event_sdist: Path) -> Path:
    """The wheel of interchain-events, whose source distribution has nothing of the other one."""
    return _make_wheel(event_sdist)


def _make_wheel(sdist: Path) -> Path:
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", ".")
    run(*PIP, "wheel", *options, sdist.name, cwd=sdist.parent)
    (made,) = sdist.parent.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, event_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with both wheels, and the packages that this one has, but
    not the project.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    options = ("--python", python, "install", "--quiet", "--no-index", "--no-deps")
    run(*PIP, *options, wheel, event_wheel, cwd=home)
    (_packages_of(python) / "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8"
    )
    return python.parent


@pytest.fixture(scope="session")
def site_packages(installed: Path) -> Path:
    """The folder that both wheels are installed in."""
    return _packages_of(installed / "python")


def _packages_of(python: Path) -> Path:
    """Return the folder of an interpreter's packages."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(run(python, "-c", code, cwd=python.parent).strip())
