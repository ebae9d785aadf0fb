"""Hashes and storage hashers: the golden vectors, and two other implementations on any bytes."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
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

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "scale" / "hashing_scale.json").read_text(encoding="utf-8")
)
HASHES = {
    "twox64": twox_64,
    "twox128": twox_128,
    "twox256": twox_256,
    "blake2_128": blake2_128,
    "blake2_256": blake2_256,
    "twox64_concat": twox64_concat,
    "blake2_128_concat": blake2_128_concat,
}


@pytest.mark.parametrize("name", HASHES)
def test_every_hash_is_the_one_that_polkadot_js_makes(name: str) -> None:
    assert len(VECTORS["hashes"]) == 24
    for vector in VECTORS["hashes"]:
        data = bytes.fromhex(vector["data"][2:])
        assert HASHES[name](data).hex() == vector[name][2:]


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
