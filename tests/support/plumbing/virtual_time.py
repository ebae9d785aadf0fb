"""An event loop whose clock jumps instead of sleeping.

    run(story(), delay=lambda: 0.0)

No work is done in threads, so the draws alone decide a run. Work for a worker thread is done at
once, and its result is returned after `delay()` seconds of the clock. So other events may come
before the result.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Clock(selectors.DefaultSelector):
    """Nothing is ever ready; waiting moves the time."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.now += max(timeout, 0.0)
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, delay: Callable[[], float]) -> None:
        self._clock = _Clock()
        self._delay = delay
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(
        self, _executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":  # type: ignore[override]  # given whole
        answer: asyncio.Future[T] = self.create_future()
        try:
            found = func(*args)
        except Exception as error:  # noqa: BLE001  # it is the caller's
            self._hand_over(answer, answer.set_exception, error)
        else:
            self._hand_over(answer, answer.set_result, found)
        return answer

    def _hand_over(
        self, answer: "asyncio.Future[T]", give: Callable[[Any], None], what: Any
    ) -> None:
        def now() -> None:
            if not answer.done():
                give(what)

        seconds = self._delay()
        if seconds:
            self.call_later(seconds, now)
        else:
            now()


def run(story: Coroutine[Any, Any, T], delay: Callable[[], float]) -> T:
    """Run to the end. Raises `RuntimeError` when everybody waits for somebody else."""
    with asyncio.Runner(loop_factory=lambda: _Loop(delay)) as runner:
        return runner.run(story)
