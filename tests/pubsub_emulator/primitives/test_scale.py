"""SCALE and headers: equality with scalecodec, round trips, what decoding refuses; seals and
slots.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import (
    AURA_ENGINE,
    ENVIRONMENT_UPDATED,
    DigestItem,
    DigestKind,
    Header,
    aura_pre_digest,
    aura_seal,
)
from pubsub_emulator.primitives.scale import Codec, Reader, compact_len, encode_compact
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import Hash, Slot


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
    for bits, codec in (
        (8, scale.u8),
        (16, scale.u16),
        (32, scale.u32),
        (64, scale.u64),
        (128, scale.u128),
    ):
        value = data.draw(st.integers(0, 2**bits - 1))
        assert codec.encode(value) == theirs(f"u{bits}", value)
        assert (
            codec.decode(codec.encode(value))
            == read_by_them(f"u{bits}", codec.encode(value))
            == value
        )


@given(
    st.lists(st.integers(0, 2**32 - 1), max_size=80),
    st.one_of(st.none(), st.integers(0, 2**32 - 1)),
    st.booleans(),
)
def test_lists_options_and_booleans_equal_scalecodecs(
    numbers: list[int], maybe: int | None, flag: bool
) -> None:
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
def test_reading_a_list_at_once_equals_reading_one_after_the_other(
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
        pytest.param(scale.compact, "", "1 byte wanted", id="compact of no bytes"),
        pytest.param(scale.compact, "01", "1 byte wanted", id="compact cut off"),
        pytest.param(scale.compact, "0100", "shortest form", id="two bytes for 0"),
        pytest.param(scale.compact, "fd00", "shortest form", id="two bytes for 63"),
        pytest.param(scale.compact, "02000000", "shortest form", id="four bytes for 0"),
        pytest.param(scale.compact, "03ffffff3f", "shortest form", id="five bytes for 2^30 - 1"),
        pytest.param(scale.compact, "0700000000 00", "shortest form", id="five bytes for 0"),
        pytest.param(
            scale.compact_of(32), "0700000000 01", "exceeds 32 bits", id="compact over 32 bits"
        ),
        pytest.param(scale.boolean, "02", "0 or 1", id="boolean 2"),
        pytest.param(scale.option(scale.u8), "0205", "0 or 1", id="option 2"),
        pytest.param(scale.bytes_, "08ff", "exceeds", id="bytes cut off"),
        pytest.param(scale.bytes_, "feffffff", "exceeds", id="bytes without end"),
        pytest.param(
            scale.vec(scale.u8, limit=1), "080102", "at most 1", id="a list over its limit"
        ),
        pytest.param(scale.u32, "010203", "4 bytes wanted", id="u32 cut off"),
        pytest.param(scale.u8, "0102", "trailing", id="u8 with a byte behind"),
        pytest.param(
            scale.sorted_map(scale.u8, scale.u8), "0802000100", "ascend", id="a map out of order"
        ),
        pytest.param(
            scale.sorted_map(scale.u8, scale.u8),
            "0801000100",
            "ascend",
            id="a map with a key twice",
        ),
        pytest.param(scale.fixed(4), "0102", "4 bytes wanted", id="fixed bytes cut off"),
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


def test_a_cached_value_is_decoded_once_and_refusals_are_repeated() -> None:
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


def test_a_long_value_is_never_kept() -> None:
    """The number of kept values is bounded, and so are their bytes."""
    codec = scale.vec(scale.u8).kept(2)
    longest = codec.encode([1] * (scale.MOST_KEPT_BYTES - 4))
    assert len(longest) == scale.MOST_KEPT_BYTES - 2
    assert codec.decode(longest) is codec.decode(longest)
    longer = codec.encode([1] * (scale.MOST_KEPT_BYTES - 1))
    assert codec.decode(longer) == codec.decode(longer)
    assert codec.decode(longer) is not codec.decode(longer)


hashes = st.binary(min_size=32, max_size=32).map(Hash)
engines = st.binary(min_size=4, max_size=4)
items = st.one_of(
    st.builds(DigestItem, st.just(DigestKind.OTHER), st.just(b""), st.binary(max_size=20)),
    st.builds(
        DigestItem,
        st.sampled_from([DigestKind.CONSENSUS, DigestKind.SEAL, DigestKind.PRE_RUNTIME]),
        st.one_of(st.just(AURA_ENGINE), engines),
        st.one_of(st.binary(max_size=20), st.binary(min_size=8, max_size=8)),
    ),
    st.just(ENVIRONMENT_UPDATED),
)
headers = st.builds(
    Header,
    hashes,
    st.integers(0, 2**32 - 1),
    hashes,
    hashes,
    st.lists(items, max_size=5).map(tuple),
)


@given(headers)
def test_headers_decode_to_themselves(header: Header) -> None:
    assert Header.decode(header.encode()) == header
    assert header.hash() == blake2_256(header.encode())


def test_the_layout_is_substrates() -> None:
    parent, state, extrinsics = Hash(b"\x11" * 32), Hash(b"\x22" * 32), Hash(b"\x33" * 32)
    header = Header(
        parent, 100, state, extrinsics, (aura_pre_digest(Slot(5)), aura_seal(b"s" * 64))
    )
    digest = b"\x08" + b"\x06aura\x20" + (5).to_bytes(8, "little") + b"\x05aura\x01\x01" + b"s" * 64
    assert header.encode() == parent + b"\x91\x01" + state + extrinsics + digest


@given(hashes, st.integers(0, 2**32 - 1), hashes, hashes)
def test_headers_read_by_scalecodec_have_the_same_fields(
    parent: Hash, number: int, state: Hash, calls: Hash
) -> None:
    encoded = Header(parent, number, state, calls).encode()
    assert read_by_them("Header", encoded) == {
        "parent_hash": "0x" + parent.hex(),
        "number": number,
        "state_root": "0x" + state.hex(),
        "extrinsics_root": "0x" + calls.hex(),
        "digest": {"logs": []},
    }


@given(headers, st.binary(min_size=64, max_size=64))
def test_what_is_signed_is_the_header_without_seals_ps80(header: Header, signature: bytes) -> None:
    unsealed = tuple(item for item in header.digest if item.kind is not DigestKind.SEAL)
    plain, sealed = (
        replace(header, digest=digest) for digest in (unsealed, (*unsealed, aura_seal(signature)))
    )
    assert header.pre_hash() == sealed.pre_hash() == plain.hash()
    assert sealed.aura_seal() == signature
    assert sealed.hash() != plain.hash()


def header_with(*digest: DigestItem) -> Header:
    return Header(Hash(bytes(32)), 1, Hash(bytes(32)), Hash(bytes(32)), digest)


def test_a_seal_counts_only_alone_last_and_of_the_aura_engine_ps80() -> None:
    seal, pre = aura_seal(b"s" * 64), aura_pre_digest(Slot(7))
    assert header_with(pre, seal).aura_seal() == b"s" * 64
    assert header_with(pre).aura_seal() is None
    assert header_with(seal, pre).aura_seal() is None
    assert header_with(pre, seal, seal).aura_seal() is None
    assert header_with(pre, DigestItem(DigestKind.SEAL, b"BABE", b"s" * 64)).aura_seal() is None


def test_a_slot_counts_only_once_and_with_eight_bytes() -> None:
    pre = aura_pre_digest(Slot(7))
    assert header_with(pre).aura_slot() == 7
    assert header_with().aura_slot() is None
    assert header_with(pre, pre).aura_slot() is None
    assert (
        header_with(DigestItem(DigestKind.PRE_RUNTIME, AURA_ENGINE, b"short")).aura_slot() is None
    )
    assert header_with(DigestItem(DigestKind.PRE_RUNTIME, b"BABE", bytes(8))).aura_slot() is None


def test_unknown_digest_items_and_trailing_bytes_are_refused() -> None:
    encoded = header_with(aura_pre_digest(Slot(7))).encode()
    with pytest.raises(ScaleError, match="trailing"):
        Header.decode(encoded + b"\x00")
    with pytest.raises(ScaleError, match="unknown digest item 1"):
        Header.decode(encoded.replace(b"\x06aura", b"\x01aura"))
    for end in range(len(encoded)):
        with pytest.raises(ScaleError):
            Header.decode(encoded[:end])


def test_a_copy_of_a_hashed_header_has_a_hash_of_its_own() -> None:
    header = header_with(aura_pre_digest(Slot(7)))
    assert header.hash() == header.hash() == blake2_256(header.encode())
    other = replace(header, number=header.number + 1)
    assert other.hash() == blake2_256(other.encode()) != header.hash()
    assert header == replace(other, number=header.number)


@dataclass(frozen=True)
class Record:
    """Integers of all lengths that are written at once."""

    first: int
    second: int
    third: int
    fourth: int


@given(st.tuples(*[st.integers(-1, 1 << bits) for bits in (8, 16, 32, 64)]), st.binary(max_size=17))
def test_a_record_of_integers_is_as_its_fields_one_after_the_other(
    values: tuple[int, int, int, int], data: bytes
) -> None:
    """The errors are the same, too."""
    codecs = (scale.u8, scale.u16, scale.u32, scale.u64)
    record = struct(Record, *codecs)

    def fields() -> bytes:
        return b"".join([codec.encode(v) for codec, v in zip(codecs, values, strict=True)])

    def message(action: Callable[[], object]) -> object:
        try:
            return action()
        except ScaleError as error:
            return str(error)

    assert message(lambda: record.encode(Record(*values))) == message(fields)
    reader = Reader(data)
    one_by_one = message(lambda: Record(*[codec.read(reader) for codec in codecs]))
    at_once = Reader(data)
    assert message(lambda: record.read(at_once)) == one_by_one
    assert at_once.pos == reader.pos
