"""ECDSA on secp256k1 with SHA-256, in strict DER, with either S (PR-12).

    30 length  02 length r  02 length s        integers big-endian, positive, minimal

The library reads strict DER, too, and verifies low S only: where it says no, a high one is turned round.
"""

from functools import lru_cache
from typing import Final

from coincurve import PrivateKey, PublicKey

ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_HALF: Final = ORDER // 2
_COORDINATE: Final = 32


def verify(point: bytes, digest: bytes, signature: bytes) -> bool:
    """Whether `signature` is that of the key with this compressed point over what has this SHA-256."""
    key = _key(point)
    if key is None:
        return False
    try:
        return key.verify(signature, digest, None) or _verify_high(key, digest, signature)
    except ValueError:  # not strict DER
        return False


def _verify_high(key: PublicKey, digest: bytes, signature: bytes) -> bool:
    """Whether a signature that the library refuses holds, because only its S is high."""
    parts = read_der(signature)
    if parts is None:
        return False
    r, s = parts
    return 0 < r < ORDER and _HALF < s < ORDER and key.verify(write_der(r, ORDER - s), digest, None)


def compressed(x: bytes, y: bytes) -> bytes | None:
    """The compressed point of two coordinates, `None` when they are none of the curve's."""
    short_x, short_y = x.lstrip(b"\0"), y.lstrip(b"\0")
    if not x or not y or len(short_x) > _COORDINATE or len(short_y) > _COORDINATE:
        return None
    key = _key(b"\4" + short_x.rjust(_COORDINATE, b"\0") + short_y.rjust(_COORDINATE, b"\0"))
    return None if key is None else key.format()


def on_curve(point: bytes) -> bytes | None:
    """The same compressed point, `None` when it is none of the curve's."""
    return point if len(point) == _COORDINATE + 1 and point[0] in {2, 3} and _key(point) is not None else None


def sign(secret: bytes, message: bytes) -> bytes:
    """The signature of a secret key, always the same one."""
    return PrivateKey(secret).sign(message)


def public_point(secret: bytes) -> bytes:
    """The compressed point of a secret key. Raises `ValueError` when it is none."""
    return PrivateKey(secret).public_key.format()


def read_der(raw: bytes) -> tuple[int, int] | None:
    """The r and s of a signature, `None` when it is not strict DER. No valid one is longer than 72 bytes."""
    if len(raw) < 8 or len(raw) > 72 or raw[0] != 0x30 or raw[1] != len(raw) - 2:
        return None
    r, at = _integer(raw, 2)
    s, end = _integer(raw, at)
    return (r, s) if r is not None and s is not None and end == len(raw) else None


def write_der(r: int, s: int) -> bytes:
    """Strict DER of two positive integers."""
    body = b"".join(bytes((2, len(each))) + each for each in map(_positive, (r, s)))
    return bytes((0x30, len(body))) + body


def _positive(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big")


def _integer(raw: bytes, at: int) -> tuple[int | None, int]:
    if at + 2 > len(raw) or raw[at] != 2:
        return None, at
    start, end = at + 2, at + 2 + raw[at + 1]
    body = raw[start:end]
    if end > len(raw) or not body or body[0] & 0x80 or (len(body) > 1 and body[0] == 0 and not body[1] & 0x80):
        return None, at
    return int.from_bytes(body, "big"), end


@lru_cache(maxsize=1 << 12)
def _key(encoded: bytes) -> PublicKey | None:
    try:
        return PublicKey(encoded)
    except ValueError:
        return None
