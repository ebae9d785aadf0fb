"""Objects in the metadata of Cardano's transactions, as CBOR and as db-sync's JSON (PR-1,
PR-20).
"""

import json
from typing import Any, NamedTuple

import pytest
from cbor2 import dumps as cbor
from hypothesis import example, given
from hypothesis import strategies as st
from support.prism.db_sync import as_json, metadatum

from interchain_events.pallets.prism.pallet import MOST_OBJECT
from interchain_events.prism.core.metadata import LABEL, MOST_BYTES, MOST_PIECE, object_of
from pubsub_emulator.files.untrusted import MOST_DEPTH

OPEN = 31
"""The size in the head of an item that a break ends."""


def head(major: int, size: int, width: int) -> bytes:
    """The head of an item, with a size of at least `width` bytes; 0 is the shortest head."""
    if not width and size < 24:
        return bytes((major * 32 + size,))
    length = max(width, 1)
    while size >= 1 << 8 * length:
        length *= 2
    return bytes((major * 32 + 23 + length.bit_length(),)) + size.to_bytes(length, "big")


class Written(NamedTuple):
    """A metadatum in both forms."""

    cbor: bytes
    json: str
    """As cardano-api writes it: keys of any type become text, and of equal keys all are there."""
    is_text: bool = False


def number(value: int, width: int) -> Written:
    size = value if value >= 0 else -1 - value
    return Written(head(int(value < 0), size, width), str(value))


def string(pieces: list[str] | list[bytes], width: int, *, is_open: bool) -> Written:
    """Bytes or text, in pieces that a break ends or whole."""
    whole = pieces[0][:0].join(pieces)  # type: ignore[arg-type]  # all are of one type
    major = 3 if isinstance(whole, str) else 2
    raw = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    joined = b"".join(raw)
    body = head(major, len(joined), width) + joined
    if is_open:
        items = [head(major, len(piece), width) + piece for piece in raw]
        body = bytes((major * 32 + OPEN,)) + b"".join(items) + b"\xff"
    text = whole if isinstance(whole, str) else "0x" + whole.hex()
    return Written(body, json.dumps(text), is_text=True)


def array(items: list[Written], width: int, *, is_open: bool) -> Written:
    body = b"".join(item.cbor for item in items)
    start = bytes((4 * 32 + OPEN,)) if is_open else head(4, len(items), width)
    end = b"\xff" if is_open else b""
    return Written(start + body + end, "[" + ",".join(item.json for item in items) + "]")


def table(pairs: list[tuple[Written, Written]], width: int, *, is_open: bool) -> Written:
    body = b"".join(key.cbor + value.cbor for key, value in pairs)
    start = bytes((5 * 32 + OPEN,)) if is_open else head(5, len(pairs), width)
    end = b"\xff" if is_open else b""
    rows = [
        (key.json if key.is_text else json.dumps(key.json)) + ":" + value.json
        for key, value in pairs
    ]
    return Written(start + body + end, "{" + ",".join(rows) + "}")


WIDTHS = st.sampled_from([0, 1, 2, 4, 8])
TEXTS = st.sampled_from(["v", "c", "1", "0x61", "[1]", "x"]) | st.text(max_size=6).filter(
    lambda text: "\0" not in text
)
LEAVES = (
    st.builds(number, st.sampled_from([0, 1, 2, LABEL]) | st.integers(-(2**64), 2**64 - 1), WIDTHS)
    | st.builds(string, st.lists(TEXTS, min_size=1, max_size=2), WIDTHS, is_open=st.booleans())
    | st.builds(
        string,
        st.lists(st.binary(max_size=40), min_size=1, max_size=2),
        WIDTHS,
        is_open=st.booleans(),
    )
)


def nested(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    pairs = st.lists(st.tuples(inner, inner), max_size=4)
    return st.builds(array, st.lists(inner, max_size=4), WIDTHS, is_open=st.booleans()) | st.builds(
        table, pairs, WIDTHS, is_open=st.booleans()
    )


ANY = st.recursive(LEAVES, nested, max_leaves=8)
"""Any metadatum that Cardano allows, in any spelling."""


@st.composite
def near_objects(draw: st.DrawFn) -> Written:
    """A map with the keys of an object among others, some of them twice."""
    plain = string(["v"], 0, is_open=draw(st.booleans()))
    pieces = st.lists(
        st.builds(
            string,
            st.lists(st.binary(max_size=40), min_size=1, max_size=2),
            WIDTHS,
            is_open=st.booleans(),
        ),
        max_size=3,
    )
    pairs = [
        (plain, number(1, draw(WIDTHS))),
        (string(["c"], 0, is_open=False), array(draw(pieces), 0, is_open=draw(st.booleans()))),
        *draw(st.lists(st.tuples(ANY, ANY), max_size=3)),
    ]
    return table(draw(st.permutations(pairs)), draw(WIDTHS), is_open=draw(st.booleans()))


def readings(value: Written) -> set[bytes]:
    raw = b"\xa1" + cbor(LABEL) + value.cbor
    return {object_of(value.json, raw), object_of(None, raw)}


@given(ANY | near_objects())
def test_whatever_cardano_allows_gives_the_same_object_from_json_and_cbor(value: Written) -> None:
    assert len(readings(value)) == 1


@given(near_objects())
def test_the_last_of_equal_keys_counts_and_other_keys_are_read_over(value: Written) -> None:
    pairs = json.loads(value.json)
    version_and_pieces = pairs["v"], pairs["c"]
    whole = (
        b"".join(bytes.fromhex(piece[2:]) for piece in pairs["c"])
        if version_and_pieces[0] == 1
        and isinstance(pairs["c"], list)
        and all(is_piece(piece) for piece in pairs["c"])
        else b""
    )
    assert readings(value) == {whole}


def is_piece(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith("0x") or not value.isalnum():
        return False
    try:
        return len(bytes.fromhex(value[2:])) <= MOST_PIECE
    except ValueError:
        return False


def test_a_key_may_nest_deeper_than_values_may() -> None:
    """In JSON it is a text, of any length: each level doubles the backslashes of the one within."""
    deep = number(1, 0)
    for _ in range(MOST_DEPTH + 10):
        deep = array([deep], 0, is_open=False)
    pairs = [
        (string(["v"], 0, is_open=False), number(1, 0)),
        (deep, number(1, 0)),
        (
            string(["c"], 0, is_open=False),
            array([string([b"ab"], 0, is_open=False)], 0, is_open=False),
        ),
    ]
    assert readings(table(pairs, 0, is_open=False)) == {b"ab"}
    quotes = string(['"' * 9_000], 0, is_open=False)
    for _ in range(4):
        quotes = table([(quotes, number(1, 0))], 0, is_open=False)
    pairs[1] = (quotes, number(1, 0))
    long = table(pairs, 0, is_open=False)
    assert len(long.json) > MOST_BYTES > len(long.cbor)
    assert readings(long) == {b"ab"}


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
            {"v": -3, "c": [b"a"]},
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


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        (MOST_DEPTH, b"ab"),
        (MOST_DEPTH + 1, b""),
    ],
)
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
            cbor({-LABEL - 2: metadatum(b"ab")}),
            cbor({-LABEL: metadatum(b"ab")}),
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


def test_strings_in_pieces_are_read_in_values_and_in_keys() -> None:
    """Cardano accepts bytes and texts without a length: pieces, one after another, and a break."""
    version = b"\x7f" + cbor("") + cbor("v") + b"\xff"
    pieces = b"\x81\x5f" + cbor(b"ab") + cbor(b"c") + b"\xff"
    deep = b"\x81\x7f" + cbor("d") + cbor("eep") + b"\xff"
    pairs = version + cbor(1) + deep + cbor(2) + cbor("c") + pieces
    assert object_of(None, b"\xa1" + cbor(LABEL) + b"\xa3" + pairs) == b"abc"


@pytest.mark.parametrize(
    "key",
    [
        cbor([]),
        cbor([1, [2, [-3]], {}]),
        cbor({}),
        cbor({1: [2], b"x": {"y": 3}}),
        cbor(b"v"),
        b"\x9f\x01\x9f\xff\x02\xff",
        b"\xbf\x01\x9f\x02\xff\x81\x03\xa0\xff",
        b"\x82\xbf\xff\x9f\xff",
        b"\x81\x5f\x41\xff\xff",
        b"\x98\x01\xb9\x00\x01\x5a\x00\x00\x00\x01a\x00",
    ],
)
def test_a_key_of_another_type_is_read_over_to_its_end(key: bytes) -> None:
    version, pieces = cbor("v") + cbor(1), cbor("c") + cbor([b"ab"])
    for pairs in (key + cbor(7) + version + pieces, version + key + cbor([7]) + pieces):
        assert object_of(None, b"\xa1" + cbor(LABEL) + b"\xa3" + pairs) == b"ab"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (cbor(2), b"ab"),
        (b"\x1b" + bytes(7) + b"\x01", b"ab"),
        (b"\x5b" + bytes(7) + b"\x01a", b"ab"),
        (b"\x1f", b""),
        (b"\x3f", b""),
        (b"\x1c" + bytes(16), b""),
        (b"\x5c" + bytes(15) + b"\x01a", b""),
        (b"\x9d" + bytes(32), b""),
        (b"\xc0\x01", b""),
    ],
)
def test_a_head_of_an_unknown_form_makes_no_object(value: bytes, found: bytes) -> None:
    """The last item ends with its head, and the metadata ends with it."""
    pairs = cbor("x") + value + cbor("c") + cbor([b"ab"]) + cbor("v") + b"\x18\x01"
    assert object_of(None, b"\xa1" + cbor(LABEL) + b"\xa3" + pairs) == found


@pytest.mark.parametrize("piece", [cbor("a"), b"\x5f\xff", cbor(1)])
def test_a_piece_of_bytes_is_bytes_with_a_length(piece: bytes) -> None:
    pieces = b"\x81\x5f" + cbor(b"a") + piece + b"\xff"
    whole = b"\xa1" + cbor(LABEL) + b"\xa2" + cbor("v") + cbor(1) + cbor("c") + pieces
    assert object_of(None, whole) == b""


@pytest.mark.parametrize("empty", [[], {}, b"", ""])
def test_an_empty_item_takes_nothing_from_what_follows_it(empty: Any) -> None:
    """Only a break ends an item without a length; an item of length 0 has ended."""
    for value in (empty, {"x": empty}, [empty, empty]):
        assert both({"x": value, **metadatum(b"ab")}) == {b"ab"}
    beside = b"\xa1" + cbor(LABEL) + b"\xa3" + cbor([empty]) + cbor(2)
    assert object_of(None, beside + cbor("v") + cbor(1) + cbor("c") + cbor([b"ab"])) == b"ab"


def test_json_is_read_unless_it_is_missing_or_too_long() -> None:
    json_text = json.dumps(as_json(metadatum(b"json")))
    raw = cbor({LABEL: metadatum(b"cbor")})
    assert object_of(json_text, raw) == b"json"
    assert object_of(json_text, b"") == b"json"
    assert object_of(json_text + " " * (MOST_BYTES - len(json_text)), raw) == b"json"
    assert object_of(json_text + " " * MOST_BYTES, raw) == b"cbor"
    assert object_of(None, raw) == b"cbor"


@pytest.mark.parametrize(("beyond", "found"), [(0, b"ab"), (1, b"")])
def test_metadata_in_cbor_has_a_greatest_size(beyond: int, found: bytes) -> None:
    rest = len(cbor({LABEL: {**metadatum(b"ab"), "x": bytes(1 << 16)}})) - (1 << 16)
    raw = cbor({LABEL: {**metadatum(b"ab"), "x": bytes(MOST_BYTES - rest + beyond)}})
    assert len(raw) == MOST_BYTES + beyond
    assert object_of(None, raw) == found
