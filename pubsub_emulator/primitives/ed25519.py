"""Ed25519 signatures (RFC 8032, deterministic), with which collators seal headers.

A signature is accepted by the rule of RFC 8032 with cofactor: `8 s B = 8 R + 8 k A`, canonical
encodings only, and `s` below the order.

OpenSSL checks the stricter `s B = R + k A` in a third of the time, but it accepts keys that are not
canonical. So this module checks that the key is canonical, accepts each signature that OpenSSL
accepts, and lets pycryptodome decide about the others.
"""

from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_LENGTH: Final = 32
PRIME: Final = (1 << 255) - 19
"""The prime of the field of the curve's coordinates."""


@lru_cache(maxsize=1024)
def _secret(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)


@lru_cache(maxsize=1024)
def _public(key: bytes) -> Ed25519PublicKey | None:
    """Return the key if it is the canonical encoding of a point, else `None`.

    Canonical means that `y` is below the prime and that an `x` of zero has no sign bit.
    """
    if len(key) != KEY_LENGTH:
        return None
    sign, y = divmod(int.from_bytes(key, "little"), 1 << 255)
    if y >= PRIME or (sign and y in (1, PRIME - 1)):
        return None
    return Ed25519PublicKey.from_public_bytes(key)


def public_key(seed: bytes) -> bytes:
    """Return the public key of a 32-byte seed, 32 bytes."""
    return _secret(seed).public_key().public_bytes_raw()


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the 64-byte signature of `message`."""
    return _secret(seed).sign(message)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` is a signature of `message` by `key`.

    It is `False` if `key` is not a point of the curve.
    """
    known = _public(key)
    if known is None:
        return False
    try:
        known.verify(signature, message)
    except InvalidSignature:
        return _accepted(key, message, signature)
    return True


def _accepted(key: bytes, message: bytes, signature: bytes) -> bool:
    """Apply the rule with cofactor."""
    from Crypto.Signature import eddsa  # noqa: PLC0415  # a seventh of the start of a command, and honest seals need none

    try:
        eddsa.new(eddsa.import_public_key(key), "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True
