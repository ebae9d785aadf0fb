"""Snapshots fail with the lines that differ, are written on demand only, and are all in use."""

import re
from collections import Counter
from pathlib import Path

import pytest
from support.plumbing.snapshots import FOLDER, Snapshot, pytest_configure

ROOT = Path(__file__).resolve().parents[3]


def test_a_text_that_differs_fails_with_its_lines(tmp_path: Path) -> None:
    Snapshot(tmp_path, is_writing=True)("words", "one\ntwo\n")
    compared = Snapshot(tmp_path, is_writing=False)
    compared("words", "one\ntwo\n")
    with pytest.raises(pytest.fail.Exception, match=r"\n one\n-two\n\+TWO\n"):
        compared("words", "one\nTWO\n")
    with pytest.raises(pytest.fail.Exception, match=r"missing\.txt"):
        compared("missing", "one\n")
    assert [path.name for path in tmp_path.iterdir()] == ["words.txt"]


def test_ci_never_writes_a_snapshot(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "snapshots", "write")
    monkeypatch.setenv("CI", "")
    pytest_configure(pytestconfig)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.UsageError, match="only compared"):
        pytest_configure(pytestconfig)


def test_every_snapshot_belongs_to_one_test_next_to_it() -> None:
    named = Counter(
        path.parent / FOLDER / f"{name}.txt"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r'^ +snapshot\(\s*"([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
    )
    files = [path for path in (ROOT / "tests").rglob(f"{FOLDER}/*") if path.is_file()]
    assert dict.fromkeys(files, 1) == dict(named)
