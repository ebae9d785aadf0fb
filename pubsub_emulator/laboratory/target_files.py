"""Temporary files for targets of `pubsub fuzz --target` whose reader opens a file."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp


@cache
def temporary_folder() -> Path:
    """Return a folder for this process. It is made at the first call."""
    return Path(mkdtemp(prefix="pubsub-fuzz-"))


def from_file(name: str) -> Callable[[Callable[[Path], str]], Callable[[bytes], str]]:
    """Return a decorator that turns a reader of a file into a reader of bytes.

    The bytes are written to a temporary file called `name`.
    """

    def keep(read: Callable[[Path], str]) -> Callable[[bytes], str]:
        def run(data: bytes) -> str:
            path = temporary_folder() / name
            path.write_bytes(data)
            return read(path)

        return run

    return keep
