"""A bar and what a command prints share one terminal without writing into each other."""

import os
import pty
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from pubsub_emulator.cli.pages import Doing, Line
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
