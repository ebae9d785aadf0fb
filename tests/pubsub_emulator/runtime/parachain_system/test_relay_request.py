"""`RelayProofRequest`: bytes, order and limits (UP-1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.relay_request import (
    MAX_REQUEST_BYTES,
    MAX_REQUESTED_KEYS,
    MAX_STORAGE_KEY,
    ChildKey,
    RelayProofRequest,
    RelayStorageKey,
    TopKey,
)

_keys = st.binary(max_size=40)
_asked: st.SearchStrategy[RelayStorageKey] = st.one_of(
    st.builds(TopKey, _keys), st.builds(ChildKey, _keys, _keys)
)

_GOLDEN = {
    "nothing": (RelayProofRequest(), "00"),
    "one top key": (RelayProofRequest((TopKey(b"\x01\x02\x03"),)), "04000c010203"),
    "one child key": (
        RelayProofRequest((ChildKey(b"\xaa\xbb", b"\xcc"),)),
        "040108aabb04cc",
    ),
    "Mmr.RootHash and a publisher's key": (
        RelayProofRequest(
            (
                TopKey(item_prefix("Mmr", "RootHash")),
                ChildKey(derive_child_key(ParaId(1000)), b"\x11" * 32),
            )
        ),
        "080080" + item_prefix("Mmr", "RootHash").hex() + "0128707562737562e803000080" + "11" * 32,
    ),
}


@pytest.mark.parametrize("name", _GOLDEN)
def test_golden_bytes(name: str) -> None:
    request, encoded = _GOLDEN[name]
    assert request.encode().hex() == encoded
    assert RelayProofRequest.decode(bytes.fromhex(encoded)) == request


@given(st.lists(_asked, max_size=20).map(tuple))
def test_a_request_survives_its_encoding(keys: tuple[RelayStorageKey, ...]) -> None:
    request = RelayProofRequest(keys)
    assert RelayProofRequest.decode(request.encode()) == request


@given(st.binary(max_size=200))
def test_bytes_are_refused_or_encode_the_same_request(data: bytes) -> None:
    try:
        request = RelayProofRequest.decode(data)
    except ScaleError:
        return
    assert request.encode() == data


@given(st.lists(_asked, max_size=20).map(tuple))
def test_the_parts_hold_every_key_once(keys: tuple[RelayStorageKey, ...]) -> None:
    request = RelayProofRequest(keys)
    parts: list[RelayStorageKey] = [TopKey(key) for key in request.top()]
    for storage_key, found in request.children().items():
        parts += [ChildKey(storage_key, key) for key in found]
    assert len(parts) == len(set(parts))
    assert set(parts) == set(keys)


def test_an_unknown_variant_is_named_with_its_offset() -> None:
    with pytest.raises(ScaleError, match="not 2, at offset 1"):
        RelayProofRequest.decode(b"\x04\x02\x00")


def test_too_many_keys_are_refused() -> None:
    fits = RelayProofRequest((TopKey(b""),) * MAX_REQUESTED_KEYS)
    assert RelayProofRequest.decode(fits.encode()) == fits
    one_more = RelayProofRequest((*fits.keys, TopKey(b""))).encode()
    with pytest.raises(ScaleError, match=f"at most {MAX_REQUESTED_KEYS}"):
        RelayProofRequest.decode(one_more)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            TopKey,
            id="top key",
        ),
        pytest.param(
            lambda key: ChildKey(key, b""),
            id="child storage key",
        ),
        pytest.param(
            lambda key: ChildKey(b"", key),
            id="child key",
        ),
    ],
)
def test_a_long_key_is_refused_both_ways(make: type[TopKey]) -> None:
    longest = RelayProofRequest((make(b"\x07" * MAX_STORAGE_KEY),))
    encoded = longest.encode()
    assert RelayProofRequest.decode(encoded) == longest
    with pytest.raises(ScaleError, match=f"at most {MAX_STORAGE_KEY}"):
        RelayProofRequest((make(b"\x07" * (MAX_STORAGE_KEY + 1)),)).encode()
    one_more = encoded.replace(b"\x01\x10" + b"\x07", b"\x05\x10" + b"\x07\x07")
    with pytest.raises(ScaleError, match=f"at most {MAX_STORAGE_KEY}"):
        RelayProofRequest.decode(one_more)


def test_too_many_bytes_are_refused() -> None:
    with pytest.raises(ScaleError, match=f"at most {MAX_REQUEST_BYTES}"):
        RelayProofRequest.decode(bytes(MAX_REQUEST_BYTES + 1))
    almost = RelayProofRequest((TopKey(bytes(MAX_STORAGE_KEY)),) * (MAX_REQUEST_BYTES // 1027))
    assert RelayProofRequest.decode(almost.encode()) == almost
