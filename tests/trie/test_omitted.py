"""Proofs without values: what a liar leaves in or out is noticed. The vectors are in `tests/vectors/trie_proofs`."""

import pytest

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.errors import BadNode, IncompleteProof, RootMismatch, UnusedNodes
from pubsub_emulator.trie.mutable import Trie
from pubsub_emulator.trie.omitted import check_omitted

LONG = b"v" * 33


def proof_of(entries: dict[bytes, bytes], *keys: bytes) -> tuple[bytes, list[bytes]]:
    trie = Trie.from_entries(list(entries.items()), 0)
    into: dict[Hash, bytes] = {}
    trie.prove(list(keys), into)
    return bytes(trie.root()), [into[trie.root()]]


def test_a_key_behind_a_hash_is_not_absent() -> None:
    root, nodes = proof_of({b"\x10": LONG, b"\x20": LONG}, b"\x10")
    check_omitted(root, nodes, {b"\x30": None}, 0)
    with pytest.raises(IncompleteProof, match="on the way to 0x10"):
        check_omitted(root, nodes, {b"\x10": None}, 0)


def test_a_key_with_a_value_is_not_absent() -> None:
    root, nodes = proof_of({b"\x10": LONG}, b"\x10")
    with pytest.raises(BadNode, match="0x10 has a value"):
        check_omitted(root, nodes, {b"\x10": None}, 0)


def test_a_value_that_no_node_has_is_refused() -> None:
    root, nodes = proof_of({b"\x10": LONG, b"\x20": LONG}, b"\x10")
    with pytest.raises(RootMismatch):
        check_omitted(root, nodes, {b"\x30": b"x"}, 0)


def test_nodes_too_many_and_too_few_are_refused() -> None:
    root, nodes = proof_of({b"\x10": LONG}, b"\x10")
    with pytest.raises(UnusedNodes):
        check_omitted(root, nodes * 2, {b"\x30": None}, 0)
    with pytest.raises(IncompleteProof, match="end before"):
        check_omitted(root, [], {}, 0)
