"""Transcripts: command lines with all that they printed, as texts for snapshots."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.plumbing.processes import ROOT, program

from pubsub_emulator.version import VERSION

WIDTH: Final = 100
"""Columns that help is wrapped to."""

_CHANGING: Final = (
    (re.compile(r"(127\.0\.0\.1|localhost):\d{4,5}\b"), r"\1:PORT"),
    (re.compile(rf"\b{re.escape(VERSION)}\b"), "VERSION"),
    (re.compile(r"\b\d[\d,]*(\.\d+)? (ms|s|core seconds)\b"), r"N \2"),
    (re.compile(r"^head: 0x[0-9a-f]{64}$", re.MULTILINE), "head: HEAD"),
)
"""Patterns and what stands for them: ports, the version, times with a unit, and a history's head.

The head is a hash of Parquet files, which differ between versions of pyarrow.
"""


def _is_late(line: str) -> bool:
    """Return whether a line shows the progress of work that takes long on this machine."""
    return line.endswith(" so far")


def normal(text: str, folder: Path) -> str:
    """Replace the parts of a text that change from run to run. `folder` is the test's own."""
    script = Path(sys.executable).with_name("pubsub")  # as hints name it if it is not on PATH
    for path, word in ((folder, "FOLDER"), (script, "pubsub"), (ROOT, "CHECKOUT")):
        text = text.replace(str(path), word)
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text


class Transcript:
    """The commands that were run in a folder, as a terminal would show them.

    Lines on standard error begin with `! `. An exit code stands below its command if it is not 0.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts: list[str] = []

    def run(
        self, line: str, *, code: int = 0, given: str | None = None, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command line of `pubsub` in the folder and record it.

        `given` is its standard input. Fails if the command ends with another code than `code`.
        """
        done = program(
            *shlex.split(line)[1:],
            folder=self.folder,
            given=given,
            COLUMNS=str(WIDTH),
            NO_COLOR="1",
            **variables,
        )
        errors = [f"! {error}" for error in done.stderr.splitlines() if not _is_late(error)]
        ending = [f"(exit code {done.returncode})"] if done.returncode else []
        shown = [f"$ {line}", *done.stdout.rstrip().splitlines(), *errors, *ending]
        self._parts.append("\n".join(shown))
        assert done.returncode == code, self._parts[-1]
        return done

    def refuse(self, line: str, *, code: int = 2, **variables: str) -> None:
        """Run a command line that has to be refused.

        It may print progress before the message. There is no traceback.
        """
        done = self.run(line, code=code, **variables)
        assert re.search(r"^pubsub: ", done.stderr, re.MULTILINE), self._parts[-1]
        assert "Traceback" not in done.stderr, self._parts[-1]

    def note(self, text: str) -> None:
        """Add a text of the test's own, such as a file that a command has written."""
        self._parts.append(text.rstrip("\n"))

    def __str__(self) -> str:
        """Return the whole text, with a word for each part that changes from run to run."""
        return normal("\n\n".join(self._parts), self.folder) + "\n"


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    """Return an empty transcript whose commands run in a folder of the test's own."""
    return Transcript(tmp_path)
