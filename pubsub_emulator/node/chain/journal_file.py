"""The file of a journal, while a node writes it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.node.chain import journal
from pubsub_emulator.node.chain.block import Moment


class JournalFile:
    """A journal that is written line by line.

    The actions before a step, and the step itself, are on the disk before the step is visible.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.kept = False
        """Whether the file stays if an error ends the node: somebody may have seen its blocks."""

    def action(self, action: Action) -> None:
        """Write an action of the next step."""
        self._file.write(journal.action_line(action) + "\n")

    def step(self, moment: Moment) -> None:
        """Write a completed step."""
        self._file.write(journal.step_line(moment) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def new_journal(path: Path, head: journal.JournalHead) -> Iterator[JournalFile]:
    """Open a new journal for the duration of a context.

    The file is removed if an error ends the context before `kept` is set. Raises `OSError`.
    """
    with path.open("x", encoding="utf-8") as file:
        writer = JournalFile(file)
        try:
            file.write(head.line() + "\n")
            yield writer
        except BaseException:
            if not writer.kept:
                path.unlink()
            raise
