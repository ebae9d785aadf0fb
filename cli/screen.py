"""What a person sees: progress while a terminal is watching, and tables of figures at the end."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, Protocol

import click
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from pubsub_emulator.cli.pages import Doing, Grid, Line, Shown

PLAIN_WIDTH: Final = 140
"""Columns of a table that goes to a file or a pipe."""


_aside: ContextVar[bool] = ContextVar("prose goes to standard error", default=False)


@contextmanager
def prose_aside(*, wanted: bool) -> Iterator[None]:
    """As long as this lasts, prose and tables go to standard error: standard output belongs to a document."""
    token = _aside.set(wanted)
    try:
        yield
    finally:
        _aside.reset(token)


def say(text: str = "") -> None:
    """A line of prose."""
    click.echo(text, err=_aside.get())


class Advance(Protocol):
    """Told how far a stage is."""

    def __call__(self, done: int, total: int | None = None, what: str | None = None) -> None:
        """`done` units of `total` are behind us; `what` is being done now."""


def _ignore(done: int, total: int | None = None, what: str | None = None) -> None:
    """Nobody is watching."""


def _columns() -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )


class Bar:
    """A bar that appears with the first advance and leaves nothing behind; nothing where no terminal is watching."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = (
            Progress(*_columns(), console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            if console.is_terminal
            else None
        )
        self._task = None if self._progress is None else self._progress.add_task("")

    def __call__(self, done: int, total: int | None = None, what: str | None = None) -> None:
        """`done` units of `total` are behind us; `what` is being done now."""
        if self._progress is None or self._task is None:
            return
        self._progress.update(self._task, completed=done, total=total, description=what)
        if not self._progress.live.is_started:
            self._progress.start()

    def clear(self) -> None:
        """Take the bar off the screen, so that something else can be written; the next advance shows it again."""
        if self._progress is not None and self._progress.live.is_started:
            self._progress.stop()


@contextmanager
def bar() -> Iterator[Bar]:
    """A bar for as long as this lasts."""
    made = Bar()
    try:
        yield made
    finally:
        made.clear()


@contextmanager
def stage(said: str, total: int | None = None) -> Iterator[Advance]:
    """A stage with a bar on a terminal, and one plain line on standard error elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        click.echo(said, err=True)
        yield _ignore
        return
    with Progress(*_columns(), console=console) as progress:
        task = progress.add_task(said, total=total)

        def advance(done: int, total: int | None = None, what: str | None = None) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield advance
        finished = next(each for each in progress.tasks if each.id == task)
        progress.update(task, completed=finished.total or 1, total=finished.total or 1, description=said)


def show(page: Line | Grid) -> None:
    """A page of a session."""
    if isinstance(page, Line):
        say(page.text)
    else:
        table(page.title, page.header, page.rows)


def show_all(pages: Iterable[Shown]) -> None:
    """Pages one after the other; how far something is is not among them."""
    for page in pages:
        if not isinstance(page, Doing):
            show(page)


GAP: Final = 2
"""Blanks between two columns."""


def table(title: str, header: Iterable[str], rows: Iterable[Iterable[object]], names_rows: int = 1) -> None:
    """A table: names on the left, figures on the right.

    One that is too wide is broken between words, and where that does not do, into several that all begin with the first
    `names_rows` columns: no word and no figure is ever broken, unless it alone is wider than the screen.
    """
    names = tuple(header)
    cells = [tuple(cell if isinstance(cell, str) else f"{cell:,}" for cell in row) for row in rows]
    console = Console(stderr=_aside.get())
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH, stderr=_aside.get())
    if title:
        console.print(Text(title, style="bold"))
    for columns, widths in _layout(names, cells, console.width, names_rows):
        shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(names))
        for at, width in zip(columns, widths, strict=True):
            figures = at > 0 and all(_is_figure(row[at]) for row in cells)
            side: Literal["left", "right"] = "right" if figures else "left"
            shown.add_column(Text(names[at]), justify=side, overflow="fold", min_width=width, max_width=width)
        for row in cells:
            shown.add_row(*(Text(row[column]) for column in columns))
        console.print(shown)
        say()


def _is_figure(cell: str) -> bool:
    """Whether a cell is a figure, perhaps with a unit, and not prose."""
    return cell in ("", "-", "none") or (cell[0].isdigit() and not cell.startswith("0x") and len(cell.split()) <= 2)


def _layout(
    names: tuple[str, ...], cells: list[tuple[str, ...]], width: int, kept: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Which columns stand beside each other, and how wide each is; the first `kept` columns are in every part."""
    texts = [[names[at], *(row[at] for row in cells)] for at in range(len(names))]
    wanted = [max(map(cell_len, column)) for column in texts]
    least = [max((cell_len(word) for text in column for word in text.split()), default=0) for column in texts]
    left = list(range(kept, len(names)))
    while True:
        columns = list(range(kept))
        room = width - sum(least[at] for at in columns) - GAP * (kept - 1)
        while left and (len(columns) == kept or room >= GAP + least[left[0]]):
            columns.append(left.pop(0))
            room -= GAP + least[columns[-1]]
        widths = [min(least[at], width) for at in columns]
        for place, at in enumerate(columns):  # what is free goes to the first columns that want it
            more = min(max(room, 0), wanted[at] - least[at])
            widths[place] += max(more, 0)
            room -= max(more, 0)
        yield columns, widths
        if not left:
            return


def files(title: str, entries: Iterable[tuple[object, str]]) -> None:
    """Every file or folder that was written, with what it is."""
    say(title)
    for path, what in entries:
        say(f"  {path}  {what}")
