"""The limit of open sockets, whatever they turn out to want (ND-29)."""

import asyncio
from typing import Final, cast

from aiohttp import web

_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Door:
    """Gives each new socket its protocol: a server's, or one that says that there is no room."""

    def __init__(self, server: web.Server, most: int) -> None:
        self._server = server
        self._most = most

    def __call__(self) -> asyncio.BaseProtocol:
        """The protocol of a socket that has just connected."""
        return _Full() if len(self._server.connections) >= self._most else self._server()


class _Full(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say it at once; what the client sends is not read."""
        leaving = cast("asyncio.Transport", transport)
        leaving.write(_FULL)
        leaving.close()
