"""Ed25519, as collators seal headers with it; signatures are deterministic (RFC 8032)."""

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
    """Whether `signature` is `key`'s over `message`; false too when `key` is no key."""
    point = _public(key)
    if point is None:
        return False
    try:
        eddsa.new(point, "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True
