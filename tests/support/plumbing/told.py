"""Decorators for tests that are coroutines.

The decorator makes the first arguments of the coroutine. Its other parameters are fixtures.
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
    """Return a decorator that turns a coroutine into a test.

    `play` is called with a function that makes the coroutine from its first `made` arguments. If a
    fixture is named, `play` gets its value before that function.
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
    """Open a context in a thread with a loop of its own, and close it at the end."""
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
