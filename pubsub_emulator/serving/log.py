"""The log of every HTTP server here: defects of this program, not requests that are no HTTP."""

import logging
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_NOT_OURS: Final = (HttpProcessingError, web.RequestPayloadError)

http_log: Final = logging.getLogger("pubsub.http")
http_log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], _NOT_OURS)))
"""Whoever sends a request that is no HTTP, or a damaged body, is answered or disconnected, and could fill a disk."""
