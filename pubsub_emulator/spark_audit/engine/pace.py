"""Progress within a unit, which a unit reports with `report_progress`.

An engine receives the reports with `listening`. On Spark, reports are dropped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Listener = Callable[[float], None]
"""Called with the finished share of a unit, from 0 to 1."""

REPORT_EVERY = 0.5
"""The minimum time between two calls of a listener, in seconds."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass the progress of the unit that runs in this block to `listener`.

    It is called at most every `REPORT_EVERY` seconds.
    """
    last = monotonic()

    def hear(share: float) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= REPORT_EVERY:
            last = now
            listener(share)

    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def report_progress(done: int, total: int) -> None:
    """Report that `done` of `total` parts of the running unit are done."""
    if _listeners and total > 0:
        _listeners[-1](min(done / total, 1.0))
