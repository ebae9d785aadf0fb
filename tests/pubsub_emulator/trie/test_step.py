"""One step through one node, and what a read refuses of a proof: which bytes, and where it says
that a failure lies.
"""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.trie.mainnet import entries, keys, versions
from support.trie.slow_trie import blake2, encode, plant, to_nibbles

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import (
    BadNode,
    DuplicateNodes,
    MissingNode,
    Trie,
    UnusedNodes,
    read_child_proof,
    read_proof,
)
from pubsub_emulator.trie.codec import HASHED_LEAF, node_head
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.step import ABSENT, CHILD, DETACHED, INLINE, VALUE, branch_of_hashes, step

HASH = bytes(range(32))


def branch(children: dict[int, bytes], head: bytes = b"\x80", middle: bytes = b"") -> bytes:
    bitmap = sum(1 << nibble for nibble in children)
    return b"".join(
        (
            head,
            bitmap.to_bytes(2, "little"),
            middle,
            *(bytes([len(child) << 2]) + child for _, child in sorted(children.items())),
        )
    )


@given(entries, keys, versions)
def test_steps_lead_to_what_the_trie_holds(
    found: dict[bytes, bytes], key: bytes, version: int
) -> None:
    trie = Trie.from_entries(found.items(), version)
    asked = [key, *list(found)[:5]]
    into: dict[Any, bytes] = {}
    trie.prove(asked, into)
    for wanted in asked:
        kind, payload, depth = CHILD, bytes(trie.root()), 0
        node = b""
        while kind in {CHILD, INLINE}:
            node = into[payload] if kind == CHILD else payload
            before = depth
            kind, payload, depth = step(node, wanted, depth)
            assert depth > before or kind not in {CHILD, INLINE}
        if wanted in found:
            assert depth == 2 * len(wanted)
            assert kind == (DETACHED if version == 1 and len(found[wanted]) > 32 else VALUE)
            assert (into[payload] if kind == DETACHED else payload) == found[wanted]
        else:
            assert (kind, payload) == (ABSENT, b"")
            assert depth == divergence(found, wanted)


def divergence(found: dict[bytes, bytes], key: bytes) -> int:
    """Where a read of an absent key stops, by the definition, on the slow trie."""
    tree = plant({to_nibbles(one): value for one, value in found.items()})
    rest = to_nibbles(key)
    depth = 0
    while tree is not None:
        shared = 0
        while shared < min(len(tree.partial), len(rest)) and tree.partial[shared] == rest[shared]:
            shared += 1
        depth += shared
        if shared < len(tree.partial) or shared == len(rest) or rest[shared] not in tree.children:
            break
        tree = tree.children[rest[shared]]
        rest = rest[shared + 1 :]
        depth += 1
    return depth


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (b"", "no bytes"),
        (b"\x01", "reserved header"),
        (b"\x0f\x00\x00", "reserved header"),
        (b"\x7f", "truncated header"),
        (b"\x7f\xff\xff", "truncated header"),
        (b"\x3f", "truncated header"),
        (b"\x1f", "truncated header"),
        (b"\x42", "truncated partial key"),
        (b"\x43\x01", "truncated partial key"),
        (b"\x41\x10\x00", "padding"),
        (b"\x81\xf0\x01\x00\x80" + HASH, "padding"),
        (b"\x40", "truncated length"),
        (b"\x40\x04", "truncated value"),
        (b"\x40\x01", "truncated length"),
        (b"\x40\x05\x00\x00", "shortest form"),
        (b"\x40\x02\x01\x00\x00" + bytes(64), "shortest form"),
        (b"\x40\x03\x00\x01\x00\x00" + bytes(64), "shortest form"),
        (b"\x40\x03\xff\xff\xff\x3f", "shortest form"),
        (b"\x40\x03\x00\x00\x00\x40", "truncated value"),
        (b"\x40\x07\x00\x00\x00\x00\x01", "exceeds u32"),
        (b"\x20" + HASH[1:], "truncated value hash"),
        (b"\x80", "truncated bitmap"),
        (b"\x80\x01", "truncated bitmap"),
        (b"\x80\x00\x00", "without children"),
        (b"\xc0\x00\x00\x04\x00", "without children"),
        (b"\xc0\x01\x00", "truncated length"),
        (b"\xc0\x01\x00\x08\x00", "truncated value"),
        (b"\x10\x01\x00" + HASH[1:], "truncated value"),
        (b"\x10\x01\x00" + HASH, "truncated length"),
        (b"\x80\x01\x00", "truncated length"),
        (b"\x80\x01\x00\x80" + HASH[1:], "truncated child"),
        (b"\x80\x03\x00\x80" + HASH, "truncated length"),
        (b"\x80\x03\x00\x80" + HASH + b"\x80" + HASH[1:], "truncated child"),
        (b"\x80\x01\x00\x91\x01" + bytes(99), "truncated child"),
        (b"\x80\x01\x00\x81\x00" + HASH, "shortest form"),
    ],
    ids=lambda value: value.hex()[:16] if isinstance(value, bytes) else value,
)
@pytest.mark.parametrize("key", [b"", b"\x00", b"\xff\xff"])
def test_bytes_that_the_codec_does_not_decode_are_bad_whatever_the_key(
    node: bytes, reason: str, key: bytes
) -> None:
    with pytest.raises(BadNode, match=reason) as failure:
        step(node, key, 0)
    assert (failure.value.key, failure.value.depth) == (key, 0)
    with pytest.raises(BadNode):
        DecodedNode(node)


@pytest.mark.parametrize(
    ("node", "key", "wanted"),
    [
        (b"\x00", b"k", (ABSENT, b"", 0)),
        (b"\x00 and more", b"k", (ABSENT, b"", 0)),
        (b"\x40\x04v and more", b"", (VALUE, b"v", 0)),
        (b"\x20" + HASH + b" and more", b"", (DETACHED, HASH, 0)),
        (b"\x22\xab" + HASH + b"!", b"\xab", (DETACHED, HASH, 2)),
        (branch({0: HASH}) + b"!", b"\x0f", (CHILD, HASH, 1)),
        (branch({0: HASH}), b"\x10", (ABSENT, b"", 0)),
        (branch({0: b"x" * 33}), b"\x00", (INLINE, b"x" * 33, 1)),
        (branch({0: b""}), b"\x00", (INLINE, b"", 1)),
        (branch({3: b"\x40\x04v", 4: HASH}), b"\x40", (CHILD, HASH, 1)),
        (branch({3: b"\x40\x04v", 4: HASH}), b"\x33", (INLINE, b"\x40\x04v", 1)),
        (branch({3: HASH}, b"\xc0", b"\x04v"), b"", (VALUE, b"v", 0)),
        (branch({3: HASH}, b"\x10", HASH[::-1]), b"", (DETACHED, HASH[::-1], 0)),
        (branch({3: HASH}), b"", (ABSENT, b"", 0)),
        (branch({15: HASH}, b"\x82\xab"), b"\xab\xff", (CHILD, HASH, 3)),
        (branch({15: HASH}, b"\x83\x0a\xbc"), b"\xab\xcf", (CHILD, HASH, 4)),
        (branch({15: HASH}, b"\x83\x0a\xbc"), b"\xab", (ABSENT, b"", 2)),
        (branch({15: HASH}, b"\x83\x0a\xbc"), b"\xab\xd0", (ABSENT, b"", 2)),
        (branch({15: HASH}, b"\x83\x0a\xbc"), b"\xb0\x00", (ABSENT, b"", 0)),
        (b"\x43\x0a\xbc\x04v", b"\xab\xc0", (ABSENT, b"", 3)),
        (b"\x44\xab\xcd\x04v", b"\xab", (ABSENT, b"", 2)),
        (b"\x44\xab\xcd\x04v", b"\xab\xcd", (VALUE, b"v", 4)),
    ],
    ids=lambda value: value.hex()[:16] if isinstance(value, bytes) else None,
)
def test_bytes_that_the_codec_decodes_are_read(
    node: bytes, key: bytes, wanted: tuple[int, bytes, int]
) -> None:
    """Trailing bytes and oversize inline children included: a stricter reader would fork from the
    relay chain.
    """
    assert step(node, key, 0) == wanted


def ends_of(key: bytes) -> set[bytes]:
    """What may stand at the end of a leaf that looks like one of this key."""
    return {key[at:] for at in range(6)} | {
        bytes((key[at] & 15,)) + key[on:] for at in range(5) for on in range(6)
    }


@pytest.mark.parametrize("depth", range(8))
def test_leaves_resembling_that_of_the_key_are_read_by_their_headers(
    depth: int,
) -> None:
    """Any count of nibbles, with any end of the key behind it."""
    key = b"\x12\x34\x05\x67\x89"
    for end in ends_of(key):
        for count in range(24):
            size = (count + 1) // 2
            partial, value = end[:size], (end + HASH)[size : size + 32]
            node = node_head(0x20, count) + end + HASH
            if len(end) < size or (count & 1 and partial[0] > 15):
                with pytest.raises(BadNode):
                    step(node, key, depth)
            elif partial.hex()[count & 1 :] == key.hex()[depth:]:
                assert step(node, key, depth) == (DETACHED, value, 10)
            else:
                assert step(node, key, depth)[:2] == (ABSENT, b"")


def test_a_step_may_start_at_any_nibble_of_the_key() -> None:
    leaf = b"\x43\x0a\xbc\x04v"
    assert step(leaf, b"\x0a\xbc", 1) == (VALUE, b"v", 4)
    assert step(leaf, b"\x99\x0a\xbc", 3) == (VALUE, b"v", 6)
    assert step(leaf, b"\x0a\xbd", 1) == (ABSENT, b"", 3)
    odd = branch({15: HASH}, b"\x82\xab")
    assert step(odd, b"\x0a\xbf", 1) == (CHILD, HASH, 4)
    assert step(odd, b"\x0a\xcf", 1) == (ABSENT, b"", 2)


mutations = st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=3)


@given(entries.filter(bool), versions, mutations, st.integers(0, 600), st.binary(max_size=40))
@example({b"": b""}, 0, [], 0, b"\x80\x01\x00\x80" + bytes(31))
def test_no_bytes_make_a_step_fail_but_with_bad_node(
    found: dict[bytes, bytes], version: int, changes: list[tuple[int, int]], cut: int, junk: bytes
) -> None:
    """`step` and `DecodedNode` refuse the same nodes, but for bytes after the end."""
    whole = bytearray(
        encode(plant({to_nibbles(key): value for key, value in found.items()}), version)
    )
    for at, byte in changes:
        if at < len(whole):
            whole[at] = byte
    for node in (bytes(whole), bytes(whole[:cut]), junk, bytes(whole) + junk):
        try:
            parts = DecodedNode(node)
        except BadNode as error:
            if "trailing" not in error.reason:
                for key in (b"", b"\x00", *list(found)[:2]):
                    with pytest.raises(BadNode):
                        step(node, key, 0)
            continue
        seen = {step(node, bytes([nibble << 4]), 0)[0] for nibble in range(16)}
        assert seen <= {ABSENT, VALUE, DETACHED, CHILD, INLINE}
        assert parts.value_end <= len(node)


def test_thousands_of_nested_prefixes_are_no_recursion_anywhere_ps68() -> None:
    listed = [(b"\x11" * size, b"v" * (size % 50)) for size in range(1200)]
    trie = Trie.from_entries(listed)
    grown = Trie()
    for key, value in reversed(listed):
        grown.insert(key, value)
    assert trie.root() == grown.root()
    assert sum(1 for _ in trie.items()) == len(trie) == 1200
    into: dict[Any, bytes] = {}
    trie.prove([listed[-1][0]], into)
    assert read_proof(trie.root(), into.values(), [listed[-1][0]], exact=True) == {
        listed[-1][0]: listed[-1][1]
    }
    assert trie.remove_prefix(b"\x11" * 2) == 1198


def test_a_hostile_nodes_nested_inline_nodes_are_walked_one_by_one() -> None:
    nested = b"\x40\x04v"
    for _ in range(64):
        count = len(nested)
        if count == 32:  # would be a hash
            nested += b"\x00"
            count = 33
        length = bytes([count << 2]) if count < 64 else (count << 2 | 1).to_bytes(2, "little")
        nested = b"\x80\x01\x00" + length + nested
    assert read_proof(blake2(nested), [nested], [bytes(32)]) == {bytes(32): b"v"}
    assert read_proof(blake2(nested), [nested], [bytes(31), bytes(32), bytes(31) + b"\x01"]) == {
        bytes(31): None,
        bytes(32): b"v",
        bytes(31) + b"\x01": None,
    }


def test_a_bad_node_is_named_with_its_hash_root_key_and_depth() -> None:
    bad = b"\x01" * 40
    top = branch({1: blake2(bad), 2: b"\x01"})
    root = blake2(top)
    with pytest.raises(BadNode) as failure:
        read_proof(root, [top, bad], [b"\x10"])
    error = failure.value
    assert (error.hash, error.root, error.key, error.depth) == (blake2(bad), root, b"\x10", 1)
    with pytest.raises(BadNode) as inline:
        read_proof(root, [top, bad], [b"\x20"])
    assert (inline.value.hash, inline.value.depth) == (root, 1)
    # A bad node that no key leads to is not looked into.
    assert read_proof(root, [top, bad], [b"\x30"]) == {b"\x30": None}


@pytest.mark.parametrize("kind", [0x40, 0x80, 0xC0, 0x20, 0x10])
def test_headers_of_every_length_are_read_back(kind: int) -> None:
    for nibbles in (
        *range(34),
        *range(62, 65),
        *range(269, 288),
        *range(317, 320),
        573,
        1000,
        70_000,
    ):
        body = bytes((nibbles + 1) // 2)
        rest = {0x40: b"\x04v", 0x20: HASH, 0x80: b"", 0xC0: b"\x04v", 0x10: HASH}[kind]
        node = node_head(kind, nibbles) + body
        node += rest if kind in {0x40, 0x20} else b"\x01\x00" + rest + b"\x80" + HASH
        assert DecodedNode(node).nibbles == nibbles
        kind_found, _, depth = step(node, bytes(nibbles // 2 + 1), 0)
        assert depth == nibbles + (kind not in {0x40, 0x20})
        assert kind_found == (ABSENT if kind in {0x40, 0x20} else CHILD)


def test_only_the_root_node_of_an_empty_trie_has_header_zero() -> None:
    assert step(b"\x00", b"", 0) == (ABSENT, b"", 0)


BRANCH = b"\x80\x05\x80" + 3 * (b"\x80" + bytes(range(32)))


def test_a_branch_of_hashes_gives_its_bitmap() -> None:
    assert branch_of_hashes(BRANCH) == 0x8005


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(
            b"",
            id="empty",
        ),
        pytest.param(
            b"\x80",
            id="header alone",
        ),
        pytest.param(
            BRANCH[:-1],
            id="one byte short",
        ),  # the last hash is cut short
        pytest.param(
            BRANCH + b"\x00",
            id="one byte long",
        ),
        pytest.param(
            BRANCH + b"\x80" + bytes(32),
            id="one child too many",
        ),  # a child more than the bitmap has
        pytest.param(
            b"\x81" + BRANCH[1:],
            id="other header",
        ),  # a partial key
        pytest.param(
            b"\xc0" + BRANCH[1:],
            id="other kind",
        ),  # a value
        pytest.param(
            BRANCH[:3] + b"\x7c" + BRANCH[4:],
            id="other length",
        ),  # an inline child
        pytest.param(
            BRANCH[:36] + b"\x81" + BRANCH[37:],
            id="other child",
        ),
    ],
)
def test_any_other_node_is_left_to_the_careful_reader(node: bytes) -> None:
    assert branch_of_hashes(node) == 0


def test_a_branch_as_long_as_one_of_hashes_is_read_correctly() -> None:
    """No honest trie has an inline child longer than a hash, and the codec accepts it."""
    key = b"\x01" + b"k" * 31
    leaf = bytes((0x40 | 62,)) + key[1:] + b"\x08v!"
    other = bytes(64 - len(leaf))
    below = b"\x80\x06\x00" + b"".join(bytes((len(child) << 2,)) + child for child in (leaf, other))
    assert len(below) == 3 + 2 * 33
    root = b"\x80\x01\x00\x80" + blake2_256(below)
    assert read_proof(blake2_256(root), [root, below], [key]) == {key: b"v!"}


JUNK = b"\x40\x04not of this trie"
CHILD_KEY = b":child_storage:default:pubsub"
KEYS = [b"\x11" + bytes(31), b"\x12" + bytes(31), b"\x20" + bytes(31)]


def tries(child_root: bytes | None = None) -> tuple[bytes, list[bytes]]:
    """The root of a top trie over a child trie, or these bytes in its place, and all nodes on the
    way to `KEYS`.
    """
    child = Trie.from_entries([(key, key + b"!") for key in KEYS])
    top = Trie.from_entries(
        [(b":code", b"x" * 40), (CHILD_KEY, child.root() if child_root is None else child_root)]
    )
    into: dict[Any, bytes] = {}
    top.prove([CHILD_KEY], into)
    child.prove(KEYS if child_root is None else [], into)
    return top.root(), list(into.values())


def below_root(node: bytes) -> tuple[bytes, list[bytes]]:
    """A root whose child at nibble 0 is `node`, and both."""
    root = b"\x80\x01\x00\x80" + blake2(node)
    return blake2(root), [root, node]


def test_a_child_proof_with_unneeded_nodes_is_refused_only_when_exact() -> None:
    root, nodes = tries()
    want = {key: key + b"!" for key in KEYS}
    assert read_child_proof(root, nodes, b"pubsub", KEYS, exact=True) == want
    assert read_child_proof(root, [*nodes, JUNK, nodes[0]], b"pubsub", KEYS) == want
    with pytest.raises(UnusedNodes) as unused:
        read_child_proof(root, [*nodes, JUNK], b"pubsub", KEYS, exact=True)
    assert unused.value.hashes == (blake2(JUNK),)
    with pytest.raises(DuplicateNodes):
        read_child_proof(root, [*nodes, nodes[0]], b"pubsub", KEYS, exact=True)


def test_nodes_that_are_listed_again_are_named_each_once() -> None:
    keys = [bytes((at, 1)) for at in range(4)]
    trie = Trie.from_entries([(key, key * 20) for key in keys])
    nodes: dict[Hash, bytes] = {}
    trie.prove(keys, nodes)
    listed = list(nodes.values())
    with pytest.raises(DuplicateNodes) as refused:
        read_proof(trie.root(), [*listed, listed[3], listed[1], listed[3]], keys, exact=True)
    assert refused.value.hashes == (blake2_256(listed[3]), blake2_256(listed[1]))


def test_a_child_trie_that_is_empty_needs_no_node_of_its_own() -> None:
    root, nodes = tries(EMPTY_TRIE_ROOT)
    assert read_child_proof(root, nodes, b"pubsub", KEYS, exact=True) == dict.fromkeys(KEYS)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_child_root_that_is_not_a_hash_is_a_bad_node(length: int) -> None:
    root, nodes = tries(b"r" * length)
    with pytest.raises(BadNode, match=f"a child root of {length} bytes") as failure:
        read_child_proof(root, nodes, b"pubsub", KEYS)
    assert (failure.value.root, failure.value.key, failure.value.depth) == (
        root,
        CHILD_KEY,
        2 * len(CHILD_KEY),
    )


def test_a_value_equal_to_a_nodes_hash_does_not_require_the_node() -> None:
    root, nodes = tries(blake2(JUNK))
    with pytest.raises(UnusedNodes) as unused:
        read_proof(root, [*nodes, JUNK], [CHILD_KEY], exact=True)
    assert unused.value.hashes == (blake2(JUNK),)


def test_a_missing_root_is_missing_at_the_lowest_keys_first_nibble() -> None:
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
def test_a_truncated_node_is_a_bad_node_wherever_it_ends(node: bytes, reason: str) -> None:
    root, nodes = below_root(node)
    with pytest.raises(BadNode, match=reason):
        read_proof(root, nodes, [b"\x01"])


@pytest.mark.parametrize("length", [298, 299, 300, 301])
@pytest.mark.parametrize(
    "firsts",
    [
        (b"\x11", b"\x12"),
        (b"\x10", b"\x20"),
    ],
)
def test_keys_are_read_however_long_they_are(firsts: tuple[bytes, bytes], length: int) -> None:
    """Tables of leaf headers end somewhere: at 600 nibbles."""
    found = {first + bytes(length): first * 40 for first in firsts}
    trie = Trie.from_entries(found.items())
    into: dict[Any, bytes] = {}
    trie.prove(found, into)
    assert read_proof(trie.root(), into.values(), found, exact=True) == found


@pytest.mark.parametrize(
    "head", [b"\x80", b"\x81\x00"], ids=["at an odd nibble", "at an even nibble"]
)
def test_leaves_resembling_that_of_the_key_are_read_as_by_a_step(head: bytes) -> None:
    key, value = b"\x00\x34\x05\x67\x89", bytes(range(32))
    leaves = (
        node_head(HASHED_LEAF, count) + end + value for end in ends_of(key) for count in range(24)
    )
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
