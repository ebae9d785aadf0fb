"""Cursors: how far a client has read, as text that only this log takes back (EV-20).

base64url( u8 version ++ [u8; 8] log ++ u32 epoch ++ u64 seq ++ [u8; 4] check )       big endian

`log` is blake2b of the network's name and the log's id, `check` blake2b of all before it: against damage, not against
forgery, since a cursor opens nothing.
"""

import base64
import binascii
from hashlib import blake2b
from typing import Final, NamedTuple

from pubsub_emulator.events.errors import BadCursor

_VERSION: Final = 1
_SIZE: Final = 25


class Cursor(NamedTuple):
    """Everything up to `seq` of the log as of `epoch` was seen."""

    epoch: int
    seq: int


def log_tag(network: str, log_id: bytes) -> bytes:
    """8 bytes that identify a log in its cursors."""
    return blake2b(network.encode() + b"\0" + log_id, digest_size=8).digest()


def encode_cursor(cursor: Cursor, tag: bytes) -> str:
    """The cursor as text."""
    body = bytes((_VERSION,)) + tag + cursor.epoch.to_bytes(4, "big") + cursor.seq.to_bytes(8, "big")
    return base64.urlsafe_b64encode(body + _check(body)).decode().rstrip("=")


def decode_cursor(text: str, tag: bytes) -> Cursor:
    """The cursor of a text. Raises `BadCursor` when it is damaged or of another log."""
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise BadCursor("the cursor is damaged") from None
    body, check = raw[:-4], raw[-4:]
    if len(raw) != _SIZE or check != _check(body) or body[0] != _VERSION:
        raise BadCursor("the cursor is damaged")
    if body[1:9] != tag:
        raise BadCursor("the cursor is of another log")
    cursor = Cursor(int.from_bytes(body[9:13], "big"), int.from_bytes(body[13:21], "big"))
    if text != encode_cursor(cursor, tag):
        raise BadCursor("the cursor is damaged")  # base64 leaves four bits that say nothing
    return cursor


def _check(body: bytes) -> bytes:
    return blake2b(body, digest_size=4, person=b"cursor").digest()
