"""Which signatures are accepted: by two libraries what by pycryptodome's rule alone (RFC 8032, with
cofactor).
"""

from hashlib import sha512
from typing import Any

import pytest
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives import ed25519

SEED = bytes(range(32))
MESSAGE = b"a header"
ORDER = 2**252 + 27742317777372353535851937790883648493
BASE = ECC.construct(curve="Ed25519", seed=SEED)._curve.G  # points have no other door
SMALL = [  # the points of order 1, 2, 4 and 8
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
]
ODD_KEYS = [
    "0100000000000000000000000000000000000000000000000000000000000080",  # no x, and its sign
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",  # y is the prime
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "0200000000000000000000000000000000000000000000000000000000000000",  # on no curve
]


def by_the_rule(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        eddsa.new(eddsa.import_public_key(key), "rfc8032").verify(message, signature)
    except ValueError:
        return False
    return True


def raw(point: Any) -> bytes:
    return ECC.construct(curve="Ed25519", point_x=point.x, point_y=point.y).export_key(format="raw")


def scalar() -> int:
    half = bytearray(sha512(SEED).digest()[:32])
    half[0] &= 248
    half[31] = half[31] & 127 | 64
    return int.from_bytes(half, "little")


def with_torsion(small: bytes) -> bytes:
    """A signature whose R has a part of small order: only the equation with cofactor holds."""
    key = ed25519.public_key(SEED)
    torsion = eddsa.import_public_key(small).pointQ
    nonce = raw(BASE * 12345 + torsion)
    challenge = int.from_bytes(sha512(nonce + key + MESSAGE).digest(), "little")
    return nonce + ((12345 + challenge * scalar()) % ORDER).to_bytes(32, "little")


@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=100))
def test_keys_and_signatures_are_those_of_pycryptodome(seed: bytes, message: bytes) -> None:
    known = ECC.construct(curve="Ed25519", seed=seed)
    assert ed25519.public_key(seed) == known.public_key().export_key(format="raw")
    assert ed25519.sign(seed, message) == eddsa.new(known, "rfc8032").sign(message)


@given(
    message=st.binary(max_size=100),
    at=st.integers(0, 511),
    whose=st.sampled_from(("key", "message", "signature")),
)
def test_a_flipped_bit_is_judged_by_the_rule(message: bytes, at: int, whose: str) -> None:
    parts = {
        "key": ed25519.public_key(SEED),
        "message": message + b".",
        "signature": ed25519.sign(SEED, message + b"."),
    }
    assert ed25519.verify(**parts)
    changed = bytearray(parts[whose])
    changed[at // 8 % len(changed)] ^= 1 << at % 8
    parts[whose] = bytes(changed)
    assert ed25519.verify(**parts) is by_the_rule(**parts)


@pytest.mark.parametrize("small", SMALL)
def test_a_part_of_small_order_is_no_reason_to_refuse(small: str) -> None:
    key, signature = ed25519.public_key(SEED), with_torsion(bytes.fromhex(small))
    assert by_the_rule(key, MESSAGE, signature)
    assert ed25519.verify(key, MESSAGE, signature)


@pytest.mark.parametrize("key", [*SMALL, *ODD_KEYS])
@pytest.mark.parametrize("nonce", [*SMALL, *ODD_KEYS])
def test_strange_keys_and_points_are_judged_by_the_rule(key: str, nonce: str) -> None:
    for response in (0, 1, ORDER - 1, ORDER, 2**255):
        signature = bytes.fromhex(nonce) + response.to_bytes(32, "little")
        judged = by_the_rule(bytes.fromhex(key), MESSAGE, signature)
        assert ed25519.verify(bytes.fromhex(key), MESSAGE, signature) is judged


def test_a_response_beyond_the_order_and_another_length_are_refused() -> None:
    key, signature = ed25519.public_key(SEED), ed25519.sign(SEED, MESSAGE)
    beyond = int.from_bytes(signature[32:], "little") + ORDER
    assert ed25519.verify(key, MESSAGE, signature)
    for other in (
        signature[:32] + beyond.to_bytes(32, "little"),
        signature[:-1],
        signature + b"\0",
        b"",
    ):
        assert not ed25519.verify(key, MESSAGE, other)
    assert not ed25519.verify(key[:-1], MESSAGE, signature)
