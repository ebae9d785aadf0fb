"""Roots of entries that are alike in size and detached, which have a way of their own, and what
keys share.
"""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.trie.slow_trie import root

from pubsub_emulator.trie import Trie, state_root
from pubsub_emulator.trie.bulk import _regular_root
from pubsub_emulator.trie.nibbles import shared_nibbles, shared_with_next

FEW = bytes((0x00, 0x01, 0x0F, 0x10, 0x80, 0xFF)[byte % 6] for byte in range(256))
"""Makes any bytes those of a few values."""
SIZES = st.sampled_from([1, 2, 7, 8, 9, 16, 24, 32, 33, 40, 299, 301])


@st.composite
def alike(draw: st.DrawFn) -> list[tuple[bytes, bytes]]:
    """Entries with keys of one size, near each other in some bytes, and values that stand detached;
    in any order.
    """
    size = draw(SIZES)
    start = draw(st.integers(0, size))
    common = draw(st.binary(min_size=start, max_size=start))
    rest = st.binary(min_size=size - start, max_size=size - start).map(
        lambda key: key.translate(FEW)
    )
    keys = draw(st.lists(rest, min_size=1, max_size=30))
    values = st.binary(min_size=33, max_size=40)
    return [(common + key, draw(values)) for key in keys]


@given(alike())
@example(
    [
        (b"\x01" + bytes(7), bytes(33)),
        (b"\x02" + bytes(7), bytes(33)),
        (b"\x01" + bytes(7), bytes(34)),
    ]
)
def test_the_root_of_records_that_are_alike(listed: list[tuple[bytes, bytes]]) -> None:
    """Of equal keys the last one counts, as in a dictionary."""
    assert state_root(listed) == root(dict(listed), 1)


@pytest.mark.parametrize("apart", [0x10, 0x01], ids=["first nibble", "second nibble"])
@pytest.mark.parametrize(
    "sizes",
    [
        (40, 40),
        (40, 3),
        (3, 3),
    ],
)
@pytest.mark.parametrize("length", [298, 299, 300, 301, 400])
def test_keys_of_hundreds_of_bytes(apart: int, sizes: tuple[int, int], length: int) -> None:
    """Partial keys beyond what tables hold, after an even and after an odd nibble."""
    listed = [
        (bytes((head,)) + bytes(range(256)) * 2, bytes(size))
        for head, size in zip((0, apart), sizes, strict=True)
    ]
    listed = [(key[: length + 1], value) for key, value in listed]
    assert state_root(listed) == Trie.from_entries(listed).root() == root(dict(listed), 1)


@given(alike())
def test_the_short_way_is_taken_where_it_can_be(listed: list[tuple[bytes, bytes]]) -> None:
    """It falls back to the other way for what it cannot do, so a root alone does not tell."""
    keys = [key for key, _ in listed]
    found = _regular_root(listed, 32)
    if len(set(keys)) < len(keys) or len(keys) < 2 or len(keys[0]) > 299:
        assert found is None
    else:
        assert found == root(dict(listed), 1)


def _shared(key: bytes, other: bytes) -> int:
    apart = (
        at
        for at, (mine, others) in enumerate(zip(key.hex(), other.hex(), strict=False))
        if mine != others
    )
    return next(apart, 2 * min(len(key), len(other)))


@given(st.sets(st.binary(max_size=20), min_size=1))
@example({b"", b"\x00"})
@example({b"\x10", b"\x11\x00", b"\x12"})
def test_what_neighbours_share_whatever_their_sizes(keys: set[bytes]) -> None:
    listed = sorted(keys)
    want = [_shared(key, other) for key, other in pairwise(listed)]
    assert shared_with_next(listed) == [*want, -1]


@given(alike())
def test_what_neighbours_of_one_size_share(listed: list[tuple[bytes, bytes]]) -> None:
    keys = sorted({key for key, _ in listed})
    want = [_shared(key, other) for key, other in pairwise(keys)]
    assert shared_with_next(keys) == [*want, -1]


@pytest.mark.parametrize("tail", [b"", b"\x00" * 5, b"\xff" * 32])
def test_what_follows_the_keys_does_not_count(tail: bytes) -> None:
    """Equal keys share all of their nibbles, whatever stands behind them."""
    keys = [bytes(8), bytes(8), bytes(7) + b"\x01", b"\x01" + bytes(7)]
    records = [key + tail[:-1] + bytes((at,)) if tail else key for at, key in enumerate(keys)]
    assert shared_nibbles(records, 8) == [16, 15, 1]
