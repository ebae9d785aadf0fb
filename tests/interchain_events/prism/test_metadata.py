"""Objects in the metadata of Cardano's transactions, as CBOR and as db-sync's JSON (PR-1,
PR-20).
"""

import json
from typing import Any

import pytest
from cbor2 import dumps as cbor
from hypothesis import example, given
from hypothesis import strategies as st
from support.db_sync import as_json, metadatum

from interchain_events.pallets.prism.pallet import MOST_OBJECT
from interchain_events.prism.core.metadata import LABEL, MOST_BYTES, MOST_PIECE, object_of
from pubsub_emulator.files.untrusted import MOST_DEPTH

METADATA = st.recursive(
    st.integers(-(2**64), 2**64 - 1)
    | st.binary(max_size=64)
    | st.text(max_size=20).filter(lambda text: "\0" not in text),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("vcx"), inner, max_size=3)
    ),
    max_leaves=8,
)


def both(value: Any) -> set[bytes]:
    """What is found with JSON and without."""
    raw = cbor({LABEL: value})
    return {object_of(json.dumps(as_json(value)), raw), object_of(None, raw)}


@given(st.binary(min_size=1, max_size=400), st.integers(1, MOST_PIECE))
@example(bytes(MOST_OBJECT), MOST_PIECE)
def test_an_object_comes_back_whole_whatever_its_pieces(content: bytes, size: int) -> None:
    assert both(metadatum(content, size)) == {content}


@given(
    METADATA | st.builds(lambda v, c: {"v": v, "c": c}, METADATA, st.lists(METADATA, max_size=3))
)
@example({"v": 1, "c": ["0xAB", b"c"]})
@example({"v": 1, "c": ["0x"]})
@example({"v": 1, "c": ["0xé0"]})
def test_a_database_with_json_and_one_without_give_the_same(value: Any) -> None:
    assert len(both(value)) == 1


@pytest.mark.parametrize(
    "value",
    [
        *(
            7,
            [b"a"],
            {"c": [b"a"]},
            {"v": 2, "c": [b"a"]},
            {"v": "1", "c": [b"a"]},
            metadatum(bytes(MOST_OBJECT + 1)),
        ),
        *(
            {"v": 1, "c": each}
            for each in (b"a", [bytes(MOST_PIECE + 1)], [b"a", 1], ["ab"], ["0x0"], ["0x ab"])
        ),
    ],
)
def test_pr_1_what_is_no_object_of_version_1_is_none(value: Any) -> None:
    assert both(value) == {b""}


@pytest.mark.parametrize(("levels", "found"), [(MOST_DEPTH, b"ab"), (MOST_DEPTH + 1, b"")])
def test_values_nested_deeper_than_json_may_be_are_no_object(levels: int, found: bytes) -> None:
    nested: Any = 1
    for _ in range(levels - 1):
        nested = [nested]
    assert both({**metadatum(b"ab"), "x": nested}) == {found}


@pytest.mark.parametrize(
    "raw",
    [
        *(
            b"",
            b"\xff",
            b"\x1c",
            b"\x1f",
            b"\xc0\x00",
            b"\xf6",
            b"\xa1\x19\x53\x4d",
            b"\x5f\x01\xff",
            b"\xbf\x01\xff",
        ),
        *(
            cbor({LABEL: metadatum(b"ab")}) + b"\0",
            cbor({LABEL + 1: metadatum(b"ab")}),
            b"\xa1" + cbor([1]) + cbor(1),
        ),
        *(
            b"\x9b\x80" + bytes(7),
            b"\x5b\x80" + bytes(7),
            b"\x63\xff\xff\xff",
            bytes(MOST_BYTES + 1),
        ),
        *(each * 60_000 for each in (b"\x81", b"\x9f", b"\x5f")),
    ],
)
def test_wrong_cbor_is_no_object(raw: bytes) -> None:
    assert object_of(None, raw) == b""


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 60_000, "NaN", '{"v":true,"c":["0x00"]}', " " * MOST_BYTES + "1"]
)
def test_wrong_json_is_no_object(text: str) -> None:
    assert object_of(text, b"") == b""


@given(st.binary(max_size=80))
def test_any_bytes_have_an_answer(raw: bytes) -> None:
    assert isinstance(object_of(None, raw), bytes)


def test_arrays_and_maps_of_any_length_are_read() -> None:
    pieces = b"\x9f" + cbor(b"abc") + cbor(b"d") + b"\xff"
    whole = b"\xbf" + cbor(LABEL) + b"\xbf" + cbor("c") + pieces + cbor("v") + cbor(1) + b"\xff\xff"
    assert object_of(None, whole) == b"abcd"
