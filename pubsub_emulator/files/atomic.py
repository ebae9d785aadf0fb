"""Writes files atomically: readers see the old or the new content, but never a part."""

import errno
import os
import secrets
import stat
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


def write_secret(path: Path, text: str) -> None:
    """Write a text file like `write_whole`. A new file is readable only by its owner.

    The mode of an older file is kept. Raises `OSError`.
    """
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    with (
        _staged(path) as staging,
        open(staging, "x", encoding="utf-8", newline="\n", opener=_for_owner) as file,
    ):
        os.fchmod(file.fileno(), mode)
        file.write(text)


def _for_owner(path: str, flags: int) -> int:
    """Open a new file that only its owner may read."""
    return os.open(path, flags, 0o600)


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
    """Yield the path of a new file, which replaces `path` if the context ends without an error.

    If `path` is a link, the file that it leads to is replaced, and the link stays. A device or a
    pipe is refused, because a file would take its place. Raises `OSError`, which names `path`.
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
