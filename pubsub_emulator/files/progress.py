"""The progress of long work. The caller says how its stages are shown, if they are."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class ProgressCallback(Protocol):
    """Receives the progress of a stage."""

    def __call__(self, done: float, total: int | None = None, what: str | None = None) -> None:
        """Report that `done` of `total` units are done, and that `what` is in progress.

        A unit in progress may count in part.
        """


class Stage(Protocol):
    """Opens a stage of long work. `cli.screen.stage` shows its progress."""

    def __call__(
        self, said: str, total: int | None = None
    ) -> AbstractContextManager[ProgressCallback]:
        """Return a context in which the stage `said`, of `total` units, is in progress."""


@contextmanager
def unwatched(said: str, total: int | None = None) -> Iterator[ProgressCallback]:
    """Open a stage whose progress nobody sees."""
    del said, total

    def advance(done: float, total: int | None = None, what: str | None = None) -> None:
        del done, total, what

    yield advance
