"""Ctrl-C that does not end a command at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Notes Ctrl-C while a command runs, so that it can stop between two blocks."""

    def __init__(self) -> None:
        self.noted = False
        """Whether Ctrl-C was pressed since `taken` began."""

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self.noted = True

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Let Ctrl-C set `noted` inside the `with` block, and not raise `KeyboardInterrupt`."""
        self.noted = False
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
