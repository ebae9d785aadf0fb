"""Writes files atomically: readers see the old or the new content, but never a part."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically and replace an older one. Raises `OSError`."""
    with whole_file(path) as file:
        file.write(text)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a file to write, which replaces `path` when the context ends without an error.

    Until then the text is in a hidden file in the same folder. Raises `OSError`.
    """
    staging = path.with_name(f".{path.name[:64]}-{secrets.token_hex(4)}.part")
    try:
        with staging.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        staging.replace(path)
    finally:
        staging.unlink(missing_ok=True)
