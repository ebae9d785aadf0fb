"""Calls that compute leave the event loop its time."""

import asyncio
import threading
import time

import pytest

from pubsub_emulator.node.server.beside import LATE, Beside


async def _next_began(late: float) -> bool:
    """Whether, a few turns of the loop after the first call's result, the second has begun."""
    beside = Beside(threads=1)
    computed, second = threading.Event(), threading.Event()

    def compute() -> str:
        time.sleep(0.5)
        computed.set()
        return "done"

    try:
        first = asyncio.create_task(beside.run(compute))
        await asyncio.sleep(0)
        after = asyncio.create_task(beside.run(second.set))
        computed.wait()
        time.sleep(late)  # noqa: ASYNC251  # the loop has other work
        assert await first == "done"
        await asyncio.sleep(0.05)
        began = second.is_set()
        await after
        assert second.is_set()
        return began
    finally:
        beside.close()


def test_a_late_loop_gets_as_much_time_as_the_call_took() -> None:
    """The next call waits for as long as the one before it computed."""
    assert not asyncio.run(_next_began(2 * LATE))


def test_a_call_that_failed_gives_its_place_back() -> None:
    """As many failures as there are threads, and one more call."""

    async def story() -> int:
        beside = Beside(threads=1)
        try:
            for _ in range(3):
                with pytest.raises(ZeroDivisionError):
                    await beside.run(lambda: 1 // 0)
            return await beside.run(lambda: 7)
        finally:
            beside.close()

    assert asyncio.run(story()) == 7
