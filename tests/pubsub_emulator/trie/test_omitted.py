"""Proofs without what their reader knows: every proof that is made of a trie is accepted, and no
other one.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie
from pubsub_emulator.trie.codec import BRANCH_WITH_VALUE, LEAF, node_head
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.errors import BadNode, IncompleteProof, RootMismatch, UnusedNodes
from pubsub_emulator.trie.omitted import check_omitted

KEYS = st.lists(st.sampled_from([0, 1, 16, 255]), max_size=3).map(bytes)
# Around the lengths of values that stand in their nodes, and of nodes that stand in their parents.
SIZES = st.sampled_from([0, 1, 26, 27, 28, 29, 30, 32, 33, 70])
VALUES = st.tuples(st.integers(0, 9), SIZES).map(lambda pair: bytes(pair[:1]) * pair[1])


class Omitting:
    """Makes the proof of some keys: their values, and the nodes that follow, are left out of each
    node.
    """

    def __init__(self, trie: Trie, reads: dict[bytes, bytes | None]) -> None:
        self._reads = {key.hex(): value for key, value in reads.items()}
        self._known: dict[Hash, bytes] = {}
        trie.prove(reads, self._known)
        self.nodes: list[bytes] = []
        self._add(self._known[trie.root()], "")

    def _add(self, node: bytes, path: str) -> None:
        """Add a node that has a hash, and all below it."""
        at = len(self.nodes)
        self.nodes.append(b"")
        self.nodes[at] = self._less(node, path)

    def _less(self, node: bytes, path: str) -> bytes:
        """A node without what the reader knows. What follows is added on the way."""
        parts = DecodedNode(node)
        path += parts.partial
        head = node[: parts.body_at]
        body = node[parts.body_at : parts.value_end]
        if self._reads.get(path) is not None:
            head = node_head(BRANCH_WITH_VALUE if parts.bitmap else LEAF, parts.nibbles)
            head += node[parts.partial_at : parts.body_at]
            body = node[parts.body_at : parts.body_at + (2 if parts.bitmap else 0)] + b"\x00"
        return (
            head
            + body
            + b"".join(
                self._child(child, f"{path}{nibble:x}") for nibble, child in parts.references
            )
        )

    def _child(self, child: bytes, path: str) -> bytes:
        if len(child) < 32:
            less = self._less(child, path)
            return bytes([4 * len(less)]) + less
        if any(key.startswith(path) for key in self._reads):
            self._add(self._known[Hash(child)], path)
            return b"\x00"
        return b"\x80" + child


def _reads(held: dict[bytes, bytes], keys: list[bytes]) -> dict[bytes, bytes | None]:
    return {key: held.get(key) for key in keys}


@given(
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=12),
    st.lists(KEYS, min_size=1, max_size=4),
    st.booleans(),
)
@example({b"\x00": bytes(28), b"\x10": bytes(29)}, [b"\x00"], True)
@example({b"\x00": bytes(28), b"\x10": bytes(29)}, [b"\x10"], True)
@example(
    {b"": bytes(40), b"\x00\x01": bytes(33), b"\x00": bytes(32)}, [b"\x00", b"", b"\x00\x01"], True
)
def test_what_a_trie_proves_is_accepted_and_every_other_answer_is_refused(
    held: dict[bytes, bytes], keys: list[bytes], detached: bool
) -> None:
    version = 1 if detached else 0
    trie = Trie.from_entries(held.items(), version)
    reads = _reads(held, keys)
    nodes = Omitting(trie, reads).nodes
    check_omitted(trie.root(), nodes, reads, version)
    for key, value in reads.items():
        others = [None, value + b"!"] if value is not None else [b"", b"v" * 40]
        for other in others:
            with pytest.raises((RootMismatch, BadNode)):
                check_omitted(trie.root(), nodes, {**reads, key: other}, version)
    with pytest.raises(UnusedNodes) as unused:
        check_omitted(trie.root(), [*nodes, nodes[0], nodes[0]], reads, version)
    assert unused.value.count == 2
    with pytest.raises(IncompleteProof):
        check_omitted(trie.root(), nodes[:-1], reads, version)


def test_a_path_of_600_nibbles_is_followed_and_none_of_601() -> None:
    """No key of a chain is so long; without a limit, a proof of many small nodes would take
    quadratic time.
    """

    def checked(key: bytes, beside: bytes) -> None:
        reads: dict[bytes, bytes | None] = {key: b"v" * 40}
        trie = Trie.from_entries({key: b"v" * 40, beside: b"w" * 40}.items(), 0)
        check_omitted(trie.root(), Omitting(trie, reads).nodes, reads, 0)

    checked(bytes(300), bytes(299) + b"\x01")  # they part at the last nibble
    with pytest.raises(BadNode, match="a path longer than any key"):
        checked(bytes(301), bytes(300) + b"\x10")


def test_the_empty_trie_has_no_key() -> None:
    check_omitted(Trie().root(), [b"\x00"], {b"key": None}, 1)
    with pytest.raises(RootMismatch):
        check_omitted(Trie().root(), [b"\x00"], {b"key": b"value"}, 1)
