"""Deterministic Sr25519 signatures, checked against the library that other nodes' clients use."""

from hashlib import sha3_256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled

from pubsub_emulator.primitives import ristretto, schnorrkel, signatures
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.primitives.types import AccountId

FEW = settings(max_examples=scaled(10), deadline=None)
seeds = st.binary(min_size=32, max_size=32)
SMALL_MULTIPLES = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
)
"""The first multiples of the base point in RFC 9496, appendix A.1."""
NOT_ELEMENTS = (
    "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)
"""Bytes that RFC 9496, appendix A.2, says must be refused."""


@pytest.mark.parametrize("times", range(len(SMALL_MULTIPLES)))
def test_multiples_of_the_base_point_are_those_of_the_rfc(times: int) -> None:
    encoded = bytes.fromhex(SMALL_MULTIPLES[times])
    assert ristretto.combined(times).encode() == encoded
    found = ristretto.decode(encoded)
    assert found is not None
    assert found.encode() == encoded


@pytest.mark.parametrize("data", NOT_ELEMENTS)
def test_bytes_that_are_not_an_element_are_refused(data: str) -> None:
    assert ristretto.decode(bytes.fromhex(data)) is None
    assert ristretto.decode(bytes.fromhex(data)[:31]) is None


def test_the_permutation_is_that_of_sha_3() -> None:
    block = bytearray(200)
    block[0] ^= 6
    block[135] ^= 0x80
    lanes = [int.from_bytes(block[at : at + 8], "little") for at in range(0, 200, 8)]
    out = b"".join(lane.to_bytes(8, "little") for lane in schnorrkel._permuted(lanes))
    assert out[:32] == sha3_256().digest()


@FEW
@given(seed=seeds, message=st.binary(max_size=400))
def test_a_signature_holds_for_the_library_and_here(seed: bytes, message: bytes) -> None:
    key = schnorrkel.pair(seed)
    public, _ = signatures.sr25519_pair(seed)
    assert key.public == public
    made = schnorrkel.sign(key, message)
    assert made == schnorrkel.sign(key, message)
    assert signatures.verify(Scheme.SR25519, made, message, AccountId(public))
    assert schnorrkel.verify(public, message, made)


@FEW
@given(seed=seeds, message=st.binary(max_size=60), bit=st.integers(0, 8 * 64 - 1))
def test_a_changed_signature_never_holds(seed: bytes, message: bytes, bit: int) -> None:
    public, secret = signatures.sr25519_pair(seed)
    made = bytearray(signatures.sign_sr25519(public, secret, message))
    assert schnorrkel.verify(public, message, bytes(made))
    made[bit // 8] ^= 1 << bit % 8
    assert not schnorrkel.verify(public, message, bytes(made))
    assert not signatures.verify(Scheme.SR25519, bytes(made), message, AccountId(public))


def test_an_equivalent_scalar_and_other_bytes_are_no_signature() -> None:
    key = schnorrkel.pair(bytes(32))
    made = schnorrkel.sign(key, b"block")
    scalar = int.from_bytes(made[32:], "little") + ristretto.ORDER
    stretched = made[:32] + scalar.to_bytes(33, "little")[:32]
    for signature in (stretched, made[:63], made + b"\0", b""):
        assert not schnorrkel.verify(key.public, b"block", signature)
    assert not schnorrkel.verify(b"\1" * 32, b"block", made)
    assert not schnorrkel.verify(key.public, b"another", made)
