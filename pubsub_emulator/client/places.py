"""Addresses of nodes, also with a block: `ws://host:9944@12345678`, or @ and a block's hash."""

import re
from typing import Final

from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.files.shown import safe

_BLOCK: Final = re.compile(r"0x[0-9a-fA-F]{64}|[0-9]{1,10}")
"""A block's hash or number."""
_HOST: Final = re.compile(r"localhost|.*[.:/\[].*", re.DOTALL)
"""A host with a domain, a port or a path. It follows an @ if the URL has a user and password."""


def is_url(place: str | None) -> bool:
    """Return whether a place is the URL of a node."""
    return place is not None and place.startswith(("ws://", "wss://", "http://", "https://"))


def url_and_block(place: str) -> tuple[str, str | None]:
    """Split an address into the node's URL and the block, or `None` if it does not name a block.

    Raises `ClientError` if the text after the last @ is neither a block nor a host.
    """
    url, separator, block = place.rpartition("@")
    if not separator or "://" not in url or _HOST.fullmatch(block):
        return place, None
    if _BLOCK.fullmatch(block) is None:
        raise ClientError(
            f"{safe(place[:200])}: {safe(block[:80])!r} after the @ is neither a block's number nor"
            " its hash, which is 0x and 64 digits"
        )
    return url, block
