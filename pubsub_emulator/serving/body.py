"""Bodies of requests, which come within a time (and, by `client_max_size` of the application, within a size)."""

import asyncio
from typing import Final

from aiohttp import web

PATIENCE: Final = 60.0
"""Seconds that a body may take."""


async def read_body(request: web.Request, seconds: float = PATIENCE) -> bytes:
    """The whole body. Raises `HTTPRequestTimeout` (408) and, where it is too large, `HTTPRequestEntityTooLarge`."""
    try:
        async with asyncio.timeout(seconds):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the rest of the request did not come\n") from None
