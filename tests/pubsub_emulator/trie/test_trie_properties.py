"""The trie against the slow trie and against dictionaries: roots, reads, proofs, differences,
Merkle values.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.trie.mainnet import dense_keys, entries, keys, values, versions
from support.trie.slow_trie import blake2, proof, root

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import nodes_cost
from pubsub_emulator.primitives.scale import encode_compact as encode_number
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import (
    MissingNode,
    Trie,
    decode_compact,
    encode_compact,
    ordered_root,
    read_child_proof,
    read_proof,
    state_root,
)
from pubsub_emulator.trie.partial import PartialTrie
from pubsub_emulator.trie.recording import Recording
from pubsub_emulator.trie.vectors import outcome

INSERT, REMOVE, CLEAR, ROOT, FORK, SWITCH, UPDATE = range(7)
changes = st.dictionaries(st.one_of(dense_keys, keys), st.one_of(st.none(), values), max_size=12)
operations = st.lists(
    st.one_of(
        st.tuples(st.just(INSERT), keys, values),
        st.tuples(st.just(INSERT), dense_keys, values),
        st.tuples(st.just(UPDATE), changes, st.just(b"")),
        st.tuples(st.just(REMOVE), dense_keys, st.just(b"")),
        st.tuples(st.just(CLEAR), dense_keys, st.integers(0, 5).map(lambda count: bytes([count]))),
        st.tuples(
            st.sampled_from([ROOT, FORK, SWITCH]), st.just(b""), st.binary(min_size=1, max_size=1)
        ),
    ),
    max_size=40,
)


@given(operations, versions)
def test_any_sequence_of_writes_and_forks_leaves_what_a_dictionary_would(
    steps: list[tuple[int, Any, bytes]], version: int
) -> None:
    """Forks never see each other's writes, whichever of them goes on."""
    tries = [Trie(version)]
    models: list[dict[bytes, bytes]] = [{}]
    at = 0
    for kind, key, value in steps:
        trie, model = tries[at], models[at]
        if kind == INSERT:
            trie.insert(key, value)
            model[key] = value
        elif kind == UPDATE:
            trie.update(key)
            _change(model, key)
        elif kind == REMOVE:
            assert trie.remove(key) == (key in model)
            model.pop(key, None)
        elif kind == CLEAR:
            limit = value[0] if value[0] < 5 else None
            doomed = sorted(found for found in model if found.startswith(key))[:limit]
            assert trie.remove_prefix(key, limit) == len(doomed)
            for found in doomed:
                del model[found]
        elif kind == ROOT:
            assert trie.root() == root(model, version)
        elif kind == FORK:
            tries.append(trie.fork())
            models.append(dict(model))
        else:
            at = value[0] % len(tries)
    for trie, model in zip(tries, models, strict=True):
        assert list(trie.items()) == sorted(model.items())
        assert len(trie) == len(model)
        assert bool(trie) == bool(model)
        assert trie.root() == root(model, version)
        assert all(trie.get(key) == value and key in trie for key, value in model.items())


@given(entries, st.lists(changes, min_size=1, max_size=4), versions)
def test_changes_at_once_leave_the_nodes_that_a_new_trie_has(
    found: dict[bytes, bytes], rounds: list[dict[bytes, bytes | None]], version: int
) -> None:
    """All that was kept of earlier encodings included; a fork made between two rounds keeps what it
    saw.
    """
    trie = Trie.from_entries(found.items(), version)
    model = dict(found)
    before: list[tuple[Trie, dict[bytes, bytes]]] = []
    for changed in rounds:
        before.append((trie.fork(), dict(model)))
        trie.update(changed)
        _change(model, changed)
    for seen, held in [*before, (trie, model)]:
        want: dict[Any, bytes] = {}
        Trie.from_entries(held.items(), version).prove(held, want)
        nodes: dict[Any, bytes] = {}
        seen.prove(held, nodes)
        assert nodes == want
        assert seen.root() == root(held, version)
        assert len(seen) == len(held)


def _change(model: dict[bytes, bytes], changed: dict[bytes, bytes | None]) -> None:
    for key, value in changed.items():
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value


@given(entries, versions, st.data())
def test_bulk_roots_equal_incremental_roots_in_any_order(
    found: dict[bytes, bytes], version: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(list(found.items())))
    want = root(found, version)
    assert state_root(shuffled, version) == want
    assert state_root(iter(shuffled), version) == want
    assert Trie.from_entries(shuffled, version).root() == want


@pytest.mark.parametrize("count", [0, 1, 2, 64, 65, 300])
def test_a_lists_root_is_a_layout_0_trie_root_under_compact_indices(count: int) -> None:
    """Layout 0, as in headers: a value of more than 32 bytes stands in its node; the 65th index has
    two bytes.
    """
    listed = [bytes([at % 251]) * (30 + at % 5) for at in range(count)]
    assert ordered_root(listed) == root(
        {encode_number(at): value for at, value in enumerate(listed)}, 0
    )
    assert ordered_root(iter(listed)) == ordered_root(listed)


@given(st.lists(values, max_size=3))
def test_the_root_of_a_short_list_is_that_of_a_trie(listed: list[bytes]) -> None:
    assert ordered_root(listed) == root(
        {encode_number(at): value for at, value in enumerate(listed)}, 0
    )


@given(entries, dense_keys, st.one_of(st.none(), keys))
def test_iteration_is_bytewise_ascending_within_the_prefix_and_after_the_key(
    found: dict[bytes, bytes], prefix: bytes, after: bytes | None
) -> None:
    trie = Trie.from_entries(found.items())
    want = [
        (key, value)
        for key, value in sorted(found.items())
        if key.startswith(prefix) and (after is None or key > after)
    ]
    assert list(trie.items(prefix, after)) == want
    assert list(trie.keys(prefix, after)) == [key for key, _ in want]


@given(entries, st.lists(st.tuples(dense_keys, values), min_size=1, max_size=10))
def test_an_iterator_shows_the_trie_as_it_was_when_requested(
    found: dict[bytes, bytes], writes: list[tuple[bytes, bytes]]
) -> None:
    trie = Trie.from_entries(found.items())
    running: Iterator[tuple[bytes, bytes]] = trie.items()
    seen = [next(running)] if found else []
    for key, value in writes:
        trie.insert(key, value)
    for key in list(found):
        trie.remove(key)
    assert seen + list(running) == sorted(found.items())


@given(entries, st.lists(keys, min_size=1, max_size=8), versions, st.data())
def test_proofs_hold_exactly_the_nodes_that_reading_touches(
    found: dict[bytes, bytes], absent: list[bytes], version: int, data: st.DataObject
) -> None:
    asked = [
        *absent,
        *data.draw(st.lists(st.sampled_from(sorted(found)), max_size=8) if found else st.just([])),
    ]
    trie = Trie.from_entries(found.items(), version)
    into: dict[Any, bytes] = {}
    trie.prove(asked, into)
    assert set(into.values()) == proof(found, asked, version)
    assert all(name == blake2(node) for name, node in into.items())
    want = {key: found.get(key) for key in asked}
    nodes = data.draw(st.permutations(list(into.values())))
    assert read_proof(trie.root(), nodes, asked, exact=True) == want
    assert list(read_proof(trie.root(), nodes, asked)) == list(dict.fromkeys(asked))
    if not any(
        key.startswith(CHILD_STORAGE_PREFIX) for key in found
    ):  # there it would be a malformed child root
        items = encode_compact(trie.root(), nodes)
        assert decode_compact(trie.root(), items) == sorted(into.values())


@given(entries, st.lists(keys, min_size=1, max_size=8), st.data())
def test_recorded_reads_leave_the_proof_of_their_keys_in_any_order(
    found: dict[bytes, bytes], absent: list[bytes], data: st.DataObject
) -> None:
    """Keys may repeat, and a partial trie records the same nodes.

    Long common beginnings are walked once.
    """
    common = data.draw(st.sampled_from((b"", bytes(14), bytes(16), b"\x10" * 20)))
    found = {common + key: value for key, value in found.items()}
    absent = [common + key for key in absent] + absent[:1]
    asked = data.draw(st.permutations([*absent, *found, *list(found)[:3]]))
    trie = Trie.from_entries(found.items()).fork()
    whole: dict[Any, bytes] = {}
    trie.prove(asked, whole)
    partial = PartialTrie(trie.root(), lambda wanted: whole.get(Hash(wanted)))
    for reader in (trie, partial):
        recording = Recording()
        for count, key in enumerate(asked, 1):
            assert reader.get_recorded(key, recording) == found.get(key)
            want: dict[Any, bytes] = {}
            trie.prove(asked[:count], want)
            assert recording.nodes == set(want.values())
            assert recording.cost == nodes_cost(want.values())


@given(entries, st.lists(keys, min_size=1, max_size=6), versions, st.data())
def test_a_key_whose_path_lacks_a_node_is_missing_and_never_absent(
    found: dict[bytes, bytes], absent: list[bytes], version: int, data: st.DataObject
) -> None:
    asked = [*absent, *list(found)[:6]]
    trie = Trie.from_entries(found.items(), version)
    into: dict[Any, bytes] = {}
    trie.prove(asked, into)
    dropped = data.draw(st.sampled_from(sorted(into.values())))
    kept = [node for node in into.values() if node != dropped]
    for key in asked:
        if dropped in proof(found, [key], version) and found:
            with pytest.raises(MissingNode) as failure:
                read_proof(trie.root(), kept, [key])
            assert failure.value.hash == blake2(dropped)
            assert failure.value.key == key
            assert failure.value.root == trie.root()
        else:
            assert read_proof(trie.root(), kept, [key]) == {key: found.get(key)}
    failing = [key for key in sorted(set(asked)) if dropped in proof(found, [key], version)]
    if found and failing:
        with pytest.raises(MissingNode) as failure:
            read_proof(trie.root(), kept, asked)
        assert failure.value.key == failing[0]


@given(entries.filter(bool), versions, st.data())
def test_flipped_bits_never_change_what_is_read(
    found: dict[bytes, bytes], version: int, data: st.DataObject
) -> None:
    """A proof gives a true answer or none: there is no third way."""
    trie = Trie.from_entries(found.items(), version)
    into: dict[Any, bytes] = {}
    asked = sorted(found)[:5]
    trie.prove(asked, into)
    nodes = list(into.values())
    victim = data.draw(st.integers(0, len(nodes) - 1))
    bit = data.draw(st.integers(0, 8 * len(nodes[victim]) - 1))
    changed = bytearray(nodes[victim])
    changed[bit >> 3] ^= 1 << (bit & 7)
    nodes[victim] = bytes(changed)
    for key in asked:
        assert outcome(trie.root(), nodes, key) in (
            {"value": "0x" + found[key].hex()},
            {"error": "InvalidStateRoot"},
            {"error": "IncompleteDatabase"},
        )


@given(entries, st.lists(keys, min_size=1, max_size=5), versions)
def test_child_proofs_read_through_the_top_trie(
    found: dict[bytes, bytes], absent: list[bytes], version: int
) -> None:
    """PS-2: a child trie without entries has no root in the top trie, and all of its keys are
    absent.
    """
    child = Trie.from_entries(found.items(), version)
    top = Trie.from_entries([(b":code", b"x" * 40)], version)
    root_key = b":child_storage:default:pubsub"
    if child:
        top.insert(root_key, child.root())
    into: dict[Any, bytes] = {}
    asked = [*absent, *sorted(found)[:5]]
    top.prove([root_key], into)
    if child:
        child.prove(asked, into)
    want = {key: found.get(key) for key in asked}
    assert read_child_proof(top.root(), into.values(), b"pubsub", asked, exact=True) == want
    items = encode_compact(top.root(), into.values())
    assert decode_compact(top.root(), items) == sorted(into.values())


def test_the_empty_trie_has_the_known_root_and_proves_absence() -> None:
    for version in (0, 1):
        trie = Trie(version)
        assert (
            trie.root()
            == state_root([], version)
            == Trie.from_entries([], version).root()
            == EMPTY_TRIE_ROOT
        )
        into: dict[Any, bytes] = {}
        trie.prove([], into)
        assert not into
        trie.prove([b"key"], into)
        assert into == {EMPTY_TRIE_ROOT: b"\x00"}
        assert read_proof(EMPTY_TRIE_ROOT, into.values(), [b"key", b""], exact=True) == {
            b"key": None,
            b"": None,
        }
        assert read_proof(EMPTY_TRIE_ROOT, [], [b"key"]) == {b"key": None}


@pytest.mark.parametrize("size", [1, 40])
def test_a_branch_that_was_a_leaf_in_between_is_encoded_anew(size: int) -> None:
    """The references that it kept are of another node's bytes by then."""
    trie = Trie.from_entries([(b"\x11", b"v" * size), (b"\x11\x22", b"w" * 40)])
    whole = trie.root()
    assert trie.remove(b"\x11\x22")
    assert trie.root() == root({b"\x11": b"v" * size}, 1)
    trie.insert(b"\x11\x22", b"w" * 40)
    assert trie.root() == whole


Held = dict[bytes, bytes]
Expected = list[tuple[bytes, bytes | None, bytes | None]]

# Few letters and short keys: prefixes of each other, shared partial keys and splits within them are
# common.
few_keys = st.lists(st.sampled_from((0x00, 0x01, 0x10, 0x11)), max_size=4).map(bytes)
few_entries = st.dictionaries(few_keys, st.sampled_from((b"", b"a", b"b" * 40)), max_size=12)
writes = st.lists(
    st.tuples(few_keys, st.none() | st.sampled_from((b"", b"a", b"c" * 40))), max_size=12
)


def expected(a: Held, b: Held) -> Expected:
    return [(key, a.get(key), b.get(key)) for key in sorted({*a, *b}) if a.get(key) != b.get(key)]


@given(few_entries, writes, st.booleans())
def test_a_fork_differs_by_what_was_written_to_it(
    before: Held, written: list[tuple[bytes, bytes | None]], hashed: bool
) -> None:
    trie = Trie.from_entries(before.items())
    fork = trie.fork()
    after = dict(before)
    for key, value in written:
        if value is None:
            fork.remove(key)
            after.pop(key, None)
        else:
            fork.insert(key, value)
            after[key] = value
    if hashed:
        trie.root(), fork.root()
    assert list(trie.differences(fork)) == expected(before, after)
    assert list(fork.differences(trie)) == expected(after, before)


def test_differences_show_both_tries_as_they_were() -> None:
    trie = Trie.from_entries([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    fork = trie.fork()
    fork.insert(b"b", b"4")
    found = trie.differences(fork)
    fork.insert(b"c", b"5")
    trie.insert(b"a", b"6")
    assert list(found) == [(b"b", b"2", b"4")]


# Keys of few different bytes, so that a drawn key often begins some of the held keys and not all of
# them. Leaves of 26 to 32 bytes: a node of 32 bytes is the first that is named by its hash.
few_bytes = st.lists(st.sampled_from([0, 1, 16, 255]), max_size=3).map(bytes)
short_entries = st.dictionaries(
    few_bytes, st.sampled_from([0, 5, 26, 28, 29, 30, 40]).map(bytes), max_size=12
)


@given(short_entries, few_bytes, st.integers(0, 1))
@example({b"\x00": bytes(28), b"\x10": bytes(29)}, b"\x00", 1)  # a leaf of 31 bytes
@example({b"\x00": bytes(28), b"\x10": bytes(29)}, b"\x10", 1)  # a leaf of 32 bytes
def test_a_merkle_value_exists_exactly_for_prefixes_and_names_a_node(
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
