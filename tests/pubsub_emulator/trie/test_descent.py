"""The descent against `step`: for many keys, in any order, it finds what stepping down anew for
each key finds.
"""

from collections.abc import Callable, Mapping
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trie.mainnet import dense_keys, entries, keys, versions, wide_keys

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import BadNode, Trie
from pubsub_emulator.trie.codec import EMPTY_NODE
from pubsub_emulator.trie.descent import Descent, Lookups
from pubsub_emulator.trie.nibbles import shared_with_next
from pubsub_emulator.trie.step import CHILD, INLINE, follow, step

Found = tuple[int, bytes, int] | tuple[str, bytes, bytes, int]
Asked = tuple[Hash, int, int]


class Watched(Descent):
    """Gives the nodes it has, from nibble 1 on unless they are refused, and notes what it was asked
    for.
    """

    def __init__(
        self, root: Hash, wanted: list[bytes], nodes: Mapping[Hash, bytes], refused: frozenset[Hash]
    ) -> None:
        super().__init__(root, wanted, shared_with_next(wanted), {})
        self.nodes = nodes
        self.refused = refused
        self.asked: list[Asked] = []

    def child(self, reference: Hash, depth: int, above: int) -> bytes | None:
        self.asked.append((reference, depth, above))
        return None if reference in self.refused else self.nodes.get(reference)

    def inline(self, node: bytes, depth: int, above: int) -> bool:
        self.asked.append((blake2_256(node), depth, above))
        return blake2_256(node) not in self.refused


def stepped(
    root: Hash, key: bytes, nodes: Mapping[Hash, bytes], refused: frozenset[Hash]
) -> tuple[Found, list[Asked]]:
    """The same, from the root and with nothing but `step`."""
    asked: list[Asked] = []
    name, node, depth = root, nodes[root], 0
    for above in count(1):
        try:
            kind, payload, depth = step(node, key, depth)
        except BadNode as bad:
            return ("bad", name, bad.key, bad.depth), asked
        if kind not in {CHILD, INLINE}:
            return (kind, payload, depth), asked
        reference = Hash(payload) if kind == CHILD else blake2_256(payload)
        asked.append((reference, depth, above))
        if reference in refused or (kind == CHILD and reference not in nodes):
            return (kind, payload, depth), asked
        if kind == CHILD:
            name = reference
        node = nodes[name] if kind == CHILD else payload
    raise AssertionError


def found(descent: Descent, at: int) -> Found:
    try:
        return descent.find(at)
    except BadNode as bad:
        return "bad", bad.hash, bad.key, bad.depth


@given(st.data(), versions)
def test_keys_in_any_order_find_what_single_steps_find(data: st.DataObject, version: int) -> None:
    held = data.draw(entries)
    wanted = sorted({*data.draw(st.lists(st.one_of(dense_keys, keys), min_size=1)), *held})
    trie = Trie.from_entries(held.items(), version)
    nodes: dict[Hash, bytes] = {}
    trie.prove(wanted, nodes)
    root = trie.root()
    for name in data.draw(st.lists(st.sampled_from(sorted(nodes)), max_size=3)):
        at = data.draw(st.integers(0, len(nodes[name])))  # damaged, under the hash that it had
        nodes[name] = nodes[name][:at] + data.draw(st.binary(max_size=2)) + nodes[name][at + 1 :]
    refused = frozenset(data.draw(st.lists(st.sampled_from(sorted(nodes)), max_size=2))) - {root}
    order = (
        range(len(wanted))
        if data.draw(st.booleans())
        else data.draw(st.permutations(range(len(wanted))))
    )
    descent = Watched(root, wanted, nodes, refused)
    descent.start(nodes[root])
    for at in order:
        due, path = stepped(root, wanted[at], nodes, refused)
        before = len(descent.asked)
        assert found(descent, at) == due
        asked = descent.asked[before:]
        if due[0] == "bad" or asked != path:  # what is on the trail is not asked for again
            assert asked == path[len(path) - len(asked) :]


@pytest.mark.parametrize(
    "order",
    [
        (0, 1, 2, 3),
        (2, 0, 1, 3),
        (2, 1, 0, 3),
    ],
)
def test_keys_that_leave_a_partial_key_at_one_place_are_absent_together(
    order: tuple[int, ...],
) -> None:
    """The second of them shares more with the first than the node that both leave is long."""
    held = [bytes((7, 7, 7, last)) + bytes(20) for last in (1, 2)]
    other = b"\xff" * 24
    trie = Trie.from_entries((key, bytes(40)) for key in (*held, other))
    wanted = sorted([*held, *(b"\x07\x07\x06" + bytes(20) + last for last in (b"\x01", b"\x02"))])
    nodes: dict[Hash, bytes] = {}
    trie.prove(wanted, nodes)
    descent = Watched(trie.root(), wanted, nodes, frozenset())
    descent.start(nodes[trie.root()])
    for at in order:
        due, _ = stepped(trie.root(), wanted[at], nodes, frozenset())
        assert found(descent, at) == due


@given(st.dictionaries(wide_keys, st.binary(min_size=33, max_size=40), min_size=1, max_size=60))
def test_in_ascending_order_each_node_is_asked_for_once(held: dict[bytes, bytes]) -> None:
    trie = Trie.from_entries(held.items())
    wanted = sorted(held)
    nodes: dict[Hash, bytes] = {}
    trie.prove(wanted, nodes)
    descent = Watched(trie.root(), wanted, nodes, frozenset())
    descent.start(nodes[trie.root()])
    for at in range(len(wanted)):
        descent.find(at)
    names = [name for name, _, _ in descent.asked]
    assert len(names) == len(set(names))
    assert {*names, trie.root()} == {
        name for name, node in nodes.items() if node not in held.values()
    }


def test_an_empty_trie_has_no_key() -> None:
    descent = Watched(EMPTY_TRIE_ROOT, [b"", b"k"], {}, frozenset())
    descent.start(EMPTY_NODE)
    assert [descent.find(at) for at in range(2)] == [(0, b"", 0), (0, b"", 0)]


@given(entries, st.lists(st.one_of(dense_keys, keys), min_size=1), versions)
def test_nodes_at_hand_are_read_without_asking(
    held: dict[bytes, bytes], others: list[bytes], version: int
) -> None:
    trie = Trie.from_entries(held.items(), version)
    wanted = sorted({*held, *others})
    nodes: dict[Hash, bytes] = {}
    trie.prove(wanted, nodes)
    root = trie.root()
    asking = Watched(root, wanted, nodes, frozenset())
    reading = Descent(root, wanted, shared_with_next(wanted), nodes)
    for descent in (asking, reading):
        descent.start(nodes[root])
    assert [reading.find(at) for at in range(len(wanted))] == [
        asking.find(at) for at in range(len(wanted))
    ]


def test_a_node_that_nobody_has_ends_the_way() -> None:
    descent = Descent(EMPTY_TRIE_ROOT, [b"k"], [-1], {})
    descent.start(b"\x80\x40\x00\x80" + bytes(32))
    assert descent.find(0) == (CHILD, bytes(32), 1)


def test_follow_asks_for_each_node_where_it_starts() -> None:
    trie = Trie.from_entries([(bytes((at, 1)), bytes(40)) for at in range(32)])
    nodes: dict[Hash, bytes] = {}
    trie.prove([b"\x11\x01"], nodes)
    asked: list[int] = []

    def node_of(name: Hash, key: bytes, depth: int) -> bytes:
        assert key == b"\x11\x01"
        asked.append(depth)
        return nodes[name]

    assert follow(trie.root(), b"\x11\x01", node_of) == (2, blake2_256(bytes(40)), 4)
    assert asked == [0, 1, 2]


@given(entries, st.lists(st.one_of(dense_keys, keys)), versions)
def test_keys_given_one_by_one_are_read_like_follow_asking_nodes_once(
    held: dict[bytes, bytes], wanted: list[bytes], version: int
) -> None:
    trie = Trie.from_entries(held.items(), version)
    nodes: dict[Hash, bytes] = {}
    trie.prove([*wanted, b""], nodes)
    root = trie.root()

    def reading(taken: dict[Hash, bytes]) -> Callable[[Hash, bytes, int], bytes]:
        def node_of(name: Hash, key: bytes, depth: int) -> bytes:
            assert name not in taken
            assert len(key) * 2 >= depth
            taken[name] = nodes[name]
            return nodes[name]

        return node_of

    followed: dict[Hash, bytes] = {}
    looked_up: dict[Hash, bytes] = {}
    ask = reading(followed)
    lookups = Lookups(root, looked_up, reading(looked_up))
    for key in wanted:
        expected = follow(
            root, key, lambda name, key, depth: followed.get(name) or ask(name, key, depth)
        )
        assert lookups.read(key) == expected
    assert [*looked_up] == [*followed]


def test_a_lookup_that_meets_a_missing_node_continues_with_the_next_key() -> None:
    trie = Trie.from_entries([(bytes((at, 1)), bytes((at,)) * 40) for at in range(32)])
    nodes: dict[Hash, bytes] = {}
    trie.prove([b"\x01\x01"], nodes)
    lookups = Lookups(trie.root(), {}, lambda name, _key, _depth: nodes[name])
    with pytest.raises(KeyError):
        lookups.read(b"\x11\x01")
    assert lookups.read(b"\x01\x01") == (2, blake2_256(b"\x01" * 40), 4)


def test_a_value_that_is_at_hand_is_not_asked_for() -> None:
    trie = Trie.from_entries([(b"key", bytes(40))])
    nodes: dict[Hash, bytes] = {}
    trie.prove([b"key"], nodes)
    asked: list[tuple[Hash, bytes, int]] = []

    def node_of(name: Hash, key: bytes, depth: int) -> bytes:
        asked.append((name, key, depth))
        return nodes[name]

    root, value = trie.root(), blake2_256(bytes(40))
    taken = {root: nodes[root]}
    lookups = Lookups(root, taken, node_of)
    assert lookups.read(b"key") == (2, value, 6)
    assert asked == []
    assert lookups.node(value, 6) == bytes(40)
    assert asked == [(value, b"key", 6)]
    taken[value] = bytes(40)
    assert lookups.node(value, 6) == bytes(40)
    assert len(asked) == 1


def test_nodes_within_nodes_count_as_nodes_above() -> None:
    """A limit of the depth that did not count them would not hold for small nodes (PS-68)."""
    keys = [b"\x00" * size for size in range(6)]
    trie = Trie.from_entries([(key, b"") for key in keys])
    nodes: dict[Hash, bytes] = {}
    trie.prove(keys, nodes)
    descent = Watched(trie.root(), keys, nodes, frozenset())
    descent.start(nodes[trie.root()])
    for at, key in enumerate(keys):
        descent.asked.clear()
        expected, asked = stepped(trie.root(), key, nodes, frozenset())
        assert found(descent, at) == expected
        assert descent.asked == asked[len(asked) - len(descent.asked) :]
    anew = Watched(trie.root(), keys[-1:], nodes, frozenset())
    anew.start(nodes[trie.root()])
    anew.find(0)
    assert [above for _, _, above in anew.asked] == [1, 2, 3, 4, 5]
