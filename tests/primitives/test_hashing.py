"""Hashes and storage hashers: two other implementations on any bytes."""

from hashlib import blake2b

from Crypto.Hash import BLAKE2b
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_digest

from pubsub_emulator.primitives.hashing import (
    blake2_128,
    blake2_128_concat,
    blake2_256,
    identity,
    twox64_concat,
    twox_64,
    twox_128,
    twox_256,
)


@given(st.binary(max_size=300))
def test_blake2_is_that_of_pycryptodome_and_of_a_fresh_object(data: bytes) -> None:
    """A copied object must not remember what its copies were fed."""
    assert (
        blake2_256(data) == BLAKE2b.new(digest_bits=256, data=data).digest() == blake2b(data, digest_size=32).digest()
    )
    assert blake2_128(data) == BLAKE2b.new(digest_bits=128, data=data).digest()


@given(st.binary(max_size=300))
def test_twox_is_xxhash64_with_ascending_seeds_little_endian(data: bytes) -> None:
    parts = [xxh64_digest(data, seed)[::-1] for seed in range(4)]
    assert (twox_64(data), twox_128(data), twox_256(data)) == (parts[0], b"".join(parts[:2]), b"".join(parts))


@given(st.binary(max_size=100))
def test_concat_hashers_end_in_the_key_itself(data: bytes) -> None:
    assert twox64_concat(data) == twox_64(data) + data
    assert blake2_128_concat(data) == blake2_128(data) + data
    assert identity(data) == data
