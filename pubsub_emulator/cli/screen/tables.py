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
    """A console that leaves a closed pipe to the program: it is no finding."""

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
    """Print a table as `screen.table` says, on standard error where it is `aside`."""
    console = Terminal(stderr=aside)
    if not console.is_terminal:
        console = Terminal(width=PLAIN_WIDTH, stderr=aside)

    def shown(text: str) -> str:
        """A text as the console writes it, whose width is that of the column."""
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
    shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(names))
    for at, width in enumerate(_widths(names, cells, console.width)):
        figures = at > 0 and all(_is_figure(row[at]) for row in cells)
        side: Literal["left", "right"] = "right" if figures else "left"
        shown.add_column(
            Text(names[at]), justify=side, overflow="fold", min_width=width, max_width=width
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
    """Whether a cell is a figure, possibly with a unit."""
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
    if _least(names, cells) <= width:
        return cells
    for kept in _KEPT_DIGITS:
        cut = [
            tuple(
                _HEX.sub(lambda found: _shortened(found, kept, gap), cell)  # noqa: B023  # used at once
                for cell in row
            )
            for row in cells
        ]
        if _least(names, cut) <= width:
            return cut
    return None


def _shortened(found: re.Match[str], kept: int, gap: str) -> str:
    prefix = found.group(1) or ""
    digits = found.group(2)
    if len(digits) <= 2 * kept + len(gap):
        return found.group()
    return f"{prefix}{digits[:kept]}{gap}{digits[-kept:]}"


def _least(names: tuple[str, ...], cells: list[tuple[str, ...]]) -> int:
    return sum(_least_widths(names, cells)) + GAP * (len(names) - 1)


def _least_widths(names: tuple[str, ...], cells: list[tuple[str, ...]]) -> list[int]:
    widths = []
    for at, name in enumerate(names):
        parts = name.split()
        for row in cells:
            parts += _unbroken(row[at])
        widths.append(max(map(cell_len, parts), default=0))
    return widths


def _unbroken(cell: str) -> list[str]:
    """The unbreakable parts of a cell: its words, or a figure with its unit."""
    return [cell] if _is_figure(cell) else cell.split()


def _widths(names: tuple[str, ...], cells: list[tuple[str, ...]], width: int) -> list[int]:
    """The width of each column. Free space goes to the first columns that need it."""
    least = _least_widths(names, cells)
    wanted = [
        max(map(cell_len, (name, *(row[at] for row in cells)))) for at, name in enumerate(names)
    ]
    room = max(width - sum(least) - GAP * (len(names) - 1), 0)
    widths = []
    for need, want in zip(least, wanted, strict=True):
        more = min(room, want - need)
        widths.append(min(need, width) + more)
        room -= more
    return widths
