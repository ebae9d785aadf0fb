"""Threads for calls that compute, beside the event loop: both share one interpreter, and the loop comes first."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

LATE: Final = 0.02
"""Seconds after which a loop that comes to a result is late."""
SHARE: Final = 2
"""How many times as long as a call took the place of its thread stays empty then."""
MOST_PAUSE: Final = 4.0
"""Seconds that the place of a thread stays empty at most."""


class Beside:
    """A few threads; where the loop comes late to a result, a place stays empty for twice as long as that took."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="beside")
        self._places = asyncio.Semaphore(threads)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in a thread. Raises what it raises, and `RuntimeError` after the end."""
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
        """End: calls that wait are dropped, and a call that computes is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
