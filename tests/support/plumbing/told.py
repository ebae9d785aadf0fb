"""Tests that are coroutines: what they are about is made for them, and their other parameters are
fixtures.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

Told = Callable[..., Awaitable[None]]
T = TypeVar("T")


def told(
    play: Callable[..., None], fixture: str = "", made: int = 1
) -> Callable[[Told], Callable[..., None]]:
    """Tests of coroutines whose first `made` parameters `play` gives: `play(story)`, or
    `play(value, story)` where a fixture is named.
    """

    def decorate(what: Told) -> Callable[..., None]:
        named = signature(what)
        rest = list(named.parameters.values())[made:]
        own = {each.name for each in rest}

        @wraps(what)
        def test(**given: Any) -> None:
            first = [given[fixture]] if fixture else []
            more = {name: each for name, each in given.items() if name in own}
            play(*first, lambda *things: what(*things, **more))

        if fixture and fixture not in own:
            rest.append(Parameter(fixture, Parameter.KEYWORD_ONLY))
        test.__dict__["__signature__"] = named.replace(parameters=rest)
        return test

    return decorate


alone = told(lambda story: asyncio.run(asyncio.wait_for(story(), 300)), made=0)
"""A test that is a coroutine, of five minutes at most."""


@contextmanager
def beside(opening: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """What is opened in a thread of its own, where its loop runs up to the end of the block."""
    opened: list[T] = []
    ready, end = threading.Event(), threading.Event()

    async def hold() -> None:
        async with opening() as made:
            opened.append(made)
            ready.set()
            await asyncio.to_thread(end.wait)

    thread = threading.Thread(target=lambda: asyncio.run(hold()))
    thread.start()
    try:
        assert ready.wait(60)
        yield opened[0]
    finally:
        end.set()
        thread.join()
