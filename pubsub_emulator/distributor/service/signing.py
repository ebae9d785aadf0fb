"""Standard Webhooks: the secret of a subscription and the signature of a POST (ID-42)."""

import base64
import binascii
import hashlib
import hmac
from typing import Final

PREFIX: Final = "whsec_"
FEWEST: Final = 16
MOST: Final = 128


def secret_bytes(secret: str) -> bytes:
    """The key of a secret: base64, with or without `whsec_`. Raises `ValueError`."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("whsec_ and base64 are needed") from None
    if not FEWEST <= len(key) <= MOST:
        raise ValueError(f"{FEWEST} to {MOST} bytes are needed")
    return key


def signature(secret: str, webhook: str, timestamp: int, body: bytes) -> str:
    """The value of header `webhook-signature`."""
    signed = f"{webhook}.{timestamp}.".encode() + body
    digest = hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()
