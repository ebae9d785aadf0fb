"""Differences of two tries against the differences of two dictionaries."""

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.trie import Trie

Entries = dict[bytes, bytes]
Expected = list[tuple[bytes, bytes | None, bytes | None]]

# Few letters and short keys: prefixes of each other, shared partial keys and splits within them are common.
keys = st.lists(st.sampled_from((0x00, 0x01, 0x10, 0x11)), max_size=4).map(bytes)
entries = st.dictionaries(keys, st.sampled_from((b"", b"a", b"b" * 40)), max_size=12)
writes = st.lists(st.tuples(keys, st.none() | st.sampled_from((b"", b"a", b"c" * 40))), max_size=12)


def expected(a: Entries, b: Entries) -> Expected:
    return [(key, a.get(key), b.get(key)) for key in sorted({*a, *b}) if a.get(key) != b.get(key)]


@given(entries, writes, st.booleans())
def test_a_fork_differs_by_what_was_written_to_it(
    before: Entries, changes: list[tuple[bytes, bytes | None]], hashed: bool
) -> None:
    trie = Trie.from_entries(before.items())
    fork = trie.fork()
    after = dict(before)
    for key, value in changes:
        if value is None:
            fork.remove(key)
            after.pop(key, None)
        else:
            fork.insert(key, value)
            after[key] = value
    if hashed:
        trie.root(), fork.root()
    assert list(trie.differences(fork)) == expected(before, after)
    assert list(fork.differences(trie)) == expected(after, before)


def test_differences_show_both_tries_as_they_were() -> None:
    trie = Trie.from_entries([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    fork = trie.fork()
    fork.insert(b"b", b"4")
    found = trie.differences(fork)
    fork.insert(b"c", b"5")
    trie.insert(b"a", b"6")
    assert list(found) == [(b"b", b"2", b"4")]
