"""Progress within a unit: units report it, and engines that listen pass it on; on Spark nobody does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Listener = Callable[[float], None]
"""Called with a share from 0 to 1."""

TELL_EVERY = 0.5
"""Seconds between two shares of a unit."""

_listeners: list[Listener] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Hand the shares of the unit that runs here to `listener`, one every `TELL_EVERY` seconds at most."""
    last = monotonic()

    def hear(share: float) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= TELL_EVERY:
            last = now
            listener(share)

    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def told(done: int, total: int) -> None:
    """Say that `done` of `total` parts of this unit are done."""
    if _listeners and total > 0:
        _listeners[-1](min(done / total, 1.0))
