"""What a stranger wrote is shown escaped, one line for one text, and cut where it is very long;
addresses.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.files.shown import MOST_SHOWN, cell, marked, safe, whole
from pubsub_emulator.primitives.ss58 import BadAddress, decode_address, encode_address

ODD = st.text(st.characters(categories=("Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Lu", "Nd", "So")))


@given(ODD)
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    assert safe(text).isprintable()
    assert whole(text).isprintable()


@given(st.text(st.characters(categories=("Lu", "Ll", "Nd", "Po", "So", "Mn"))))
def test_what_is_printable_is_shown_as_it_is(text: str) -> None:
    assert whole(text) == text


@given(st.text())
def test_a_document_of_json_shows_the_same_value(text: str) -> None:
    shown = whole(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text


def test_a_long_text_is_cut_and_its_length_named() -> None:
    assert safe("x" * MOST_SHOWN) == "x" * MOST_SHOWN
    assert safe("x" * (MOST_SHOWN + 1)) == "x" * MOST_SHOWN + f"… ({MOST_SHOWN + 1:,} characters)"


def test_a_text_is_no_markup_of_markdown() -> None:
    assert marked("a | <b>\n![x](y) `c` \\|") == r"a \| \<b\>\\n!\[x\](y) \`c\` \\\|"
    assert marked("relay_blocks: 5 %") == "relay_blocks: 5 %"


def test_a_cell_never_begins_like_a_formula() -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "=\x1b[2J"):
        shown = cell(text)
        assert isinstance(shown, str)
        assert shown[0] not in "=+-@\t\r"
        assert shown.isprintable()
    assert cell(-1) == -1
    assert cell("plain") == "plain"


ALICE = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
KEY = bytes.fromhex("d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d")


def test_alice_has_the_address_that_everybody_knows() -> None:
    assert encode_address(KEY) == ALICE
    assert decode_address(ALICE) == KEY
    assert (
        decode_address("15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5") == KEY
    )  # Polkadot's prefix, 0
    assert (
        decode_address("yGHXkYLYqxijLKKfd9Q2CB9shRVu8rPNBS53wvwGTutYg4zTg") == KEY
    )  # a prefix of two bytes, 255


@given(st.binary(min_size=32, max_size=32), st.integers(0, 63))
def test_an_address_decodes_to_its_account(account: bytes, prefix: int) -> None:
    assert decode_address(encode_address(account, prefix)) == account


@pytest.mark.parametrize(
    "text", ["", "0", "5", ALICE[:-1], ALICE[:-1] + "Z", ALICE + "1", "1" * 64, "5" * 99, "é"]
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        decode_address(text)
