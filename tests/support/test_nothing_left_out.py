import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPS = """
import pytest

def test_something_is_missing():
    pytest.skip("no compass")

@pytest.mark.xfail(strict=True, reason="known")
def test_known():
    raise AssertionError
"""


@pytest.mark.parametrize(("where", "code", "words"), [("", 0, "1 skipped"), ("true", 1, "left out where CI is set")])
def test_a_skipped_test_fails_where_ci_is_set(where: str, code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text(SKIPS)
    config = ("-c", ROOT / "pyproject.toml", "--rootdir", ROOT, "-p", "no:cacheprovider", "-p", "conftest")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *config, tmp_path / "test_skips.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "CI": where},
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout
    assert "1 xfailed" in done.stdout
