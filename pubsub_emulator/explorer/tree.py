"""The drawing of a trie, with available nodes and with references to nodes that are not available.

A proof is a trie from which most nodes were removed. Each reference in it has one fate. References
become places of the drawing, but most `PRUNED` ones do not:

    STATIC      in the proof, for the keys that every parachain proves anyway        PS-44
    PROVEN      in the proof, on the path of a requested key
    UNUSED      in the proof, but not needed by the walk                             PS-52
    REMEMBERED  on the path of a requested key, but not in the proof: it did not change, or it is
                in the cache of the parachain's own state
    WAITING     behind the point at which the walk ended, in the proof or not
    MISSING     needed, but not in the proof
    PRUNED      not in the proof, and the keys below were not requested

Every node of a proof is drawn exactly once. A further reference to it is `PlaceShape.AGAIN`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import BadNode
from pubsub_emulator.trie.decoded import DecodedNode

_HASH: Final = 32


class Fate(Enum):
    """The fate of a node. The value is its letter in drawings."""

    STATIC = "s"
    """A node of the proof that the static keys need anyway."""
    PROVEN = "p"
    """A node of the proof that a requested key needs."""
    UNUSED = "u"
    """A node of the proof that no key needs."""
    REMEMBERED = "r"
    """A node that the walk did not need to read, or found in the cache."""
    WAITING = "w"
    """A node that the walk did not reach before it ended."""
    MISSING = "m"
    """A node that a key needs and the proof lacks."""
    PRUNED = "h"
    """A node that no requested key needs. Only its hash is drawn."""


_OFF_PATH: Final = (Fate.UNUSED, Fate.WAITING)
"""The possible fates of nodes of the proof that are not on a requested path."""


class PlaceShape(Enum):
    """The shape of a place in the drawing. The value is its letter in drawings."""

    BRANCH = "B"
    LEAF = "L"
    VALUE = "V"
    STUB = "S"
    """A reference whose node is not available."""
    AGAIN = "A"
    """A node that is drawn elsewhere."""
    ABSENT = "N"
    """Not a node, but a sign that keys are not in the trie."""
    EMPTY = "E"
    """The root of a trie without keys."""
    MALFORMED = "M"
    """Bytes that are not a node."""


@dataclass(slots=True)
class Drawn:
    """One place of a drawing."""

    shape: PlaceShape
    fate: Fate
    hash: Hash | None = None
    """The node's hash, or `None` for inline nodes and absent keys."""
    data: bytes | None = None
    """The node's bytes, if they are available."""
    path: str = ""
    """The nibbles from the trie's root to the beginning of the node, as hexadecimal digits."""
    partial: str = ""
    """The nibbles of the node's own partial key."""
    cells: str = ""
    """The letters of the fates of a branch's sixteen children, or a dot for no child."""
    label: str = ""
    """The name of the key."""
    note: str = ""
    """A fainter remark."""
    children: list["Drawn"] = field(default_factory=list)

    def preorder(self) -> Iterator["Drawn"]:
        """Yield this place and all below it, parents first and children in order."""
        stack = [self]
        while stack:
            place = stack.pop()
            yield place
            stack.extend(reversed(place.children))


class NodeParts(NamedTuple):
    """The parts of a node."""

    kind: int
    partial: str
    value: bytes | None
    """The value, or its hash if it is `detached`."""
    detached: bool
    children: tuple[tuple[int, bytes], ...]
    """Pairs of nibble and reference."""


@lru_cache(maxsize=1 << 15)
def open_node(node: bytes) -> NodeParts | None:
    """Return the parts of a node, or `None` if it is malformed."""
    try:
        parts = DecodedNode(node)
    except BadNode:
        return None
    return NodeParts(
        parts.kind,
        parts.partial,
        parts.value,
        detached=parts.is_detached,
        children=tuple(parts.references),
    )


class Below(NamedTuple):
    """A trie whose root is a value in another trie, such as a publisher's child trie."""

    query: "TreeQuery"
    unread: Fate | None = None
    """The fate of the root if the trie is not drawn."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """The requested keys of one trie, and their properties."""

    keys: tuple[str, ...]
    """The keys as hexadecimal digits, in ascending order."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names of keys."""
    below: Mapping[str, Below] = field(default_factory=dict)
    """The tries whose roots are values of keys."""
    fate: Callable[[bytes, int, int], Fate] = lambda _hash, _low, _high: Fate.MISSING
    """Returns the fate of a reference without its node, on the way to the keys `[low, high)`."""
    everything: bool = False
    """Whether all available nodes are drawn."""

    def label(self, key: str) -> str:
        """Return the name of a key."""
        return self.labels.get(key) or _short(key)


@dataclass(frozen=True, slots=True)
class Sources:
    """The available nodes by hash."""

    proof: Mapping[Hash, bytes]
    """The nodes of the proof."""
    own: Mapping[Hash, bytes] = field(default_factory=dict)
    """The nodes that the parachain's own state contains."""
    used: Callable[[Hash], Fate] = lambda _hash: Fate.PROVEN
    """Returns the fate of a node of the proof. By default, all are used."""
    loose: bool = False
    """Whether to draw nodes of the proof wherever they are referenced, even if they were not
    requested. Walks that ended early need this, because not all requested keys are known.
    """


class _Todo(NamedTuple):
    """A place whose node has to be opened."""

    place: Drawn
    query: TreeQuery
    low: int
    high: int
    """The end of the range of keys on its path, which begins at `low`."""


class _Builder:
    """A drawing that is being made.

    It uses a list of places instead of recursion, because tries can be as deep as their keys are
    long.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.drawn: dict[bytes, None] = {}
        """The hashes of nodes that are drawn already. The dictionary is an ordered set."""
        self.todo: list[_Todo] = []

    def run(self) -> None:
        """Open all places in `todo` and below them, in preorder."""
        while self.todo:
            self.todo.extend(reversed(self.open(self.todo.pop())))

    def reference(
        self, reference: bytes, path: str, query: TreeQuery, low: int, high: int
    ) -> Drawn | None:
        """Return the place of a referenced node.

        `reference` is a hash, or an inline node. `[low, high)` is the range of requested keys below
        it. Returns `None` if the range is empty and the node is not in the proof.
        """
        wanted = low < high or query.everything
        # A shorter reference is an inline node.
        if len(reference) != _HASH:
            return (
                Drawn(PlaceShape.LEAF, Fate.PROVEN, None, data=reference, path=path)
                if wanted
                else None
            )
        name = Hash(reference)
        fate = self.sources.used(name)
        node = self.sources.proof.get(name)
        if node is not None and (wanted or fate in _OFF_PATH or self.sources.loose):
            return Drawn(self.mark_drawn(name), fate, name, data=node, path=path)
        if not wanted:
            return None
        node = self.sources.own.get(name)
        if node is not None:
            return Drawn(self.mark_drawn(name), Fate.REMEMBERED, name, data=node, path=path)
        fate = query.fate(reference, low, high)
        if fate is Fate.PRUNED:
            return None
        return Drawn(
            PlaceShape.STUB, fate, name, data=None, path=path, label=_count(query, low, high)
        )

    def mark_drawn(self, name: Hash) -> PlaceShape:
        """Mark a node as drawn. Return `LEAF` if it was not drawn before, otherwise `AGAIN`.

        `open` replaces `LEAF` by the actual shape.
        """
        if name in self.drawn:
            return PlaceShape.AGAIN
        self.drawn[name] = None
        return PlaceShape.LEAF

    def open(self, todo: _Todo) -> list[_Todo]:
        """Add the children of a place, and return those that have to be opened next.

        Requested keys that are not in the trie become a child of shape `ABSENT`.
        """
        place, query, low, high = todo
        drawn_before = place.shape is PlaceShape.AGAIN
        if place.data is None or (drawn_before and low == high):
            # A node that is drawn elsewhere is only opened for requested keys. The nodes of a
            # hostile proof can refer to each other in such a way that the number of paths is huge.
            return []
        node = open_node(place.data)
        if node is None:
            place.shape = PlaceShape.AGAIN if drawn_before else PlaceShape.MALFORMED
            return []
        if not drawn_before:
            place.shape = _shape_of(node)
        place.partial = node.partial
        end = place.path + node.partial
        # Keys are sorted digits, and "g" follows all digits. The keys that begin with `end` are
        # therefore `[inside, after)`.
        inside = bisect_left(query.keys, end, low, high)
        after = bisect_left(query.keys, end + "g", inside, high)
        absent_labels = [
            query.label(key) for key in (*query.keys[low:inside], *query.keys[after:high])
        ]
        todo_next: list[_Todo] = []
        ends_here = inside < after and query.keys[inside] == end
        if ends_here and node.value is None:
            absent_labels.append(query.label(end))
        if node.value is not None:
            todo_next += self.value(
                place, node, end, query=query, index=inside if ends_here else None
            )
        # The key that ends in this node is the first one in the range.
        start = inside + 1 if ends_here else inside
        cells = ["."] * 16
        for nibble, reference in node.children:
            stop = bisect_left(query.keys, f"{end}{nibble:x}g", start, after)
            begin = bisect_left(query.keys, f"{end}{nibble:x}", start, stop)
            absent_labels += [query.label(key) for key in query.keys[start:begin]]
            child = self.reference(reference, f"{end}{nibble:x}", query, low=begin, high=stop)
            start = stop
            cells[nibble] = Fate.PRUNED.value if child is None else child.fate.value
            if child is not None:
                if child.hash is None:
                    child.fate = place.fate
                place.children.append(child)
                todo_next.append(_Todo(child, query, begin, high=stop))
        absent_labels += [query.label(key) for key in query.keys[start:after]]
        if node.children:
            place.cells = "".join(cells)
        if absent_labels:
            if not ends_here:
                place.label = place.note = ""
            label = (
                f"no {absent_labels[0]}"
                if len(absent_labels) == 1
                else f"{len(absent_labels)} keys absent"
            )
            note = "" if len(absent_labels) == 1 else _first_labels(absent_labels)
            place.children.append(
                Drawn(PlaceShape.ABSENT, place.fate, path=end, label=label, note=note)
            )
        return todo_next

    def value(
        self, place: Drawn, node: NodeParts, end: str, query: TreeQuery, index: int | None
    ) -> list[_Todo]:
        """Draw the value of the key that ends in this node.

        `index` is the key's index among the requested keys, `None` if it was not requested.
        """
        value = node.value or b""
        wanted = index is not None or query.everything
        place.label = query.label(end) if wanted else _short(end)
        below = query.below.get(end) if index is not None else None
        if below is not None and len(value) == _HASH and not node.detached:
            return self.child_trie(place, value, below)
        if not node.detached:
            place.note = f"{len(value)} B"
            return []
        name = Hash(value)
        data = self.sources.proof.get(name)
        fate = self.sources.used(name)
        if data is not None and (wanted or fate in _OFF_PATH or self.sources.loose):
            is_drawn = self.mark_drawn(name) is PlaceShape.AGAIN
            shape = PlaceShape.AGAIN if is_drawn else PlaceShape.VALUE
            place.children.append(
                Drawn(shape, fate, name, data=data, path=end, note=f"{len(data)} B")
            )
            return []
        if not wanted:
            fate = Fate.PRUNED
        elif index is None:
            fate = Fate.MISSING
        else:
            fate = query.fate(value, index, index + 1)
        note = "value as delivered" if fate is Fate.REMEMBERED else "value"
        place.children.append(Drawn(PlaceShape.STUB, fate, name, data=None, path=end, note=note))
        return []

    def child_trie(self, place: Drawn, root: bytes, below: Below) -> list[_Todo]:
        """Draw the trie whose root this value is.

        If the trie was not read, only its root is drawn. A root in the proof is drawn in any case,
        because all nodes of a proof are drawn.
        """
        place.note = below.note
        query = below.query
        if root == EMPTY_TRIE_ROOT and root not in self.sources.proof:
            return []
        if below.unread is not None and root not in self.sources.proof:
            place.children.append(
                Drawn(
                    PlaceShape.STUB,
                    below.unread,
                    Hash(root),
                    label=_count(query, 0, len(query.keys)),
                )
            )
            return []
        child = self.reference(root, "", query, low=0, high=len(query.keys))
        if child is None:
            return []
        place.children.append(child)
        return [_Todo(child, query, 0, high=len(query.keys))]


def draw(root: Hash, query: TreeQuery, sources: Sources) -> list[Drawn]:
    """Return the trie under `root`, followed by all unreferenced nodes of the proof."""
    builder = _Builder(sources)
    trees: list[Drawn] = []
    top = builder.reference(root, "", query, low=0, high=max(len(query.keys), 1))
    if top is not None:
        trees.append(top)
        builder.todo.append(_Todo(top, query, 0, high=len(query.keys)))
        builder.run()
    trees += [
        _stray(name, node, sources.used(name))
        for name, node in sources.proof.items()
        if name not in builder.drawn
    ]
    return trees


def _stray(name: Hash, node: bytes, fate: Fate) -> Drawn:
    """Return the place of an unreferenced node. The nodes below it are not drawn."""
    fate = fate if fate is Fate.WAITING else Fate.UNUSED
    label = "not reached" if fate is Fate.WAITING else "nothing leads here"
    stray = Drawn(PlaceShape.VALUE, fate, name, data=node, label=label, note=f"{len(node)} B")
    opened = open_node(node)
    if opened is not None:
        stray.shape = PlaceShape.BRANCH if opened.children else PlaceShape.LEAF
        stray.partial = opened.partial
        nibbles = [nibble for nibble, _ in opened.children]
        stray.cells = "".join(
            Fate.PRUNED.value if nibble in nibbles else "." for nibble in range(16)
        )
    return stray


def draw_trie(
    root: Hash, nodes: Iterable[bytes], labels: Mapping[bytes, str] | None = None
) -> list[Drawn]:
    """Draw a trie with all available `nodes`. `labels` has names of keys."""
    by_hash = {blake2_256(node): node for node in nodes}
    label_by_digits = {key.hex(): label for key, label in (labels or {}).items()}
    return draw(
        root,
        TreeQuery((), label_by_digits, fate=lambda *_: Fate.PRUNED, everything=True),
        Sources(by_hash),
    )


def _shape_of(node: NodeParts) -> PlaceShape:
    """Return the shape of a node that is drawn for the first time."""
    if node.children:
        return PlaceShape.BRANCH
    return PlaceShape.LEAF if node.kind else PlaceShape.EMPTY


def _first_labels(labels: list[str]) -> str:
    """Return at most three labels as text, and a mark if there are more."""
    shown = ", ".join(labels[:3])
    return f"{shown} …" if len(labels) > 3 else shown


def draw_read(root: Hash, nodes: Iterable[bytes], keys: Iterable[bytes]) -> list[Drawn]:
    """Draw a proof from which some keys of one trie are read.

    The drawing tells apart the nodes that the keys need, missing nodes and unused ones.
    """
    by_hash = {blake2_256(node): node for node in nodes}
    query = TreeQuery(tuple(sorted({key.hex() for key in keys})))
    first_drawing = draw(root, query, Sources(by_hash))[:1]
    # A first drawing finds out which nodes the keys need. All others are unused in the second one.
    touched: set[Hash | None] = set()
    for tree in first_drawing:
        touched.update(place.hash for place in tree.preorder())
    used = Sources(by_hash, used=lambda name: Fate.PROVEN if name in touched else Fate.UNUSED)
    return draw(root, query, used)


def _count(query: TreeQuery, low: int, high: int) -> str:
    """Return the label for the requested keys `[low, high)`: a single name, or their number."""
    high = min(high, len(query.keys))
    if high - low == 1:
        return query.label(query.keys[low])
    return f"{high - low} keys" if high > low else ""


def _short(digits: str) -> str:
    return f"0x{digits}" if len(digits) <= 16 else f"0x{digits[:8]}…{digits[-4:]}"
