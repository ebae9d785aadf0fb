"""What a person sees: progress while a terminal is watching, and tables of figures at the end."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

PLAIN_WIDTH: Final = 140
"""Columns of a table that goes to a file or a pipe."""


class Advance(Protocol):
    """Told how far a stage is."""

    def __call__(self, done: int, total: int | None = None, what: str | None = None) -> None:
        """`done` units of `total` are behind us; `what` is being done now."""


def _ignore(done: int, total: int | None = None, what: str | None = None) -> None:
    """Nobody is watching."""


@contextmanager
def stage(said: str, total: int | None = None) -> Iterator[Advance]:
    """A stage with a bar on a terminal, and one plain line on standard error elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        click.echo(said, err=True)
        yield _ignore
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(said, total=total)

        def advance(done: int, total: int | None = None, what: str | None = None) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield advance
        finished = next(each for each in progress.tasks if each.id == task)
        progress.update(task, completed=finished.total or 1, total=finished.total or 1, description=said)


def table(title: str, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on standard output: names on the left, figures on the right."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for at, name in enumerate(header):
        shown.add_column(name, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, str) else f"{cell:,}" for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    console.print(shown)
    click.echo()


def files(title: str, entries: Iterable[tuple[object, str]]) -> None:
    """Every file or folder that was written, with what it is."""
    click.echo(title)
    for path, what in entries:
        click.echo(f"  {path}  {what}")


def size(count: int) -> str:
    """Bytes as a person reads them, in binary units."""
    if abs(count) < 1024:
        return f"{count} B"
    if abs(count) < 1024 * 1024:
        return f"{count / 1024:.1f} KiB"
    return f"{count / 1024 / 1024:.1f} MiB"
