"""Every read and every single write of some small tries, compared with a dictionary and the slow
trie.

Properties draw what is large and strange. Here nothing is left to chance: all keys, prefixes and
starts of a small world, over tries whose nodes have lengths around 32 bytes.
"""

import random
from collections.abc import Callable, Iterator

import pytest
from support.trie.slow_trie import blake2, encode, plant, proof, root, to_nibbles

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie, state_root
from pubsub_emulator.trie.partial import PartialTrie

WORLD = [b"", b"\x00", b"\x01", b"\x10", b"\x11", b"\x00\x00", b"\x00\x01", b"\x00\x10"]
WORLD += [b"\x01\x00", b"\x10\x00", b"\x10\x01", b"\x10\xff", b"\xff\x00"]
SIZES = [0, 3, 26, 27, 28, 29, 30, 31, 32, 33, 70]
Held = dict[bytes, bytes]
AnyTrie = Trie | PartialTrie


def _worlds() -> list[Held]:
    """Sets of entries, from none to all keys of the world."""
    dice = random.Random(7)
    found: list[Held] = [{}, {b"": b""}, {b"\x10": bytes(40)}]
    # Below the root, a branch of 31 to 33 bytes.
    found += [{b"\x00": bytes(11), b"\x01": bytes(size), b"\x10": b""} for size in (10, 11, 12)]
    for count in (2, 2, 3, 3, 4, 5, 7, 9, len(WORLD)):
        keys = dice.sample(WORLD, count)
        found.append({key: bytes([at]) * dice.choice(SIZES) for at, key in enumerate(keys)})
    return found


def _whole(held: Held, version: int) -> Trie:
    return Trie.from_entries(held.items(), version)


def _partial(held: Held, version: int) -> PartialTrie:
    whole = _whole(held, version)
    nodes: dict[Hash, bytes] = {}
    whole.prove(WORLD, nodes)
    return PartialTrie(whole.root(), {bytes(name): node for name, node in nodes.items()}.get)


MAKERS = [
    pytest.param(_whole, 0, id="layout 0"),
    pytest.param(_whole, 1, id="layout 1"),
    pytest.param(_partial, 1, id="partial"),
]
each_trie = pytest.mark.parametrize(("make", "version"), MAKERS)
each_world = pytest.mark.parametrize("held", _worlds(), ids=len)
Make = Callable[[Held, int], AnyTrie]


@each_world
@each_trie
def test_every_key_prefix_and_start_reads_as_in_a_dictionary(
    make: Make, version: int, held: Held
) -> None:
    trie = make(held, version)
    assert (len(trie), bool(trie)) == (len(held), bool(held))
    assert list(trie.keys()) == sorted(held)
    for key in WORLD:
        assert trie.get(key) == held.get(key)
        assert (key in trie) == (key in held)
        for after in (None, *WORLD):
            due = [
                (found, value)
                for found, value in sorted(held.items())
                if found.startswith(key) and (after is None or found > after)
            ]
            assert list(trie.items(key, after)) == due


@each_world
@each_trie
def test_every_key_is_proved_by_the_nodes_on_its_way(make: Make, version: int, held: Held) -> None:
    trie = make(held, version)
    for key in WORLD:
        nodes: dict[Hash, bytes] = {}
        trie.prove([key], nodes)
        assert set(nodes.values()) == proof(held, [key], version)
    both: dict[Hash, bytes] = {}
    trie.prove(WORLD[::-1], both)
    assert set(both.values()) == proof(held, WORLD, version)


def _merkle_value(held: Held, key: bytes, version: int) -> bytes | None:
    """What the slow trie has at the key, or first below it."""
    tree = plant({to_nibbles(found): value for found, value in held.items()})
    rest = to_nibbles(key)
    is_root = True
    while tree is not None:
        if tree.partial[: len(rest)] == rest:
            node = encode(tree, version)
            return node if len(node) < 32 and not is_root else blake2(node)
        if rest[: len(tree.partial)] != tree.partial:
            return None
        rest = rest[len(tree.partial) :]
        tree = tree.children.get(rest[0])
        rest = rest[1:]
        is_root = False
    return None


@each_world
@each_trie
def test_a_keys_merkle_value_is_that_of_the_first_node_below_it(
    make: Make, version: int, held: Held
) -> None:
    trie = make(held, version)
    for key in (*WORLD, b"\x00\x00\x00", b"\x10\x10"):
        assert trie.merkle_value(key) == _merkle_value(held, key, version)


def _check(trie: AnyTrie, held: Held, version: int) -> None:
    assert trie.root() == root(held, version)
    assert list(trie.items()) == sorted(held.items())
    assert (len(trie), bool(trie)) == (len(held), bool(held))


@each_world
@each_trie
def test_every_single_write_leaves_the_right_trie_and_no_fork_sees_it(
    make: Make, version: int, held: Held
) -> None:
    trie = make(held, version)
    trie.root()
    for key in WORLD:
        fork = trie.fork()
        assert fork.remove(key) == (key in held)
        less = {found: value for found, value in held.items() if found != key}
        _check(fork, less, version)
        again = fork.fork()
        fork.insert(key, b"v" * 28)
        _check(fork, {**less, key: b"v" * 28}, version)
        fork.insert(key, b"w" * 33)
        _check(fork, {**less, key: b"w" * 33}, version)
        fork.update({key: None, key + b"\x01": b"x" * 29})
        _check(fork, {**less, key + b"\x01": b"x" * 29}, version)
        _check(again, less, version)
        fork = trie.fork()
        fork.remove_prefix(key)
        _check(
            fork,
            {found: value for found, value in held.items() if not found.startswith(key)},
            version,
        )
    _check(trie, held, version)


@each_world
@pytest.mark.parametrize("version", [0, 1])
def test_every_prefix_is_removed_up_to_a_limit_and_counted(version: int, held: Held) -> None:
    for prefix in WORLD:
        below = sorted(key for key in held if key.startswith(prefix))
        for limit in (None, 0, 1, 2):
            trie = _whole(held, version)
            gone = below[:limit]
            assert trie.remove_prefix(prefix, limit) == len(gone)
            _check(trie, {key: value for key, value in held.items() if key not in gone}, version)


@each_world
@pytest.mark.parametrize("version", [0, 1])
def test_every_way_to_make_a_trie_has_the_same_root(version: int, held: Held) -> None:
    due = root(held, version)
    assert state_root(list(held.items()), version) == due
    one_by_one, at_once, twice = Trie(version), Trie(version), Trie(version)
    for key, value in held.items():
        one_by_one.insert(key, value)
    at_once.update(held)
    twice.update({key: bytes(33) for key in held})
    twice.root()
    twice.update(held)
    for trie in (one_by_one, at_once, twice):
        _check(trie, held, version)


@each_world
@each_trie
def test_two_forks_differ_by_what_each_wrote(make: Make, version: int, held: Held) -> None:
    for key in WORLD:
        trie = make(held, version)
        fork = trie.fork()
        fork.insert(key, b"new")
        trie.remove(key)
        found = [*trie.differences(fork)]
        assert found == [(key, None, b"new")]
        assert [*fork.differences(trie)] == [(key, b"new", None)]
        assert [*trie.differences(trie.fork())] == []


@pytest.mark.parametrize("looked", ["fork", "items", "differences"])
@each_trie
def test_a_trie_seen_between_writes_does_not_change_later(
    make: Make, version: int, looked: str
) -> None:
    """The nodes that are written again and again are shared with every look that came between."""
    trie, held = make({}, version), dict[bytes, bytes]()
    beside = make({}, version)
    seen: list[tuple[AnyTrie | Iterator[object], list[object]]] = []
    for at, key in enumerate([*WORLD, *WORLD, *WORLD]):
        trie.insert(key, bytes([at]) * SIZES[at % len(SIZES)])
        held[key] = bytes([at]) * SIZES[at % len(SIZES)]
        rows = sorted(held.items())
        if looked == "fork":
            seen.append((trie.fork(), rows))
        elif looked == "items":
            seen.append((trie.items(), rows))
        else:
            seen.append((beside.differences(trie), [(found, None, value) for found, value in rows]))
            seen.append((trie.differences(beside), [(found, value, None) for found, value in rows]))
    for look, due in seen:
        assert list(look.items() if looked == "fork" else look) == due
