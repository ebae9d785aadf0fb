"""Draw the rooms of a checkout and the imports between them: `python -m development.house`.

A room is a folder of one of the packages. The floors are the layers of the contracts in
`pyproject.toml`. Imports are read from the sources, wherever they stand in a file. An arrow is left
out of the picture if other arrows lead to the same room. Arrows that do not point down are red.

    python -m development.house                     write docs/images/house.svg
    python -m development.house FOLDER FILE         draw the checkout in FOLDER into FILE
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from development.environment import PACKAGES, ROOT
from development.report import say

PICTURE = ROOT / "docs" / "images" / "house.svg"
_WIDTH = 960
_MARGIN = 20
_HEIGHT = 32
"""The height of a room, in pixels."""
_PITCH = 62
"""The distance of two floors, in pixels."""
_BORDER = 34
"""The room for the line between two packages, in pixels."""
_HEADING = 18
"""The height of a package's name, in pixels."""
_LETTER = 8
"""The width of a letter, in pixels."""
_ASIDE = 70
"""How far floors with a room in the middle are moved, to the left and to the right in turn.

Otherwise arrows that pass a floor would be hidden behind that room.
"""


class Room(NamedTuple):
    """A folder of a package."""

    package: str
    name: str

    def __str__(self) -> str:
        return f"{self.package}/{self.name}"


@dataclass(frozen=True)
class House:
    """The rooms of a checkout by floor, and the imports between them."""

    floors: Sequence[Sequence[Room]]
    """The rooms of each floor, the highest floor first."""
    imports: Mapping[Room, frozenset[Room]]
    """The rooms that each room imports."""

    def level(self, room: Room) -> int:
        """Return the number of the floor of a room, counted from the top."""
        return next(number for number, floor in enumerate(self.floors) if room in floor)

    def upward(self) -> list[tuple[Room, Room]]:
        """Return the imports that point to a higher floor."""
        return [
            (room, other) for room, other in self.arrows() if self.level(other) < self.level(room)
        ]

    def across(self) -> list[tuple[Room, Room]]:
        """Return the imports of rooms in another package."""
        return [(room, other) for room, other in self.arrows() if other.package != room.package]

    def arrows(self) -> Iterator[tuple[Room, Room]]:
        """Yield each room with each room that it imports."""
        for room, others in self.imports.items():
            for other in sorted(others):
                yield room, other

    def shown(self) -> Iterator[tuple[Room, Room]]:
        """Yield the imports to draw, which are those that do not follow from others.

        An import follows from others if the imported room is also reached through another room.
        """
        for room, other in self.arrows():
            others = self.imports[room] - {other}
            if not any(other in self._reached(further) for further in others):
                yield room, other

    def _reached(self, start: Room) -> set[Room]:
        """Return all rooms that a room imports, directly or not."""
        reached: set[Room] = set()
        waiting = [start]
        while waiting:
            for other in self.imports.get(waiting.pop(), frozenset()):
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        return reached


def house(root: Path = ROOT) -> House:
    """Return the rooms of a checkout. Raises `ValueError` if a room is on no floor.

    Modules beside the rooms, such as the declaration of an extension, are left out.
    """
    packages = [name for name in reversed(PACKAGES) if (root / name / "__init__.py").is_file()]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    floors: list[list[Room]] = []
    for package in packages:
        floors += _layers(contracts, root, package)
    imports: dict[Room, set[Room]] = {}
    for floor in floors:
        imports |= {room: set() for room in floor}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            if path.parent == root / package:
                continue
            room = Room(package, path.relative_to(root).parts[1])
            if room not in imports:
                raise ValueError(f"{room} is in no contract of layers")
            imports[room] |= (_imported(path, root) & imports.keys()) - {room}
    return House(floors, {room: frozenset(others) for room, others in imports.items()})


def _layers(contracts: list[dict[str, Any]], root: Path, package: str) -> Iterator[list[Room]]:
    """Yield the floors of a package from the highest to the lowest, as its contract lists them."""
    for contract in contracts:
        if contract["type"] == "layers" and contract["containers"] == [package]:
            for layer in contract["layers"]:
                names = re.findall(r"\w+", layer)
                rooms = [Room(package, name) for name in names if (root / package / name).is_dir()]
                if rooms:
                    yield rooms


def _imported(path: Path, root: Path) -> set[Room]:
    """Return the first two parts of the names of everything that a file imports."""
    rooms: set[Room] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(root).parts[: -node.level] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            names = [f"{base}.{alias.name}" for alias in node.names]
        rooms |= {Room(*name.split(".")[:2]) for name in names if "." in name}
    return rooms


def drawing(drawn: House) -> str:
    """Return the picture of a house as SVG."""
    boxes = _boxes(drawn)
    height = max(y for _, y, _ in boxes.values()) + _HEIGHT + _MARGIN
    arrows = sorted(drawn.shown())
    borders = [
        boxes[upper[0]][1] + _PITCH + _BORDER / 2 - (_PITCH - _HEIGHT) / 2
        for upper, lower in zip(drawn.floors, drawn.floors[1:], strict=False)
        if upper[0].package != lower[0].package
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img"'
        " font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\""
        ' font-size="14" fill="#1f2430">'
    )
    lines = [
        head,
        "<title>Rooms by floor; an arrow points to a room that is imported</title>",
        "<defs>",
        *(_tip(name, colour) for name, colour in _COLOURS.items()),
        "</defs>",
        f'<rect width="{_WIDTH}" height="{height:.0f}" rx="12" fill="#ffffff"/>',
        *(
            f'<path d="M{_MARGIN} {y:.0f}H{_WIDTH - _MARGIN}" stroke="#9aa3b5"'
            ' stroke-dasharray="6 5"/>'
            for y in borders
        ),
        *(_label(package, *place) for package, place in _corners(boxes).items()),
        *(_arrow(drawn, boxes, *arrow) for arrow in arrows),
        *(_box(room, *place) for room, place in boxes.items()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


_COLOURS = {"down": "#7d87a0", "across": "#2f6fb0", "up": "#c4312b"}
"""The colours of arrows: within a package, between packages, and arrows that do not point down."""
_FILLS = {"pubsub_emulator": "#f3f5f9", "interchain_events": "#eaf3ea"}


def _tip(name: str, colour: str) -> str:
    """Return the definition of an arrow's tip."""
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
        ' markerHeight="7" orient="auto">'
        f'<path d="M0 0 10 5 0 10z" fill="{colour}"/></marker>'
    )


def _boxes(drawn: House) -> dict[Room, tuple[float, float, float]]:
    """Return the centre, the top and the width of each room, in pixels.

    Each floor is sorted by the mean place of the rooms above that import a room.
    """
    boxes: dict[Room, tuple[float, float, float]] = {}
    y = float(_MARGIN + _HEADING)
    aside = _ASIDE
    package = drawn.floors[0][0].package
    for floor in drawn.floors:
        if floor[0].package != package:
            package = floor[0].package
            y += _BORDER
        ordered = sorted(floor, key=lambda room: _middle(drawn, boxes, room))
        gap = _WIDTH / len(ordered)
        aside = -aside
        for index, room in enumerate(ordered):
            x = gap * (index + 0.5) + (aside if len(ordered) % 2 else 0)
            boxes[room] = (x, y, len(room.name) * _LETTER + 28)
        y += _PITCH
    return boxes


def _middle(drawn: House, boxes: Mapping[Room, tuple[float, float, float]], room: Room) -> float:
    """Return the mean place of the rooms above that import a room."""
    places = [boxes[other][0] for other in boxes if room in drawn.imports.get(other, frozenset())]
    return sum(places) / len(places) if places else _WIDTH / 2


def _corners(boxes: Mapping[Room, tuple[float, float, float]]) -> dict[str, tuple[float, float]]:
    """Return the place of each package's name, which is at the left above its highest floor."""
    corners: dict[str, tuple[float, float]] = {}
    for room, (_, y, _) in boxes.items():
        corners.setdefault(room.package, (_MARGIN, y - 10))
    return corners


def _label(package: str, x: float, y: float) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-weight="600">{escape(package)}</text>'


def _box(room: Room, x: float, y: float, width: float) -> str:
    """Return a room as a box around its name. `x` is the middle of the box, and `y` its top."""
    fill = _FILLS.get(room.package, "#ffffff")
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="6"'
        f' fill="{fill}" stroke="#9aa3b5"/>'
        f'<text x="{x:.0f}" y="{y + 21:.0f}" text-anchor="middle">{escape(room.name)}</text>'
    )


def _arrow(
    drawn: House, boxes: Mapping[Room, tuple[float, float, float]], room: Room, other: Room
) -> str:
    """Return the arrow from a room to one that it imports."""
    x, y, _ = boxes[room]
    to_x, to_y, _ = boxes[other]
    kind = "down" if room.package == other.package else "across"
    start = y + _HEIGHT
    if drawn.level(other) <= drawn.level(room):
        kind = "up"
    if drawn.level(other) < drawn.level(room):
        start = y
        to_y += _HEIGHT
    bend = (to_y - start) / 2
    return (
        f'<path d="M{x:.0f} {start:.0f}C{x:.0f} {start + bend:.0f} {to_x:.0f} {to_y - bend:.0f}'
        f' {to_x:.0f} {to_y:.0f}" fill="none" stroke="{_COLOURS[kind]}" stroke-width="1.3"'
        f' marker-end="url(#{kind})"/>'
    )


def figures(drawn: House) -> str:
    """Return the counts of rooms and imports in one line."""
    rooms = sum(map(len, drawn.floors))
    arrows = sum(map(len, drawn.imports.values()))
    return (
        f"{rooms} rooms on {len(drawn.floors)} floors, {arrows} arrows: {len(drawn.upward())} point"
        f" up, {len(drawn.across())} lead to the other package"
    )


def main(arguments: Sequence[str]) -> int:
    """Draw a checkout. Return the exit code, which is 1 if an arrow points up.

    The arguments are the folder of the checkout and the file of the drawing, both optional.
    """
    root = Path(arguments[0]) if arguments else ROOT
    picture = Path(arguments[1]) if len(arguments) > 1 else PICTURE
    drawn = house(root)
    picture.write_text(drawing(drawn), encoding="utf-8")
    say(f"{picture}: {figures(drawn)}")
    for room, other in drawn.upward():
        say(f"{room} imports {other}, which is above it")
    return 1 if drawn.upward() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
