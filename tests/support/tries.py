"""What the tests of tries and their vectors share."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

HERE = Path(__file__).parents[1]
MAINNET = sorted((HERE.parent / "examples" / "mainnet").glob("*.json"))


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def unhex_all(texts: list[str]) -> list[bytes]:
    return [unhex(text) for text in texts]


def unhex_pairs(pairs: list[list[str]]) -> list[tuple[bytes, bytes]]:
    return [(unhex(key), unhex(value)) for key, value in pairs]


@cache
def vectors(name: str) -> list[dict[str, Any]]:
    """The vectors of one file of `tests/vectors/tries`."""
    loaded = json.loads((HERE / "vectors" / "tries" / f"{name}.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = loaded["vectors"]
    return found


# Few byte values, so that keys share prefixes, end within one another and fill whole branches.
dense_keys = st.lists(st.sampled_from([0x00, 0x01, 0x10, 0x11, 0x12, 0xF0, 0xFF]), max_size=5).map(bytes)
wide_keys = st.binary(min_size=32, max_size=32)
keys = st.one_of(dense_keys, dense_keys, st.binary(max_size=40), wide_keys)
# Around what stands in its node, what a node may have to stand in its parent, and the modes of a compact length.
values = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([0, 1, 20, 26, 27, 28, 29, 30, 31, 32, 33, 34, 63, 64, 65]).map(lambda size: bytes([size]) * size),
    st.binary(min_size=30, max_size=70),
    st.just(b"\x07" * 16_384),
)
entries = st.dictionaries(keys, values, max_size=40)
versions = st.sampled_from([0, 1])
