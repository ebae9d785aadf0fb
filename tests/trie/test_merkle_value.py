"""The Merkle value of the node at a key or the first one below it, against the nodes of a proof."""

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie

entries = st.dictionaries(st.binary(max_size=4), st.binary(max_size=40), max_size=12)


@given(entries, st.binary(max_size=4), st.integers(0, 1))
def test_a_merkle_value_is_there_exactly_when_a_key_begins_so_and_names_a_node(
    held: dict[bytes, bytes], key: bytes, version: int
) -> None:
    trie = Trie.from_entries(held.items(), version)
    found = trie.merkle_value(key)
    below = [each for each in held if each.startswith(key)]
    assert (found is not None) == bool(below)
    if found is None:
        return
    nodes: dict[Hash, bytes] = {}
    trie.prove(below, nodes)
    if len(below) == len(held):
        assert found == trie.root()
    elif len(found) == 32:
        assert blake2_256(nodes[Hash(found)]) == found
    else:
        assert any(found in node for node in nodes.values())
    changed = {each: value + b"!" if each in below else value for each, value in held.items()}
    assert Trie.from_entries(changed.items(), version).merkle_value(key) != found
