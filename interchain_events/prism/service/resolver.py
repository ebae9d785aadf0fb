"""The HTTP front of DID resolution, as DIF's Universal Resolver asks drivers (PR-71).

    GET /1.0/identifiers/DID

`Accept` selects the form: the document alone as `application/did` (the default),
`application/did+ld+json`, `application/did+json` or `application/json`, or the whole result as
`application/did-resolution` or `application/ld+json;profile="https://w3id.org/did-resolution"`. A
result without a document is always whole. The status is 200, or 400 if the text is not a DID, 404
if the DID is not known, 406 if no form is acceptable, 410 if the DID has ended, 501 for another
method, or 503 if the database does not answer.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web

from interchain_events.database.errors import StoreError
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers, UnknownCaller
from interchain_events.prism.core.document import DID_TYPE, Resolution, failed
from interchain_events.prism.tables.resolver import Resolver
from pubsub_emulator.serving.guard import Names, guard, let_read
from pubsub_emulator.serving.listening import listening

PATH: Final = "/1.0/identifiers/"
"""The path of the Universal Resolver, before the DID."""
RESOLUTION_TYPE: Final = "application/did-resolution"
"""The media type of a whole result."""
_OLD_TYPE: Final = 'application/ld+json;profile="https://w3id.org/did-resolution"'
"""The media type of a whole result before 2025."""
_DOCUMENTS: Final = (
    DID_TYPE,
    "application/did+ld+json",
    "application/did+json",
    "application/json",
)
"""The media types of a document. Callers that accept any type get the first one."""
_WHOLE: Final = (RESOLUTION_TYPE, _OLD_TYPE)
_MOST_RANGES: Final = 32
"""The greatest number of media types that are read from a caller's header."""
_GRACE_SECONDS: Final = 2.0
_OPTIONS: Final = ("versionId", "versionTime")
"""Options that are refused, because only the current version of a DID can be resolved."""
_STATUS: Final = {
    "INVALID_DID": HTTPStatus.BAD_REQUEST,
    "INVALID_OPTIONS": HTTPStatus.BAD_REQUEST,
    "NOT_FOUND": HTTPStatus.NOT_FOUND,
    "REPRESENTATION_NOT_SUPPORTED": HTTPStatus.NOT_ACCEPTABLE,
    "METHOD_NOT_SUPPORTED": HTTPStatus.NOT_IMPLEMENTED,
    "INTERNAL_ERROR": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The HTTP status of each error."""


class _Front:
    """The route of one resolver."""

    def __init__(self, resolver: Resolver, names: Names, callers: Callers) -> None:
        self._resolver = resolver
        self._names = names
        self._callers = callers

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(middlewares=[guard(self._names)])
        let_read(app, self._names)
        app.router.add_get(PATH + "{did:.*}", self.resolve)
        return app

    async def resolve(self, request: web.Request) -> web.Response:
        """Resolve the DID in the path."""
        try:
            self._callers.name(request.headers.get(hdrs.AUTHORIZATION, ""), request.remote or "")
        except UnknownCaller as error:
            raise web.HTTPUnauthorized(
                text=f"{error}\n", headers={hdrs.WWW_AUTHENTICATE: "Bearer"}
            ) from None
        wanted = media_type(",".join(request.headers.getall(hdrs.ACCEPT, ["*/*"])))
        if wanted is None:
            result = failed(
                "REPRESENTATION_NOT_SUPPORTED",
                "Representation not supported",
                f"a DID is represented as {', '.join((*_DOCUMENTS, *_WHOLE))}",
            )
        elif refused := [option for option in _OPTIONS if option in request.query]:
            result = failed("INVALID_OPTIONS", "Invalid options", f"{refused[0]} is not supported")
        else:
            try:
                result = await asyncio.to_thread(self._resolver.resolve, request.match_info["did"])
            except StoreError as error:
                result = failed("INTERNAL_ERROR", "The database does not answer", str(error))
        return _answer(result, wanted or RESOLUTION_TYPE)


def _answer(result: Resolution, wanted: str) -> web.Response:
    """Return the answer with a result, in the form `wanted` if there is a document."""
    status = HTTPStatus.OK
    if result.error is not None:
        status = _STATUS[result.error.name]
    elif result.is_deactivated:
        status = HTTPStatus.GONE
    body = result.whole()
    form = wanted if wanted in _WHOLE else RESOLUTION_TYPE
    if result.document is not None and wanted in _DOCUMENTS:
        body = result.document
        form = wanted
    response = web.json_response(body, status=status)
    # These media types have no parameter `charset`.
    response.headers[hdrs.CONTENT_TYPE] = form
    return response


def media_type(accept: str) -> str | None:
    """Return the served media type that a caller prefers, `None` if it accepts none of them.

    `accept` is the value of the header `Accept`. Of ranges with equal weights, the first counts.
    """
    best: tuple[float, str] | None = None
    for media_range in accept.split(",")[:_MOST_RANGES]:
        name, *parameters = (part.strip() for part in media_range.lower().split(";"))
        weight = 1.0
        profile = ""
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                weight = _weight(value)
            elif key.strip() == "profile":
                profile = value.strip().strip('"')
        served: str | None = None
        if name in {"*/*", "application/*", ""}:
            served = DID_TYPE
        elif name in {*_DOCUMENTS, RESOLUTION_TYPE}:
            served = name
        elif name == "application/ld+json":
            is_whole = profile == "https://w3id.org/did-resolution"
            served = _OLD_TYPE if is_whole else "application/did+ld+json"
        best_weight = 0.0 if best is None else best[0]
        if served is not None and weight > best_weight:
            best = (weight, served)
    return None if best is None else best[1]


def _weight(text: str) -> float:
    """Return the weight in a range, 0 if it is not a number from 0 to 1."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0


@asynccontextmanager
async def serve_resolver(
    resolver: Resolver,
    host: str,
    port: int,
    *,
    callers: Callers = EVERYBODY,
    tls: ssl.SSLContext | None = None,
    origins: tuple[str, ...] = (),
) -> AsyncIterator[str]:
    """Serve the resolver at a port, 0 for any free one. The context yields the URL before the DID.

    `origins` are those of pages that may call and read the answers. Raises `CannotListen`.
    """
    # If callers need tokens, any host name is allowed, because pages of other sites have no token.
    names = Names(host, origins=origins, any_host=callers.names is not None)
    app = _Front(resolver, names, callers).application()
    async with listening(app, host, port, _GRACE_SECONDS, tls=tls) as (name, bound):
        scheme = "http" if tls is None else "https"
        is_ipv6 = ":" in name
        url_host = f"[{name}]" if is_ipv6 else name
        yield f"{scheme}://{url_host}:{bound}{PATH}"
