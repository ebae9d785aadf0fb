"""Threads for calls that compute, beside the event loop.

Python runs one thread at a time, so that computing threads delay the event loop. If that happens,
they pause.
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

    If the event loop was late to receive the result of a call, the call's slot is free again only
    after a pause of `SHARE` times the call's duration.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="beside")
        self._places = asyncio.Semaphore(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in a thread and return its result.

        Raises its errors, and `RuntimeError` after `close`.
        """
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        began = ended = loop.time()

        def timed() -> T:
            nonlocal ended
            try:
                return work()
            finally:
                ended = loop.time()

        try:
            return await loop.run_in_executor(self._pool, timed)
        finally:
            pause = min(SHARE * (ended - began), MOST_PAUSE) if loop.time() - ended > LATE else 0.0
            loop.call_later(pause, self._places.release)

    def close(self) -> None:
        """Stop. Waiting calls are dropped, and running calls are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
