"""The guard of a server: a browser page from elsewhere must not reach one on this machine (ND-28).

A browser sends the page's `Origin`, and lets a page send other content types than forms only after the server agreed. A
page whose name was rebound to this machine's address is told by its `Host`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Names:
    """The names by which a server is called, and the origins of the pages that may call it.

    `host` is where it listens, `names` are further host names; `any_host` is for callers with keys: no page has those.
    """

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    any_host: bool = False

    @property
    def external(self) -> bool:
        """Whether others than this machine can connect."""
        return not is_loopback(self.host)

    def has_host(self, host: str | None) -> bool:
        """Whether the `Host` of a request is a name of this server."""
        name = None if host is None else _host_of(f"//{host}")
        if name is None:
            return False
        known = {self.host.lower(), *(each.lower() for each in self.names)}
        return self.any_host or is_loopback(name) or name in known or (self.external and _address(name) is not None)

    def has_origin(self, origin: str | None) -> bool:
        """Whether a page of that origin may call; programs have none."""
        if origin is None or origin in self.origins or "*" in self.origins:
            return True
        name = _host_of(origin)
        return name is not None and is_loopback(name)


LOCAL: Final = Names()
"""A server that only this machine can reach."""


def is_loopback(name: str) -> bool:
    """Whether a host name means this machine."""
    address = _address(name)
    return f".{name.lower()}".endswith(".localhost") if address is None else address.is_loopback


def guard(names: Names, *types: str) -> Middleware:
    """The middleware that refuses with 403 and 415; bodies are of one of `types` (JSON) and not compressed."""
    allowed = types or (JSON,)

    @web.middleware
    async def let_in(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not names.has_host(request.headers.get(hdrs.HOST)):
            raise _refused(web.HTTPForbidden, "this server does not go by that name")
        if not names.has_origin(request.headers.get(hdrs.ORIGIN)):
            raise _refused(web.HTTPForbidden, "pages of that origin may not call this server")
        if request.can_read_body:
            if request.content_type not in allowed:
                raise _refused(web.HTTPUnsupportedMediaType, f"bodies are of Content-Type: {' or '.join(allowed)}")
            if request.headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":
                raise _refused(web.HTTPUnsupportedMediaType, "requests are not compressed")
        return await handler(request)

    return let_in


def _refused(kind: Callable[..., web.HTTPException], why: str) -> web.HTTPException:
    return kind(reason=why, text=f"{why}\n")


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None
