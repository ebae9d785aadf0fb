"""Cursors: the position of a client in a log, as text that only this log accepts (EV-20).

The text is base64url of

    u8 version ++ [u8; 8] log ++ u32 epoch ++ u64 seq ++ [u8; 4] check       (big endian)

`log` is the blake2b hash of the network's name and the log's id. `check` is the blake2b hash of
the bytes before it. It detects damage but not forgery, because a cursor does not give any rights.
"""

import base64
import binascii
from hashlib import blake2b
from typing import Final, NamedTuple

from interchain_events.events.errors import BadCursor

_VERSION: Final = 1
_SIZE: Final = 25


class Cursor(NamedTuple):
    """A position in a log, up to which everything has been delivered."""

    epoch: int
    """The epoch of the log to which `seq` belongs."""
    seq: int
    """The last `seq` that was delivered or skipped."""


def log_tag(network: str, log_id: bytes) -> bytes:
    """Return the 8 bytes that identify a log in its cursors."""
    return blake2b(network.encode() + b"\0" + log_id, digest_size=8).digest()


def encode_cursor(cursor: Cursor, tag: bytes) -> str:
    """Return a cursor as text. `tag` is the log's `log_tag`."""
    body = (
        bytes((_VERSION,)) + tag + cursor.epoch.to_bytes(4, "big") + cursor.seq.to_bytes(8, "big")
    )
    return base64.urlsafe_b64encode(body + _check(body)).decode().rstrip("=")


def decode_cursor(text: str, tag: bytes) -> Cursor:
    """Return the cursor of a text.

    Raises `BadCursor` if the text is damaged or belongs to another log.
    """
    try:
        raw = base64.b64decode(
            text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True
        )
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise BadCursor("the cursor is damaged") from None
    body = raw[:-4]
    check = raw[-4:]
    if len(raw) != _SIZE or check != _check(body) or body[0] != _VERSION:
        raise BadCursor("the cursor is damaged")
    if body[1:9] != tag:
        raise BadCursor("the cursor is of another log")
    cursor = Cursor(int.from_bytes(body[9:13], "big"), int.from_bytes(body[13:21], "big"))
    # The last digit of base64 has four unused bits, so several texts decode to the same bytes.
    if text != encode_cursor(cursor, tag):
        raise BadCursor("the cursor is damaged")
    return cursor


def _check(body: bytes) -> bytes:
    """Return the check value of a cursor's bytes."""
    return blake2b(body, digest_size=4, person=b"cursor").digest()
