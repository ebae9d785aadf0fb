"""Hostile proofs in compact form, on their way into it, and without values: clean errors, bounded
work.
"""

from inspect import unwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trie.mainnet import entries, versions
from support.trie.slow_trie import blake2

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import (
    BadNode,
    ExtraneousValue,
    IncompleteProof,
    MissingNode,
    ProofTooLarge,
    RootMismatch,
    Trie,
    TrieError,
    UnusedNodes,
    ValueMismatch,
    decode_compact,
    encode_compact,
)
from pubsub_emulator.trie.compact import DEFAULT_LIMIT
from pubsub_emulator.trie.omitted import check_omitted

FULL = b"\x80\xff\xff"


def bomb(levels: int) -> tuple[bytes, list[bytes]]:
    """Branches with sixteen times the same child: few nodes, 16**levels places."""
    nodes = [b"\x40\x80" + b"v" * 32]
    for _ in range(levels):
        nodes.append(FULL + 16 * (b"\x80" + blake2(nodes[-1])))
    return blake2(nodes[-1]), nodes


def test_nodes_that_repeat_exponentially_stop_at_the_limit() -> None:
    root, nodes = bomb(65)
    with pytest.raises(ProofTooLarge):
        encode_compact(root, nodes, limit=10_000, repeat_shared=True)
    small_root, small = bomb(2)
    items = 1 + 16 + 256
    assert len(encode_compact(small_root, small, limit=items, repeat_shared=True)) == items
    with pytest.raises(ProofTooLarge):
        encode_compact(small_root, small, limit=items - 1, repeat_shared=True)


def test_exponentially_repeated_nodes_are_written_once_but_searched_to_the_limit() -> None:
    root, nodes = bomb(40)  # the key of a child trie's root is longer: there is none
    assert len(encode_compact(root, nodes)) == 41
    root, nodes = bomb(64)  # 16**18 keys of child tries' roots
    with pytest.raises(ProofTooLarge):
        encode_compact(root, nodes, limit=10_000)


def test_the_search_for_child_tries_stops_at_the_limit() -> None:
    """Items name the repeated children by hash, so the attacker sends 65 items and asks for 16**65
    visits.
    """
    nodes = bomb(65)[1]
    prefix = b":child_storage:default:".hex()
    partial = bytes((0x80 + len(prefix),)) + bytes.fromhex(prefix)
    top = partial + b"\xff\xff" + 16 * (b"\x80" + blake2(nodes[-1]))
    items = [partial + b"\xff\xff\x00" + 15 * (b"\x80" + blake2(nodes[-1]))]
    items.extend(FULL + b"\x00" + 15 * (b"\x80" + blake2(below)) for below in reversed(nodes[:-1]))
    items.append(nodes[0])
    with pytest.raises(ProofTooLarge, match="10000"):
        decode_compact(blake2(top), items, limit=10_000)
    plain = unwrap(decode_compact)  # a mutation run wraps it
    assert getattr(plain, "__defaults__", (DEFAULT_LIMIT,)) == (
        DEFAULT_LIMIT,
    )  # compiled functions have none


def test_the_search_for_child_tries_takes_exactly_the_limits_steps() -> None:
    prefix = b":child_storage:default:"
    trie = Trie.from_entries([(prefix + bytes([at]), bytes(32)) for at in range(3)])
    into: dict[Hash, bytes] = {}
    trie.prove([prefix + bytes([at]) for at in range(3)], into)
    items = encode_compact(trie.root(), into.values())
    steps = 4  # the branch and three leaves
    assert decode_compact(trie.root(), items, limit=steps) == sorted(into.values())
    with pytest.raises(ProofTooLarge) as refused:
        decode_compact(trie.root(), items, limit=steps - 1)
    assert refused.value.limit == steps - 1


def test_an_empty_inline_child_is_a_bad_node_and_no_endless_loop() -> None:
    node = b"\x80\x01\x00\x00"
    with pytest.raises(BadNode):
        encode_compact(blake2(node), [node])
    with pytest.raises(IncompleteProof):
        decode_compact(blake2(node), [node])


def test_inline_children_of_more_than_32_bytes_have_no_compact_form() -> None:
    node = b"\x80\x01\x00\x84" + b"\x40\x7c" + bytes(31)
    with pytest.raises(BadNode, match="inline child"):
        encode_compact(blake2(node), [node])
    with pytest.raises(BadNode, match="inline child"):
        decode_compact(blake2(node), [node])


def test_an_attached_value_needs_an_empty_value_in_its_place() -> None:
    for item in (
        b"\x01\x40\x04x",
        b"\x01\x80\x01\x00\x80" + bytes(32),
        b"\x01\x20" + bytes(32),
        b"\x01\x00",
    ):
        with pytest.raises(BadNode, match="attached"):
            decode_compact(bytes(32), [item, b"v" * 33])
    with pytest.raises(IncompleteProof):
        decode_compact(bytes(32), [b"\x01\x40\x00"])
    value = b"v" * 33
    assert decode_compact(blake2(b"\x20" + blake2(value)), [b"\x01\x40\x00", value]) == sorted(
        [b"\x20" + blake2(value), value]
    )


def test_a_compact_form_needs_the_root_node_and_at_least_one_item() -> None:
    with pytest.raises(MissingNode):
        encode_compact(bytes(32), [b"\x40\x04v"])
    with pytest.raises(IncompleteProof):
        decode_compact(bytes(32), [])


def test_child_roots_that_are_no_hashes_are_bad_nodes() -> None:
    trie = Trie.from_entries([(b":child_storage:default:x", b"short")])
    into: dict[bytes, bytes] = {}
    trie.prove([b":child_storage:default:x"], into)  # type: ignore[arg-type]  # names are hashes
    with pytest.raises(BadNode, match="child root of 5 bytes"):
        encode_compact(trie.root(), into.values())


def test_a_child_root_beside_its_node_is_a_bad_node() -> None:
    trie = Trie.from_entries([(b":child_storage:default:x", bytes(40))])
    into: dict[Hash, bytes] = {}
    trie.prove([b":child_storage:default:x"], into)
    with pytest.raises(BadNode, match="child root of 40 bytes"):
        encode_compact(trie.root(), into.values())


@pytest.mark.parametrize(
    "last",
    [
        (b":x", b":y"),
        (b":", b";"),
    ],
    ids=["names", "no name"],
)
def test_a_child_root_within_its_parent_is_a_bad_node_too(last: tuple[bytes, bytes]) -> None:
    """No hash is so short that its leaf stands in the branch above."""
    keys = [b":child_storage:default" + end for end in last]
    trie = Trie.from_entries([(key, b"short") for key in keys])
    into: dict[Hash, bytes] = {}
    trie.prove(keys, into)
    assert len(into) == 1
    with pytest.raises(BadNode, match="child root of 5 bytes"):
        encode_compact(trie.root(), into.values())


def test_items_after_the_last_trie_are_unused() -> None:
    leaf = b"\x40\x04v"
    with pytest.raises(UnusedNodes):
        decode_compact(blake2(leaf), [leaf, leaf])
    with pytest.raises(RootMismatch):
        decode_compact(bytes(32), [leaf])


@given(entries, versions, st.data())
def test_damaged_items_are_refused_or_stand_for_nodes_of_the_root(
    found: dict[bytes, bytes], version: int, data: st.DataObject
) -> None:
    trie = Trie.from_entries(found.items(), version)
    into: dict[bytes, bytes] = {}
    trie.prove([*found, b"absent"], into)  # type: ignore[arg-type]  # as above
    try:
        items = encode_compact(trie.root(), into.values())
    except BadNode:
        return
    at = data.draw(st.integers(0, len(items) - 1))
    damage = data.draw(st.sampled_from(["drop", "repeat", "flip", "cut"]))
    if damage == "drop":
        del items[at]
    elif damage == "repeat":
        items.insert(at, items[at])
    elif damage == "cut":
        items[at] = items[at][:-1]
    elif items[at]:
        changed = bytearray(items[at])
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        items[at] = bytes(changed)
    try:
        nodes = decode_compact(trie.root(), items)
    except TrieError:
        return
    assert set(nodes) <= set(into.values())


def _proof(trie: Trie, keys: list[bytes]) -> dict[bytes, bytes]:
    into: dict[Hash, bytes] = {}
    trie.prove(keys, into)
    return {bytes(name): node for name, node in into.items()}


def test_a_node_that_occurs_twice_is_written_at_its_first_place() -> None:
    """The expected items are those of `StorageProof::into_compact_proof` of sp-trie 47.0.0."""
    value = b"v" * 40
    trie = Trie.from_entries([(b"\x10", value), (b"\x20", value)])
    nodes = _proof(trie, [b"\x10", b"\x20"])
    leaf = b"\x21\x00" + blake2(value)
    branch = b"\x80\x06\x00"
    once = [branch + b"\x00\x80" + blake2(leaf), b"\x01\x41\x00\x00", value]
    assert encode_compact(trie.root(), nodes.values()) == once
    repeated = [branch + b"\x00\x00", *once[1:], *once[1:]]
    assert encode_compact(trie.root(), nodes.values(), repeat_shared=True) == repeated
    for items in (once, repeated):
        assert decode_compact(trie.root(), items) == sorted(nodes.values())


def test_a_value_that_occurs_twice_is_written_at_its_first_place() -> None:
    value = b"v" * 40
    trie = Trie.from_entries([(b"\x10", value), (b"\x20\x01", value)])
    nodes = _proof(trie, [b"\x10", b"\x20\x01"])
    second = b"\x23\x00\x01" + blake2(value)
    items = encode_compact(trie.root(), nodes.values())
    assert items == [b"\x80\x06\x00\x00\x00", b"\x01\x41\x00\x00", value, second]
    assert decode_compact(trie.root(), items) == sorted(nodes.values())


def test_a_value_with_a_nodes_bytes_does_not_replace_the_node() -> None:
    """The nodes below the node would be missing, if it were left out for the value's sake."""
    values = [b"a" * 40, b"b" * 40]
    leaves = [b"\x20" + blake2(value) for value in values]
    child = b"\x80\x03\x00" + b"".join(b"\x80" + blake2(leaf) for leaf in leaves)
    beside = b"\x21\x00" + blake2(child)
    top = b"\x80\x06\x00\x80" + blake2(beside) + b"\x80" + blake2(child)
    nodes = [*values, *leaves, child, beside, top]
    items = encode_compact(blake2(top), nodes)
    assert items == [
        b"\x80\x06\x00\x00\x00",
        *(b"\x01\x41\x00\x00", child),
        b"\x80\x03\x00\x00\x00",
        *(b"\x01\x40\x00", values[0]),
        *(b"\x01\x40\x00", values[1]),
    ]
    assert decode_compact(blake2(top), items) == sorted(nodes)


def test_a_compact_proof_has_at_most_as_many_items_as_allowed() -> None:
    trie = Trie.from_entries([(b"\x10", b"a" * 40), (b"\x20", b"b" * 40)])
    nodes = _proof(trie, [b"\x10", b"\x20"])
    assert len(encode_compact(trie.root(), nodes.values(), limit=5)) == 5
    with pytest.raises(ProofTooLarge) as refused:
        encode_compact(trie.root(), nodes.values(), limit=4)
    assert refused.value.limit == 4


def test_a_child_tries_root_is_written_although_its_items_were_written_before() -> None:
    prefix = b":child_storage:default:"
    child = Trie.from_entries([(b"\x10", b"a" * 40), (b"\x20", b"b" * 40)])
    keys = [prefix + b"one", prefix + b"two"]
    top = Trie.from_entries([(key, child.root()) for key in keys])
    nodes = _proof(top, keys) | _proof(child, [b"\x10", b"\x20"])
    items = encode_compact(top.root(), nodes.values())
    root_node = nodes[child.root()]
    assert items[-6:] == [
        b"\x80\x06\x00\x00\x00",
        *(b"\x01\x41\x00\x00", b"a" * 40),
        *(b"\x01\x41\x00\x00", b"b" * 40),
        root_node,
    ]
    assert decode_compact(top.root(), items) == sorted(nodes.values())


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


def test_a_present_key_is_not_absent_and_an_unplaced_value_is_refused() -> None:
    root, nodes = proof_of({b"\x10": LONG}, b"\x10")
    with pytest.raises(ExtraneousValue, match="0x10 is not left out"):
        check_omitted(root, nodes, {b"\x10": None}, 0)
    omitted = [b"\x42\x10\x00"]
    check_omitted(root, omitted, {b"\x10": LONG}, 0)
    with pytest.raises(ValueMismatch, match="0x10 is present"):
        check_omitted(root, omitted, {b"\x10": None}, 0)
    root, nodes = proof_of({b"\x10": LONG, b"\x20": LONG}, b"\x10")
    with pytest.raises(ValueMismatch, match="0x30 is absent"):
        check_omitted(root, nodes, {b"\x30": b"x"}, 0)


def test_nodes_too_many_and_too_few_are_refused() -> None:
    root, nodes = proof_of({b"\x10": LONG}, b"\x10")
    with pytest.raises(UnusedNodes):
        check_omitted(root, nodes * 2, {b"\x30": None}, 0)
    with pytest.raises(IncompleteProof, match="end before"):
        check_omitted(root, [], {b"\x30": None}, 0)
