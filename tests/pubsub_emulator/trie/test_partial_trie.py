"""A trie of which only some nodes are at hand, or which is fetched by need, does what a whole one
does (AU-2).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trie import slow_trie
from support.trie.slow_trie import Kept

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import BadNode, MissingNode, Trie
from pubsub_emulator.trie import lazy as lazy_module
from pubsub_emulator.trie.codec import BRANCH, LEAF, node_head, pack
from pubsub_emulator.trie.lazy import LazyTrie, StateUnavailable
from pubsub_emulator.trie.partial import MAX_KEY, PartialTrie

KEYS = st.lists(st.sampled_from([0, 1, 16, 17, 255]), max_size=4).map(bytes)
# Leaves of values from 26 to 30 bytes have 28 to 36 bytes: a node of 32 bytes is the first that has
# a hash.
VALUES = st.tuples(st.integers(0, 9), st.sampled_from([0, 3, 26, 28, 29, 30, 31, 32, 33, 70])).map(
    lambda pair: bytes(pair[:1]) * pair[1]
)
ENTRIES = st.dictionaries(KEYS, VALUES, max_size=14)
Do = Callable[[Trie | PartialTrie], object]
ACTIONS = st.lists(
    st.one_of(
        st.builds(lambda key: lambda trie: trie.get(key), KEYS),
        st.builds(lambda key, value: lambda trie: trie.insert(key, value), KEYS, VALUES),
        st.builds(lambda key: lambda trie: trie.remove(key), KEYS),
        st.builds(
            lambda changes: lambda trie: trie.update(changes),
            st.dictionaries(KEYS, st.none() | VALUES, max_size=4),
        ),
        st.builds(
            lambda prefix, after: lambda trie: list(trie.items(prefix, after)),
            KEYS,
            st.none() | KEYS,
        ),
        st.builds(lambda key: lambda trie: _proof(trie, key), KEYS),
    ),
    max_size=10,
)


def _proof(trie: Trie | PartialTrie, key: bytes) -> dict[Hash, bytes]:
    nodes: dict[Hash, bytes] = {}
    trie.prove([key], nodes)
    return nodes


def _whole(entries: dict[bytes, bytes]) -> tuple[Trie, dict[bytes, bytes]]:
    """A trie, and all its nodes and detached values."""
    trie = Trie.from_entries(entries.items())
    nodes: dict[Hash, bytes] = {}
    trie.prove(entries, nodes)
    return trie, {bytes(key): node for key, node in nodes.items()}


@given(ENTRIES, ACTIONS)
def test_it_does_what_a_whole_trie_does(entries: dict[bytes, bytes], actions: list[Do]) -> None:
    whole, nodes = _whole(entries)
    partial = PartialTrie(whole.root(), nodes.get)
    for do in actions:
        assert do(partial) == do(whole)
        assert partial.root() == whole.root()


@given(ENTRIES, ACTIONS, ACTIONS)
def test_a_fork_is_written_apart(
    entries: dict[bytes, bytes], one: list[Do], other: list[Do]
) -> None:
    whole, nodes = _whole(entries)
    partial = PartialTrie(whole.root(), nodes.get)
    fork, whole_fork = partial.fork(), whole.fork()
    for actions, mine, theirs in ((one, partial, whole), (other, fork, whole_fork)):
        assert [do(mine) for do in actions] == [do(theirs) for do in actions]
    assert (partial.root(), fork.root()) == (whole.root(), whole_fork.root())


@given(ENTRIES, ACTIONS, st.data())
def test_the_requested_nodes_are_enough_and_none_can_be_spared(
    entries: dict[bytes, bytes], actions: list[Do], data: st.DataObject
) -> None:
    whole, nodes = _whole(entries)
    asked: dict[bytes, bytes] = {}

    def fetch(wanted: bytes) -> bytes | None:
        asked[wanted] = nodes[wanted]
        return nodes[wanted]

    first = PartialTrie(whole.root(), fetch)
    seen = [do(first) for do in actions]
    again = PartialTrie(whole.root(), asked.get)
    assert [do(again) for do in actions] == seen
    assert again.root() == first.root()
    if asked:
        gone = data.draw(st.sampled_from(sorted(asked)))
        less = PartialTrie(
            whole.root(), {key: node for key, node in asked.items() if key != gone}.get
        )
        with pytest.raises(MissingNode) as missing:
            [do(less) for do in actions]
        assert missing.value.hash == gone


def test_what_was_not_touched_need_not_be_there() -> None:
    entries = {bytes([at]) * 8: bytes([at]) * 40 for at in range(200)}
    whole, nodes = _whole(entries)
    asked: set[bytes] = set()

    def fetch(wanted: bytes) -> bytes | None:
        asked.add(wanted)
        return nodes[wanted]

    partial = PartialTrie(whole.root(), fetch)
    assert partial.get(bytes([7]) * 8) == bytes([7]) * 40
    assert next(partial.items(b"\x08"))[1] == bytes([8]) * 40
    assert len(asked) == 6, "the root, a branch, and a leaf and a value for each"


def test_a_node_that_is_none_is_named() -> None:
    root = blake2_256(b"\x0fnothing")
    with pytest.raises(BadNode, match=root.hex()):
        PartialTrie(root, {bytes(root): b"\x0fnothing"}.get).get(b"key")


def test_nodes_nested_without_end_are_refused() -> None:
    node = b"\x40\x04x"
    for _ in range(20_000):
        node = b"\x80\x01\x00" + encode_compact(len(node)) + node
    root = blake2_256(node)
    with pytest.raises(BadNode, match="an inline child of"):
        PartialTrie(root, {bytes(root): node}.get).get(bytes(30_000))


@pytest.mark.parametrize("length", [31, 32, 33])
def test_a_proof_has_every_node_of_32_bytes_and_no_inline_one(length: int) -> None:
    one = b"\x10" + b"a" * 15
    other = b"\x20" + b"b" * 15
    trie = PartialTrie(EMPTY_TRIE_ROOT, {}.get)
    for key in (one, other):
        trie.insert(key, b"v" * (length - 18))  # of a leaf, 18 bytes are not its value
    proof = _proof(trie, one)
    assert PartialTrie(trie.root(), proof.get).get(one) == b"v" * (length - 18)
    below_root = sorted(map(len, proof.values()))[:-1]
    assert below_root == ([] if length == 31 else [length])
    whole = Trie.from_entries(trie.items())
    assert proof == _proof(whole, one)
    assert trie.merkle_value(one) == whole.merkle_value(one)


@pytest.mark.parametrize("length", [32, 33, 34])
def test_the_longest_value_that_stands_in_its_node_has_32_bytes(length: int) -> None:
    trie = PartialTrie(EMPTY_TRIE_ROOT, {}.get)
    trie.insert(b"key", b"v" * length)
    whole = Trie.from_entries([(b"key", b"v" * length)])
    assert trie.root() == whole.root()
    assert _proof(trie, b"key") == _proof(whole, b"key")
    assert len(_proof(trie, b"key")) == (1 if length == 32 else 2)


def test_an_inline_child_of_33_bytes_is_refused_although_well_formed() -> None:
    """Nobody who hashes nodes of 32 bytes and more makes one, and the same entries must not have
    two roots.
    """
    child = node_head(LEAF, 2) + pack("01") + encode_bytes(b"v" * 30)
    assert len(child) == 33
    node = node_head(BRANCH, 0) + (1).to_bytes(2, "little") + encode_bytes(child)
    root = blake2_256(node)
    with pytest.raises(BadNode, match="an inline child of 33 bytes"):
        PartialTrie(root, {bytes(root): node}.get).get(b"\x00\x01")


def _chain(nibbles: int) -> PartialTrie:
    """Return a trie with one value after so many nibbles; no write puts a value after an odd
    number.
    """
    child = node_head(LEAF, nibbles - 1) + pack("0" * (nibbles - 1)) + encode_bytes(b"v" * 32)
    node = node_head(BRANCH, 0) + (1).to_bytes(2, "little") + encode_bytes(blake2_256(child))
    nodes = {bytes(blake2_256(each)): each for each in (child, node)}
    return PartialTrie(blake2_256(node), nodes.get)


@pytest.mark.parametrize("walk", ["items", "differences"])
def test_a_walk_yields_keys_of_4096_bytes_and_refuses_a_nibble_more(walk: str) -> None:
    def walked(trie: PartialTrie) -> list[bytes]:
        if walk == "items":
            return list(trie.keys())
        return [key for key, _, _ in trie.differences(PartialTrie(EMPTY_TRIE_ROOT, {}.get))]

    assert walked(_chain(8192)) == [bytes(4096)]
    for nibbles in (7, 8193, 8194):
        with pytest.raises(BadNode, match=f"a value after {nibbles} nibbles"):
            walked(_chain(nibbles))


def test_a_walk_stops_below_max_key_where_no_node_has_a_value() -> None:
    """Such branches can be shared, so a few bytes of nodes would be walked almost for ever."""
    nodes: dict[bytes, bytes] = {}
    below = blake2_256(b"not known")
    for _ in range(4):
        node = (
            node_head(BRANCH, MAX_KEY)
            + pack("0" * MAX_KEY)
            + (1).to_bytes(2, "little")
            + encode_bytes(below)
        )
        below = blake2_256(node)
        nodes[bytes(below)] = node
    fetched: list[bytes] = []

    def fetch(wanted: bytes) -> bytes | None:
        fetched.append(wanted)
        return nodes.get(wanted)

    with pytest.raises(BadNode, match=f"a value after {2 * MAX_KEY + 1} nibbles"):
        list(PartialTrie(below, fetch).items())
    assert len(fetched) == 2


@dataclass
class Elsewhere:
    """A node that tells proofs of keys: of a place it proves a key that begins there."""

    trie: Trie
    asked: list[str] = field(default_factory=list)
    ahead: list[bool] = field(default_factory=list)

    def node(self, wanted: bytes, place: str, *, ahead: bool) -> bytes:
        """From the proof of a key at `place`."""
        self.asked.append(place)
        self.ahead.append(ahead)
        proof: dict[Hash, bytes] = {}
        self.trie.prove([bytes.fromhex(place + "0" * (len(place) % 2))], proof)
        if Hash(wanted) not in proof:
            raise StateUnavailable(f"no node {wanted.hex()} at {place}")
        return proof[Hash(wanted)]


def _lazy(entries: dict[bytes, bytes]) -> tuple[Trie, LazyTrie]:
    whole = Trie.from_entries(entries.items())
    return whole, LazyTrie(whole.root(), Elsewhere(whole.fork()))


@given(ENTRIES, ACTIONS)
def test_a_lazy_trie_does_what_a_whole_trie_does(
    entries: dict[bytes, bytes], actions: list[Do]
) -> None:
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
def test_merkle_values_are_those_of_a_whole_trie(
    entries: dict[bytes, bytes], actions: list[Do], key: bytes
) -> None:
    whole, lazy = _lazy(entries)
    for do in actions:
        do(lazy)
        do(whole)
    assert lazy.merkle_value(key) == whole.merkle_value(key)
    assert (key in lazy) == (key in whole)


@given(ENTRIES, KEYS, st.booleans())
def test_a_prefix_is_cut_off_without_a_look_below_it(
    entries: dict[bytes, bytes], prefix: bytes, longer: bool
) -> None:
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
    assert not any(source.ahead), "nothing below the key is read"


def test_a_walk_fetches_nothing_before_its_start_or_beside_its_prefix() -> None:
    """Each node is a question to a chain's node far away."""
    entries = {
        bytes((at, other)): bytes((at, other)) * 20
        for at in range(16)
        for other in range(0, 256, 16)
    }
    whole = Trie.from_entries(entries.items())
    source = Elsewhere(whole)
    walked = list(LazyTrie(whole.root(), source).items(b"", bytes((15, 208))))
    assert [key for key, _ in walked] == [bytes((15, 224)), bytes((15, 240))]
    assert source.asked == [
        "",
        "0f",
        "0fd",
        "0fe",
        "0fe0",
        "0ff",
        "0ff0",
    ]  # each leaf, and its value
    source.asked.clear()
    assert len(list(LazyTrie(whole.root(), source).keys(bytes((3, 16))))) == 1
    assert source.asked == ["", "03", "031", "0310"]


def test_differences_fetch_nothing_beside_what_was_written() -> None:
    entries = {
        bytes((at, other)): bytes((at, other)) * 20
        for at in range(16)
        for other in range(0, 256, 16)
    }
    whole = Trie.from_entries(entries.items())
    source = Elsewhere(whole)
    lazy = LazyTrie(whole.root(), source)
    fork = lazy.fork()
    lazy.insert(bytes((3, 16)), b"here")
    fork.insert(bytes((5, 32)), b"there")
    source.asked.clear()
    found = list(lazy.differences(fork))
    assert [key for key, _, _ in found] == [bytes((3, 16)), bytes((5, 32))]
    assert {place[:2] for place in source.asked} == {"03", "05"}


def test_a_walk_reports_reading_on_and_its_original_trie_does_not() -> None:
    whole = Trie.from_entries([(bytes([at]), bytes(40)) for at in range(3)])
    source = Elsewhere(whole)
    lazy = LazyTrie(whole.root(), source)
    assert list(lazy.keys()) == [b"\x00", b"\x01", b"\x02"]
    assert list(lazy.keys(b"", b"\x00")) == [b"\x01", b"\x02"]
    assert list(lazy.keys(b"\x01")) == [b"\x01"]
    assert source.ahead
    assert all(source.ahead)
    source.ahead.clear()
    assert lazy.get(b"\x01") == bytes(40)
    assert source.ahead == [False]


def test_a_walk_visits_most_loads_nodes_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are shared can be visited far more often than there are of them.

    Reading keys is not limited.
    """
    whole = Trie.from_entries([(bytes([at]), bytes(40)) for at in range(3)])
    lazy = LazyTrie(whole.root(), Elsewhere(whole))
    nodes = 4  # the branch and three leaves
    monkeypatch.setattr(lazy_module, "MOST_LOADS", nodes)
    for _ in range(2):
        assert len(lazy) == 3
    assert [lazy.get(bytes([at])) for at in range(3)] == [bytes(40)] * 3
    monkeypatch.setattr(lazy_module, "MOST_LOADS", nodes - 1)
    with pytest.raises(StateUnavailable, match="a walk of more than 3 nodes"):
        len(lazy)
    assert lazy.get(b"\x00") == bytes(40)


CHANGES = st.lists(
    st.tuples(KEYS, st.one_of(st.none(), st.just("again"), VALUES)), min_size=1, max_size=10
)


def _changed(trie: PartialTrie, model: dict[bytes, bytes], key: bytes, value: object) -> None:
    """Make a change in a trie and in its model. `again` writes the value that is there."""
    if value == "again":
        value = model.get(key)
    if isinstance(value, bytes):
        trie.insert(key, bytes(value))
        model[key] = bytes(value)
    else:
        trie.remove(key)
        model.pop(key, None)


@given(ENTRIES, CHANGES, CHANGES, KEYS)
def test_a_layout_version_0_value_stays_in_its_node_until_it_is_written(
    entries: dict[bytes, bytes],
    first: list[tuple[bytes, object]],
    second: list[tuple[bytes, object]],
    key: bytes,
) -> None:
    """The second half starts from the nodes of the mixed trie that the first half has left."""
    old = Trie.from_entries(entries.items(), 0)
    known: dict[Hash, bytes] = {}
    old.prove(entries, known)
    trie = PartialTrie(old.root(), {bytes(name): node for name, node in known.items()}.get)
    model: dict[bytes, bytes] = {name: Kept(value) for name, value in entries.items()}
    for changes in (first, second):
        for name, value in changes:
            _changed(trie, model, name, value)
            assert trie.root() == slow_trie.root(model, 1)
        assert dict(trie.items()) == model
        assert {*_proof(trie, key).values()} == slow_trie.proof(model, [key], 1)
        nodes: dict[Hash, bytes] = {}
        trie.prove(model, nodes)
        trie = PartialTrie(trie.root(), {bytes(name): node for name, node in nodes.items()}.get)


def test_a_mixed_trie_has_the_root_of_sp_trie() -> None:
    """The expected root is that of `TrieDBMut` of trie-db 0.32.0, which writes in version 1."""
    entries = {b"\x10": b"l" * 40, b"\x10\x01": b"l" * 40, b"\x20": b"q" * 50}
    old = Trie.from_entries(entries.items(), 0)
    nodes: dict[Hash, bytes] = {}
    old.prove(entries, nodes)
    trie = PartialTrie(old.root(), {bytes(name): node for name, node in nodes.items()}.get)
    assert {*_proof(trie, b"\x10")} <= {*nodes}
    trie.insert(b"\x10\x02", b"new")
    expected = "da61113a369e5f9dd803e5d7ed87357f0da754f19761f0897db072397f79366e"
    assert trie.root().hex() == expected


@given(ENTRIES, ACTIONS)
def test_a_lazy_trie_reads_a_state_of_layout_version_0(
    entries: dict[bytes, bytes], actions: list[Do]
) -> None:
    whole = Trie.from_entries(entries.items(), 0)
    lazy = LazyTrie(whole.root(), Elsewhere(whole.fork()))
    assert lazy.root() == whole.root()
    assert list(lazy.items()) == list(whole.items())
    for do in actions:
        do(lazy)
        do(whole)
        assert list(lazy.items()) == list(whole.items())


def test_what_cannot_be_fetched_is_said_and_not_read_as_absent() -> None:
    whole = Trie.from_entries([(b"key", bytes(40))])
    lazy = LazyTrie(whole.root(), Elsewhere(Trie()))
    with pytest.raises(StateUnavailable, match="no node"):
        lazy.get(b"key")
