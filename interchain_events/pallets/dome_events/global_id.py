"""The global id of an event, which its `dataLocation` contains (ID-20, ID-21)."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from pubsub_emulator.primitives.errors import PubsubError

MOST_URL: Final = 2048
MOST_ID: Final = 256
MOST_PORT: Final = 65535

_URL: Final = re.compile(
    r"(?ai)https?://([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:\d{1,5})?([/?#][!-\[\]-~]*)?"
)
_ESCAPES: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_VALUE: Final = re.compile(r"[A-Za-z0-9._~:/+=,@-]+")


class NoGlobalIdError(PubsubError):
    """Raised if an event has no global id. The message is one of the codes of ID-21."""


def global_id(location: object) -> str:
    """Return the query parameter `hl` of a URL, decoded once.

    Raises `NoGlobalIdError` with the first code of ID-21 that applies.
    """
    if not isinstance(location, str):
        raise NoGlobalIdError("not-a-string")
    if len(location) > MOST_URL:
        raise NoGlobalIdError("too-long")
    return _parsed(location)


@lru_cache(1024)
def _parsed(location: str) -> str:
    """Return the id in a text that is not too long.

    Results are cached, because each event is read several times, once from each network.
    """
    match = _URL.fullmatch(location)
    if match is None or int((match[2] or ":0")[1:]) > MOST_PORT:
        raise NoGlobalIdError("not-a-url")
    query = location.partition("#")[0].partition("?")[2]
    parts = (part.partition("=") for part in query.split("&"))
    values = [value for name, _, value in parts if unquote_to_bytes(name) == b"hl"]
    if len(values) != 1:
        raise NoGlobalIdError("hl-repeated" if values else "hl-missing")
    return _decoded(values[0])


def _decoded(value: str) -> str:
    """Return the decoded value of the parameter. Raises `NoGlobalIdError`."""
    if not value:
        raise NoGlobalIdError("hl-empty")
    if not _ESCAPES.fullmatch(value):
        raise NoGlobalIdError("hl-escape")
    # Latin-1 decodes any bytes. Characters beyond ASCII are refused below.
    decoded = unquote_to_bytes(value).decode("latin-1")
    if not _VALUE.fullmatch(decoded):
        raise NoGlobalIdError("hl-characters")
    if len(decoded) > MOST_ID:
        raise NoGlobalIdError("hl-too-long")
    return decoded
