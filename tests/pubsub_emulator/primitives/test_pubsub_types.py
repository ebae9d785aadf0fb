"""The shared pub-sub types: entries, keys, expiry, what a node costs."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import (
    Infinite,
    PublishedEntry,
    TimedOut,
    ValidFor,
    encode_ttl_state,
    entry_length,
    key_from_data,
    key_from_hash,
    node_cost,
    ttl_state,
)
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import U32_MAX, RelayBlockNumber

PUBSUB: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "tries" / "pubsub.json").read_text(encoding="utf-8")
)
u32 = st.integers(0, U32_MAX)


def test_golden_entries_and_keys_encode_to_the_byte() -> None:
    for vector in PUBSUB["vectors"][:6]:
        for publisher in vector["publishers"]:
            for item in publisher["items"]:
                value = bytes.fromhex(item["value"][2:])
                entry = PublishedEntry(value, item["ttl"], RelayBlockNumber(item["when_inserted"]))
                assert entry.encode().hex() == item["encoded"][2:]
                assert PublishedEntry.decode(entry.encode()) == entry
                assert key_from_data(item["name"].encode()).hex() == item["key"][2:]


@given(st.binary(max_size=100), u32, u32)
def test_entries_decode_to_themselves_and_have_the_length_they_say(
    value: bytes, ttl: int, inserted: int
) -> None:
    entry = PublishedEntry(value, ttl, RelayBlockNumber(inserted))
    encoded = entry.encode()
    assert encoded == encode_bytes(value) + ttl.to_bytes(4, "little") + inserted.to_bytes(
        4, "little"
    )
    assert PublishedEntry.decode(encoded) == entry
    assert len(encoded) == entry_length(len(value))
    with pytest.raises(ScaleError):
        PublishedEntry.decode(encoded + b"\x00")
    with pytest.raises(ScaleError):
        PublishedEntry.decode(encoded[:-1])


@given(u32, u32, st.integers(0, 2**33))
def test_ttl_states_never_wrap(ttl: int, inserted: int, now: int) -> None:
    """PS-13, PS-65: measured in integers without a width, so `u32::MAX` neither wraps nor
    overflows.
    """
    state = ttl_state(ttl, inserted, RelayBlockNumber(now))
    if ttl == 0:
        assert state == Infinite()
    elif now >= inserted + ttl:
        assert state == TimedOut()
    else:
        assert state == ValidFor(inserted + ttl - now)


def test_ttl_states_encode_as_the_rust_enum() -> None:
    assert encode_ttl_state(Infinite()) == b"\x00"
    assert encode_ttl_state(ValidFor(258)) == b"\x01\x02\x01\x00\x00"
    assert encode_ttl_state(ValidFor(2 * U32_MAX)) == b"\x01\xff\xff\xff\xff"
    assert encode_ttl_state(TimedOut()) == b"\x02"


@given(st.binary(max_size=40))
def test_verbatim_keys_have_32_bytes_and_names_are_hashed_ps4_ps30(data: bytes) -> None:
    assert bytes(key_from_data(data)) == blake2_256(data)
    if len(data) == 32:
        assert key_from_hash(data) == data
    else:
        with pytest.raises(ScaleError):
            key_from_hash(data)


@given(st.integers(0, 20_000))
def test_a_node_costs_what_it_adds_to_an_encoded_proof(length: int) -> None:
    assert node_cost(length) == len(encode_bytes(bytes(length)))
