"""What a read refuses of a proof, and where it says that a failure lies."""

from typing import Any

import pytest
from support.slow_trie import blake2

from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT
from pubsub_emulator.trie import BadNode, DuplicateNodes, MissingNode, Trie, UnusedNodes, read_child_proof, read_proof
from pubsub_emulator.trie.codec import HASHED_LEAF, node_head
from pubsub_emulator.trie.step import DETACHED, step

JUNK = b"\x40\x04not of this trie"
CHILD_KEY = b":child_storage:default:pubsub"
KEYS = [b"\x11" + bytes(31), b"\x12" + bytes(31), b"\x20" + bytes(31)]


def tries(child_root: bytes | None = None) -> tuple[bytes, list[bytes]]:
    """The root of a top trie over a child trie, or these bytes in its place, and all nodes on the way to `KEYS`."""
    child = Trie.from_entries([(key, key + b"!") for key in KEYS])
    top = Trie.from_entries([(b":code", b"x" * 40), (CHILD_KEY, child.root() if child_root is None else child_root)])
    into: dict[Any, bytes] = {}
    top.prove([CHILD_KEY], into)
    child.prove(KEYS if child_root is None else [], into)
    return top.root(), list(into.values())


def below_root(node: bytes) -> tuple[bytes, list[bytes]]:
    """A root whose child at nibble 0 is `node`, and both."""
    root = b"\x80\x01\x00\x80" + blake2(node)
    return blake2(root), [root, node]


def test_a_child_proof_with_more_than_it_needs_is_refused_only_when_it_is_to_be_exact() -> None:
    root, nodes = tries()
    want = {key: key + b"!" for key in KEYS}
    assert read_child_proof(root, nodes, b"pubsub", KEYS, exact=True) == want
    assert read_child_proof(root, [*nodes, JUNK, nodes[0]], b"pubsub", KEYS) == want
    with pytest.raises(UnusedNodes) as unused:
        read_child_proof(root, [*nodes, JUNK], b"pubsub", KEYS, exact=True)
    assert unused.value.hashes == (blake2(JUNK),)
    with pytest.raises(DuplicateNodes):
        read_child_proof(root, [*nodes, nodes[0]], b"pubsub", KEYS, exact=True)


def test_a_child_trie_that_is_empty_needs_no_node_of_its_own() -> None:
    root, nodes = tries(EMPTY_TRIE_ROOT)
    assert read_child_proof(root, nodes, b"pubsub", KEYS, exact=True) == dict.fromkeys(KEYS)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_child_root_that_is_no_hash_is_a_bad_node_at_the_end_of_its_key(length: int) -> None:
    root, nodes = tries(b"r" * length)
    with pytest.raises(BadNode, match=f"a child root of {length} bytes") as failure:
        read_child_proof(root, nodes, b"pubsub", KEYS)
    assert (failure.value.root, failure.value.key, failure.value.depth) == (root, CHILD_KEY, 2 * len(CHILD_KEY))


def test_a_value_that_is_the_hash_of_a_node_does_not_make_it_needed() -> None:
    root, nodes = tries(blake2(JUNK))
    with pytest.raises(UnusedNodes) as unused:
        read_proof(root, [*nodes, JUNK], [CHILD_KEY], exact=True)
    assert unused.value.hashes == (blake2(JUNK),)


def test_a_missing_root_is_missing_at_the_first_nibble_of_the_least_key() -> None:
    root, nodes = tries()
    with pytest.raises(MissingNode) as failure:
        read_proof(root, [node for node in nodes if blake2(node) != root], [b"b", b"a"])
    assert (failure.value.hash, failure.value.key, failure.value.depth) == (root, b"a", 0)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (b"", "no bytes"),
        (b"\x80\x03", "truncated bitmap"),
        (b"\x80\x03\x00\x80" + bytes(32) + b"\x80" + bytes(31), "truncated child"),
    ],
)
def test_a_node_that_is_cut_short_is_a_bad_node_wherever_it_ends(node: bytes, reason: str) -> None:
    root, nodes = below_root(node)
    with pytest.raises(BadNode, match=reason):
        read_proof(root, nodes, [b"\x01"])


@pytest.mark.parametrize("length", [298, 299, 300, 301])
@pytest.mark.parametrize("firsts", [(b"\x11", b"\x12"), (b"\x10", b"\x20")])
def test_keys_are_read_however_long_they_are(firsts: tuple[bytes, bytes], length: int) -> None:
    """Tables of leaf headers end somewhere: at 600 nibbles."""
    found = {first + bytes(length): first * 40 for first in firsts}
    trie = Trie.from_entries(found.items())
    into: dict[Any, bytes] = {}
    trie.prove(found, into)
    assert read_proof(trie.root(), into.values(), found, exact=True) == found


@pytest.mark.parametrize("head", [b"\x80", b"\x81\x00"], ids=["at an odd nibble", "at an even nibble"])
def test_leaves_that_look_like_that_of_the_key_are_read_as_a_step_reads_them(head: bytes) -> None:
    key, value = b"\x00\x34\x05\x67\x89", bytes(range(32))
    ends = {key[at:] for at in range(6)}
    ends |= {bytes((key[at] & 15,)) + key[on:] for at in range(5) for on in range(6)}
    leaves = (node_head(HASHED_LEAF, count) + end + value for end in ends for count in range(24))
    for node in (leaf + more for leaf in leaves for more in (b"", b"!")):
        root = head + b"\x01\x00\x80" + blake2(node)
        try:
            kind, payload, _ = step(node, key, len(head))
        except BadNode:
            with pytest.raises(BadNode):
                read_proof(blake2(root), [root, node], [key])
            continue
        if kind == DETACHED:
            with pytest.raises(MissingNode) as failure:
                read_proof(blake2(root), [root, node], [key])
            assert (failure.value.hash, failure.value.depth) == (payload, 10)
        else:
            assert read_proof(blake2(root), [root, node], [key]) == {key: None}
