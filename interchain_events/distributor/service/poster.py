"""Notifications to subscribers, signed according to Standard Webhooks (ID-41, ID-42)."""

import base64
import errno
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Final, NamedTuple

import aiohttp

from interchain_events.distributor.core.messages import Post
from interchain_events.distributor.service.adapters import cause_of
from interchain_events.distributor.service.addresses import RefusedAddressError, guarded_connector

log = logging.getLogger("pubsub.distributor")

PREFIX: Final = "whsec_"
"""The optional prefix of a secret."""
FEWEST: Final = 16
"""The least number of bytes of a secret's key."""
MOST: Final = 128
"""The greatest number of bytes of a secret's key."""
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
MOST_RETRY_AFTER: Final = 86_400
"""The longest wait that is accepted from `Retry-After`, in seconds."""


class Sent(NamedTuple):
    """A receiver's answer to a notification."""

    status: int | None
    """The HTTP status, `None` without an answer."""
    cause: str = ""
    """The reason why there is no answer, empty if there is one."""
    retry_after: int = 0
    """The wait in ms before the next request for which the receiver asks, 0 if it does not ask."""


def _is_closed(error: BaseException) -> bool:
    """Return whether a request failed because the receiver closed the connection."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return True
    return isinstance(error, OSError) and error.errno in {errno.ECONNRESET, errno.EPIPE}


def _retry_after(response: aiohttp.ClientResponse) -> int:
    """Return the wait in ms for which a failed answer asks, 0 if it does not ask for any.

    The header `Retry-After` has seconds or a date (RFC 9110).
    """
    text = response.headers.get("Retry-After", "").strip()
    if response.status // 100 == 2 or not text:
        return 0
    if text.isascii() and text.isdecimal():
        seconds = int(text[:12])
    else:
        try:
            date = parsedate_to_datetime(text)
            # Rounded up, so that the wait does not end before the date.
            seconds = int(date.timestamp() - time.time()) + 1
        except (ValueError, OverflowError):
            return 0
    return 1000 * min(max(seconds, 0), MOST_RETRY_AFTER)


class Poster:
    """Sends notifications to subscribers.

    Redirects are not followed, and private addresses are refused unless `private` allows them.
    `timeout` is in seconds.
    """

    def __init__(self, *, private: bool = False, timeout: float = 5.0) -> None:
        self._private = private
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Return the HTTP client. It is created on first use, as it needs a running event loop."""
        connector = guarded_connector(private=self._private)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def post(self, effect: Post) -> Sent:
        """Notify a subscriber and return its answer. The body of the answer is not read."""
        body = _ENCODER.encode(effect.notice.body()).encode()
        now = int(time.time())
        headers = {"webhook-id": effect.webhook, "webhook-timestamp": str(now)}
        if effect.secret is not None:
            headers["webhook-signature"] = signature(effect.secret, effect.webhook, now, body)
        return await self.send(effect.endpoint, body, headers, effect.subscription)

    async def send(
        self, endpoint: str, body: bytes, headers: Mapping[str, str] | None = None, name: str = ""
    ) -> Sent:
        """POST a JSON body and return the receiver's answer.

        `name` is the subscription's name for logs. If the receiver closes the connection just as
        the request is sent on it, the request is sent once more. This does no harm, because
        receivers recognize repetitions by the id.
        """
        headers = {"Content-Type": "application/json", **(headers or {})}
        for is_last in (False, True):
            try:
                async with self._session.post(
                    endpoint,
                    data=body,
                    headers=headers,
                    timeout=self._timeout,
                    allow_redirects=False,
                ) as response:
                    return Sent(response.status, retry_after=_retry_after(response))
            except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
                if _is_closed(error) and not is_last:
                    continue
                refused = getattr(error, "os_error", error)
                if isinstance(refused, RefusedAddressError):
                    fields = {"subscription": name, "error": str(refused)}
                    log.warning("a subscriber's address is refused", extra={"fields": fields})
                    return Sent(None, str(refused))
                return Sent(None, cause_of(error, self._timeout.total))
        raise AssertionError("the second request returns")

    async def close(self) -> None:
        """Close the connections."""
        # The session is a cached property. It must not be opened only to be closed.
        if "_session" in self.__dict__:
            await self._session.close()


def secret_bytes(secret: str) -> bytes:
    """Return the key of a secret, which is base64 with or without `whsec_`.

    Raises `ValueError` if it is not, or if the key is too short or too long.
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise ValueError("whsec_ and base64 are needed") from None
    if not FEWEST <= len(key) <= MOST:
        raise ValueError(f"{FEWEST} to {MOST} bytes are needed")
    return key


def signature(secret: str, webhook: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`."""
    signed = f"{webhook}.{timestamp}.".encode() + body
    digest = hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()
