"""Transcripts: command lines with all that they printed, as texts for snapshots."""

import re
import shlex
import subprocess
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
)
"""Patterns of ports, of the version, and of times with a unit, and what stands for them."""


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
        errors = [f"! {error}".rstrip() for error in done.stderr.splitlines()]
        ending = [f"(exit code {done.returncode})"] if done.returncode else []
        shown = [f"$ {line}", *done.stdout.rstrip().splitlines(), *errors, *ending]
        self._parts.append("\n".join(shown))
        assert done.returncode == code, self._parts[-1]
        return done

    def refuse(self, line: str, *, code: int = 2, **variables: str) -> None:
        """Run a command line that has to be refused, in one line and without a traceback."""
        done = self.run(line, code=code, **variables)
        assert done.stdout == "", line
        assert re.fullmatch(r"pubsub: [^\n]+\n", done.stderr), done.stderr

    def note(self, text: str) -> None:
        """Add a text of the test's own, such as a file that a command has written."""
        self._parts.append(text.rstrip("\n"))

    def __str__(self) -> str:
        """Return the whole text, with a word for each part that changes from run to run."""
        text = "\n\n".join(self._parts)
        for folder, word in ((self.folder, "FOLDER"), (ROOT, "CHECKOUT")):
            text = text.replace(str(folder), word)
        for pattern, word in _CHANGING:
            text = pattern.sub(word, text)
        return text + "\n"


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    """Return an empty transcript whose commands run in a folder of the test's own."""
    return Transcript(tmp_path)
