"""States of a node or in a file, from which a network can continue."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pubsub_emulator.client.live_state import live_state
from pubsub_emulator.client.places import url_and_block
from pubsub_emulator.client.state_file import read_state
from pubsub_emulator.runtime.framework.fork import BadFork, Fork


@contextmanager
def open_fork(source: str | Path, at: str | int | None = None) -> Iterator[Fork]:
    """Yield the state at `source` while the context lasts.

    `source` is a node's URL, from which the state is read on demand, or a file of an exported
    state. `at` is a block of the node by hash or number, by default the newest final one. It can
    also follow the URL after an @. Raises `ClientError` or `BadFork`.
    """
    if at is None:
        source, at = url_and_block(str(source))
    if "://" in str(source):
        with live_state(str(source), None if at is None else str(at)) as fork:
            yield fork
    else:
        if at is not None:
            raise BadFork(f"{source}: a file holds one state, so `at` is allowed for nodes only")
        yield read_state(Path(source))
