"""The guard of a server, which protects servers on this machine from pages of other sites (ND-28).

A browser sends the `Origin` of the page. Before a page may send other content types than those of
forms, the browser asks the server. If an attacker has rebound the name of a site to this machine's
address, the request has that name as `Host`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

JSON: Final = "application/json"
_ALLOWED: Final = {
    hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, DELETE",
    hdrs.ACCESS_CONTROL_ALLOW_HEADERS: "Authorization, Content-Type, Last-Event-ID, Prefer",
    hdrs.ACCESS_CONTROL_MAX_AGE: "600",
}
"""The headers of the answer to a browser's preflight request."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names by which a server may be called, and the origins of the pages that may call it."""

    host: str = "127.0.0.1"
    """The address at which the server listens."""
    names: tuple[str, ...] = ()
    """Further host names."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may call the server, `*` for all."""
    any_host: bool = False
    """Whether to accept every host name. This is safe if callers need keys, because pages of other
    sites do not have them."""
    local_pages: bool = False
    """Whether pages of all servers on this machine may call. Otherwise only the server's own pages
    and those of `origins` may call, because other people's programs may serve pages at other
    ports."""

    @property
    def external(self) -> bool:
        """Return whether other machines can connect."""
        return not is_loopback(self.host)

    def has_host(self, host: str | None) -> bool:
        """Return whether the `Host` of a request is a name of this server."""
        name = None if host is None else _host_of(f"//{host}")
        if name is None:
            return False
        known = {self.host.lower(), *(alias.lower() for alias in self.names)}
        # An attacker can rebind a name but not an address. So every address is accepted if other
        # machines can connect.
        return (
            self.any_host
            or is_loopback(name)
            or name in known
            or (self.external and _address(name) is not None)
        )

    def has_origin(self, origin: str | None, host: str | None = None) -> bool:
        """Return whether a page of an origin may call. Programs send no origin and may call.

        `host` is the `Host` of the request, which `has_host` accepted. A page whose origin has the
        same name and port is the server's own.
        """
        if origin is None or self.is_named(origin):
            return True
        if host is not None and _is_of(origin, host):
            return True
        if not self.local_pages:
            return False
        name = _host_of(origin)
        return name is not None and is_loopback(name)

    def is_named(self, origin: str | None) -> bool:
        """Return whether an origin is one of `origins`, whose pages may also read the answers."""
        return origin is not None and (origin in self.origins or "*" in self.origins)


LOCAL: Final = Names()
"""The names of a server that only this machine can reach."""


def is_loopback(name: str) -> bool:
    """Return whether a host name or address means this machine."""
    address = _address(name)
    return f".{name.lower()}".endswith(".localhost") if address is None else address.is_loopback


def guard(names: Names, *types: str) -> Middleware:
    """Return the middleware that refuses requests with 403 and 415.

    A body must have one of the content `types`, by default JSON, and must not be compressed.
    """
    allowed = types or (JSON,)

    @web.middleware
    async def let_in(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer a request by its handler, unless the guard refuses it."""
        host = request.headers.get(hdrs.HOST)
        if not names.has_host(host):
            raise _refused(web.HTTPForbidden, "the Host header does not name this server")
        if not names.has_origin(request.headers.get(hdrs.ORIGIN), host):
            raise _refused(web.HTTPForbidden, "pages of that origin may not call this server")
        if request.can_read_body:
            if request.content_type not in allowed:
                raise _refused(
                    web.HTTPUnsupportedMediaType,
                    f"the Content-Type must be: {' or '.join(allowed)}",
                )
            if request.headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":
                raise _refused(web.HTTPUnsupportedMediaType, "a body must not be compressed")
        return await handler(request)

    return let_in


def let_read(app: web.Application, names: Names) -> None:
    """Let pages of the named origins read the answers of an application (CORS).

    Before a request that a form cannot send, a browser asks with OPTIONS (a preflight request). A
    middleware answers it for all routes. The application must have the guard as its last middleware
    before this call.
    """

    @web.middleware
    async def answer_options(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer a preflight request of a named origin, and leave all others to their handlers."""
        is_preflight = request.method == hdrs.METH_OPTIONS and names.is_named(
            request.headers.get(hdrs.ORIGIN)
        )
        if is_preflight and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers:
            return web.Response(status=204, headers=_ALLOWED)
        return await handler(request)

    async def add_origin(request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers by which a browser lets a page of a named origin read the answer."""
        origin = request.headers.get(hdrs.ORIGIN)
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)
        if origin is not None and names.is_named(origin):
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = "*"

    if names.origins:
        app.middlewares.append(answer_options)
        # A signal is used because the handler of a stream sends the headers before a middleware
        # could change them.
        app.on_response_prepare.append(add_origin)


def _refused(kind: Callable[..., web.HTTPException], reason: str) -> web.HTTPException:
    """Return an error with its reason as text."""
    return kind(reason=reason, text=f"{reason}\n")


def _is_of(origin: str, host: str) -> bool:
    """Return whether an origin is that of the server with the `Host` of a request, port included.

    Both schemes are accepted, because a proxy that terminates TLS passes on the original name.
    """
    scheme, _, authority = origin.partition("://")
    return scheme in {"http", "https"} and authority.lower() == host.lower()


def _host_of(url: str) -> str | None:
    """Return the host name in a URL, `None` if there is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text, `None` if it is a name."""
    try:
        return ip_address(name)
    except ValueError:
        return None
