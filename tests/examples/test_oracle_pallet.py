"""The example of a pallet that is tested with the plugin: its own tests pass, and break with the
pallet.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "oracle_pallet"


def run(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """The example's tests as its reader runs them, without the report on the outer run's
    options.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "HYPOTHESIS_"))
    }
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--strict-markers",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",  # importing it takes a second
        *args,
    )
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "oracle_pallet"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return folder


def test_the_example_passes_its_own_tests(copied: Path) -> None:
    done = run(copied)
    assert done.returncode == 0, done.stdout
    assert "12 passed" in done.stdout


def test_a_pallet_that_trusts_stale_quotes_is_caught_with_its_blocks(copied: Path) -> None:
    pallet = copied / "oracle.py"
    sound = pallet.read_text(encoding="utf-8")
    pallet.write_text(sound.replace("if quote.until > now", "if quote.until"), encoding="utf-8")
    assert pallet.read_text(encoding="utf-8") != sound
    done = run(copied, "-k", "stands_by_it")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "pubsub busy market: last blocks" in done.stdout
    assert "pubsub busy market: state diff" in done.stdout
