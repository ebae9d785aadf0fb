"""Ed25519 signatures (RFC 8032, deterministic), with which collators seal headers.

A signature is accepted by the rule of RFC 8032 with cofactor: `8 s B = 8 R + 8 k A`, canonical encodings only, and `s`
below the order. OpenSSL checks `s B = R + k A`, which implies it, in a third of the time. So what OpenSSL accepts for a
key that pycryptodome reads is accepted, and pycryptodome decides about everything else.
"""

from functools import lru_cache

from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


@lru_cache(maxsize=1024)
def _secret(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)


@lru_cache(maxsize=1024)
def _public(key: bytes) -> tuple[ECC.EccKey, Ed25519PublicKey] | None:
    try:
        return eddsa.import_public_key(key), Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        return None  # 32 bytes that are not the canonical encoding of a point of the curve


def public_key(seed: bytes) -> bytes:
    """The public key of a 32-byte seed, 32 bytes."""
    return _secret(seed).public_key().public_bytes_raw()


def sign(seed: bytes, message: bytes) -> bytes:
    """The 64-byte signature of `message`."""
    return _secret(seed).sign(message)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is a signature of `message` by `key`; `False` if `key` is not a point of the curve."""
    known = _public(key)
    if known is None:
        return False
    point, quick = known
    try:
        quick.verify(signature, message)
    except InvalidSignature:
        return _accepted(point, message, signature)
    return True


def _accepted(point: ECC.EccKey, message: bytes, signature: bytes) -> bool:
    """The rule with cofactor."""
    try:
        eddsa.new(point, "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True
