"""The sdist, the wheel made of it, and an environment with the wheel, for all tests of
packaging.
"""

import os
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from support.packaging import run

ROOT = Path(__file__).resolve().parents[2]
MADE = (".git", ".venv", ".*cache", "build", "dist", "out", "mutants", "target", "*.egg-info")
"""Large folders of a checkout that were made from its sources.

MANIFEST.in leaves out the small ones.
"""


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    source = folder / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(*MADE))
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
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
    run(
        *pip,
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        ".",
        sdist.name,
        cwd=sdist.parent,
    )
    (made,) = sdist.parent.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel, and the packages that this one has, but
    not the project.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--disable-pip-version-check",
    )
    run(*pip, "--no-index", "--no-deps", wheel, cwd=home)
    places = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home)
    Path(places.strip(), "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8"
    )
    return python.parent
