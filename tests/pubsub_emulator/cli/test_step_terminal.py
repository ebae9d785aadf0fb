"""`pubsub step` as a real process: at a terminal, and as a script on standard input."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plumbing.command import TINY
from support.plumbing.processes import environment, program

if sys.platform == "win32":
    pytest.skip("terminals are another thing there", allow_module_level=True)

import pty

SCENARIO = TINY.partition("[[subscribers.collators]]")[0].replace(
    "relay_blocks = 8", "relay_blocks = 30"
)
AT_A_TERMINAL = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); sys.argv = ['pubsub',"
    " *sys.argv[1:]];from pubsub_emulator.cli.main import main; main()"
)


def _variables(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm", "COLUMNS": "80"}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


class Terminal:
    """A process on a pseudo-terminal, and all that it wrote so far without control sequences."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        self.master, slave = pty.openpty()
        command = [sys.executable, "-c", AT_A_TERMINAL, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=environment(**_variables(folder), **variables),
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    def wait_for(self, pattern: str) -> str:
        """Read until something matches; returns it, and forgets what came before."""
        deadline = time.monotonic() + 60
        while True:
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", "", self.seen)
            if found := re.search(pattern, plain):
                self.seen = plain[found.end() :]
                return found.group()
            if time.monotonic() > deadline:
                raise AssertionError(f"{pattern!r} never came; at the end: {plain[-500:]!r}")
            if select.select([self.master], [], [], 0.5)[0]:
                self.seen += os.read(self.master, 65536).decode(errors="replace")

    def close(self) -> None:
        """End it whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path: Path, scenario: Path) -> Iterator[Terminal]:
    started = Terminal(tmp_path, "step", scenario.name)
    yield started
    started.close()


def test_a_conversation_survives_errors_and_ctrl_c_and_ends_with_ctrl_d(terminal: Terminal) -> None:
    terminal.wait_for("main 0>")
    terminal.type("step 2\r")
    terminal.wait_for("relay block 2: ")
    terminal.wait_for("main 2>")
    terminal.type("fly\r")
    terminal.wait_for("there is no command 'fly'")
    terminal.wait_for("main 2>")
    terminal.type("step 100000\r")
    terminal.wait_for("relay block 5: ")
    terminal.type("\x03")
    stands = terminal.wait_for(r"interrupted; the network is at relay block \d+").split()[-1]
    terminal.wait_for(f"main {stands}>")
    terminal.type("half a line\x03")
    terminal.wait_for(f"main {stands}>")
    terminal.type("step\r")
    terminal.wait_for(f"main {int(stands) + 1}>")
    terminal.type("\x04")
    assert terminal.process.wait(timeout=60) == 0


def test_tab_completes_and_lines_of_earlier_sessions_come_back(
    terminal: Terminal, tmp_path: Path, scenario: Path
) -> None:
    terminal.wait_for("main 0>")
    terminal.type("cursor 30")
    terminal.wait_for("cursor 30")
    terminal.type("\t")
    terminal.wait_for("00")
    terminal.type("\r")
    terminal.wait_for("3000: the next block reads on at the first item")
    terminal.wait_for("main 0>")
    terminal.type("quit\r")
    assert terminal.process.wait(timeout=60) == 0
    again = Terminal(tmp_path, "step", scenario.name)
    try:
        again.wait_for("main 0>")
        again.type("\x1b[A\x1b[A\r")  # the line before the last one
        again.wait_for("3000: the next block reads on at the first item")
    finally:
        again.close()


@pytest.mark.parametrize(
    ("encoding", "answer"),
    [
        ("ascii", "the line has bytes outside of the input's encoding: fly"),
        ("latin-1", "there is no command 'fly'"),
    ],
)
def test_a_terminal_without_an_ellipsis_gets_three_dots(
    tmp_path: Path, scenario: Path, encoding: str, answer: str
) -> None:
    terminal = Terminal(tmp_path, "step", scenario.name, PYTHONIOENCODING=encoding)
    try:
        terminal.wait_for("main 0>")
        terminal.type("help\r")
        terminal.wait_for(r"\[KEY\.\.\.\]")
        terminal.type("fly café\r")
        terminal.wait_for(answer)
        terminal.type("step 2\r")
        terminal.wait_for("main 2>")
        terminal.type("\x04")
        assert terminal.process.wait(timeout=60) == 0
    finally:
        terminal.close()


def _script(folder: Path, lines: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return program("step", *arguments, folder=folder, given=lines, **_variables(folder))


def test_a_script_on_standard_input_is_followed_without_prompts_or_colours(
    tmp_path: Path, scenario: Path
) -> None:
    done = _script(tmp_path, "# comes first\nstep 3\n\nstatus\nwrite here.json\n", str(scenario))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("relay block 1: ")
    assert "tiny: relay block 3 of 30 in the scenario, branch main" in done.stdout
    assert "\x1b" not in done.stdout
    again = _script(tmp_path, "step\nquit\nfly\n", "here.json")
    assert again.returncode == 0
    assert again.stdout.startswith("relay block 4: ")


def test_an_interrupted_script_ends_with_130_after_a_whole_block(
    tmp_path: Path, scenario: Path
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "pubsub_emulator.cli.main", "step", str(scenario)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**_variables(tmp_path)),
    )
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write("step 100000\nstatus\n")
    running.stdin.flush()
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    out, error = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted; the network is at relay block" in error
    assert "tiny: relay block" not in out
