"""`encode` and `decode` are inverse for all types of real runtimes and of hand-made ones."""

import gzip
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset
from support.client.chain_metadata import metadata_of_chains
from support.client.chain_values import REAL, RUNTIMES, Values, real_metadata

from pubsub_emulator.client import metadata as m
from pubsub_emulator.client.decode import MAX_DEPTH, decode
from pubsub_emulator.client.encode import Encoded, encode, encode_call
from pubsub_emulator.client.errors import BadAnswer, ClientError
from pubsub_emulator.primitives.errors import ScaleError


class Types:
    """A registry that is made by hand."""

    def __init__(self) -> None:
        self.types: dict[int, m.Type] = {}
        self.paths: dict[int, tuple[str, ...]] = {}
        self.metadata = m.Metadata(self.types, self.paths, {}, 0)

    def add(self, kind: m.Type, *path: str) -> int:
        number = len(self.types)
        self.types[number] = kind
        self.paths[number] = path
        return number

    def primitive(self, name: str) -> int:
        return self.add(m.Primitive(name))

    def struct(self, *fields: tuple[str | None, int], path: str = "Struct") -> int:
        return self.add(m.Composite(tuple(m.Field(*field) for field in fields)), path)

    def enum(self, *variants: tuple[str, tuple[int, ...]], path: str = "Enum") -> int:
        listed = {
            index: m.Variant(name, tuple(m.Field(None, kind) for kind in kinds))
            for index, (name, kinds) in enumerate(variants)
        }
        return self.add(m.Enum(listed), path)

    def option(self, inner: int) -> int:
        return self.enum(("None", ()), ("Some", (inner,)), path="Option")

    def unit(self) -> int:
        return self.add(m.Tuple(()))

    def decoded(self, kind: int, digits: str) -> object:
        return decode(self.metadata, kind, bytes.fromhex(digits))

    def encoded(self, kind: int, value: object) -> str:
        return encode(self.metadata, kind, value).hex()


@pytest.fixture
def types() -> Types:
    return Types()


# All types of real runtimes


@pytest.mark.parametrize("name", RUNTIMES)
def test_values_of_every_type_of_a_real_runtime_survive(name: str) -> None:
    values = Values(real_metadata(name))
    kinds = values.kinds()
    # Types without values: enums without variants, such as `Void` and `Never`.
    assert len(values.metadata.types) - len(kinds) < 8
    for kind in kinds:
        value = values.value(kind, Random(kind))
        data = encode(values.metadata, kind, value)
        assert decode(values.metadata, kind, data) == value, values.metadata.name_of(kind)


@settings(deadline=None)
@given(st.sampled_from(RUNTIMES), st.data())
def test_any_value_of_any_type_of_a_real_runtime_survives(name: str, data: st.DataObject) -> None:
    values = Values(real_metadata(name))
    kind = data.draw(st.sampled_from(values.kinds()))
    value = values.value(kind, data.draw(st.randoms(use_true_random=False)))
    encoded = encode(values.metadata, kind, value)
    assert decode(values.metadata, kind, encoded) == value


@settings(deadline=None)
@given(st.sampled_from(RUNTIMES), st.data())
def test_bytes_that_are_decoded_are_encoded_as_they_were(name: str, data: st.DataObject) -> None:
    """Damaged encodings are refused, or they are the encoding of another value."""
    values = Values(real_metadata(name))
    kind = data.draw(st.sampled_from(values.kinds()))
    value = values.value(kind, data.draw(st.randoms(use_true_random=False)))
    damaged = bytearray(encode(values.metadata, kind, value))
    if damaged:
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        other = decode(values.metadata, kind, bytes(damaged))
    except (ScaleError, BadAnswer):
        return
    assert encode(values.metadata, kind, other) == damaged


@pytest.mark.parametrize("name", RUNTIMES)
def test_bytes_that_polkadot_js_round_trips_are_round_tripped_here(name: str) -> None:
    metadata = real_metadata(name)
    listed = json.loads(gzip.decompress((REAL / "values.json.gz").read_bytes()))[name]
    assert len(listed) > 800
    for kind, digits in listed.items():
        value = decode(metadata, int(kind), bytes.fromhex(digits))
        assert encode(metadata, int(kind), value).hex() == digits, metadata.name_of(int(kind))


def test_scalecodec_reads_the_same_metadata() -> None:
    """Types, pallets, storage and constants, of which scalecodec makes a document."""
    found = read_by_scalecodec(metadata_of_chains()["relay"])
    metadata = m.parse_metadata(metadata_of_chains()["relay"])
    listed = found["types"]["types"]
    assert [tuple(row["type"]["path"]) for row in listed] == list(metadata.paths.values())
    for row in listed:
        ((kind, body),) = row["type"]["def"].items()
        assert metadata.types[row["id"]] == as_type(kind, body)
    for pallet in found["pallets"]:
        ours = metadata.pallets[pallet["name"]]
        assert ours.index == pallet["index"]
        assert ours.calls == (pallet["calls"] and pallet["calls"]["ty"])
        assert ours.events == (pallet["event"] and pallet["event"]["ty"])
        assert ours.errors == (pallet["error"] and pallet["error"]["ty"])
        assert [(each["name"], each["type"]) for each in pallet["constants"]] == [
            (name, constant.type) for name, constant in ours.constants.items()
        ]
        items = pallet["storage"]["entries"] if pallet["storage"] else ()
        assert {item["name"]: as_storage(item["type"]) for item in items} == ours.storage


def read_by_scalecodec(data: bytes) -> dict[str, Any]:
    config = RuntimeConfigurationObject(implements_scale_info=True)
    config.update_type_registry(load_type_registry_preset("core"))
    found = config.create_scale_object("MetadataVersioned", ScaleBytes(data))
    found.decode()
    versioned: dict[str, Any] = found.value[1]["V14"]
    return versioned


def as_fields(listed: list[dict[str, Any]]) -> tuple[m.Field, ...]:
    return tuple(m.Field(each["name"], each["type"]) for each in listed)


def as_type(kind: str, body: Any) -> m.Type:
    match kind:
        case "composite":
            return m.Composite(as_fields(body["fields"]))
        case "variant":
            return m.Enum(
                {
                    each["index"]: m.Variant(each["name"], as_fields(each["fields"]))
                    for each in body["variants"]
                }
            )
        case "sequence":
            return m.Sequence(body["type"])
        case "array":
            return m.Array(body["type"], body["len"])
        case "tuple":
            return m.Tuple(tuple(body))
        case "primitive":
            return m.Primitive(body.lower())
        case "compact":
            return m.Compact(body["type"])
        case _:
            return m.Bits(body["bit_store_type"], body["bit_order_type"])


def as_storage(definition: dict[str, Any]) -> m.StorageEntryMetadata:
    ((kind, body),) = definition.items()
    if kind == "Plain":
        return m.StorageEntryMetadata((), None, body)
    return m.StorageEntryMetadata(tuple(body["hashers"]), body["key"], body["value"])


# Forms of values

FORMS: dict[str, tuple[Callable[[Types], int], str, object]] = {
    "Option of a number": (lambda t: t.option(t.primitive("u32")), "0103000000", 3),
    "None": (lambda t: t.option(t.primitive("u32")), "00", None),
    "Option of Option, None": (lambda t: t.option(t.option(t.primitive("bool"))), "00", None),
    "Option of Option, Some(None)": (
        lambda t: t.option(t.option(t.primitive("bool"))),
        "0100",
        {"Some": None},
    ),
    "Option of Option, Some(Some)": (
        lambda t: t.option(t.option(t.primitive("bool"))),
        "010101",
        {"Some": True},
    ),
    "three Options": (
        lambda t: t.option(t.option(t.option(t.primitive("u8")))),
        "010100",
        {"Some": {"Some": None}},
    ),
    "Option of ()": (lambda t: t.option(t.unit()), "01", {"Some": None}),
    "Option of a newtype of ()": (
        lambda t: t.option(t.struct((None, t.struct()))),
        "01",
        {"Some": None},
    ),
    "Option of bytes": (
        lambda t: t.option(t.add(m.Sequence(t.primitive("u8")))),
        "010461",
        b"a",
    ),
    "an enum that is only called Option": (
        lambda t: t.enum(("Some", (t.primitive("u8"),)), ("None", ()), path="Option"),
        "0007",
        {"Some": 7},
    ),
    "bool": (lambda t: t.primitive("bool"), "01", True),
    "str": (lambda t: t.primitive("str"), "0461", "a"),
    "char": (lambda t: t.primitive("char"), "00f60100", "\U0001f600"),
    "i32": (lambda t: t.primitive("i32"), "ffffffff", -1),
    "i256": (lambda t: t.primitive("i256"), "00" * 31 + "80", -(1 << 255)),
    "u256": (lambda t: t.primitive("u256"), "ff" * 32, (1 << 256) - 1),
    "()": (lambda t: t.unit(), "", None),
    "a struct without fields": (lambda t: t.struct(), "", None),
    "a tuple of one": (lambda t: t.add(m.Tuple((t.primitive("u8"),))), "05", [5]),
    "an array of numbers": (
        lambda t: t.add(m.Array(t.primitive("u16"), 2)),
        "01000200",
        [1, 2],
    ),
    "Vec of ()": (lambda t: t.add(m.Sequence(t.unit())), "0c", [None, None, None]),
    "Result of ()": (
        lambda t: t.enum(("Ok", (t.unit(),)), ("Err", (t.primitive("u8"),))),
        "00",
        {"Ok": None},
    ),
    "a variant of two unnamed fields": (
        lambda t: t.enum(("Pair", (t.primitive("u8"), t.primitive("u8")))),
        "000102",
        {"Pair": [1, 2]},
    ),
    "a struct of one named field": (lambda t: t.struct(("x", t.primitive("u8"))), "05", {"x": 5}),
    "a struct in a struct of the same name": (
        lambda t: t.struct(("x", t.struct(("x", t.primitive("u8"))))),
        "05",
        {"x": {"x": 5}},
    ),
    "Compact of a newtype": (
        lambda t: t.add(m.Compact(t.struct((None, t.primitive("u32")), path="Perbill"))),
        "02093d00",
        1_000_000,
    ),
    "Compact of ()": (lambda t: t.add(m.Compact(t.unit())), "", None),
    "BitVec of u8, lowest first": (lambda t: bits(t, "u8", "Lsb0"), "1405", "0b10100"),
    "BitVec of u8, highest first": (lambda t: bits(t, "u8", "Msb0"), "14a0", "0b10100"),
    "BitVec of u16": (lambda t: bits(t, "u16", "Lsb0"), "240101", "0b100000001"),
    "an empty BitVec": (lambda t: bits(t, "u64", "Msb0"), "00", "0b"),
}


def bits(types: Types, word: str, order: str) -> int:
    store = types.primitive(word)
    return types.add(m.Bits(store, types.add(m.Composite(()), "bitvec", "order", order)))


@pytest.mark.parametrize(("make", "digits", "value"), FORMS.values(), ids=FORMS)
def test_each_form_of_value_is_decoded_and_encoded(
    make: Callable[[Types], int], digits: str, value: object, types: Types
) -> None:
    kind = make(types)
    found = types.decoded(kind, digits)
    assert (type(found), found) == (type(value), value)
    assert types.encoded(kind, value) == digits


# What decoding refuses


@pytest.mark.parametrize(
    ("make", "digits"),
    [
        pytest.param(lambda t: t.add(m.Compact(t.primitive("u8"))), "0104", id="Compact of u8"),
        pytest.param(
            lambda t: t.add(m.Compact(t.primitive("u32"))), "070000000001", id="Compact of u32"
        ),
        pytest.param(
            lambda t: t.add(m.Compact(t.primitive("u64"))),
            "17000000000000000001",
            id="Compact of u64",
        ),
        pytest.param(
            lambda t: t.add(m.Compact(t.struct((None, t.primitive("u32"))))),
            "0b000000000001",
            id="Compact of a newtype",
        ),
        pytest.param(lambda t: t.primitive("char"), "00d80000", id="half a surrogate pair"),
        pytest.param(lambda t: t.primitive("char"), "00001100", id="a character beyond Unicode"),
        pytest.param(lambda t: t.primitive("str"), "04ff", id="text that is not UTF-8"),
        pytest.param(lambda t: bits(t, "u8", "Lsb0"), "1425", id="a bit behind the last one"),
        pytest.param(lambda t: bits(t, "u8", "Lsb0"), "02000004", id="a length beyond the bytes"),
    ],
)
def test_bytes_that_no_encoder_writes_are_refused(
    make: Callable[[Types], int], digits: str, types: Types
) -> None:
    with pytest.raises(ScaleError):
        types.decoded(make(types), digits)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda t: t.add(m.Compact(t.primitive("i8"))),
            id="compact of a signed integer",
        ),
        pytest.param(
            lambda t: t.add(m.Compact(t.add(m.Compact(0)))),
            id="compact of a compact",
        ),
        pytest.param(
            lambda t: bits(t, "u128", "Lsb0"),
            id="bits of u128",
        ),
        pytest.param(
            lambda t: bits(t, "u8", "Middle0"),
            id="unknown order of bits",
        ),
        pytest.param(
            lambda t: t.add(m.Composite((m.Field(None, 0),))),
            id="unnamed field within itself",
        ),
    ],
)
def test_types_that_cannot_exist_are_refused(make: Callable[[Types], int], types: Types) -> None:
    kind = make(types)
    with pytest.raises(BadAnswer):
        types.decoded(kind, "04" * 8)
    with pytest.raises(ClientError):
        types.encoded(kind, 1)


# Errors of encoding


def place(types: Types) -> int:
    """A struct that has every kind of step of a path."""
    number = types.primitive("u32")
    entry = types.struct(("value", types.add(m.Sequence(number))), ("ttl", number), path="Entry")
    target = types.enum(("Id", (entry,)), ("Root", ()), path="Target")
    return types.struct(("dest", target), ("entries", types.add(m.Sequence(entry))), path="Call")


GOOD: dict[str, Any] = {"dest": "Root", "entries": [{"value": [1], "ttl": 0}]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"dest": {"Id": {"value": [1, -1], "ttl": 0}}},
            r"dest\.Id\.value\[1\]: -1 is not a value",
        ),
        (
            {"entries": [[[1], 0], [[1], 1 << 32]]},
            r"entries\[1\]\.ttl: 4294967296 is not a value of",
        ),
        (
            {"entries": [{"value": [True], "ttl": 0}]},
            r"entries\[0\]\.value\[0\]: True is not a value",
        ),
        ({"entries": [{"value": []}]}, r"entries\[0\]: Entry: ttl is missing"),
        ({"entries": [{"value": [], "ttl": 0, "x": 1}]}, r"entries\[0\]: Entry: unknown field.* x"),
        ({"entries": [[[1]]]}, r"entries\[0\]: Entry has 2 parts, not 1"),
        ({"dest": {}}, r"dest: \{\} is not a value of the chain's type Target"),
        ({"dest": {"Id": 1, "Root": None}}, r"dest: .* is not a value of the chain's type Target"),
        ({"dest": "Other"}, r"dest: Target has no variant 'Other', only Id, Root"),
        ({"dest": "Id"}, r"dest: the variant Id needs its fields"),
        ({"dest": {"Root": 5}}, r"dest\.Root: 5 is not a value .*None is expected"),
        (
            {"dest": {"Id": "x" * 500}},
            r"dest\.Id: 'x.{1,120}2 parts|dest\.Id: .x.{1,160}a list is expected",
        ),
        (
            {"dest": {"Id": {"value": [10**5000], "ttl": 0}}},
            r"dest\.Id\.value\[0\]: a very large integer",
        ),
    ],
)
def test_an_error_names_the_place_of_the_value(
    changes: dict[str, Any], words: str, types: Types
) -> None:
    kind = place(types)
    assert types.decoded(kind, types.encoded(kind, GOOD)) == GOOD
    with pytest.raises(ClientError, match=f"^{words}"):
        types.encoded(kind, GOOD | changes)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        pytest.param(
            lambda t: t.primitive("u8"),
            256,
            id="u8 too large",
        ),
        pytest.param(
            lambda t: t.primitive("u32"),
            -1,
            id="u32 negative",
        ),
        pytest.param(
            lambda t: t.primitive("u8"),
            True,
            id="u8 from a bool",
        ),
        pytest.param(
            lambda t: t.primitive("i8"),
            128,
            id="i8 too large",
        ),
        pytest.param(
            lambda t: t.primitive("i8"),
            -129,
            id="i8 too small",
        ),
        pytest.param(
            lambda t: t.primitive("bool"),
            1,
            id="bool from a number",
        ),
        pytest.param(
            lambda t: t.primitive("str"),
            b"a",
            id="str from bytes",
        ),
        pytest.param(
            lambda t: t.primitive("str"),
            "\ud800",
            id="str with a surrogate",
        ),
        pytest.param(
            lambda t: t.primitive("char"),
            "ab",
            id="char of two",
        ),
        pytest.param(
            lambda t: t.primitive("char"),
            "\ud800",
            id="char of a surrogate",
        ),
        pytest.param(
            lambda t: t.add(m.Compact(t.primitive("u32"))),
            1 << 40,
            id="compact too large",
        ),
        pytest.param(
            lambda t: t.add(m.Compact(t.primitive("u32"))),
            -1,
            id="compact negative",
        ),
        pytest.param(
            lambda t: t.add(m.Compact(t.unit())),
            0,
            id="compact of a unit",
        ),
        pytest.param(
            lambda t: t.add(m.Array(t.primitive("u16"), 2)),
            b"\0\0",
            id="array of u16 from bytes",
        ),
        pytest.param(
            lambda t: t.add(m.Array(t.primitive("u8"), 2)),
            b"\0",
            id="array too short",
        ),
        pytest.param(
            lambda t: t.add(m.Sequence(t.primitive("u16"))),
            b"\0\0",
            id="sequence of u16 from bytes",
        ),
        pytest.param(
            lambda t: t.add(m.Sequence(t.primitive("u8"))),
            [0],
            id="sequence of u8 from a list",
        ),
        pytest.param(
            lambda t: t.add(m.Sequence(t.primitive("u16"))),
            "ab",
            id="sequence from text",
        ),
        pytest.param(
            lambda t: t.add(m.Tuple((t.primitive("u8"),))),
            [],
            id="tuple too short",
        ),
        pytest.param(
            lambda t: t.option(t.unit()),
            {"Some": 1},
            id="option of a unit",
        ),
        pytest.param(
            lambda t: t.option(t.unit()),
            {"Other": None},
            id="option of another name",
        ),
        pytest.param(
            lambda t: bits(t, "u8", "Lsb0"),
            "0b012",
            id="a bit that is 2",
        ),
        pytest.param(
            lambda t: bits(t, "u8", "Lsb0"),
            "01",
            id="bits without 0b",
        ),
        pytest.param(
            lambda t: bits(t, "u8", "Lsb0"),
            "0b" + "0" * ((1 << 24) + 1),
            id="too many bits",
        ),
    ],
)
def test_values_of_another_type_are_refused(
    make: Callable[[Types], int], value: object, types: Types
) -> None:
    kind = make(types)
    with pytest.raises(ClientError):
        types.encoded(kind, value)


def test_values_are_nested_as_deeply_as_decoding_allows(types: Types) -> None:
    kind = types.add(m.Sequence(0))
    value: list[object] = []
    for _ in range(MAX_DEPTH):
        value = [value]
    assert types.decoded(kind, types.encoded(kind, value)) == value
    with pytest.raises(ClientError, match="nested at most 128 levels"):
        types.encoded(kind, [value])


def test_a_call_names_its_argument_in_errors() -> None:
    metadata = real_metadata("polkadot-14")
    destination = {"Id": bytes(32)}
    call = encode_call(
        metadata, "Balances", "transfer_keep_alive", {"dest": destination, "value": 5}
    )
    assert decode(metadata, metadata.pallets["Balances"].calls or 0, call[1:]) == {
        "transfer_keep_alive": {"dest": destination, "value": 5}
    }
    with pytest.raises(
        ClientError, match=r"^Balances\.transfer_keep_alive: dest\.Id: b'' is|parts"
    ):
        encode_call(metadata, "Balances", "transfer_keep_alive", {"dest": {"Id": b""}, "value": 5})
    with pytest.raises(ClientError, match=r"takes dest, value, and not dest$"):
        encode_call(metadata, "Balances", "transfer_keep_alive", {"dest": destination})
    with pytest.raises(ClientError, match="has no calls of Nobody"):
        encode_call(metadata, "Nobody", "transfer_keep_alive", {})


def test_bytes_that_are_encoded_already_stand_for_any_type(types: Types) -> None:
    kind = types.struct(("call", types.unit()), ("number", types.primitive("u8")))
    assert types.encoded(kind, {"call": Encoded(b"\1\2"), "number": 3}) == "010203"
