"""Messages and interface descriptions that are refused: IC-11b."""

import re

import pytest

from pubsub_emulator.icrc72.ic.candid.decode import Decoder
from pubsub_emulator.icrc72.ic.candid.did import parse, parse_types
from pubsub_emulator.icrc72.ic.errors import CandidError, DidError

_HUGE = b"\xff" * 3_000 + b"\x01"


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ("(text)", b"DIDL\x00\x01\x71" + _HUGE),
        ("(variant { a })", b"DIDL\x01\x6b\x01\x61\x7f\x01\x00" + _HUGE),
        ("(text)", b"DIDL" + _HUGE),
        ("(text)", b"DIDL\x00" + _HUGE),
        ("(text)", b"DIDL\x01\x6c" + _HUGE),
        ("(blob)", b"DIDL\x01\x6d\x7b\x01\x00" + _HUGE),
        ("(principal)", b"DIDL\x00\x01\x68\x01" + _HUGE),
    ],
)
def test_a_number_too_long_to_be_printed_is_refused_like_any_other(types: str, message: bytes) -> None:
    with pytest.raises(CandidError, match=r"^byte \d+: .*a number of 21,001 bits"):
        Decoder(parse_types(types)).decode(message)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type a = nat;\nservice : {\n  x (nat) -> ();\n}", "line 3: ':' was expected, not '('"),
        ("type a = nat;\n%", "line 2: '%' cannot be in an interface description"),
        ("type a =", "the text ends where a name was expected"),
    ],
)
def test_a_bad_interface_description_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(DidError, match=re.escape(said)):
        parse(text)
