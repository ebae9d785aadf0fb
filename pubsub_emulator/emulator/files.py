"""Atomic writing of files."""

import secrets
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
    """A file to write, which replaces an older one if the context ends without an error. Raises `OSError`."""
    staging = path.with_name(f".{path.name[:64]}-{secrets.token_hex(4)}.part")
    try:
        with staging.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        staging.replace(path)
    finally:
        staging.unlink(missing_ok=True)
