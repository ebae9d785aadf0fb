"""The tree of calls keeps its hashes, and shows the same as a tree that is built anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interchain_events.icrc72.port.hash_tree import Form, Path, State, digest, leaf, shown
from interchain_events.icrc72.port.kept_tree import LENGTH, KeptTree

# Labels that begin alike and that end alike, so that they fork at all bits.
LABELS = st.one_of(
    st.binary(min_size=LENGTH, max_size=LENGTH),
    st.integers(0, 300).map(lambda number: number.to_bytes(LENGTH, "big")),
    st.integers(0, 300).map(lambda number: number.to_bytes(LENGTH, "little")),
)
STATES: st.SearchStrategy[State] = st.one_of(
    st.binary(max_size=4), st.dictionaries(st.binary(max_size=2), st.binary(max_size=2), max_size=3)
)


def tree_of(states: dict[bytes, State]) -> KeptTree:
    tree = KeptTree()
    for label, state in states.items():
        tree.put(label, state)
    return tree


def labels_of(form: Form) -> list[bytes]:
    """Return the labels that a form shows, in their order."""
    match form:
        case [1, list(left), list(right)]:
            return labels_of(left) + labels_of(right)
        case [2, bytes(label), _]:
            return [label]
    return []


@given(st.dictionaries(LABELS, STATES, max_size=12), st.lists(LABELS, max_size=4))
def test_a_kept_tree_equals_one_that_is_built_anew(
    states: dict[bytes, State], absent: list[bytes]
) -> None:
    tree = tree_of(states)
    for label in absent:
        if label not in states:
            tree.put(label, b"to be removed")
            tree.put(label, b"changed")
            tree.remove(label)
    backwards = tree_of(dict(reversed(states.items())))
    form, root = tree.witness([()])
    assert root == digest(form) == backwards.witness([])[1]
    assert labels_of(form) == sorted(states)
    for label, state in states.items():
        if isinstance(state, bytes):
            assert leaf(form, label) == state


@given(
    st.dictionaries(LABELS, st.binary(max_size=4), max_size=12),
    st.lists(LABELS, min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_a_witness_shows_its_paths_and_the_neighbours_of_absent_ones(
    states: dict[bytes, State], others: list[bytes], known: int
) -> None:
    tree = tree_of(states)
    asked: list[Path] = [(label,) for label in [*list(states)[:known], *others]]
    form, root = tree.witness(asked)
    assert root == digest(form) == tree.witness([])[1]
    due: set[bytes] = set()
    for (label,) in asked:
        if label in states:
            assert leaf(form, label) == states[label]
            due.add(label)
        else:
            assert shown(form, label) is None
            due |= {max((each for each in states if each < label), default=label)}
            due |= {min((each for each in states if each > label), default=label)}
            due.discard(label)
    assert labels_of(form) == sorted(due)


def test_labels_have_one_length_and_only_existing_ones_can_be_removed() -> None:
    tree = KeptTree()
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        tree.put(bytes(31), b"")
    with pytest.raises(KeyError):
        tree.remove(bytes(32))
    tree.put(bytes(32), b"")
    with pytest.raises(KeyError):
        tree.remove(b"\1" * 32)
    tree.remove(bytes(32))
    assert tree.witness([()])[0] == [0]
    # A label of another length is absent. One that equals it but for zeros is its neighbour.
    tree.put(b"a".ljust(32, b"\0"), b"")
    for label in (b"a", b"a".ljust(33, b"\0")):
        form, root = tree.witness([(label,)])
        assert labels_of(form) == [b"a".ljust(32, b"\0")]
        assert digest(form) == root
