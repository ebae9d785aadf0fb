"""Threads for calls that compute, beside the event loop.

Python runs only one thread at a time, so computing threads delay the event loop. If they delay it
too much, they pause.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

LATE: Final = 0.02
"""The delay of the event loop, in seconds, from which a thread pauses."""
SHARE: Final = 2
"""The length of the pause as a multiple of the time that the call took."""
MOST_PAUSE: Final = 4.0
"""The maximum length of a pause in seconds."""


class Beside:
    """A limited number of threads that leave the event loop enough time.

    If the event loop received the result of a call late, the call's slot stays occupied for a pause
    of `SHARE` times the call's duration.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="beside")
        self._slots = asyncio.Semaphore(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in a thread and return its result.

        Raises its errors, and `RuntimeError` after `close`.
        """
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        began = loop.time()
        ended = began

        def timed() -> T:
            nonlocal ended
            try:
                return work()
            finally:
                ended = loop.time()

        try:
            return await loop.run_in_executor(self._pool, timed)
        finally:
            pause = 0.0
            if loop.time() - ended > LATE:
                pause = min(SHARE * (ended - began), MOST_PAUSE)
            loop.call_later(pause, self._slots.release)

    def close(self) -> None:
        """Stop. Waiting calls are dropped, and running calls are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
