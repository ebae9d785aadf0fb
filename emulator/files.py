"""Atomic writing of files."""

import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, replacing an older one.

    Raises `OSError`; the older file is kept then.
    """
    handle, staging = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123  # a handle, not a path
            file.write(text)
        Path(staging).chmod(0o644)
        Path(staging).replace(path)
    finally:
        Path(staging).unlink(missing_ok=True)
