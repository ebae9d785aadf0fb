"""Drawings of plain tries and proofs: what is in them, where it stands, how it is painted."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.explorer.svg import arrange, glyphs, packed, render
from pubsub_emulator.explorer.tree import Drawn, Fate, PlaceShape, draw_read, draw_trie
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie

# Short keys over few letters: splits within partial keys, keys that are prefixes, branches with
# values, shared leaves.
letters = st.sampled_from((0x00, 0x01, 0x10, 0x1F, 0xF0))
keys = st.lists(letters, min_size=1, max_size=4).map(bytes)
values = st.sampled_from((b"", b"v", b"w" * 31, b"x" * 33, b"y" * 200))
entries = st.dictionaries(keys, values, min_size=1, max_size=24)
some_keys = st.lists(keys, max_size=6)


def places(trees: list[Drawn]) -> list[Drawn]:
    return [place for tree in trees for place in tree.preorder()]


def drawn(trees: list[Drawn]) -> list[Hash]:
    """The hashes of nodes that are drawn, those of references alone and of second mentions left
    out.
    """
    aside = (PlaceShape.STUB, PlaceShape.AGAIN)
    return [
        place.hash for place in places(trees) if place.hash is not None and place.shape not in aside
    ]


def proof(trie: Trie, wanted: list[bytes]) -> dict[Hash, bytes]:
    nodes: dict[Hash, bytes] = {}
    trie.prove(wanted, nodes)
    return nodes


@given(entries, some_keys, some_keys)
def test_every_node_of_a_proof_is_drawn_once_in_its_readings_colour(
    held: dict[bytes, bytes], wanted: list[bytes], others: list[bytes]
) -> None:
    trie = Trie.from_entries(held.items())
    needed, nodes = proof(trie, wanted), proof(trie, [*wanted, *others])
    trees = draw_read(trie.root(), nodes.values(), wanted)
    assert sorted(drawn(trees)) == sorted(nodes)
    for place in places(trees):
        if place.hash in nodes and place.shape not in (PlaceShape.STUB, PlaceShape.AGAIN):
            # the root is always looked at, even where nothing is asked for
            expected = (
                Fate.PROVEN if place.hash in needed or place.hash == trie.root() else Fate.UNUSED
            )
            assert place.fate is expected


@given(entries, st.lists(keys, min_size=1, max_size=6), st.data())
def test_a_node_taken_out_is_missing(
    held: dict[bytes, bytes], wanted: list[bytes], data: st.DataObject
) -> None:
    trie = Trie.from_entries(held.items())
    nodes = proof(trie, wanted)
    gone = data.draw(st.sampled_from(sorted(nodes)))
    del nodes[gone]
    trees = draw_read(trie.root(), nodes.values(), wanted)
    assert {place.hash for place in places(trees) if place.fate is Fate.MISSING} == {gone}
    assert sorted(drawn(trees)) == sorted(nodes)


@given(entries)
def test_a_whole_trie_is_drawn_with_all_its_values(held: dict[bytes, bytes]) -> None:
    trie = Trie.from_entries(held.items())
    nodes = proof(trie, list(held))
    trees = draw_trie(trie.root(), nodes.values(), {key: f"key {key.hex()}" for key in held})
    assert sorted(drawn(trees)) == sorted(nodes)
    again = {place.path for place in places(trees) if place.shape is PlaceShape.AGAIN}
    named = [place.label for place in places(trees) if place.label]
    if not again:  # what is shared is drawn once, under the first of its keys
        assert sorted(named) == sorted(f"key {key.hex()}" for key in held)


@given(entries, some_keys)
def test_a_branch_has_a_cell_for_each_child_pruned_or_drawn(
    held: dict[bytes, bytes], wanted: list[bytes]
) -> None:
    trie = Trie.from_entries(held.items())
    for place in places(draw_read(trie.root(), proof(trie, wanted).values(), wanted)):
        if place.shape is not PlaceShape.BRANCH:
            continue
        below = {
            child.path[-1]: child
            for child in place.children
            if len(child.path) > len(place.path + place.partial)
        }
        for nibble, cell in zip("0123456789abcdef", place.cells, strict=True):
            child = below.get(nibble)
            assert cell in (".", Fate.PRUNED.value) if child is None else cell == child.fate.value


@given(entries, some_keys)
def test_absent_keys_are_told_where_they_are_proven_absent(
    held: dict[bytes, bytes], wanted: list[bytes]
) -> None:
    trie = Trie.from_entries(held.items())
    absent = {key for key in wanted if key not in held}
    told = 0
    for place in places(draw_read(trie.root(), proof(trie, wanted).values(), wanted)):
        if place.shape is PlaceShape.ABSENT:
            one = place.label.startswith("no ")
            told += 1 if one else int(place.label.split()[0])
    assert told == len(absent)


@st.composite
def hostile_proofs(draw: st.DrawFn) -> tuple[Hash, list[bytes]]:
    """Nodes that mean nothing, and nodes that refer to them; the last one is the root."""
    nodes = draw(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
    for _ in range(draw(st.integers(0, 6))):
        head = draw(
            st.sampled_from(
                (b"\x80", b"\xc0", b"\x10", b"\x81\x05", b"\x42\x11\x11", b"\x22\x11\x11")
            )
        )
        children = draw(st.lists(st.sampled_from(nodes), max_size=4))
        references = b"".join(b"\x80" + blake2_256(child) for child in children)
        bitmap = (
            ((1 << len(children)) - 1).to_bytes(2, "little") if head[0] not in (0x42, 0x22) else b""
        )
        nodes.append(head + bitmap + references + draw(st.binary(max_size=3)))
    return blake2_256(nodes[-1]), nodes


@given(hostile_proofs(), some_keys)
def test_nodes_that_mean_nothing_are_drawn_once_each(
    proof: tuple[Hash, list[bytes]], wanted: list[bytes]
) -> None:
    root, nodes = proof
    for trees in (draw_read(root, nodes, wanted), draw_trie(root, nodes)):
        assert sorted(drawn(trees)) == sorted({blake2_256(node) for node in nodes})
        render(arrange(trees))


@given(entries, some_keys)
def test_no_two_places_meet_and_lines_never_cross_places(
    held: dict[bytes, bytes], wanted: list[bytes]
) -> None:
    trie = Trie.from_entries(held.items())
    drawing = arrange(draw_read(trie.root(), proof(trie, wanted).values(), wanted))
    spots = {(each.column, each.row) for each in drawing.placed}
    assert len(spots) == len(drawing.placed)
    assert all(after.row - before.row in (0, 1) for before, after in pairwise(drawing.placed))
    for each in drawing.placed:
        if each.parent is not None:
            assert each.column == each.parent.column + 1
            assert all(
                (each.parent.column, row) not in spots
                for row in range(each.parent.row + 1, each.row + 1)
            )


@given(entries, some_keys)
def test_what_a_page_is_given_holds_the_whole_drawing(
    held: dict[bytes, bytes], wanted: list[bytes]
) -> None:
    trie = Trie.from_entries(held.items())
    drawing = arrange(draw_read(trie.root(), proof(trie, wanted).values(), wanted))
    given_out = packed(drawing)
    assert given_out["shapes"] == "".join(each.place.shape.value for each in drawing.placed)
    assert given_out["fates"] == "".join(each.place.fate.value for each in drawing.placed)
    assert [ord(letter) - 48 for letter in str(given_out["columns"])] == [
        each.column for each in drawing.placed
    ]
    assert str(given_out["fresh"]).count("1") == len(drawing.texts)


def test_a_drawing_that_stands_alone_brings_its_colours_and_escapes_its_words() -> None:
    trie = Trie.from_entries([(b"\x01", b"a"), (b"\x02", b"b")])
    hostile = '</text><script>alert("1")</script>&'
    svg = render(
        arrange(
            draw_trie(trie.root(), proof(trie, [b"\x01", b"\x02"]).values(), {b"\x01": hostile})
        )
    )
    assert "<script" not in svg
    assert "&lt;/text&gt;&lt;script&gt;" in svg
    assert "<style>" in svg
    assert set(re.findall(r"(?:href|src|url)\b", svg)) == set()


def test_every_shape_can_be_painted() -> None:
    shapes = glyphs()["shapes"]
    assert isinstance(shapes, dict)
    assert {*shapes, PlaceShape.BRANCH.value} == {shape.value for shape in PlaceShape}


def test_a_trie_of_endless_sharing_takes_the_time_of_its_nodes() -> None:
    """Sixteen references to one and the same node, forty levels deep: 16 to the 40 paths."""
    node = b"\x42\x11\x11\x84" + b"v" * 33
    nodes = [node]
    for _ in range(40):
        reference = b"\x80" + blake2_256(nodes[-1])
        nodes.append(b"\x80\xff\xff" + reference * 16)
    trees = draw_trie(blake2_256(nodes[-1]), nodes)
    assert len(drawn(trees)) == len(nodes)
    assert len(places(trees)) == 1 + 40 * 16
    assert len(
        places(draw_read(blake2_256(nodes[-1]), nodes, [b"\x11" * 21]))
    ) <= 1 + 41 * 16 + len(nodes)


def test_a_chain_deeper_than_python_recurses_is_drawn() -> None:
    trie = Trie.from_entries([(bytes(length), b"v" * 40) for length in range(1, 1500)])
    nodes = proof(trie, [bytes(1499)])
    assert len(drawn(draw_read(trie.root(), nodes.values(), [bytes(1499)]))) == len(nodes)
