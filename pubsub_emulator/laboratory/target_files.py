"""Files for targets of `pubsub fuzz --target` whose reader opens one."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp


@cache
def temporary_folder() -> Path:
    """A folder of this process."""
    return Path(mkdtemp(prefix="pubsub-fuzz-"))


def from_file(name: str) -> Callable[[Callable[[Path], str]], Callable[[bytes], str]]:
    """Decorator: a reader of a file becomes a reader of bytes."""

    def keep(read: Callable[[Path], str]) -> Callable[[bytes], str]:
        def run(data: bytes) -> str:
            path = temporary_folder() / name
            path.write_bytes(data)
            return read(path)

        return run

    return keep
