"""Hints name the program as it can be called from where the user is, and what installs an extra
where it runs.
"""

import importlib.metadata
import json
import shlex
import sys
from pathlib import Path

import pytest

from pubsub_emulator import extension
from pubsub_emulator.extension import Extension
from pubsub_emulator.files import extras
from pubsub_emulator.files.program import callable_here, program


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A virtual environment whose script is not on PATH."""
    script = tmp_path / "a b" / ".venv" / "bin" / "pubsub"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    return script


def test_a_program_outside_path_is_named_from_the_current_folder(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(installed.parents[2])
    assert program() == ".venv/bin/pubsub"
    further = "pubsub serve --prism, then pubsub prism --help"
    assert (
        callable_here(further)
        == ".venv/bin/pubsub serve --prism, then .venv/bin/pubsub prism --help"
    )
    assert callable_here("open out/pubsub audit") == "open out/pubsub audit"
    for elsewhere in (installed.parent, tmp_path / "other"):
        elsewhere.mkdir(exist_ok=True)
        monkeypatch.chdir(elsewhere)
        assert shlex.split(program()) == [str(installed)]


def test_a_program_on_path_goes_by_its_name(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "pubsub"
    assert callable_here("pubsub step oracle") == "pubsub step oracle"


class _Installed:
    def __init__(self, told: object) -> None:
        self.told = told

    def read_text(self, _name: str) -> str | None:
        return None if self.told is None else json.dumps(self.told)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The program as it is in site-packages: no project file lies beside it."""
    module = tmp_path / "site-packages" / "pubsub_emulator" / "emulator" / "extras.py"
    monkeypatch.setattr(extras, "__file__", str(module))
    return monkeypatch


def test_in_a_checkout_the_checkout_is_installed() -> None:
    python, *pip, wanted = shlex.split(extras.install_command.__wrapped__("audit"))
    assert (python, pip) == (sys.executable, ["-m", "pip", "install", "--editable"])
    place = Path(wanted.removesuffix("[audit]"))
    assert (place / "pyproject.toml").is_file()


def test_an_extra_of_each_distribution_is_installed_from_its_own_folder() -> None:
    words = shlex.split(extras.install_command.__wrapped__("audit", "events", "prism"))
    root, events = (Path(word.rpartition("[")[0]) for word in words if "[" in word)
    assert words[-4:] == ["--editable", f"{root}[audit]", "--editable", f"{events}[events,prism]"]
    assert events == root / "interchain_events"
    assert (events / "pyproject.toml").is_file()


def test_a_distribution_of_somebody_else_is_not_looked_for_in_the_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = Extension(distribution="their-pallets", package="theirs", extra_names=("more",))
    monkeypatch.setattr(extension, "extensions", lambda: (theirs,))
    words = shlex.split(extras.install_command.__wrapped__("more"))
    assert words[1:] == ["-m", "pip", "install", "their-pallets[more]"]


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
