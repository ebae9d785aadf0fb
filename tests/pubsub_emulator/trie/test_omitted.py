"""Proofs without the values that their reader knows are accepted as by trie-db's `verify_proof`.

`interop/tries.py` compares the answers for random and damaged proofs with those of trie-db itself.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie
from pubsub_emulator.trie.codec import BRANCH, LEAF, node_head
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.errors import (
    BadNode,
    ExtraneousValue,
    IncompleteProof,
    RootMismatch,
    UnusedNodes,
    ValueMismatch,
)
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
            head = node_head(BRANCH if parts.bitmap else LEAF, parts.nibbles)
            head += node[parts.partial_at : parts.body_at]
            body = node[parts.body_at : parts.body_at + 2] if parts.bitmap else b"\x00"
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
            with pytest.raises((RootMismatch, ValueMismatch)):
                check_omitted(trie.root(), nodes, {**reads, key: other}, version)
    with pytest.raises(UnusedNodes) as unused:
        check_omitted(trie.root(), [*nodes, nodes[0], nodes[0]], reads, version)
    assert unused.value.count == 2
    with pytest.raises(IncompleteProof):
        check_omitted(trie.root(), nodes[:-1], reads, version)


LONG = b"v" * 40


@pytest.mark.parametrize("length", [1, 300, 5000])
def test_a_path_is_followed_as_far_as_the_keys_go(length: int) -> None:
    keys = [bytes(length), bytes(length - 1) + b"\x01", bytes(length - 1) + b"\x10"]
    reads: dict[bytes, bytes | None] = dict.fromkeys(keys, LONG)
    trie = Trie.from_entries([(key, LONG) for key in keys], 0)
    check_omitted(trie.root(), Omitting(trie, reads).nodes, reads, 0)


def test_endlessly_nested_nodes_are_read_as_far_as_the_key_goes() -> None:
    node = b"\x40\x04x"
    for _ in range(20_000):
        node = b"\x80\x01\x00" + encode_compact(len(node)) + node
    with pytest.raises(BadNode, match="an inline child of"):
        check_omitted(blake2_256(node), [node], {bytes(32): None}, 1)


def test_no_keys_are_proven_by_no_nodes_and_by_nothing_else() -> None:
    trie = Trie.from_entries([(b"key", LONG)])
    check_omitted(trie.root(), [], {}, 1)
    with pytest.raises(UnusedNodes) as unused:
        check_omitted(trie.root(), [b"\x00", b"\x00"], {}, 1)
    assert unused.value.count == 2
    with pytest.raises(IncompleteProof, match="end before"):
        check_omitted(trie.root(), [], {b"key": LONG}, 1)


def _branch(*children: bytes) -> bytes:
    """A branch with children at 1 and 2, each with its length."""
    return b"\x80\x06\x00" + b"".join(children)


INLINE = b"\x41\x00\x04b"
OMITTED = b"\x41\x00\x00"
LEAF_NODE = b"\x41\x00" + encode_bytes(LONG)
HASHED = _branch(b"\x80" + blake2_256(LEAF_NODE), encode_bytes(INLINE))


def test_a_hashed_child_is_a_separate_node_and_an_inline_one_not() -> None:
    root = blake2_256(HASHED)
    reads: dict[bytes, bytes | None] = {b"\x10": LONG, b"\x20": b"b"}
    honest = [_branch(b"\x00", encode_bytes(OMITTED)), OMITTED]
    check_omitted(root, honest, reads, 0)
    embedded = [_branch(encode_bytes(OMITTED), encode_bytes(OMITTED))]
    with pytest.raises(BadNode, match="an inline child of 43 bytes"):
        check_omitted(root, embedded, reads, 0)
    with pytest.raises(RootMismatch):
        check_omitted(root, [_branch(b"\x00", b"\x00"), OMITTED, OMITTED], reads, 0)


def test_an_inline_child_that_no_key_needs_is_checked_only_for_length() -> None:
    for child, refused in ((b"\x0f" * 31, False), (b"\x0f" * 33, True)):
        node = _branch(encode_bytes(child), encode_bytes(INLINE))
        less = _branch(encode_bytes(child), encode_bytes(OMITTED))
        if refused:
            with pytest.raises(BadNode, match="an inline child of 33 bytes"):
                check_omitted(blake2_256(node), [less], {b"\x20": b"b"}, 0)
            with pytest.raises(BadNode, match="an inline child of 33 bytes"):
                check_omitted(blake2_256(node), [node], {b"\x30": None}, 0)
        else:
            check_omitted(blake2_256(node), [less], {b"\x20": b"b"}, 0)


def test_an_inline_child_of_32_bytes_with_its_value_stays_in_its_parent() -> None:
    """No other reader takes such a node, because 32 bytes are a hash, but trie-db does here."""
    value = b"v" * 29
    child = b"\x41\x00" + encode_bytes(value)
    assert len(child) == 32
    node = _branch(b"\x80" + child, encode_bytes(INLINE))
    less = _branch(encode_bytes(OMITTED), encode_bytes(INLINE))
    check_omitted(blake2_256(node), [less], {b"\x10": value}, 0)


def test_bytes_after_a_node_do_not_matter() -> None:
    reads: dict[bytes, bytes | None] = {b"\x10": LONG}
    honest = [_branch(b"\x00", encode_bytes(INLINE)) + b"after", OMITTED + b"after"]
    check_omitted(blake2_256(HASHED), honest, reads, 0)
    check_omitted(Trie().root(), [b"\x00after"], {b"key": None}, 0)


VALUED = b"\xc0\x06\x00" + encode_bytes(b"x" * 5) + HASHED[3:]
EMPTY_VALUED = b"\xc0\x06\x00\x00" + HASHED[3:]


@pytest.mark.parametrize(
    ("root", "proof", "reads"),
    [
        pytest.param(
            VALUED,
            EMPTY_VALUED,
            {b"": b"x" * 5},
            id="detached value in place",
        ),
        pytest.param(
            EMPTY_VALUED,
            EMPTY_VALUED,
            {b"": b""},
            id="empty value in place",
        ),
        pytest.param(
            VALUED,
            VALUED,
            {b"": b"x" * 5},
            id="value inline",
        ),
        pytest.param(
            VALUED,
            VALUED,
            {b"": None},
            id="value left out",
        ),
        pytest.param(
            b"\x42\x10" + b"\x04x",
            b"\x42\x10" + b"\x04x",
            {b"\x10": b"x"},
            id="small leaf",
        ),
        pytest.param(
            b"\x22\x10" + bytes(32),
            b"\x22\x10" + bytes(32),
            {b"\x10": LONG},
            id="leaf with a hash",
        ),
        (b"\x10\x01\x00" + bytes(32) + b"\x80" + bytes(32),) * 2 + ({b"": LONG},),
    ],
)
def test_a_value_that_is_not_left_out_is_extraneous(
    root: bytes, proof: bytes, reads: dict[bytes, bytes | None]
) -> None:
    with pytest.raises(ExtraneousValue) as refused:
        check_omitted(blake2_256(root), [proof], reads, 1)
    assert refused.value.key in reads


def test_an_omitted_value_of_a_branch_is_put_in() -> None:
    check_omitted(blake2_256(VALUED), [_branch(HASHED[3:])], {b"": b"x" * 5}, 0)
    with pytest.raises(RootMismatch):
        check_omitted(blake2_256(VALUED), [_branch(HASHED[3:])], {b"": None}, 0)


def test_a_key_that_the_trie_lacks_has_no_value() -> None:
    for key in (b"\x30", b"\x10", b"\x11", b"\x1f\xff"):
        proof = [_branch(b"\x00", encode_bytes(INLINE)), LEAF_NODE]
        if key == b"\x30":
            proof = [HASHED]
        with pytest.raises((ValueMismatch, ExtraneousValue)) as refused:
            check_omitted(blake2_256(HASHED), proof, {key: b"x"}, 0)
        assert isinstance(refused.value, ExtraneousValue) == (key == b"\x10")


def test_the_empty_trie_has_no_key() -> None:
    check_omitted(Trie().root(), [b"\x00"], {b"key": None}, 1)
    with pytest.raises(ValueMismatch, match="0x6b6579 is absent"):
        check_omitted(Trie().root(), [b"\x00"], {b"key": b"value"}, 1)
