"""Runs a command of `pubsub` in the process of the tests."""

import sys

import pytest
from click.testing import CliRunner, Result

from pubsub_emulator.cli.main import main
from pubsub_emulator.cli.main import pubsub as program
from pubsub_emulator.cli.screen.pages import Grid, Line
from pubsub_emulator.cli.session import Session

TINY = """
name = "tiny"
seed = "tiny"
relay_blocks = 8
segment_length = 4

[[publishers]]
paras = [1000]
keys = 4
update_rate = 0.5

[[subscribers]]
para = 3000
subscribe = [{ publishers = "all" }]

[[subscribers.collators]]
strategies = ["omit-node"]
"""
"""A scenario of one publisher, and a subscriber whose only collator cheats."""


def told(session: Session, *lines: str) -> str:
    """All that the lines of a session showed, as text."""
    out: list[str] = []
    for page in (page for line in lines for page in session.execute(line)):
        if isinstance(page, Line):
            out.append(page.text)
        elif isinstance(page, Grid):
            out += [page.title, " | ".join(page.header), *(" | ".join(map(str, row)) for row in page.rows)]
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
    """What came of a command without the handling of its errors."""
    return CliRunner().invoke(program, [str(each) for each in arguments])
