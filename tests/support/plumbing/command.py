"""Runs a command of `pubsub` in the process of the tests."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
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
