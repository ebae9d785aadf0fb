"""Addresses against those that every development chain knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.ss58 import BadAddress, decode_address, encode_address

ALICE = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
KEY = bytes.fromhex("d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d")


def test_alice_has_the_address_that_everybody_knows() -> None:
    assert encode_address(KEY) == ALICE
    assert decode_address(ALICE) == KEY
    assert decode_address("15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5") == KEY  # Polkadot's prefix, 0
    assert decode_address("yGHXkYLYqxijLKKfd9Q2CB9shRVu8rPNBS53wvwGTutYg4zTg") == KEY  # a prefix of two bytes, 255


@given(st.binary(min_size=32, max_size=32), st.integers(0, 63))
def test_an_address_decodes_to_its_account(account: bytes, prefix: int) -> None:
    assert decode_address(encode_address(account, prefix)) == account


@pytest.mark.parametrize("text", ["", "0", "5", ALICE[:-1], ALICE[:-1] + "Z", ALICE + "1", "1" * 64, "5" * 99, "é"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        decode_address(text)
