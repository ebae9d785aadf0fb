"""The Candid suite's binary tests of data types: IC-11b."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.candid_text import values

from pubsub_emulator.eventplane.ic.candid.decode import Decoder
from pubsub_emulator.eventplane.ic.candid.did import parse, parse_types
from pubsub_emulator.eventplane.ic.errors import CandidError

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
