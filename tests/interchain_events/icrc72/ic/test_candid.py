"""Candid by its specification: what values look like, what is refused, what a stranger may send
(IC-11).
"""

import contextlib
import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.json_form import from_json, to_json
from interchain_events.icrc72.ic.candid.wire import DEPTH, PER_BYTE, SPARE
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.services import Codec, codec

NULL = t.PRIMS["null"]
NAT = t.PRIMS["nat"]
BLOB = t.Vec(t.PRIMS["nat8"])
PAIR = t.Record((t.Field(1, "1", t.PRIMS["text"]), t.Field(0, "0", NAT)))
CHOICE = t.Cases((t.Field(9, "late", NAT), t.Field(2, "early", NULL)))
WHO = Principal(b"\1\2\3")


def leb(number: int) -> bytes:
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


PRIMITIVES = [
    ("null", None, "", None),
    ("reserved", None, "", None),
    ("bool", True, "01", True),
    ("bool", False, "00", False),
    ("nat", 0, "00", "0"),
    ("nat", 127, "7f", "127"),
    ("nat", 128, "8001", "128"),
    ("nat", 1 << 64, "80808080808080808002", "18446744073709551616"),
    ("int", -1, "7f", "-1"),
    ("int", 63, "3f", "63"),
    ("int", 64, "c000", "64"),
    ("int", -64, "40", "-64"),
    ("int", -65, "bf7f", "-65"),
    ("nat8", 255, "ff", "255"),
    ("nat16", 0x0102, "0201", "258"),
    ("nat32", 0x01020304, "04030201", "16909060"),
    ("nat64", (1 << 64) - 1, "ff" * 8, "18446744073709551615"),
    ("int8", -128, "80", "-128"),
    ("int16", -2, "feff", "-2"),
    ("int32", 1, "01000000", "1"),
    ("int64", -(1 << 63), "00" * 7 + "80", "-9223372036854775808"),
    ("float32", b"\0\0\x80\x3f", "0000803f", "0x3f800000"),
    ("float64", b"\1\0\0\0\0\0\xf0\x3f", "010000000000f03f", "0x3ff0000000000001"),
    ("text", "\u00e9", "02c3a9", "\u00e9"),
    ("principal", WHO, "0103010203", WHO.text),
]
CODES = {
    "null": 0x7F,
    "bool": 0x7E,
    "nat": 0x7D,
    "int": 0x7C,
    "nat8": 0x7B,
    "nat16": 0x7A,
    "nat32": 0x79,
}
CODES |= {
    "nat64": 0x78,
    "int8": 0x77,
    "int16": 0x76,
    "int32": 0x75,
    "int64": 0x74,
    "float32": 0x73,
    "float64": 0x72,
}
CODES |= {"text": 0x71, "reserved": 0x70, "principal": 0x68}


@pytest.mark.parametrize(("name", "value", "digits", "form"), PRIMITIVES)
def test_ic_11_a_primitive_value_has_the_bytes_and_json_of_the_specification(
    name: str, value: object, digits: str, form: object
) -> None:
    type_ = t.PRIMS[name]
    message = b"DIDL\x00\x01" + bytes([CODES[name]]) + bytes.fromhex(digits)
    assert Encoder([type_]).encode(value) == message
    assert Decoder([type_]).decode(message) == (value,)
    assert to_json(type_, value) == form
    assert from_json(type_, form) == value


COMPOSITES = [
    (BLOB, b"ab", "6d7b", "026162", "0x6162"),
    (t.Vec(NAT), (1, 2, 128), "6d7d", "0301028001", ["1", "2", "128"]),
    (t.Opt(NAT), None, "6e7d", "00", []),
    (t.Opt(NAT), 5, "6e7d", "0105", ["5"]),
    (t.Opt(NULL), (), "6e7f", "00", []),
    (t.Opt(NULL), (None,), "6e7f", "01", [None]),
    (PAIR, ("one", 7), "6c02007d0171", "07036f6e65", {"1": "one", "0": "7"}),
    (CHOICE, t.Variant("early"), "6b02027f097d", "00", {"early": None}),
    (CHOICE, t.Variant("late", 3), "6b02027f097d", "0103", {"late": "3"}),
]


@pytest.mark.parametrize(("type_", "value", "table", "digits", "form"), COMPOSITES)
def test_ic_11_fields_and_cases_stand_in_the_order_of_their_ids(
    type_: t.Type, value: object, table: str, digits: str, form: object
) -> None:
    message = b"DIDL\x01" + bytes.fromhex(table) + b"\x01\x00" + bytes.fromhex(digits)
    assert Encoder([type_]).encode(value) == message
    assert Decoder([type_]).decode(message) == (value,)
    assert to_json(type_, value) == form
    assert from_json(type_, form) == value


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        pytest.param(
            NAT,
            [-1, True, "1", None],
            id="nat",
        ),
        pytest.param(
            t.PRIMS["int"],
            [True, "1", None],
            id="int",
        ),
        pytest.param(
            t.PRIMS["nat8"],
            [256, -1, True, "1"],
            id="nat8",
        ),
        pytest.param(
            t.PRIMS["int8"],
            [128, -129, False],
            id="int8",
        ),
        pytest.param(
            t.PRIMS["float32"],
            [b"123", b"12345", 1.0],
            id="float32",
        ),
        pytest.param(
            t.PRIMS["float64"],
            [b"1234567", bytes(9)],
            id="float64",
        ),
        pytest.param(
            t.PRIMS["bool"],
            [1, None],
            id="bool",
        ),
        pytest.param(
            t.PRIMS["text"],
            [b"text", "\ud800", None],
            id="text",
        ),
        pytest.param(
            t.PRIMS["principal"],
            [b"\1\2\3", "aaaaa-aa"],
            id="principal",
        ),
        pytest.param(
            t.PRIMS["empty"],
            [None],
            id="empty",
        ),
        pytest.param(
            BLOB,
            ["text", (1, 2)],
            id="blob",
        ),
        pytest.param(
            t.Vec(NAT),
            ["12", 1, None],
            id="vector",
        ),
        pytest.param(
            PAIR,
            [("one",), ("one", 7, 8), ["one", 7]],
            id="record",
        ),
        pytest.param(
            CHOICE,
            [("early",), ("none", 1), ("late", 3, 4), "late"],
            id="variant",
        ),
        pytest.param(
            t.Opt(NULL),
            [None, (None, None), [None]],
            id="option",
        ),
    ],
)
def test_a_value_of_another_type_is_not_written(type_: t.Type, values: list[object]) -> None:
    for value in values:
        with pytest.raises(CandidError):
            Encoder([type_]).encode(value)


@pytest.mark.parametrize(
    ("type_", "table", "digits", "reason"),
    [
        (t.PRIMS["bool"], "", "02", "0 or 1"),
        (t.PRIMS["text"], "", "02c328", "UTF-8"),
        (t.PRIMS["text"], "", "03c3a9", "2 bytes are left"),
        (t.PRIMS["principal"], "", "00", "opaque"),
        (t.PRIMS["principal"], "", "011e" + "00" * 30, "29"),
        (NAT, "", "8080", "ends in a number"),
        (NAT, "", "", "ends in a number"),
        (NAT, "", "80" * 70, "ends in a number"),
        (NAT, "", "0000", "1 bytes follow"),
        (t.Opt(NAT), "6e7d", "0205", "0 or 1"),
        (CHOICE, "6b02027f097d", "02", "no case 2"),
    ],
)
def test_ic_11b_a_malformed_value_is_refused_with_its_place(
    type_: t.Type, table: str, digits: str, reason: str
) -> None:
    if isinstance(type_, t.Prim):
        message = b"DIDL\x00\x01" + bytes([CODES[type_.name]]) + bytes.fromhex(digits)
    else:
        message = b"DIDL\x01" + bytes.fromhex(table) + b"\x01\x00" + bytes.fromhex(digits)
    with pytest.raises(CandidError, match=rf"^byte \d+: .*{reason}"):
        Decoder([type_]).decode(message)


@pytest.mark.parametrize("bits", [0, 6, 7, 8, 441, 447, 448, 449, 455, 456, 900, 5_000])
def test_ic_11b_numbers_of_any_length_are_read_also_where_halves_are_joined(bits: int) -> None:
    for number in (1 << bits, (1 << bits) - 1):
        message = b"DIDL\x00\x01\x7d" + leb(number)
        assert Decoder([NAT]).decode(message) == (number,)
        assert Encoder([NAT]).encode(number) == message
        for signed in (number, -number):
            whole = Encoder([t.PRIMS["int"]]).encode(signed)
            assert Decoder([t.PRIMS["int"]]).decode(whole) == (signed,)


OTHERS = [
    ("6a000000", "00"),  # a function reference that is opaque
    ("6a000000", "01" + "01010903616263"),
    ("6a000000", "01" + "0003616263"),
    ("6900", "00"),  # a service
    ("6900", "0102aabb"),
    ("6702aabb", "0300616263"),  # a type of a later version: its length, no references, three bytes
]


@pytest.mark.parametrize(("table", "digits"), OTHERS)
def test_ic_11b_a_reference_or_a_value_of_an_unknown_type_is_read_over(
    table: str, digits: str
) -> None:
    message = b"DIDL\x01" + bytes.fromhex(table) + b"\x02\x00\x7d" + bytes.fromhex(digits) + b"\x07"
    assert Decoder([t.PRIMS["reserved"], NAT]).decode(message) == (None, 7)
    with pytest.raises(CandidError):
        Decoder([t.PRIMS["reserved"], NAT]).decode(message[:-1])


def test_ic_11b_a_value_of_an_unknown_type_holds_no_references() -> None:
    message = b"DIDL\x01\x67\x00\x01\x00" + b"\x00\x01"
    with pytest.raises(CandidError, match="holds references"):
        Decoder([t.PRIMS["reserved"]]).decode(message)


@pytest.mark.parametrize(
    ("table", "digits", "reason"),
    [
        ("016a000000", "02", "a reference must begin with 0 or 1"),
        ("016a000000", "01020161", "a reference must begin with 0 or 1"),
        ("016a000000", "01011e" + "01" * 30 + "0161", "29"),
        ("016a000000", "010001ff", "not UTF-8"),
        ("016900", "02", "a reference must begin with 0 or 1"),
        ("016900", "011e" + "01" * 30, "29"),
        ("0169010161" + "7d", "0100", "type -3, which is not a function"),
        ("0169010161" + "00", "0100", "type 0, which is not a function"),
        ("0269010161" + "01" + "6e7d", "0100", "type 1, which is not a function"),
        ("0168", "02", "no composite type has the code"),
    ],
)
def test_ic_11b_a_reference_that_is_read_over_is_checked(
    table: str, digits: str, reason: str
) -> None:
    message = b"DIDL" + bytes.fromhex(table) + b"\x02\x7d\x00\x05" + bytes.fromhex(digits)
    with pytest.raises(CandidError, match=reason):
        Decoder([NAT]).decode(message)


def test_ic_11b_a_service_method_may_use_a_later_function_type() -> None:
    message = b"DIDL" + bytes.fromhex("0269010161" + "01" + "6a000000" + "01" + "00" + "0100")
    assert Decoder([t.PRIMS["reserved"]]).decode(message) == (None,)


def test_ic_11_a_principal_begins_with_0_or_1() -> None:
    with pytest.raises(CandidError, match="must begin with 0 or 1"):
        Decoder([t.PRIMS["principal"]]).decode(b"DIDL\x00\x01\x68\x02\x00")


def test_a_variant_that_was_read_through_its_alias_has_a_json_form() -> None:
    rets = codec("icrc72_handle_notification_trusted").rets
    (written,) = parse_types("(variant { Err : text })")
    (answer,) = rets.decode(Encoder([written]).encode(t.Variant("Err", "no")))
    assert to_json(rets.types[0], answer) == {"err": "no"}


def test_a_variant_of_no_case_has_no_json_form() -> None:
    with pytest.raises(CandidError, match="the variant has no case other"):
        to_json(CHOICE, t.Variant("other", None))


def _nested(depth: int) -> bytes:
    """So many optional values within each other."""
    return b"DIDL\x01\x6e\x00\x01\x00" + b"\x01" * depth + b"\x00"


def test_ic_11b_values_nest_to_depth_256_and_no_deeper() -> None:
    kept: dict[str, t.Type] = {}
    kept["0"] = t.Opt(t.Named("0", kept))
    decoder = Decoder([kept["0"]], strict=True)
    (value,) = decoder.decode(_nested(DEPTH))
    for _ in range(256):
        assert isinstance(value, tuple)
        (value,) = value
    assert value == ()
    with pytest.raises(CandidError, match="nested deeper than 256"):
        decoder.decode(_nested(DEPTH + 1))


def test_ic_11b_a_message_has_as_many_values_as_its_length_allows() -> None:
    """Values of no bytes: the longest list that is read, and one of one more."""

    def message(count: int) -> bytes:
        return b"DIDL\x01\x6d\x7f\x01\x00" + leb(count)

    most = SPARE + PER_BYTE * len(message(SPARE)) - 1  # the list itself is one
    assert most == 100_191
    (values,) = Decoder([t.Vec(NULL)]).decode(message(most))
    assert values == (None,) * most
    with pytest.raises(CandidError, match="more values than its length allows"):
        Decoder([t.Vec(NULL)]).decode(message(most + 1))


def test_ic_11b_lists_and_records_that_follow_one_another_do_not_nest() -> None:
    """More of them than the depth allows, of each kind that is entered and left."""
    many = 4 * DEPTH
    for inner, value in (
        (t.Vec(NAT), (1,)),
        (t.Opt(NAT), 5),
        (t.Opt(NULL), (None,)),
        (t.Opt(t.Opt(NAT)), (7,)),
        (PAIR, ("one", 7)),
        (CHOICE, t.Variant("late", 3)),
    ):
        message = Encoder([t.Vec(inner)]).encode((value,) * many)
        assert Decoder([t.Vec(inner)]).decode(message) == ((value,) * many,)


def test_ic_11_an_empty_vector_of_empty_is_read_as_an_empty_blob() -> None:
    assert Decoder([BLOB]).decode(b"DIDL\x01\x6d\x6f\x01\x00\x00") == (b"",)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ((b"a", b"b"), None),
        ((b"b", b"a"), "ascending"),
        ((b"a", b"a"), "ascending"),
        ((b"",), None),
    ],
)
def test_ic_11b_the_methods_of_a_service_ascend(
    names: tuple[bytes, ...], reason: str | None
) -> None:
    methods = b"".join(bytes([len(name)]) + name + b"\x01" for name in names)
    table = b"\x02\x69" + bytes([len(names)]) + methods + b"\x6a\x00\x00\x00"
    message = b"DIDL" + table + b"\x01\x00" + b"\x00"
    if reason is None:
        assert Decoder([]).decode(message) == ()
        return
    with pytest.raises(CandidError, match=reason):
        Decoder([]).decode(message)


def test_a_record_of_a_class_is_read_from_json_as_one() -> None:
    made = t.Record(PAIR.fields, lambda fields: {"made": fields})
    assert from_json(made, {"1": "one", "0": "7"}) == {"made": ("one", 7)}
    with pytest.raises(CandidError, match="not the JSON form"):
        from_json(made, {"1": "one"})
    with pytest.raises(CandidError, match="no case other"):
        from_json(CHOICE, {"other": None})


def _typed(depth: int = 2) -> st.SearchStrategy[tuple[t.Type, Any]]:
    """A type, and a value of it."""
    number = st.integers(0, 1 << 70).map(lambda value: (NAT, value))
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).map(
        lambda value: (t.PRIMS["text"], value)
    )
    blob = st.binary(max_size=5).map(lambda value: (BLOB, value))
    signed = st.integers(-(1 << 70), 1 << 70).map(lambda value: (t.PRIMS["int"], value))
    flat = st.one_of(
        number, text, blob, signed, st.booleans().map(lambda value: (t.PRIMS["bool"], value))
    )
    if not depth:
        return flat
    inner = _typed(depth - 1)

    def record(parts: list[tuple[t.Type, Any]]) -> tuple[t.Type, Any]:
        fields = tuple(
            t.Field(31 * at % 17, f"f{at}", type_) for at, (type_, _) in enumerate(parts)
        )
        return t.Record(fields), tuple(value for _, value in parts)

    def variant(parts: list[tuple[t.Type, Any]]) -> tuple[t.Type, Any]:
        cases = tuple(t.Field(31 * at % 17, f"c{at}", type_) for at, (type_, _) in enumerate(parts))
        return t.Cases(cases), t.Variant(f"c{len(parts) // 2}", parts[len(parts) // 2][1])

    def optional(part: tuple[t.Type, Any], given: bool) -> tuple[t.Type, Any]:
        type_, value = part
        if t.may_be_null(type_):
            return t.Opt(type_), (value,) if given else ()
        return t.Opt(type_), value if given else None

    return st.one_of(
        flat,
        st.lists(inner, max_size=4).map(record),
        st.lists(inner, min_size=1, max_size=4).map(variant),
        st.builds(optional, inner, st.booleans()),
        inner.map(lambda part: (t.Vec(part[0]), (part[1],) * 3)).filter(
            lambda part: not t.is_blob(part[0])
        ),
    )


@given(st.lists(_typed(), max_size=3), _typed())
def test_ic_11_every_value_round_trips_and_unexpected_arguments_are_skipped(
    parts: list[tuple[t.Type, Any]], more: tuple[t.Type, Any]
) -> None:
    types = [type_ for type_, _ in parts]
    values = tuple(value for _, value in parts)
    message = Encoder([*types, more[0]]).encode(*values, more[1])
    assert Decoder(types).decode(message) == values
    assert Decoder([*types, more[0]], strict=True).decode(message) == (*values, more[1])
    for type_, value in parts:
        assert from_json(type_, to_json(type_, value)) == value
        one = Encoder([type_])
        assert one.size(value) == len(one.encode(value)) - len(one.header)
    for cut in range(len(message)):
        with pytest.raises(CandidError):
            Decoder([*types, more[0]], strict=True).decode(message[:cut])


def _optional_records(case: t.Field) -> t.Vec:
    return t.Vec(t.Opt(t.Record((t.Field(0, "inner", t.Cases((case,))),))))


def test_ic_11b_a_value_that_does_not_fit_restores_the_nesting_depth() -> None:
    """Else a message with more such values than the depth allows would be refused, though it is
    flat.
    """
    sent = _optional_records(t.Field(7, "unknown", NULL))
    wanted = _optional_records(t.Field(8, "known", NULL))
    count = 4 * DEPTH
    message = Encoder([sent]).encode(((t.Variant("unknown", None),),) * count)
    assert Decoder([wanted]).decode(message) == ((None,) * count,)
    with pytest.raises(CandidError, match="another type than the interface says"):
        Decoder([wanted], strict=True).decode(message)


def test_a_message_that_no_form_accepts_leaves_no_garbage() -> None:
    either = Codec((NAT,), [(NULL,)])
    message = Encoder((t.PRIMS["text"],)).encode("x" * 1000)
    with pytest.raises(CandidError):
        either.decode(message)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(CandidError):
            either.decode(message)
        assert gc.collect() == 0
    finally:
        gc.enable()
