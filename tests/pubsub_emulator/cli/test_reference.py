"""The pages of commands and settings say what the program says, and so do shells: they ask it what
may come next.
"""

import re
import shlex
import shutil
import subprocess
from importlib import import_module

import click
import pytest
from click.testing import CliRunner
from support.plumbing.pages import ROOT, filled, made
from support.plumbing.processes import python

from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.main import pubsub, sentences_of_all
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.scenario.file import BUNDLE
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.files.settings.fields import described
from pubsub_emulator.session.table import COMMANDS as SESSION

DOCS = ROOT / "docs"
reference = import_module("command_reference")  # beside the pages
PAGES = [
    path.name
    for path in sorted(DOCS.glob("*.md"))
    if "](made.py)" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", PAGES)
def test_every_part_of_a_page_is_written_by_code(name: str) -> None:
    assert "](made.py)" not in filled(name)


def test_every_part_is_on_a_page() -> None:
    named = re.findall(
        r"(?:\[made: |^<!-- made: )([a-z-]+)(?:\]\(made.py\)| -->$)",
        "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")),
        re.MULTILINE,
    )
    assert sorted(named) == sorted(made.parts())


LEAVES = {name: (command, context) for name, command, context in reference.leaves()}


def test_every_command_is_there_with_the_first_sentence_of_its_help() -> None:
    assert list(dict.fromkeys(name.split()[0] for name in LEAVES)) == list(sentences_of_all())
    assert Group.sentences(pubsub, click.Context(pubsub)) == list(sentences_of_all().items())


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_help_for_all_options_and_a_valid_example(name: str) -> None:
    command, context = LEAVES[name]
    assert command.help
    for parameter in command.params:
        assert isinstance(parameter, click.Argument) or parameter.get_help_record(context)
        assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), (
            parameter.name
        )
    section = _section("cli.md", name)
    lines = re.findall(r"^- `(.*?)`", section, re.MULTILINE)
    own = [
        found.group(1)
        for line in lines
        if (found := re.search(rf"pubsub {re.escape(name)}(?: ([^|>)]*))?", line))
    ]
    assert own
    for arguments in own:
        command.make_parser(context).parse_args(
            args=shlex.split((arguments or "").replace('"', ""))
        )


def _section(page: str, name: str) -> str:
    return filled(page).split(f"### {name}\n", 1)[1].split("\n### ", 1)[0]


def test_every_command_of_a_session_stands_there() -> None:
    page = filled("cli.md")
    for command in SESSION:
        assert f"| `{command.usage()}` | {command.summary} |" in page


def test_every_scenario_field_states_its_type_and_its_meaning() -> None:
    found = list(described(Scenario))
    assert len(found) > 50
    for field in found:
        assert field.meaning, f"{field.table}.{field.name}"
        assert field.holds
    shares = [field for field in found if field.name.endswith("rate")]
    assert all(field.holds == "a share from 0 to 1" for field in shares)
    bounds = {(field.table, field.name): (field.holds, field.default) for field in found}
    assert bounds["", "segment_length"] == ("a whole number from 1 to 4,294,967,295", "100")
    assert bounds["subscribers.collators", "rate"] == ("a share from 0 to 1", "1")
    assert bounds["subscribers", "cache"] == ('"nodes", "none" or "slots"', '"slots"')
    assert bounds["subscribers", "max_pov_size"][1] == "10_485_760"  # as TOML takes it


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
    assert _offered("") == list(sentences_of_all())
    assert _offered("step", "") == [*BUNDLE.names(), ""]
    assert _offered("fuzz", "--strategy", "omit-") == [
        name for name in STRATEGIES if name.startswith("omit-")
    ]
    assert _offered("audit", "--engine", "") == ["auto", "pool", "spark", "python"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_this_program_and_is_valid_shell(shell: str) -> None:
    result = CliRunner().invoke(pubsub, ["completion", shell])
    assert result.exit_code == 0
    assert f"_PUBSUB_COMPLETE={shell}_complete" in result.stdout
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=result.stdout, text=True, check=True)
