"""Snapshots: texts that somebody has read and approved, in files next to the tests.

`snapshot("refusals", text)` compares a text with `snapshots/refusals.txt` next to the test.
`pytest --snapshots=write` writes the files instead. CONTRIBUTING.md says how they are reviewed.
"""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = "snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes snapshots."""
    parser.getgroup("snapshots").addoption(
        "--snapshots",
        choices=("compare", "write"),
        default="compare",
        help="write: replace the files of snapshots instead of comparing them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to write in CI: a text that nobody has read would pass."""
    if config.getoption("--snapshots") == "write" and os.environ.get("CI"):
        raise pytest.UsageError("--snapshots=write: where CI is set, snapshots are only compared")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The snapshots of one folder of tests."""

    folder: Path
    is_writing: bool

    def __call__(self, name: str, text: str) -> None:
        """Compare a text with a snapshot, or write it. Fails with the lines that differ."""
        __tracebackhide__ = True
        path = self.folder / f"{name}.txt"
        actual = text.rstrip("\n") + "\n"
        if self.is_writing:
            self.folder.mkdir(exist_ok=True)
            path.write_text(actual, encoding="utf-8")
            return
        approved = path.read_text(encoding="utf-8") if path.exists() else ""
        if approved == actual:
            return
        lines = difflib.unified_diff(
            approved.splitlines(), actual.splitlines(), "approved", "actual", lineterm=""
        )
        difference = "\n".join(lines)
        pytest.fail(
            f"the text differs from {path}\n{difference}\n"
            "If the new text is right, `pytest --snapshots=write` and this test write it.",
            pytrace=False,
        )


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    """Return a function that compares a text with the snapshot of a name."""
    return Snapshot(
        folder=request.path.parent / FOLDER,
        is_writing=request.config.getoption("--snapshots") == "write",
    )
