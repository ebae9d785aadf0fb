"""Shells ask the program itself what may come next."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.processes import python

from pubsub_emulator.cli.main import COMMANDS, pubsub
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.scenario.file import BUNDLE

ROOT = Path(__file__).resolve().parents[2]


def _offered(*words: str) -> list[str]:
    """What zsh is told about the last word: kind, value and help, each on a line."""
    asked = {
        "_PUBSUB_COMPLETE": "zsh_complete",
        "COMP_WORDS": " ".join(("pubsub", *words)),
        "COMP_CWORD": str(len(words)),
    }
    script = "import sys; sys.argv = ['pubsub']; from pubsub_emulator.cli.main import main; main()"
    done = python("-c", script, **asked)
    assert done.stderr == ""
    return done.stdout.splitlines()[1::3]


def test_commands_scenarios_strategies_and_choices_are_offered() -> None:
    assert _offered("") == list(COMMANDS)
    assert _offered("step", "") == [*BUNDLE.names(), ""]
    assert _offered("fuzz", "--strategy", "omit-") == [name for name in STRATEGIES if name.startswith("omit-")]
    assert _offered("audit", "--engine", "") == ["auto", "pool", "spark", "python"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_this_program_and_is_one_that_the_shell_can_read(shell: str) -> None:
    result = CliRunner().invoke(pubsub, ["completion", shell])
    assert result.exit_code == 0
    assert f"_PUBSUB_COMPLETE={shell}_complete" in result.stdout
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=result.stdout, text=True, check=True)


def test_another_shell_is_wrong_usage() -> None:
    assert CliRunner().invoke(pubsub, ["completion", "tcsh"]).exit_code == 2
