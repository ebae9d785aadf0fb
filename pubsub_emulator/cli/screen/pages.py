"""The output of commands as plain values: lines, tables, progress. `cli.screen` shows them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Final

from pubsub_emulator.files.shown import safe
from pubsub_emulator.runtime.framework.pallet import Event

PREVIEW: Final = 32
"""The most bytes of a value in a table."""


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
    """A page whose texts are all `safe`."""
    match page:
        case Line(text):
            return Line(safe(text))
        case Grid(title, header, rows):
            cells = tuple(
                tuple(safe(cell) if isinstance(cell, str) else cell for cell in row) for row in rows
            )
            return Grid(safe(title), tuple(map(safe, header)), cells)
        case _:
            return page


def words(value: object, most: int | None = PREVIEW) -> str:
    """Return any value of the runtime in words.

    Bytes are in hex, at most `most` of them. Records have their fields' names.
    """
    if value is None:
        return "none"
    if isinstance(value, bytes | bytearray):
        cut = value if most is None or len(value) <= most else value[:most]
        return f"0x{cut.hex()}" + ("" if len(cut) == len(value) else f"… ({len(value):,} bytes)")
    if isinstance(value, Enum):
        return value.name if isinstance(value.value, int) else str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{words(key, most)}: {words(each, most)}" for key, each in value.items())
            + "}"
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ", ".join(
            f"{name} {words(each, most)}" for name, each in zip(value._fields, value, strict=True)
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(words(each, most) for each in value) + "]"
    if is_dataclass(value) and not isinstance(value, type):
        held = ((each.name.rstrip("_"), getattr(value, each.name)) for each in fields(value))
        inside = ", ".join(f"{name} {words(each, most)}" for name, each in held)
        name = f"{value.PALLET}.{type(value).__name__}" if isinstance(value, Event) else ""
        return f"{name}({inside})" if name else f"({inside})"
    return str(value)


def printable(value: bytes, most: int = PREVIEW) -> str:
    """A published value as text if it is printable, else in hex."""
    try:
        text = value.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable() and not text.startswith("0x"):
        return text if len(text) <= most else f"{text[:most]}… ({len(text):,} bytes)"
    return words(value, most) if value else "(empty)"
