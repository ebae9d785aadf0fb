"""Errors of the HTTP interface as problem+json, and bodies of limited size (ID-11, ID-12)."""

import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from interchain_events.database.errors import StoreError
from interchain_events.distributor.event import BadEventError
from interchain_events.pallets.dome_events.global_id import NoGlobalIdError
from pubsub_emulator.serving.body import read_body

log = logging.getLogger("pubsub.distributor")

MOST_BODY: Final = 64 * 1024
"""The greatest size of a request's body, in bytes."""
BODY_SECONDS: Final = 10.0
"""The longest time that a client may take to send a body."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Problem(Exception):
    """An error that is sent to a client (RFC 9457).

    `code` becomes the type `urn:ied:<code>`. `detail` is an explanation for people.
    """

    def __init__(self, status: HTTPStatus, code: str, detail: str = "") -> None:
        super().__init__(detail or code)
        self.status = status
        self.code = code
        self.detail = detail

    def response(self) -> web.Response:
        """Return the response with this error."""
        body = {
            "type": f"urn:ied:{self.code}",
            "title": self.status.phrase,
            "status": int(self.status),
        }
        if self.detail:
            body["detail"] = self.detail
        response = web.json_response(
            body, status=self.status, content_type="application/problem+json"
        )
        if self.status is HTTPStatus.UNAUTHORIZED:
            response.headers["WWW-Authenticate"] = "Bearer"
        if self.status is HTTPStatus.TOO_MANY_REQUESTS:
            response.headers["Retry-After"] = "1"
        return response


def bad(code: str, detail: str = "") -> Problem:
    """Return a problem with status 400."""
    return Problem(HTTPStatus.BAD_REQUEST, code, detail)


def not_found(detail: str = "") -> Problem:
    """Return a problem with status 404."""
    return Problem(HTTPStatus.NOT_FOUND, "not-found", detail)


_NO_ID: Final = {
    "not-a-string": "a string is needed",
    "too-long": "too long for a URL",
    "not-a-url": "not an http or https URL",
    "hl-missing": "the query has no parameter hl",
    "hl-repeated": "the query has two or more values of hl",
    "hl-empty": "the parameter hl is empty",
    "hl-escape": "the parameter hl has a % that is not followed by two hex digits",
    "hl-characters": "the parameter hl has characters that ids do not have",
    "hl-too-long": "the parameter hl is too long",
}
"""The reasons why a `dataLocation` has no global id, by the codes of ID-21."""
_OF_AIOHTTP: Final = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too-large",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "not-json",
    HTTPStatus.REQUEST_TIMEOUT: "too-slow",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.METHOD_NOT_ALLOWED: "method-not-allowed",
}
"""The codes for errors that aiohttp raises itself."""


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error as problem+json.

    Defects are logged and answered without details. Broken connections are left to aiohttp.
    """
    try:
        return await handler(request)
    except Problem as problem:
        return problem.response()
    except NoGlobalIdError as error:
        return bad(str(error), f"dataLocation: {_NO_ID.get(str(error), 'no global id')}").response()
    except BadEventError as error:
        return bad("bad-event", str(error)).response()
    except StoreError as error:
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "store-down", str(error)).response()
    except web.HTTPException as error:
        status = HTTPStatus(error.status)
        response = Problem(status, _OF_AIOHTTP.get(status, "http"), error.reason).response()
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except (ConnectionError, TimeoutError):
        raise
    except Exception:
        log.exception("a defect")
        return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "defect").response()


async def json_body(request: web.Request) -> object:
    """Return the JSON in a request's body.

    Raises `Problem`, and aiohttp's own error if the body is too large.
    """
    if request.content_type != "application/json":
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "not-json",
            "Content-Type: application/json is needed",
        )
    return parse_json(await read_body(request, BODY_SECONDS))


def parse_json(body: bytes) -> object:
    """Return the value of JSON in UTF-8.

    Raises `Problem`. Objects with a name twice, NaN and infinities are refused, too.
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise bad("not-json", "the body is not JSON in UTF-8") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object's members. Raises `ValueError` if a name occurs twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _no_constant(name: str) -> None:
    """Refuse a constant (NaN or an infinity) that Python accepts but JSON does not have."""
    raise ValueError(name)
