"""ECDSA on secp256k1 with SHA-256, in strict DER, with a low or a high S (PR-12).

    30 length  02 length r  02 length s        integers in big endian, positive, minimal

The library also requires strict DER, but accepts only a low S. If it refuses a signature with a
high S, the negated S is tried.
"""

from functools import lru_cache
from typing import Final

from coincurve import PrivateKey, PublicKey

ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
"""The order of the curve's group."""
_HALF: Final = ORDER // 2
_COORDINATE: Final = 32
"""The size of a coordinate, in bytes."""


def verify(point: bytes, digest: bytes, signature: bytes) -> bool:
    """Return whether a signature of a digest was made with a key.

    `point` is the compressed public key, and `digest` is the SHA-256 hash of the signed message.
    """
    key = _key(point)
    if key is None:
        return False
    try:
        return key.verify(signature, digest, None) or _verify_high(key, digest, signature)
    except ValueError:
        # The signature is not strict DER.
        return False


def _verify_high(key: PublicKey, digest: bytes, signature: bytes) -> bool:
    """Return whether a signature is valid except for a high S, for which the library refuses it."""
    parts = read_der(signature)
    if parts is None:
        return False
    r, s = parts
    return 0 < r < ORDER and _HALF < s < ORDER and key.verify(write_der(r, ORDER - s), digest, None)


def compressed(x: bytes, y: bytes) -> bytes | None:
    """Return the compressed point of two coordinates, `None` if they are not on the curve."""
    short_x = x.lstrip(b"\0")
    short_y = y.lstrip(b"\0")
    # Longer coordinates would be refused below, too, but they would remain in the cache of `_key`.
    # Missing coordinates are read as 0, which is not a coordinate of any point of the curve.
    if len(short_x) > _COORDINATE or len(short_y) > _COORDINATE:
        return None
    key = _key(b"\4" + short_x.rjust(_COORDINATE, b"\0") + short_y.rjust(_COORDINATE, b"\0"))
    return None if key is None else key.format()


def coordinates(point: bytes) -> tuple[bytes, bytes]:
    """Return the coordinates of a compressed point on the curve, 32 bytes each.

    Raises `ValueError` for anything else.
    """
    whole = PublicKey(point).format(compressed=False)
    return whole[1 : 1 + _COORDINATE], whole[1 + _COORDINATE :]


def on_curve(point: bytes) -> bytes | None:
    """Return a compressed point unchanged, `None` if it is not on the curve."""
    is_compressed = len(point) == _COORDINATE + 1 and point[0] in {2, 3}
    if not is_compressed or _key(point) is None:
        return None
    return point


def sign(secret: bytes, message: bytes) -> bytes:
    """Return the signature of a message. The same message always has the same signature."""
    return PrivateKey(secret).sign(message)


def public_point(secret: bytes) -> bytes:
    """Return the compressed public key of a secret key.

    Raises `ValueError` if the bytes are not a secret key.
    """
    return PrivateKey(secret).public_key.format()


def read_der(raw: bytes) -> tuple[int, int] | None:
    """Return r and s of a signature, `None` if it is not strict DER.

    Signatures of more than 72 bytes cannot be valid.
    """
    if len(raw) < 8 or len(raw) > 72 or raw[0] != 0x30 or raw[1] != len(raw) - 2:
        return None
    r, offset = _integer(raw, 2)
    s, end = _integer(raw, offset)
    if r is None or s is None or end != len(raw):
        return None
    return r, s


def write_der(r: int, s: int) -> bytes:
    """Return the strict DER of two positive integers."""
    body = b""
    for value in (r, s):
        integer = _positive(value)
        body += bytes((2, len(integer))) + integer
    return bytes((0x30, len(body))) + body


def _positive(value: int) -> bytes:
    """Return the minimal bytes of a positive integer, with a leading zero bit."""
    return value.to_bytes(value.bit_length() // 8 + 1, "big")


def _integer(raw: bytes, offset: int) -> tuple[int | None, int]:
    """Return the DER integer at `offset`, and the offset after it.

    The integer is `None` if it is not minimal or not positive.
    """
    if offset + 2 > len(raw) or raw[offset] != 2:
        return None, offset
    start = offset + 2
    end = start + raw[offset + 1]
    body = raw[start:end]
    if (
        end > len(raw)
        or not body
        or body[0] & 0x80
        or (len(body) > 1 and body[0] == 0 and not body[1] & 0x80)
    ):
        return None, offset
    return int.from_bytes(body, "big"), end


@lru_cache(maxsize=1 << 12)
def _key(encoded: bytes) -> PublicKey | None:
    """Return a public key, `None` if the bytes are not on the curve."""
    try:
        return PublicKey(encoded)
    except ValueError:
        return None
