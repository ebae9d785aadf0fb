"""A web application that a test serves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from pubsub_emulator.serving.listening import listening


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    """Serve an application at a free port of this machine inside of the context; yield its URL."""
    async with listening(app, "127.0.0.1", 0, grace=5) as (host, port):
        yield f"http://{host}:{port}"
