"""SCALE: equality with scalecodec, round trips, and what decoding refuses."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.byte_lists import encode_bytes_list, read_byte_strings
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader, compact_len, encode_compact


@cache
def registry() -> Any:
    configuration = RuntimeConfigurationObject()
    configuration.update_type_registry(load_type_registry_preset("legacy"))
    return configuration


def theirs(kind: str, value: object) -> bytes:
    return bytes.fromhex(registry().create_scale_object(kind).encode(value).to_hex()[2:])


def read_by_them(kind: str, data: bytes) -> Any:
    return registry().create_scale_object(kind, data=ScaleBytes("0x" + data.hex())).decode()


@given(st.integers(0, 2**128 - 1))
def test_compact_integers_equal_scalecodecs(value: int) -> None:
    assert encode_compact(value) == theirs("Compact<u128>", value)
    assert read_by_them("Compact<u128>", encode_compact(value)) == value
    assert scale.compact.decode(encode_compact(value)) == value
    assert compact_len(value) == len(encode_compact(value))


@given(st.data())
def test_fixed_integers_equal_scalecodecs(data: st.DataObject) -> None:
    for bits, codec in ((8, scale.u8), (16, scale.u16), (32, scale.u32), (64, scale.u64), (128, scale.u128)):
        value = data.draw(st.integers(0, 2**bits - 1))
        assert codec.encode(value) == theirs(f"u{bits}", value)
        assert codec.decode(codec.encode(value)) == read_by_them(f"u{bits}", codec.encode(value)) == value


@given(st.lists(st.integers(0, 2**32 - 1), max_size=80), st.one_of(st.none(), st.integers(0, 2**32 - 1)), st.booleans())
def test_lists_options_and_booleans_equal_scalecodecs(numbers: list[int], maybe: int | None, flag: bool) -> None:
    assert scale.vec(scale.u32).encode(numbers) == theirs("Vec<u32>", numbers)
    assert read_by_them("Vec<u32>", scale.vec(scale.u32).encode(numbers)) == numbers
    assert scale.option(scale.u32).encode(maybe) == theirs("Option<u32>", maybe)
    assert scale.boolean.encode(flag) == theirs("bool", flag)


@given(st.lists(st.binary(max_size=80), max_size=10), st.binary(min_size=32, max_size=32))
def test_byte_strings_equal_scalecodecs(blobs: list[bytes], exact: bytes) -> None:
    """The nodes of a storage proof are a `Vec<Vec<u8>>`."""
    listed = encode_bytes_list(blobs)
    assert listed == theirs("Vec<HexBytes>", ["0x" + blob.hex() for blob in blobs])
    assert listed == scale.vec(scale.bytes_).encode(blobs)
    assert scale.vec(scale.bytes_).decode(listed) == blobs
    assert read_by_them("Vec<HexBytes>", listed) == ["0x" + blob.hex() for blob in blobs]
    assert scale.fixed(32).encode(exact) == theirs("H256", "0x" + exact.hex())


_lengths = st.sampled_from((0, 1, 63, 64, 65, 300, 16_383, 16_384))


@given(
    st.lists(_lengths.map(bytes), max_size=5),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.integers(0, 400),
)
def test_a_list_read_at_once_is_what_reading_one_after_the_other_gives(
    blobs: list[bytes], changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(encode_bytes_list(blobs))
    for at, byte in changes:
        if at < len(data):
            data[at] = byte
    raw = bytes(data[: len(data) - cut] if cut < len(data) else data)
    one, all_ = Reader(raw, 1), Reader(raw, 1)

    def outcome(read: Callable[[], list[bytes]], reader: Reader) -> object:
        try:
            return read(), reader.pos
        except ScaleError as error:
            return str(error)

    count = len(blobs)
    assert outcome(lambda: read_byte_strings(all_, count), all_) == outcome(
        lambda: [one.bytes_() for _ in range(count)], one
    )


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=10), max_size=10))
def test_maps_equal_scalecodecs_and_ascend(entries: dict[int, bytes]) -> None:
    codec = scale.sorted_map(scale.u32, scale.bytes_)
    ordered = [(key, "0x" + value.hex()) for key, value in sorted(entries.items())]
    assert codec.encode(entries) == theirs("BTreeMap<u32,HexBytes>", ordered)
    assert codec.decode(codec.encode(entries)) == entries
    assert list(codec.decode(codec.encode(entries))) == sorted(entries)


@given(st.binary(max_size=40))
def test_any_bytes_decode_to_what_encodes_to_them_or_are_refused(data: bytes) -> None:
    """Strict in both directions: no two byte strings stand for one value."""
    codecs: tuple[Codec[Any], ...] = (
        scale.compact,
        scale.bytes_,
        scale.vec(scale.u16),
        scale.option(scale.boolean),
        scale.sorted_map(scale.u8, scale.bytes_),
        scale.triple(scale.u8, scale.bytes_, scale.compact_of(32)),
        scale.vec(scale.unit, limit=5),
    )
    for codec in codecs:
        try:
            value = codec.decode(data)
        except ScaleError:
            continue
        assert codec.encode(value) == data


@pytest.mark.parametrize(
    ("codec", "data", "reason"),
    [
        (scale.compact, "", "1 byte wanted"),
        (scale.compact, "01", "1 byte wanted"),
        (scale.compact, "0100", "shortest form"),
        (scale.compact, "fd00", "shortest form"),
        (scale.compact, "02000000", "shortest form"),
        (scale.compact, "03ffffff3f", "shortest form"),
        (scale.compact, "0700000000 00", "shortest form"),
        (scale.compact_of(32), "0700000000 01", "exceeds 32 bits"),
        (scale.boolean, "02", "0 or 1"),
        (scale.option(scale.u8), "0205", "0 or 1"),
        (scale.bytes_, "08ff", "exceeds"),
        (scale.bytes_, "feffffff", "exceeds"),
        (scale.vec(scale.u8, limit=1), "080102", "at most 1"),
        (scale.u32, "010203", "4 bytes wanted"),
        (scale.u8, "0102", "trailing"),
        (scale.sorted_map(scale.u8, scale.u8), "0802000100", "ascend"),
        (scale.sorted_map(scale.u8, scale.u8), "0801000100", "ascend"),
        (scale.fixed(4), "0102", "4 bytes wanted"),
    ],
)
def test_decoding_names_what_it_refuses(codec: Codec[Any], data: str, reason: str) -> None:
    with pytest.raises(ScaleError, match=reason):
        codec.decode(bytes.fromhex(data))


def test_encoding_refuses_what_does_not_fit() -> None:
    refused: tuple[tuple[Codec[Any], object], ...] = (
        (scale.u8, 256),
        (scale.u32, -1),
        (scale.compact_of(8), 256),
        (scale.fixed(2), b"abc"),
        (scale.vec(scale.u8, limit=1), [1, 2]),
    )
    for codec, value in refused:
        with pytest.raises(ScaleError):
            codec.encode(value)
    for number in (-1, 2**536):
        with pytest.raises(ScaleError):
            encode_compact(number)
    assert scale.compact.decode(encode_compact(2**536 - 1)) == 2**536 - 1


def test_a_length_that_the_input_cannot_hold_allocates_nothing() -> None:
    with pytest.raises(ScaleError):
        Reader(bytes.fromhex("feffffff") + bytes(10)).length()
    with pytest.raises(ScaleError):
        Reader(b"abc").take(-1)


def test_a_kept_value_is_decoded_once_and_what_is_refused_is_refused_again() -> None:
    decoded: list[int] = []

    def counted(value: int) -> int:
        decoded.append(value)
        return value

    codec = scale.u8.map("counted", counted, int).kept(2)
    assert [codec.decode(bytes((value,))) for value in (1, 1, 2, 1, 3, 1)] == [1, 1, 2, 1, 3, 1]
    assert decoded == [1, 2, 3]
    for _ in range(2):
        with pytest.raises(ScaleError):
            codec.decode(b"")
    assert codec.encode(7) == b"\x07"
