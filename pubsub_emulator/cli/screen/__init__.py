"""Output for people: progress on a terminal, and tables of figures."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from pubsub_emulator.cli.streams import DOCUMENT, shown_on
from pubsub_emulator.files.pages import Doing, Grid, Line, Shown
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.files.shown import safe, whole

if TYPE_CHECKING:
    from rich.progress import Progress

    from pubsub_emulator.cli.screen.tables import Terminal


_aside: ContextVar[bool] = ContextVar("prose goes to standard error", default=False)


@contextmanager
def prose_aside(*, wanted: bool) -> Iterator[None]:
    """Send prose, tables and documents to standard error within this context.

    Standard output then holds a document.
    """
    token = _aside.set(wanted)
    try:
        yield
    finally:
        _aside.reset(token)


def say(*lines: str, aside: bool = False) -> None:
    """Print lines, by default one empty line.

    With `aside`, or inside `prose_aside`, they go to standard error.
    """
    for line in lines or ("",):
        click.echo(safe(line), err=aside or _aside.get())


def say_document(text: str) -> None:
    """Print a document on standard output, with lines of any length.

    In every encoding, the output is the same JSON. Inside `prose_aside`, another document will
    follow on standard output, so this one goes to standard error.
    """
    aside = _aside.get()
    stream = sys.stderr if aside else sys.stdout
    for line in text.split("\n"):
        click.echo(shown_on(stream, whole(line), DOCUMENT), err=aside)


class _Lines(logging.Formatter):
    """Records whose lines are shown `safe`."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(safe, super().format(record).split("\n")))


def log_lines() -> None:
    """Write warnings to standard error, as prose."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=(handler,))


SPEAK_EVERY: Final = 10.0
"""Seconds between progress lines without a terminal."""


class Spoken:
    """Prints a progress line on standard error every ten seconds.

    The line has the remaining time if it can be estimated. Between `start` and `stop` it is also
    printed if no report comes.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        title: str = "so far",
        total: int | None = None,
    ) -> None:
        """Set what a line shows if a report lacks its text (`title`) or its `total`."""
        self._clock = clock
        self._title = title
        self._total = total
        self._printed_at = clock()
        """The time of the last line."""
        self._phase: str | None = None
        """The text of the last report up to its first comma. Each phase has its own estimate."""
        self._phase_began = self._printed_at
        self._phase_first = 0.0
        """The number of finished units when the phase began."""
        self._last: tuple[float, int | None, str | None] = (0, total, None)
        """The last report."""
        self._lock = Lock()
        self._ended = Event()
        self._thread = Thread(target=self._repeat, daemon=True)

    def __call__(self, done: float, total: int | None = None, what: str | None = None) -> None:
        """Report that `done` of `total` units are done, and that `what` is under way."""
        with self._lock:
            self._last = done, total, what
            self._speak()

    def start(self) -> None:
        """Begin to print lines from another thread, even if no report comes."""
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """End what `start` began."""
        self._ended.set()

    def _repeat(self) -> None:
        while not self._ended.wait(SPEAK_EVERY / 4):
            self.beat()

    def beat(self) -> None:
        """Print the last report again if a line is due and the work is not finished."""
        with self._lock:
            done, total, _ = self._last
            if not total or done < total:
                self._speak()

    def _speak(self) -> None:
        """Print the last report if ten seconds have passed since the last line."""
        now = self._clock()
        done, total, what = self._last
        phase = None if what is None else what.partition(",")[0]
        if phase != self._phase or done < self._phase_first:
            self._phase = phase
            self._phase_began = now
            self._phase_first = done
        if now - self._printed_at < SPEAK_EVERY:
            return
        self._printed_at = now
        total = total or self._total
        amount = ""
        if total:
            amount = f"{_figure(done)} of {total:,}, "
        elif done:
            amount = f"{_figure(done)}, "
        say(f"{what or self._title}: {amount}{self._time(now, done, total)}", aside=True)

    def _time(self, now: float, done: float, total: int | None) -> str:
        """Return the remaining time of the phase, or the time so far if it cannot be estimated."""
        progress = done - self._phase_first
        spent = now - self._phase_began
        # The first hundredth of the work is too little for an estimate.
        if not total or progress * 100 < total or done >= total or progress <= 0:
            return f"{_span(spent)} so far"
        return f"about {_span(spent * (total - done) / progress)} left"


def _figure(done: float) -> str:
    """Return a number of units as text, with one decimal, or with two below one unit."""
    if done == int(done):
        return f"{int(done):,}"
    return f"{done:,.1f}" if done >= 1 else f"{done:.2f}"


def _span(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    hours = whole // 3600
    return f"{minutes} min {whole % 60} s" if not hours else f"{hours} h {minutes % 60} min"


def _progress(console: "Terminal", *, stays: bool = True) -> "Progress":
    """Return a progress bar for a terminal.

    With `stays`, the bar stays on the screen after its end, and output of others is printed above
    it.
    """
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=30),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=console,
        transient=not stays,
        redirect_stdout=stays,
        redirect_stderr=stays,
    )


class ProgressBar:
    """A progress bar that appears with the first advance and is erased at the end.

    Without a terminal it prints lines.
    """

    def __init__(self) -> None:
        from pubsub_emulator.cli.screen.tables import Terminal

        console = Terminal(stderr=True)
        self._progress = _progress(console, stays=False) if console.is_terminal else None
        self._task = None if self._progress is None else self._progress.add_task("")
        self._spoken = Spoken()

    def __call__(self, done: float, total: int | None = None, what: str | None = None) -> None:
        """Report that `done` of `total` units are done, and that `what` is under way."""
        if self._progress is None or self._task is None:
            self._spoken.start()
            self._spoken(done, total, what)
            return
        self._progress.update(
            self._task,
            completed=done,
            total=total,
            description=None if what is None else safe(what),
        )
        if not self._progress.live.is_started:
            self._progress.start()

    def clear(self) -> None:
        """Erase the bar so that other output can be written. The next advance shows it again."""
        if self._progress is not None and self._progress.live.is_started:
            self._progress.stop()

    def end(self) -> None:
        """Take the bar off the screen for good."""
        self.clear()
        self._spoken.stop()


@contextmanager
def bar() -> Iterator[ProgressBar]:
    """Show a progress bar inside the `with` block."""
    progress_bar = ProgressBar()
    try:
        yield progress_bar
    finally:
        progress_bar.end()


@contextmanager
def stage(said: str, total: int | None = None) -> Iterator[ProgressCallback]:
    """Show the progress of a stage: a bar on a terminal, else lines on standard error.

    The lines are printed at the start and every 10 seconds.
    """
    from pubsub_emulator.cli.screen.tables import Terminal

    console = Terminal(stderr=True)
    if not console.is_terminal:
        say(said, aside=True)
        spoken = Spoken(title=said.strip(), total=total)
        spoken.start()
        try:
            yield spoken
        finally:
            spoken.stop()
        return
    with _progress(console) as progress:
        task = progress.add_task(safe(said), total=total)

        def advance(done: float, total: int | None = None, what: str | None = None) -> None:
            progress.update(
                task, completed=done, total=total, description=None if what is None else safe(what)
            )

        yield advance
        finished = next(shown_task for shown_task in progress.tasks if shown_task.id == task)
        progress.update(
            task, completed=finished.total or 1, total=finished.total or 1, description=safe(said)
        )


def show(page: Line | Grid) -> None:
    """Print a page of a session."""
    if isinstance(page, Line):
        say(page.text)
    elif not page.rows:
        say(f"{page.title}: none")
    else:
        table(page.title, page.header, page.rows)


def show_all(pages: Iterable[Shown]) -> None:
    """Print the lines and tables of a command, without its progress."""
    for page in pages:
        if not isinstance(page, Doing):
            show(page)


def table(
    title: str, header: Iterable[str], rows: Iterable[Iterable[object]], names_rows: int = 1
) -> None:
    """Print a table: names on the left, figures on the right.

    The first `names_rows` cells of a row name it. To fit the width of the screen, prose in cells is
    wrapped between words; then long hashes are shortened in their middle; then rows become columns;
    then each row becomes a list with its names as the heading. A word or figure is only broken if
    it alone is wider than the screen.
    """
    from pubsub_emulator.cli.screen.tables import (
        print_table,
    )  # rich is a tenth of the start of a command

    print_table(title, header, rows, names_rows, aside=_aside.get())


def files(title: str, entries: Iterable[tuple[object, str]]) -> None:
    """Print every written file or folder with a description."""
    say(title)
    for path, description in entries:
        say(f"  {path}  {description}")
