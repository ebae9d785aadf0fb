"""The Candid suite's binary tests of data types: IC-11b."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.candid_text import values

from pubsub_emulator.icrc72.ic.candid.decode import Decoder
from pubsub_emulator.icrc72.ic.candid.did import parse, parse_types
from pubsub_emulator.icrc72.ic.errors import CandidError, DidError

ESCAPED = re.compile(r"""\\(["'\\])""")
VECTORS = Path(__file__).parents[2] / "vectors" / "icrc"


def rows() -> Iterator[Any]:
    for at, row in enumerate(json.loads((VECTORS / "candid_conformance.json").read_text())["vectors"]):
        yield pytest.param(row, id=f"{row['file']}-{at}-{row['desc'][:40]}")


def raw(written: str) -> bytes:
    return bytes.fromhex(written.removeprefix("0x"))


@pytest.mark.parametrize("row", list(rows()))
def test_ic_11_the_reader_takes_and_refuses_what_the_candid_suite_does(row: dict[str, str]) -> None:
    types = parse_types(row["type"], parse(row["defs"]).types)
    decoder = Decoder(types)
    if row["want"] == "refused":
        with pytest.raises(CandidError):
            decoder.decode(raw(row["bytes"]))
        return
    found = decoder.decode(raw(row["bytes"]))
    assert decoder.decode(raw(row["bytes"])) == found
    if row["want"] == "equal":
        assert decoder.decode(raw(row["other"])) == found
    elif row["want"] == "different":
        assert decoder.decode(raw(row["other"])) != found
    elif "text" in row:
        assert found == values(ESCAPED.sub(r"\1", row["text"]), types)


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
