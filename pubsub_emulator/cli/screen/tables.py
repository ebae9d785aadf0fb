"""Tables and the terminal that they are printed on, by rich."""

import re
from collections.abc import Iterable
from typing import Final, Literal

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pubsub_emulator.cli.streams import shown_on
from pubsub_emulator.files.shown import safe

PLAIN_WIDTH: Final = 140
"""The width of a table in a file or pipe."""

GAP: Final = 2
"""Blanks between columns."""


class Terminal(Console):
    """A console that raises if the reader closed the pipe. Rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled."""
        raise  # noqa: PLE0704  # called where a `BrokenPipeError` is handled


def print_table(
    title: str,
    header: Iterable[str],
    rows: Iterable[Iterable[object]],
    names_rows: int,
    *,
    aside: bool,
) -> None:
    """Print a table, with `aside` on standard error.

    The first `names_rows` cells of a row name it. If the table is too wide and has one column
    of names, rows and columns are exchanged. If it is still too wide, each row becomes a table of
    its own.
    """
    console = Terminal(stderr=aside)
    if not console.is_terminal:
        console = Terminal(width=PLAIN_WIDTH, stderr=aside)

    def shown(text: str) -> str:
        """Return a text as the console writes it, so that its width is that of the column."""
        return shown_on(console.file, safe(text))

    names = tuple(map(shown, header))
    cells = [
        tuple(shown(cell) if isinstance(cell, str) else f"{cell:,}" for cell in row) for row in rows
    ]
    gap = shown("…")
    if title:
        console.print(Text(safe(title), style="bold"))
    shortened = _fitting(names, cells, console.width, gap=gap)
    if shortened is not None:
        _print(console, names, shortened)
        return
    turned = [tuple(column) for column in zip(names, *cells, strict=True)]
    if (
        names_rows == 1
        and (fitting := _fitting(turned[0], turned[1:], console.width, gap=gap)) is not None
    ):
        _print(console, turned[0], fitting)
        return
    for row in cells:
        console.print(Text("  ".join(row[:names_rows])))
        rest: list[tuple[str, ...]] = [
            (f"  {name}", cell)
            for name, cell in zip(names[names_rows:], row[names_rows:], strict=True)
        ]
        _print(console, ("", ""), _fitting(("", ""), rest, console.width, gap=gap) or rest)


def _print(console: Terminal, names: tuple[str, ...], cells: list[tuple[str, ...]]) -> None:
    """Print a table that fits the console, with figures at the right of their columns."""
    shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(names))
    for column, width in enumerate(_widths(names, cells, console.width)):
        has_figures = column > 0 and all(_is_figure(row[column]) for row in cells)
        side: Literal["left", "right"] = "right" if has_figures else "left"
        shown.add_column(
            Text(names[column]), justify=side, overflow="fold", min_width=width, max_width=width
        )
    for row in cells:
        shown.add_row(*map(Text, row))
    if console.is_terminal:
        console.print(shown)
    else:
        # The table fills its last column with blanks, which nobody wants in a file.
        with console.capture() as captured:
            console.print(shown)
        for line in captured.get().splitlines():
            console.file.write(f"{line.rstrip(' ')}\n")
    click.echo(err=console.stderr)


def _is_figure(cell: str) -> bool:
    """Return whether a cell is a figure, possibly with a unit."""
    return cell in ("", "-", "none") or (
        cell[0].isdigit() and not cell.startswith("0x") and len(cell.split()) <= 2
    )


_HEX: Final = re.compile(r"\b(0x)?([0-9a-f]{24,})\b")
_KEPT_DIGITS: Final = (16, 8, 4)
"""Numbers of hex digits to keep at either end of a hash, in the order in which they are tried."""


def _fitting(
    names: tuple[str, ...], cells: list[tuple[str, ...]], width: int, *, gap: str
) -> list[tuple[str, ...]] | None:
    """Return the cells with hashes shortened to fit the width, or `None` if they cannot fit.

    `gap` stands in the middle of a shortened hash.
    """
    if _min_width(names, cells) <= width:
        return cells
    for digits in _KEPT_DIGITS:
        cut = [_with_short_hashes(row, digits, gap) for row in cells]
        if _min_width(names, cut) <= width:
            return cut
    return None


def _with_short_hashes(row: tuple[str, ...], length: int, gap: str) -> tuple[str, ...]:
    """Return a row in which long hashes keep only `length` digits at either end."""
    return tuple(_HEX.sub(lambda match: _shortened(match, length, gap), cell) for cell in row)


def _shortened(match: re.Match[str], length: int, gap: str) -> str:
    prefix = match.group(1) or ""
    digits = match.group(2)
    if len(digits) <= 2 * length + len(gap):
        return match.group()
    return f"{prefix}{digits[:length]}{gap}{digits[-length:]}"


def _min_width(names: tuple[str, ...], cells: list[tuple[str, ...]]) -> int:
    """Return the width of the narrowest table that breaks no word and no figure."""
    return sum(_min_widths(names, cells)) + GAP * (len(names) - 1)


def _min_widths(names: tuple[str, ...], cells: list[tuple[str, ...]]) -> list[int]:
    """Return the width of the widest unbreakable part of each column."""
    widths = []
    for column, name in enumerate(names):
        parts = name.split()
        for row in cells:
            parts += _unbroken(row[column])
        widths.append(max(map(cell_len, parts), default=0))
    return widths


def _unbroken(cell: str) -> list[str]:
    """Return the unbreakable parts of a cell: its words, or a figure with its unit."""
    return [cell] if _is_figure(cell) else cell.split()


def _widths(names: tuple[str, ...], cells: list[tuple[str, ...]], width: int) -> list[int]:
    """Return the width of each column. Free space goes to the first columns that need it."""
    min_widths = _min_widths(names, cells)
    natural = []
    for column, name in enumerate(names):
        texts = (name, *(row[column] for row in cells))
        natural.append(max(map(cell_len, texts)))
    room = max(width - sum(min_widths) - GAP * (len(names) - 1), 0)
    widths = []
    for need, full in zip(min_widths, natural, strict=True):
        more = min(room, full - need)
        widths.append(min(need, width) + more)
        room -= more
    return widths
