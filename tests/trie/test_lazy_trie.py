"""A trie that is fetched by need does what a whole one does, and asks for every node by its place."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie
from pubsub_emulator.trie.lazy import LazyTrie, StateUnavailable
from tests.trie.test_partial_trie import ACTIONS, ENTRIES, KEYS, Do


@dataclass
class Elsewhere:
    """A node that tells proofs of keys: of a place it proves a key that begins there."""

    trie: Trie
    asked: list[str] = field(default_factory=list)

    def node(self, wanted: bytes, place: str, *, ahead: bool) -> bytes:
        """From the proof of a key at `place`."""
        assert isinstance(ahead, bool)
        self.asked.append(place)
        proof: dict[Hash, bytes] = {}
        self.trie.prove([bytes.fromhex(place + "0" * (len(place) % 2))], proof)
        if Hash(wanted) not in proof:
            raise StateUnavailable(f"no node {wanted.hex()} at {place}")
        return proof[Hash(wanted)]


def _lazy(entries: dict[bytes, bytes]) -> tuple[Trie, LazyTrie]:
    whole = Trie.from_entries(entries.items())
    return whole, LazyTrie(whole.root(), Elsewhere(whole.fork()))


@given(ENTRIES, ACTIONS)
def test_it_does_what_a_whole_trie_does(entries: dict[bytes, bytes], actions: list[Do]) -> None:
    whole, lazy = _lazy(entries)
    for do in actions:
        assert do(lazy) == do(whole)
        assert lazy.root() == whole.root()
        assert (bool(lazy), len(lazy)) == (bool(whole), len(whole))


@given(ENTRIES, ACTIONS, ACTIONS)
def test_the_differences_of_forks_are_those_of_whole_tries(
    entries: dict[bytes, bytes], one: list[Do], other: list[Do]
) -> None:
    whole, lazy = _lazy(entries)
    whole_fork, fork = whole.fork(), lazy.fork()
    for do in one:
        do(lazy)
        do(whole)
    for do in other:
        do(fork)
        do(whole_fork)
    assert list(lazy.differences(fork)) == list(whole.differences(whole_fork))


@given(ENTRIES, ACTIONS, KEYS)
def test_merkle_values_are_those_of_a_whole_trie(entries: dict[bytes, bytes], actions: list[Do], key: bytes) -> None:
    whole, lazy = _lazy(entries)
    for do in actions:
        do(lazy)
        do(whole)
    assert lazy.merkle_value(key) == whole.merkle_value(key)
    assert (key in lazy) == (key in whole)


@given(ENTRIES, KEYS, st.booleans())
def test_a_prefix_is_cut_off_without_a_look_below_it(entries: dict[bytes, bytes], prefix: bytes, longer: bool) -> None:
    whole, lazy = _lazy(entries)
    prefix = prefix + b"\x10" if longer else prefix
    lazy.remove_prefix(prefix)
    whole.remove_prefix(prefix)
    assert lazy.root() == whole.root()
    assert list(lazy.items()) == list(whole.items())


def test_only_the_way_to_a_key_is_fetched() -> None:
    entries = {bytes((at, other)): bytes(40) for at in range(16) for other in range(0, 256, 16)}
    whole = Trie.from_entries(entries.items())
    source = Elsewhere(whole)
    lazy = LazyTrie(whole.root(), source)
    assert lazy.get(bytes((3, 16))) == bytes(40)
    assert source.asked == ["", "03", "031", "0310"]


def test_what_cannot_be_fetched_is_said_and_not_read_as_absent() -> None:
    whole = Trie.from_entries([(b"key", bytes(40))])
    lazy = LazyTrie(whole.root(), Elsewhere(Trie()))
    with pytest.raises(StateUnavailable, match="no node"):
        lazy.get(b"key")
