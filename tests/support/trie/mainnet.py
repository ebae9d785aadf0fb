"""Records of main networks that tests of tries and their vectors share."""

from pathlib import Path

from hypothesis import strategies as st

MAINNET = sorted((Path(__file__).parents[3] / "examples" / "mainnet").glob("*.json"))


# Few byte values, so that keys share prefixes, end within one another and fill whole branches.
dense_keys = st.lists(st.sampled_from([0x00, 0x01, 0x10, 0x11, 0x12, 0xF0, 0xFF]), max_size=5).map(
    bytes
)
wide_keys = st.binary(min_size=32, max_size=32)
keys = st.one_of(dense_keys, dense_keys, st.binary(max_size=40), wide_keys)
# Around what stands in its node, what a node may have to stand in its parent, and the modes of a
# compact length.
values = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([0, 1, 20, 26, 27, 28, 29, 30, 31, 32, 33, 34, 63, 64, 65]).map(
        lambda size: bytes([size]) * size
    ),
    st.binary(min_size=30, max_size=70),
    st.just(b"\x07" * 16_384),
)
entries = st.dictionaries(keys, values, max_size=40)
versions = st.sampled_from([0, 1])
