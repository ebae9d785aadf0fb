"""The command that an error names installs the extra where this program runs."""

import importlib.metadata
import json
import shlex
import sys
from pathlib import Path

import pytest

from pubsub_emulator.cli.base import extras


class _Installed:
    def __init__(self, told: object) -> None:
        self.told = told

    def read_text(self, _name: str) -> str | None:
        return None if self.told is None else json.dumps(self.told)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The program as it is in site-packages: no project file lies beside it."""
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "site-packages" / "pubsub_emulator" / "cli" / "extras.py"))
    return monkeypatch


def test_in_a_checkout_the_checkout_is_installed() -> None:
    python, *pip, wanted = shlex.split(extras.install_command.__wrapped__("audit"))
    assert (python, pip) == (sys.executable, ["-m", "pip", "install", "--editable"])
    place = Path(wanted.removesuffix("[audit]"))
    assert (place / "pyproject.toml").is_file()


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (None, "pubsub-emulator[plot]"),
        (
            {"url": "file:///opt/my%20wheels/pubsub_emulator-0.3.0-py3-none-any.whl"},
            "/opt/my wheels/pubsub_emulator-0.3.0-py3-none-any.whl[plot]",
        ),
        (
            {"url": "https://example.org/p.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pubsub-emulator[plot] @ git+https://example.org/p.git@abc",
        ),
        ({"url": 7}, "pubsub-emulator[plot]"),
    ],
)
def test_what_was_installed_is_named_by_where_it_came_from(
    elsewhere: pytest.MonkeyPatch, told: object, wanted: str
) -> None:
    elsewhere.setattr(importlib.metadata, "distribution", lambda _name: _Installed(told))
    assert shlex.split(extras.install_command.__wrapped__("plot"))[-1] == wanted
