"""The result of an inspection."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.runtime.framework.words import words


@dataclass(frozen=True, slots=True)
class View:
    """The result of an inspection, for scripts and for people."""

    document: dict[str, object]
    """The content as a JSON object, with its `kind`."""
    pages: tuple[Shown, ...]
    """The same content as lines and tables."""


def view(kind: str, path: Path, figures: Mapping[str, object], pages: Iterable[Shown] = ()) -> View:
    """Return a view that begins with the kind and the path, then a summary in figures."""
    rows: list[tuple[str, str | int]] = []
    for name, value in figures.items():
        if not isinstance(value, list | dict):
            # Amounts are shown with separators of thousands, and identifiers are not.
            is_identifier = isinstance(value, bool) or name in _IDS
            cell = value if isinstance(value, int) and not is_identifier else words(value, None)
            rows.append((name.replace("_", " "), cell))
    head = (Line(f"{path}: {kind}"), Grid("", ("", ""), tuple(rows)))
    return View({"kind": kind, "path": str(path), **figures}, (*head, *pages))


_IDS: Final = frozenset({"chain", "number", "block", "slot", "relay_parent", "segment", "position"})
"""Figures that identify something, so that they are not shown as amounts."""


def fields_of(record: object, *names: str) -> dict[str, object]:
    """Return some fields of an object by name."""
    return {name: getattr(record, name) for name in names}


def header_figures(header: Header) -> dict[str, object]:
    """Return the main fields of a header as figures."""
    return {
        "number": header.number,
        "hash": header.hash(),
        "parent": header.parent_hash,
        **fields_of(header, "state_root", "extrinsics_root"),
        "slot": header.aura_slot(),
        "sealed": header.aura_seal() is not None,
    }


def counted(title: str, header: tuple[str, str], counts: Mapping[str, int]) -> Grid:
    """Return a table of counts, by name."""
    return Grid(title, header, tuple((str(name), count) for name, count in sorted(counts.items())))
