"""Headers and digests: layout, round trips, seals and slots."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import AURA_ENGINE, DigestItem, DigestKind, Header, aura_pre_digest, aura_seal
from pubsub_emulator.primitives.types import Hash, Slot

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
)
headers = st.builds(Header, hashes, st.integers(0, 2**32 - 1), hashes, hashes, st.lists(items, max_size=5).map(tuple))


@given(headers)
def test_headers_decode_to_themselves(header: Header) -> None:
    assert Header.decode(header.encode()) == header
    assert header.hash() == blake2_256(header.encode())


def test_the_layout_is_substrates() -> None:
    parent, state, extrinsics = Hash(b"\x11" * 32), Hash(b"\x22" * 32), Hash(b"\x33" * 32)
    header = Header(parent, 100, state, extrinsics, (aura_pre_digest(Slot(5)), aura_seal(b"s" * 64)))
    assert header.encode() == (
        parent
        + b"\x91\x01"
        + state
        + extrinsics
        + b"\x08"
        + b"\x06aura\x20"
        + (5).to_bytes(8, "little")
        + b"\x05aura\x01\x01"
        + b"s" * 64
    )


@given(hashes, st.integers(0, 2**32 - 1), hashes, hashes)
def test_headers_read_by_scalecodec_have_the_same_fields(parent: Hash, number: int, state: Hash, calls: Hash) -> None:
    encoded = Header(parent, number, state, calls).encode()
    read = registry().create_scale_object("Header", data=ScaleBytes("0x" + encoded.hex())).decode()
    assert read == {
        "parent_hash": "0x" + parent.hex(),
        "number": number,
        "state_root": "0x" + state.hex(),
        "extrinsics_root": "0x" + calls.hex(),
        "digest": {"logs": []},
    }


@cache
def registry() -> Any:
    configuration = RuntimeConfigurationObject()
    configuration.update_type_registry(load_type_registry_preset("legacy"))
    return configuration


@given(headers, st.binary(min_size=64, max_size=64))
def test_what_is_signed_is_the_header_without_seals(header: Header, signature: bytes) -> None:
    """PS-80."""
    unsealed = tuple(item for item in header.digest if item.kind is not DigestKind.SEAL)
    plain = Header(header.parent_hash, header.number, header.state_root, header.extrinsics_root, unsealed)
    sealed = Header(
        header.parent_hash, header.number, header.state_root, header.extrinsics_root, (*unsealed, aura_seal(signature))
    )
    assert header.pre_hash() == sealed.pre_hash() == plain.hash()
    assert sealed.aura_seal() == signature
    assert sealed.hash() != plain.hash()


def header_with(*digest: DigestItem) -> Header:
    return Header(Hash(bytes(32)), 1, Hash(bytes(32)), Hash(bytes(32)), digest)


def test_a_seal_counts_only_alone_last_and_of_the_aura_engine() -> None:
    """PS-80."""
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
    assert header_with(DigestItem(DigestKind.PRE_RUNTIME, AURA_ENGINE, b"short")).aura_slot() is None
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
