"""A bar and what a command prints share one terminal without writing into each other."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pubsub_emulator.cli.screen import Spoken

SCRIPT = """
from pubsub_emulator.cli.screen.pages import Doing, Line
from pubsub_emulator.cli.screen import bar, show

with bar() as advance:
    for at in range(1, 4):
        advance(at, 3, "stepping")
        advance.clear()
        show(Line(f"relay block {at}: done"))
"""


def test_no_line_of_a_command_is_written_into_the_bar(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert done.wait(30) == 0
    assert b"stepping" in seen
    lines = [line for line in seen.replace(b"\r\n", b"\n").split(b"\n") if b"relay block" in line]
    assert len(lines) == 3
    for line in lines:
        # Before the text stands nothing but what moves the cursor and clears the line of the bar.
        text = line.rsplit(b"\x1b[2K", 1)[-1].replace(b"\x1b[?25h", b"").replace(b"\r", b"")
        assert text.startswith(b"relay block "), line


def test_without_a_terminal_a_line_every_ten_seconds_says_how_far_and_for_how_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Progress with the time left on everything that takes longer."""
    now = [0.0]
    advance = Spoken(lambda: now[0])
    advance(0, 100, "auditing: starting the engine")
    for second in range(1, 61):
        now[0] = second
        advance(
            max(second - 8, 0), 100, "auditing: units of work, 1.0 a second" if second > 8 else "auditing: starting"
        )
    assert capsys.readouterr().err.splitlines() == [
        "auditing: units of work, 1.0 a second: 2 of 100, about 1 min 38 s left",
        "auditing: units of work, 1.0 a second: 12 of 100, about 1 min 28 s left",
        "auditing: units of work, 1.0 a second: 22 of 100, about 1 min 18 s left",
        "auditing: units of work, 1.0 a second: 32 of 100, about 1 min 8 s left",
        "auditing: units of work, 1.0 a second: 42 of 100, about 58 s left",
        "auditing: units of work, 1.0 a second: 52 of 100, about 48 s left",
    ]


def test_a_unit_that_takes_long_is_told_of_without_being_called(capsys: pytest.CaptureFixture[str]) -> None:
    """A Spark that starts, one long segment: nobody advances, and a person still hears of it."""
    now = [0.0]
    advance = Spoken(lambda: now[0], said="drawing the report")
    now[0] = 12
    advance.beat()
    advance(0, 1, "auditing: units of work")
    for second, share in ((15, 0.015), (25, 0.25), (35, 0.25), (45, 1)):
        now[0] = second
        advance(share, 1, "auditing: units of work")
        advance.beat()
    now[0] = 60
    advance.beat()
    assert capsys.readouterr().err.splitlines() == [
        "drawing the report: 12 s so far",
        "auditing: units of work: 0.25 of 1, about 39 s left",
        "auditing: units of work: 0.25 of 1, about 1 min 9 s left",
        "auditing: units of work: 1 of 1, 33 s so far",
    ]
