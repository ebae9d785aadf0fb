"""Progress within a unit: a unit reports it with `told`, and an engine hears it with `heard_by`.

On Spark, no engine listens, and reports are dropped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Listener = Callable[[float], None]
"""Called with the finished share of a unit, from 0 to 1."""

TELL_EVERY = 0.5
"""Seconds between two reports of a unit that are passed on."""

_listeners: list[Listener] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Pass the progress of the unit that runs in this block to `listener`.

    It is called at most every `TELL_EVERY` seconds.
    """
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
    """Report that `done` of `total` parts of the running unit are done."""
    if _listeners and total > 0:
        _listeners[-1](min(done / total, 1.0))
