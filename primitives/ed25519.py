"""Ed25519 signatures (RFC 8032, deterministic), with which collators seal headers."""

from functools import lru_cache

from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa


@lru_cache(maxsize=1024)
def _secret(seed: bytes) -> ECC.EccKey:
    return ECC.construct(curve="Ed25519", seed=seed)


@lru_cache(maxsize=1024)
def _public(key: bytes) -> ECC.EccKey | None:
    try:
        return eddsa.import_public_key(key)
    except ValueError:
        return None  # 32 bytes that are not a point of the curve


def public_key(seed: bytes) -> bytes:
    """The public key of a 32-byte seed, 32 bytes."""
    return _secret(seed).public_key().export_key(format="raw")


def sign(seed: bytes, message: bytes) -> bytes:
    """The 64-byte signature of `message`."""
    return eddsa.new(_secret(seed), "rfc8032").sign(message)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is a signature of `message` by `key`; `False` if `key` is not a point of the curve."""
    point = _public(key)
    if point is None:
        return False
    try:
        eddsa.new(point, "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True
