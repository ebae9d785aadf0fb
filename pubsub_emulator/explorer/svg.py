"""Draws tries as SVG. Each row is a path from the root at the left to a proven key at the right.

A branch is a square of sixteen cells, one for each child: row by row 0–3, 4–7, 8–b, c–f. Leaves are
discs, detached values diamonds, and references without their nodes hollow rings. Colours show the
fate of a node, see `tree.Fate`. They are in `trie.css`, which pages include and single drawings
contain.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Final

from pubsub_emulator.explorer.tree import Drawn, Fate, PlaceShape
from pubsub_emulator.explorer.words import short
from pubsub_emulator.files.shown import safe
from pubsub_emulator.pages.assets import asset

COLUMN: Final = 36
"""The width of a column in pixels."""
ROW: Final = 22
"""The height of a row in pixels."""
_MARGIN: Final = 12
_LETTER: Final = 6.7
"""The width of a letter of a label: slightly more than in most fonts at 11 pixels."""

_CELLS: Final = tuple(f"M{4 * (at % 4) - 8} {4 * (at // 4) - 8}h3.4v3.4h-3.4z" for at in range(16))
"""The paths of the sixteen cells of a branch."""

_SHAPES: Final = {
    PlaceShape.LEAF: '<circle r="5"/>',
    PlaceShape.EMPTY: '<circle r="5"/>',
    PlaceShape.VALUE: '<path d="M0-6.5 6.5 0 0 6.5-6.5 0z"/>',
    PlaceShape.STUB: '<circle class="o" r="4.5"/>',
    PlaceShape.AGAIN: '<path class="o" d="M-5 3a5 5 0 0 1 9-4M4-6v5h-5"/>',
    PlaceShape.ABSENT: '<path class="o" d="M-4-4 4 4M4-4-4 4"/>',
    PlaceShape.MALFORMED: '<path d="M0-6 6 5H-6z"/>',
}

LEGEND: Final = (
    (Fate.PROVEN, PlaceShape.BRANCH, "proven"),
    (Fate.STATIC, PlaceShape.BRANCH, "proven anyway, for the static keys"),
    (Fate.PROVEN, PlaceShape.LEAF, "leaf"),
    (Fate.PROVEN, PlaceShape.VALUE, "value"),
    (Fate.REMEMBERED, PlaceShape.STUB, "remembered: unread, or from the cache"),
    (Fate.WAITING, PlaceShape.STUB, "not reached"),
    (Fate.PRUNED, PlaceShape.STUB, "pruned: a hash only"),
    (Fate.MISSING, PlaceShape.STUB, "missing"),
    (Fate.UNUSED, PlaceShape.LEAF, "not needed"),
    (Fate.PROVEN, PlaceShape.ABSENT, "keys proven absent"),
)
"""The entries of the legend: fate, shape and text."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A drawn place with its column and row."""

    place: Drawn
    column: int
    row: int
    parent: "Placed | None"
    """The place above, or `None` at a root."""


def layout(trees: Iterable[Drawn]) -> list[Placed]:
    """Return the places with columns and rows.

    The column is the depth. The first child is in its parent's row, and every other child in a new
    row. If a place has a label, a trie below it begins in a new row, so that the label stays
    readable.
    """
    all_placed: list[Placed] = []
    rows = 0
    for tree in trees:
        stack: list[tuple[Drawn, int, Placed | None, bool]] = [(tree, 0, None, False)]
        while stack:
            place, column, parent, same_row = stack.pop()
            if not same_row:
                rows += 1
            placed = Placed(place, column, rows - 1, parent=parent)
            all_placed.append(placed)
            stack.extend(
                (
                    child,
                    column + 1,
                    placed,
                    index == 0 and not (place.label and child.shape in _OPEN),
                )
                for index, child in reversed(list(enumerate(place.children)))
            )
    return all_placed


_OPEN: Final = (PlaceShape.BRANCH, PlaceShape.LEAF, PlaceShape.MALFORMED, PlaceShape.AGAIN)
"""Shapes that can have a trie below them."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """All placed nodes in order, and the texts of the rows."""

    placed: tuple[Placed, ...]
    texts: tuple[tuple[str, str], ...]
    """The label at the end of each row, and a fainter note."""


def arrange(trees: Iterable[Drawn]) -> Drawing:
    """Lay out tries, one below the other."""
    placed = layout(trees)
    rows: list[list[Drawn]] = []
    for placed_node in placed:
        if placed_node.row == len(rows):
            rows.append([])
        rows[placed_node.row].append(placed_node.place)
    texts = []
    for places in rows:
        label = " · ".join(place.label for place in places if place.label)
        note = " · ".join(place.note for place in places if place.note)
        texts.append((label, note))
    return Drawing(tuple(placed), tuple(texts))


def render(drawing: Drawing) -> str:
    """Return the drawing as a complete SVG file with colours and tooltips."""
    edges: list[str] = []
    nodes: list[str] = []
    ends = [0] * len(drawing.texts)
    for index, placed in enumerate(drawing.placed):
        place = placed.place
        x = _x(placed)
        y = _y(placed.row)
        ends[placed.row] = max(ends[placed.row], x + 14)
        if placed.parent is not None:
            edges.append(_edge(placed.parent, placed))
        if nibble := nibble_of(placed):
            nodes.append(f'<text class="n" x="{x - 17}" y="{y - 3}">{nibble}</text>')
        nodes.append(
            f'<g class="{place.fate.value}" data-n="{index}" transform="translate({x} {y})">'
            f"<title>{escape(safe(describe(place)))}</title>{_glyph(place)}</g>"
        )
    width = 0.0
    for row, (label, note) in enumerate(drawing.texts):
        width = max(width, ends[row] + _LETTER * (len(label) + len(note) + 3))
        faint = ""
        if note:
            separator = " · " if label else ""
            faint = f'<tspan class="t">{separator}{escape(safe(note))}</tspan>'
        if label or note:
            nodes.append(
                f'<text x="{ends[row]}" y="{_y(row) + 4}">{escape(safe(label))}{faint}</text>'
            )
    height = len(drawing.texts) * ROW + 2
    across = int(width + _MARGIN)
    return (
        f'<svg class="trie" xmlns="http://www.w3.org/2000/svg" width="{across}" height="{height}"'
        f' viewBox="0 0 {across} {height}" role="img" aria-label="trie of {len(drawing.placed)}'
        f' places"><style>{asset("block/trie.css")}</style><path class="e"'
        f' d="{"".join(edges)}"/>{"".join(nodes)}</svg>'
    )


def nibble_of(placed: Placed) -> str:
    """Return the nibble that leads from a branch to this place, as a hexadecimal digit.

    It is empty if no nibble leads to the place.
    """
    if (
        placed.parent is None
        or placed.parent.place.shape is not PlaceShape.BRANCH
        or placed.place.shape is PlaceShape.ABSENT
    ):
        return ""
    branch = placed.parent.place
    # A trie below the branch's own value has no nibble. Its paths begin anew.
    is_child = len(placed.place.path) > len(branch.path) + len(branch.partial)
    return placed.place.path[-1] if is_child else ""


def packed(drawing: Drawing) -> dict[str, object]:
    """Return the drawing in the compact form of a page, whose scripts draw it.

    There is a letter for each place and a text for each row. `fresh` says which places begin a row.
    A column is encoded as the character that many positions after 0. `cells` has the cells of all
    branches.
    """
    placed = drawing.placed
    rows = [-1, *(place.row for place in placed)]
    return {
        "shapes": "".join(place.place.shape.value for place in placed),
        "fates": "".join(place.place.fate.value for place in placed),
        "columns": "".join(chr(ord("0") + place.column) for place in placed),
        "fresh": "".join(
            "1" if place.row > previous_row else "0"
            for previous_row, place in zip(rows, placed, strict=False)
        ),
        "nibbles": "".join(nibble_of(place) or "-" for place in placed),
        "cells": "".join(
            place.place.cells for place in placed if place.place.shape is PlaceShape.BRANCH
        ),
        "texts": [[label, note] if note else label for label, note in drawing.texts],
    }


def glyphs() -> dict[str, object]:
    """Return the glyphs for a page's drawings: sizes, the cells of a branch, and other shapes."""
    return {
        "column": COLUMN,
        "row": ROW,
        "margin": _MARGIN,
        "letter": _LETTER,
        "cells": list(_CELLS),
        "shapes": {shape.value: glyph for shape, glyph in _SHAPES.items()},
        "shapeNames": {shape.value: shape.name.lower() for shape in PlaceShape},
        "fateNames": {fate.value: fate.name.lower() for fate in Fate},
    }


def _x(placed: Placed) -> int:
    return placed.column * COLUMN + _MARGIN


def _y(row: int) -> int:
    return row * ROW + _MARGIN


def describe(place: Drawn) -> str:
    """Return a place in one line."""
    words = [place.shape.name.lower(), place.fate.name.lower()]
    if place.hash is not None:
        words.append(short(place.hash))
    if place.data is not None:
        words.append(f"{len(place.data)} B")
    if place.path or place.partial:
        words.append(
            f"at {place.path or 'the root'}{f' + {place.partial}' if place.partial else ''}"
        )
    return ", ".join([*words, *(text for text in (place.label, place.note) if text)])


def legend() -> str:
    """Return the legend of shapes and colours as HTML."""
    entries = (
        '<span><svg class="trie" width="20" height="20" viewBox="-10 -10 20 20" aria-hidden="true">'
        f'<g class="{fate.value}">{_glyph(Drawn(shape, fate, cells=fate.value * 16))}</g></svg>'
        f"{escape(safe(words))}</span>"
        for fate, shape, words in LEGEND
    )
    return f'<div class="legend">{"".join(entries)}</div>'


def _glyph(place: Drawn) -> str:
    return _branch(place.cells) if place.shape is PlaceShape.BRANCH else _SHAPES[place.shape]


@lru_cache(maxsize=4096)
def _branch(cells: str) -> str:
    """Return the glyph of a branch, with one path for the cells of each colour."""
    paths = []
    for letter in dict.fromkeys(cells):
        data = "".join(_CELLS[index] for index, cell in enumerate(cells) if cell == letter)
        paths.append(f'<path class="{"z" if letter == "." else letter}" d="{data}"/>')
    return "".join(paths)


def _edge(parent: Placed, child: Placed) -> str:
    """Return the path of a line from a parent to a child."""
    x = _x(parent)
    y = _y(child.row)
    end = _x(child) - 9
    return (
        f"M{x + 9} {y}H{end}" if parent.row == child.row else f"M{x} {_y(parent.row) + 9}V{y}H{end}"
    )
