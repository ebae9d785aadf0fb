"""Hints name the program as it can be called from where the user is."""

import shlex
import sys
from pathlib import Path

import pytest

from pubsub_emulator.cli.base.program import callable_here, program


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A virtual environment whose script is not on PATH."""
    script = tmp_path / "a b" / ".venv" / "bin" / "pubsub"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    return script


def test_a_program_that_is_not_on_path_is_named_from_the_current_folder(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(installed.parents[2])
    assert program() == ".venv/bin/pubsub"
    further = "pubsub serve --prism, then pubsub prism --help"
    assert callable_here(further) == ".venv/bin/pubsub serve --prism, then .venv/bin/pubsub prism --help"
    assert callable_here("open out/pubsub audit") == "open out/pubsub audit"
    for elsewhere in (installed.parent, tmp_path / "other"):
        elsewhere.mkdir(exist_ok=True)
        monkeypatch.chdir(elsewhere)
        assert shlex.split(program()) == [str(installed)]


def test_a_program_on_path_goes_by_its_name(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "pubsub"
    assert callable_here("pubsub step oracle") == "pubsub step oracle"
