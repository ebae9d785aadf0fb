"""Notifications to subscribers, signed according to Standard Webhooks (ID-41, ID-42)."""

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import aiohttp

from interchain_events.distributor.core.messages import Post
from interchain_events.distributor.service.addresses import RefusedAddressError, guarded_connector

log = logging.getLogger("pubsub.distributor")

PREFIX: Final = "whsec_"
"""The optional beginning of a secret."""
FEWEST: Final = 16
"""The least number of bytes of a secret's key."""
MOST: Final = 128
"""The greatest number of bytes of a secret's key."""
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


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
        """Return the HTTP client.

        It is made on first use, because it needs a running event loop.
        """
        connector = guarded_connector(private=self._private)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def post(self, effect: Post) -> int | None:
        """Notify a subscriber and return the status of the answer, `None` without an answer.

        The body of the answer is not read.
        """
        body = _ENCODER.encode(effect.notice.body()).encode()
        now = int(time.time())
        headers = {"webhook-id": effect.webhook, "webhook-timestamp": str(now)}
        if effect.secret is not None:
            headers["webhook-signature"] = signature(effect.secret, effect.webhook, now, body)
        return await self.send(effect.endpoint, body, headers, effect.subscription)

    async def send(
        self, endpoint: str, body: bytes, headers: Mapping[str, str] | None = None, name: str = ""
    ) -> int | None:
        """POST a JSON body and return the status of the answer, `None` without an answer.

        `name` names the subscription in logs.
        """
        headers = {"Content-Type": "application/json", **(headers or {})}
        try:
            async with self._session.post(
                endpoint, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                return response.status
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            refused = getattr(error, "os_error", error)
            if isinstance(refused, RefusedAddressError):
                fields = {"subscription": name, "error": str(refused)}
                log.warning("a subscriber's address is refused", extra={"fields": fields})
            return None

    async def close(self) -> None:
        """Close the connections."""
        if "_session" in self.__dict__:
            await self._session.close()


def secret_bytes(secret: str) -> bytes:
    """Return the key of a secret: base64 with or without `whsec_`. Raises `ValueError`."""
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
