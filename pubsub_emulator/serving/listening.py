"""An application that listens for the length of a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from pubsub_emulator.serving.log import http_log


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
