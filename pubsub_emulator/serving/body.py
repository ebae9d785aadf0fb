"""Reading request bodies within a time limit.

The application's `client_max_size` limits their size.
"""

import asyncio
from typing import Final

from aiohttp import web

PATIENCE: Final = 60.0
"""The default time limit for a body, in seconds."""


async def read_body(request: web.Request, seconds: float = PATIENCE) -> bytes:
    """Return the whole body of a request.

    Raises `HTTPRequestTimeout` (408) if it does not arrive in time, and `HTTPRequestEntityTooLarge`
    if it is too large.
    """
    try:
        async with asyncio.timeout(seconds):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(
            text="the rest of the request did not arrive in time\n"
        ) from None
