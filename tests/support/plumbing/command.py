"""Runs a command of `pubsub` in the process of the tests."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.plumbing.processes import python
from support.plumbing.scenarios import scenario

from pubsub_emulator.cli.main import main
from pubsub_emulator.cli.main import pubsub as program
from pubsub_emulator.files.pages import Grid, Line
from pubsub_emulator.session import Session

TINY = scenario("tiny")
"""A scenario of one publisher, and a subscriber whose only collator cheats."""


LINES = tuple(
    Path(__file__).with_name("session.txt").read_text().replace("{zeros}", "00" * 3000).splitlines()
)
"""What may be said in a session over the scenario `node`, each command of it."""


def told(session: Session, *lines: str) -> str:
    """Execute lines in a session and return the text of their output."""
    out: list[str] = []
    for page in (page for line in lines for page in session.execute(line)):
        if isinstance(page, Line):
            out.append(page.text)
        elif isinstance(page, Grid):
            out += [
                page.title,
                " | ".join(page.header),
                *(" | ".join(map(str, row)) for row in page.rows),
            ]
    return "\n".join(out)


def pubsub(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run a command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["pubsub", *map(str, arguments)])
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def invoked(*arguments: object) -> Result:
    """Return the result of a command, run without the handling of its errors."""
    return CliRunner().invoke(program, [str(each) for each in arguments])


def help_of(*names: str) -> str:
    """Return the help of some commands and of all commands below them, as one text.

    It is printed by a new process. Click remembers the options of a command's help, which differ if
    a test has run the command without the program above it.
    """
    code = f"from support.plumbing.command import _help_of\nprint(_help_of({names!r}))"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _help_of(names: Iterable[str]) -> str:
    runner = CliRunner(env={"COLUMNS": "100"})
    texts = []
    for words in _with_commands_below([name.split() for name in names]):
        done = runner.invoke(program, [*words, "--help"], prog_name="pubsub")
        assert done.exit_code == 0, words
        texts.append(f"$ {' '.join(('pubsub', *words, '--help'))}\n{done.stdout}")
    return "\n".join(texts)


def _with_commands_below(names: Iterable[list[str]]) -> Iterable[list[str]]:
    """Yield the names of commands, each before the names of the commands below it."""
    context = click.Context(program)
    for words in names:
        yield words
        if len(words) != 1:  # the program itself, or a command of a group
            continue
        command = program.get_command(context, words[0])
        if isinstance(command, click.Group):
            yield from ([*words, name] for name in command.list_commands(context))
