import re
import subprocess
from pathlib import Path

import pytest
from support.plumbing.processes import python

ROOT = Path(__file__).resolve().parents[3]
SKIPS = """
import pytest

def test_something_is_missing():
    pytest.skip("no compass")

@pytest.mark.xfail(strict=True, reason="known")
def test_known():
    raise AssertionError
"""
SKIPS_THE_FILE = """
import pytest
pytest.importorskip("no_such_library")

def test_never_runs():
    raise AssertionError
"""
THREE = """
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("case", "abc")
def test_something(case):
    pass
"""
ONE_ID = """
def pytest_collection_modifyitems(items):
    items[1]._id = items[0]._id
"""
"""As a plugin does that gives several tests one id."""


def _run(folder: Path, *arguments: object, where: str = "") -> subprocess.CompletedProcess[str]:
    config = ("-c", ROOT / "pyproject.toml", "--rootdir", ROOT)
    plugins = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "conftest")
    return python(
        "-m",
        "pytest",
        *config,
        *plugins,
        *arguments,
        folder / "test_some.py",
        folder=folder,
        CI=where,
    )


@pytest.mark.parametrize(
    ("where", "code", "words"),
    [
        ("", 0, "1 skipped"),
        ("true", 1, "left out where CI is set"),
    ],
)
def test_a_skipped_test_fails_where_ci_is_set(
    where: str, code: int, words: str, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(SKIPS)
    done = _run(tmp_path, where=where)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout
    assert "1 xfailed" in done.stdout


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("where", "leaves_out"),
    [
        ("", True),
        ("true", False),
    ],
)
def test_a_file_that_skips_itself_fails_where_ci_is_set(
    where: str, leaves_out: bool, workers: int, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(SKIPS_THE_FILE)
    (tmp_path / "test_other.py").write_text("def test_passes(): pass")
    done = _run(tmp_path, tmp_path / "test_other.py", "-n", workers, where=where)
    assert (done.returncode == 0) == leaves_out, done.stdout + done.stderr
    assert ("left out where CI is set: " in done.stdout) != leaves_out
    assert "no_such_library" in done.stdout


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_run_each_group_together_and_duplicate_test_ids_end_the_run(
    workers: int, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(THREE)
    done = _run(tmp_path, "-v", "-n", workers, "--dist", "loadgroup")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert len(set(re.findall(r"^\[gw\d\]", done.stdout, re.MULTILINE))) == bool(workers)
    (tmp_path / "conftest.py").write_text(ONE_ID)
    done = _run(tmp_path, "-n", workers, "--dist", "loadgroup")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "several tests have the same id: " in done.stderr
    assert "(2 times)" in done.stderr
