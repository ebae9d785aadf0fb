"""Writes files atomically: readers see the old or the new content, but never a part."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

NOT_A_FILE: Final = "this is not a regular file, so it is not replaced"
"""The reason why a folder, a device or a pipe is not written to."""


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically and replace an older one. Raises `OSError`."""
    with whole_file(path) as file:
        file.write(text)


def write_whole_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically and replace an older one. Raises `OSError`."""
    with _staged(path) as staging, staging.open("xb") as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a file to write, which replaces `path` when the context ends without an error.

    Until then the text is in a hidden file in the same folder. Raises `OSError`.
    """
    with (
        _staged(path) as staging,
        staging.open("x", encoding="utf-8", newline="\n") as file,
    ):
        yield file


@contextmanager
def _staged(path: Path) -> Iterator[Path]:
    """Yield the place of a new file, which replaces `path` when the context ends well.

    A link stays, and the file that it leads to is replaced. A device or a pipe is refused, because
    a rename would put a file in its place. Errors name `path`. Raises `OSError`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EEXIST, NOT_A_FILE, str(path))
    staging = target.with_name(f".{target.name[:64]}-{secrets.token_hex(4)}.part")
    try:
        yield staging
        staging.replace(target)
    except OSError as error:
        if error.filename == str(staging):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        staging.unlink(missing_ok=True)
