"""POSTs to subscribers (ID-41, ID-42)."""

import json
import time
from typing import Final

import aiohttp

from pubsub_emulator.distributor.core.messages import Post
from pubsub_emulator.distributor.service.addresses import guarded_connector
from pubsub_emulator.distributor.service.signing import signature

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class Poster:
    """Notifies subscribers: no redirects, no private addresses unless allowed, a few seconds at most."""

    def __init__(self, *, private: bool = False, timeout: float = 5.0) -> None:
        self._private = private
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=guarded_connector(private=self._private), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def post(self, effect: Post) -> int | None:
        """The status of the answer, or `None` without an answer. The body is not read."""
        body = _ENCODER.encode(effect.notice.body()).encode()
        now = int(time.time())
        headers = {"Content-Type": "application/json", "webhook-id": effect.webhook, "webhook-timestamp": str(now)}
        if effect.secret is not None:
            headers["webhook-signature"] = signature(effect.secret, effect.webhook, now, body)
        try:
            async with self._open().post(
                effect.endpoint, data=body, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                return response.status
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            return None

    async def close(self) -> None:
        """Close connections."""
        if self._session is not None:
            await self._session.close()
