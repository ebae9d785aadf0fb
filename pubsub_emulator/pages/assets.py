"""The files of pages: styles and scripts."""

from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final

from pubsub_emulator.pages import palette
from pubsub_emulator.pages.modules import linked

_FOLDER: Final = files("pubsub_emulator.pages") / "assets"
COLOURS: Final = "colours.css"
"""The style with the colours, which is made from `palette`."""
BASE: Final = (COLOURS, "frame.css", "parts.css", "tables.css")
"""The styles of every page, in their order."""
MEDIA_TYPES: Final = {".js": "text/javascript", ".css": "text/css"}
"""Media types by the ends of file names."""


@lru_cache(maxsize=128)
def asset(name: str) -> str:
    """Return a file by its path in `assets`, or the style with the colours."""
    if name == COLOURS:
        return palette.variables()
    return (_FOLDER / name).read_text(encoding="utf-8")


def names(*folders: str) -> list[str]:
    """Return the sorted paths of scripts and styles in folders of `assets`.

    The empty name stands for `assets` itself.
    """
    paths_found: list[str] = []
    for folder in folders:
        paths = [PurePosixPath(folder, file.name) for file in (_FOLDER / folder).iterdir()]
        paths_found += [str(path) for path in paths if path.suffix in MEDIA_TYPES]
    return sorted(paths_found)


def styles(*own: str) -> str:
    """Return the styles of every page, and then those of one page."""
    return joined((*BASE, *own))


def joined(names: Iterable[str]) -> str:
    """Return the joined content of some files."""
    return "".join(asset(name) for name in names)


def script(entry: str) -> str:
    """Return a module and those that it imports as one script without modules."""
    return linked(entry, asset)
