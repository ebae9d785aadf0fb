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
    """An event has no global id.

    The message is one of the codes of ID-21.
    """


def global_id(location: object) -> str:
    """Return the query parameter `hl`, decoded once.

    Raises `NoGlobalIdError` with the first code of ID-21 that holds.
    """
    if not isinstance(location, str):
        raise NoGlobalIdError("not-a-string")
    if len(location) > MOST_URL:
        raise NoGlobalIdError("too-long")
    return _found(location)


@lru_cache(1024)
def _found(location: str) -> str:
    """Return the id in a text that is short enough.

    Results are cached, because an event is read several times, once from each network.
    """
    match = _URL.fullmatch(location)
    if match is None or int((match[2] or ":0")[1:]) > MOST_PORT:
        raise NoGlobalIdError("not-a-url")
    query = location.partition("#")[0].partition("?")[2]
    parts = (part.partition("=") for part in query.split("&"))
    found = [value for name, _, value in parts if unquote_to_bytes(name) == b"hl"]
    if len(found) != 1:
        raise NoGlobalIdError("hl-repeated" if found else "hl-missing")
    return _decoded(found[0])


def _decoded(value: str) -> str:
    if not value:
        raise NoGlobalIdError("hl-empty")
    if not _ESCAPES.fullmatch(value):
        raise NoGlobalIdError("hl-escape")
    # Characters beyond ASCII are refused below.
    decoded = unquote_to_bytes(value).decode("latin-1")
    if not _VALUE.fullmatch(decoded):
        raise NoGlobalIdError("hl-characters")
    if len(decoded) > MOST_ID:
        raise NoGlobalIdError("hl-too-long")
    return decoded
