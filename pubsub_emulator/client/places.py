"""Addresses of nodes with a block: `ws://host:9944@12345678`, or @ and a block's hash."""

import re
from typing import Final

from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.files.shown import safe

_BLOCK: Final = re.compile(r"0x[0-9a-fA-F]{64}|[0-9]{1,10}")
"""A block's hash or number."""
_HOST: Final = re.compile(r"localhost|.*[.:/\[].*", re.DOTALL)
"""The text after the @ of a user's name and password: a host with a domain, a port or a path."""


def url_and_block(place: str) -> tuple[str, str | None]:
    """Split an address into the node's URL and its block, which is `None` if it names none.

    Raises `ClientError` if the text after the last @ is neither a block nor a host.
    """
    url, mark, block = place.rpartition("@")
    if not mark or "://" not in url or _HOST.fullmatch(block):
        return place, None
    if _BLOCK.fullmatch(block) is None:
        raise ClientError(
            f"{safe(place[:200])}: {safe(block[:80])!r} after the @ is neither a block's number nor"
            " its hash, which is 0x and 64 digits"
        )
    return url, block
