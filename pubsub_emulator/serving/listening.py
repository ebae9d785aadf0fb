"""An application that listens for the length of a block, and the log of every HTTP server here."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_NOT_OURS: Final = (HttpProcessingError, web.RequestPayloadError)

http_log: Final = logging.getLogger("pubsub.http")
http_log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], _NOT_OURS)))
"""Whoever sends a request that is no HTTP, or a damaged body, is answered or disconnected, and could fill a disk."""


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, grace: float, *, cancels: bool = False
) -> AsyncIterator[tuple[str, int]]:
    """Serve at a port, 0 for any; gives the address. Open requests have `grace` seconds to end.

    With `cancels`, a client that leaves ends its request at once.
    """
    runner = web.AppRunner(app, access_log=None, logger=http_log, handler_cancellation=cancels, shutdown_timeout=grace)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        address: tuple[str, int] = runner.addresses[0][:2]
        yield address
    finally:
        await runner.cleanup()
