"""Hashes, hashers and the storage keys made of them: two other implementations on any bytes."""

from hashlib import blake2b

from Crypto.Hash import BLAKE2b
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_digest

from pubsub_emulator.primitives import storage_keys
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
from pubsub_emulator.primitives.pubsub import derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId


@given(st.binary(max_size=300))
def test_blake2_is_that_of_pycryptodome_and_of_a_fresh_object(data: bytes) -> None:
    """A copied object must not remember what its copies were fed."""
    assert (
        blake2_256(data)
        == BLAKE2b.new(digest_bits=256, data=data).digest()
        == blake2b(data, digest_size=32).digest()
    )
    assert blake2_128(data) == BLAKE2b.new(digest_bits=128, data=data).digest()


@given(st.binary(max_size=300))
def test_twox_is_xxhash64_with_ascending_seeds_little_endian(data: bytes) -> None:
    parts = [xxh64_digest(data, seed)[::-1] for seed in range(4)]
    assert (twox_64(data), twox_128(data), twox_256(data)) == (
        parts[0],
        b"".join(parts[:2]),
        b"".join(parts),
    )


@given(st.binary(max_size=100))
def test_concat_hashers_end_in_the_key_itself(data: bytes) -> None:
    assert twox64_concat(data) == twox_64(data) + data
    assert blake2_128_concat(data) == blake2_128(data) + data
    assert identity(data) == data


def test_the_child_key_of_para_1000_is_the_one_in_the_rules_ps1() -> None:
    assert derive_child_key(ParaId(1000)).hex() == "707562737562e8030000"


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_child_keys_are_injective_and_stand_under_the_child_prefix_ps2_ps3(
    one: int, other: int
) -> None:
    assert (derive_child_key(ParaId(one)) == derive_child_key(ParaId(other))) == (one == other)
    assert publisher_root_key(ParaId(one)) == b":child_storage:default:" + derive_child_key(
        ParaId(one)
    )


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_prefix_is_two_hashes_side_by_side(pallet: str, item: str) -> None:
    assert storage_keys.item_prefix(pallet, item) == twox_128(pallet.encode()) + twox_128(
        item.encode()
    )
