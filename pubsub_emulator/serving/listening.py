"""A web application that listens inside of a context, and the log of all HTTP servers."""

import errno
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from pubsub_emulator.primitives.errors import PubsubError

_NOT_OURS: Final = (HttpProcessingError, web.RequestPayloadError)
"""Errors that clients cause with requests that are not HTTP or with damaged bodies."""

http_log: Final = logging.getLogger("pubsub.http")
"""The log of all HTTP servers. Malformed requests are not logged, because a client could fill the
disk with them."""
http_log.addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], _NOT_OURS))
)


MOST_LINE: Final = 8_190
"""The maximum size of a request's first line, in bytes."""


class CannotListen(PubsubError):
    """The server cannot listen on a port."""

    is_infrastructure = True

    @classmethod
    def at(cls, host: str, port: int, error: OSError) -> "CannotListen":
        """Return the error for a port, with a hint if the port is in use."""
        place = f"cannot listen on {host} port {port}"
        if error.errno == errno.EADDRINUSE:
            return cls(f"{place}: it is in use; port 0 takes any free one")
        return cls(f"{place}: {error.strerror or error}")


@asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    grace: float,
    *,
    cancels: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[str, int]]:
    """Serve an application inside the `async with` block, and yield its host and port.

    Port 0 takes any free port. At the end, open requests have `grace` seconds to finish. With
    `cancels`, a request is cancelled as soon as its client disconnects. `tls` has the certificate
    for HTTPS. Raises `CannotListen`.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=http_log,
        handler_cancellation=cancels,
        shutdown_timeout=grace,
        max_line_size=MOST_LINE,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError as error:
            raise CannotListen.at(host, port, error) from None
        address: tuple[str, int] = runner.addresses[0][:2]
        yield address
    finally:
        await runner.cleanup()
