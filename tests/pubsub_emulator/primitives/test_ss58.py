"""SS58 addresses."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.ss58 import BadAddress, decode_address, encode_address

DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def address(prefix: bytes, account: bytes) -> str:
    """An address with any first bytes and a right checksum."""
    raw = prefix + account
    number = int.from_bytes(raw + blake2b(b"SS58PRE" + raw).digest()[:2], "big")
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = DIGITS[digit] + text
    return text


@given(st.binary(min_size=32, max_size=32), st.integers(0, 63))
def test_an_address_has_its_account(account: bytes, prefix: int) -> None:
    assert decode_address(encode_address(account, prefix)) == account


@given(st.binary(min_size=32, max_size=32), st.integers(64, 127), st.integers(0, 255))
def test_a_prefix_of_two_bytes_is_read(account: bytes, first: int, second: int) -> None:
    assert decode_address(address(bytes((first, second)), account)) == account


@given(st.integers(128, 255), st.binary(max_size=1))
def test_a_first_byte_of_128_or_more_is_reserved(first: int, rest: bytes) -> None:
    with pytest.raises(BadAddress, match=f"the reserved byte {first}"):
        decode_address(address(bytes((first,)) + rest, b"\x07" * 32))
