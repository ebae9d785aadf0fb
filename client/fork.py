"""States to fork, from wherever they are: a node, or a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pubsub_emulator.client.live_state import live_state
from pubsub_emulator.client.state_file import read_state
from pubsub_emulator.emulator.network.fork import BadFork, Fork


@contextmanager
def open_fork(source: str | Path, at: str | int | None = None) -> Iterator[Fork]:
    """The state at `source` for as long as the context lasts: a node's URL, read by need, or an exported state's file.

    `at` is a block of the node, by hash or number; without it, it is the newest final one. Raises `ClientError`,
    `BadFork`, `OSError`.
    """
    if "://" in str(source):
        with live_state(str(source), None if at is None else str(at)) as fork:
            yield fork
    else:
        if at is not None:
            raise BadFork(f"{source}: a file holds one state: `at` names blocks of a node")
        yield read_state(Path(source))
