"""Atomic writing of files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, replacing an older one. Raises as `whole_file`."""
    with whole_file(path) as file:
        file.write(text)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A file to write, which replaces an older one if the context ends without an error.

    Raises `OSError`; the older file is kept then.
    """
    handle, staging = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123  # a handle, not a path
            yield file
        Path(staging).chmod(0o644)
        Path(staging).replace(path)
    finally:
        Path(staging).unlink(missing_ok=True)
