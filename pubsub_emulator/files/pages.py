"""Output as plain values: lines, tables, progress. `cli.screen` prints them."""

from dataclasses import dataclass

from pubsub_emulator.files.shown import safe


@dataclass(frozen=True, slots=True)
class Line:
    """A line of prose."""

    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; cells are text or whole numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]


@dataclass(frozen=True, slots=True)
class Doing:
    """Progress: `done` units, of `total` if known."""

    what: str
    done: int
    total: int | None = None


Shown = Line | Grid | Doing


def made_safe(page: Shown) -> Shown:
    """Return a page with all of its texts escaped by `safe`."""
    match page:
        case Line(text):
            return Line(safe(text))
        case Grid(title, header, rows):
            cells = tuple(tuple(map(_safe_cell, row)) for row in rows)
            return Grid(safe(title), tuple(map(safe, header)), cells)
        case _:
            return page


def _safe_cell(cell: str | int) -> str | int:
    return safe(cell) if isinstance(cell, str) else cell
