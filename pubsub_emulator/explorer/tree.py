"""The drawing of a trie: the nodes at hand, and the fate of every reference to one that is not.

A proof is a trie with most of it cut away. Each reference in it has one fate, and all but those that nobody asked for
become nodes of the drawing:

    STATIC      in the proof, for the keys that every parachain proves anyway        PS-44
    PROVEN      in the proof, on a path that was asked for
    UNUSED      in the proof, and the walk did not take it                          PS-52
    REMEMBERED  on a path that was asked for, and the parachain's own state vouches for it: unread, or read there
    WAITING     behind the place where the walk ended, in the proof or not
    MISSING     needed, and not there
    PRUNED      a hash, and nobody asked for what is below

Every node of a proof is drawn exactly once; a further reference to it is `Shape.AGAIN`.
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
    """The fate of a node; the value is its letter in drawings."""

    STATIC = "s"
    PROVEN = "p"
    UNUSED = "u"
    REMEMBERED = "r"
    WAITING = "w"
    MISSING = "m"
    PRUNED = "h"


_OFF_PATH: Final = (Fate.UNUSED, Fate.WAITING)
"""What a node of the proof may be that is on no requested path."""


class Shape(Enum):
    """The shape of a place in the drawing; the value is its letter in drawings."""

    BRANCH = "B"
    LEAF = "L"
    VALUE = "V"
    STUB = "S"
    """A reference whose node is not at hand."""
    AGAIN = "A"
    """A node that is drawn elsewhere."""
    ABSENT = "N"
    """Not a node: here it shows that keys are not in the trie."""
    EMPTY = "E"
    MALFORMED = "M"


@dataclass(slots=True)
class Drawn:
    """One place of a drawing.

    `hash` is none for inline nodes and for absences; `cells`, of a branch, are the letters of its sixteen children's
    fates, a dot where there is none; `path` are the nibbles, as hex digits, from its trie's root to where it starts.
    """

    shape: Shape
    fate: Fate
    hash: Hash | None = None
    data: bytes | None = None
    path: str = ""
    partial: str = ""
    cells: str = ""
    label: str = ""
    note: str = ""
    children: list["Drawn"] = field(default_factory=list)

    def preorder(self) -> Iterator["Drawn"]:
        """This place and all below it, parents first, children in order."""
        stack = [self]
        while stack:
            place = stack.pop()
            yield place
            stack.extend(reversed(place.children))


class Opened(NamedTuple):
    """A node taken apart; `value` is the value, or its hash when `detached`; children are (nibble, reference)."""

    kind: int
    partial: str
    value: bytes | None
    detached: bool
    children: tuple[tuple[int, bytes], ...]


@lru_cache(maxsize=1 << 15)
def open_node(node: bytes) -> Opened | None:
    """The parts of a node; `None` if it is malformed."""
    try:
        parts = DecodedNode(node)
    except BadNode:
        return None
    return Opened(parts.kind, parts.partial, parts.value, parts.is_detached, tuple(parts.references))


class Below(NamedTuple):
    """A trie whose root is a value in another one: a publisher's child trie. `unread` says why it stays closed."""

    query: "TreeQuery"
    unread: Fate | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """The keys asked of one trie, as ascending hex digits, and what is known of them.

    `labels` by key; `below` the tries whose roots are values of a key; `fate` says what became of the references on the
    way to the keys `[low, high)` whose nodes are not at hand; `everything` asks for all that is at hand.
    """

    keys: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    below: Mapping[str, Below] = field(default_factory=dict)
    fate: Callable[[bytes, int, int], Fate] = lambda _hash, _low, _high: Fate.MISSING
    everything: bool = False

    def label(self, key: str) -> str:
        """The name of a key."""
        return self.labels.get(key) or _short(key)


@dataclass(frozen=True, slots=True)
class Sources:
    """Nodes by hash: those of the proof, and those that the parachain's own state holds.

    `used` tells the fate of a node of the proof; none of it is unused unless it is told. `loose` draws nodes of the
    proof wherever they hang, asked for or not: where not all is known that was asked for.
    """

    proof: Mapping[Hash, bytes]
    own: Mapping[Hash, bytes] = field(default_factory=dict)
    used: Callable[[Hash], Fate] = lambda _hash: Fate.PROVEN
    loose: bool = False


class _Todo(NamedTuple):
    """A place whose node is to be opened; `low` and `high` bound the keys asked for on its path."""

    place: Drawn
    query: TreeQuery
    low: int
    high: int


class _Builder:
    """One drawing in the making. Depth costs no recursion: tries may be as deep as their keys are long."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.drawn: dict[bytes, None] = {}
        self.todo: list[_Todo] = []

    def run(self) -> None:
        """Open everything that is waiting, in preorder."""
        while self.todo:
            self.todo.extend(reversed(self.open(self.todo.pop())))

    def reference(self, reference: bytes, path: str, query: TreeQuery, low: int, high: int) -> Drawn | None:
        """The place of a referred node, none for one that nobody asked for and that is not at hand."""
        wanted = low < high or query.everything
        if len(reference) != _HASH:  # inline
            return Drawn(Shape.LEAF, Fate.PROVEN, None, reference, path) if wanted else None
        name = Hash(reference)
        fate = self.sources.used(name)
        node = self.sources.proof.get(name)
        if node is not None and (wanted or fate in _OFF_PATH or self.sources.loose):
            return Drawn(self.first(name), fate, name, node, path)
        if not wanted:
            return None
        node = self.sources.own.get(name)
        if node is not None:
            return Drawn(self.first(name), Fate.REMEMBERED, name, node, path)
        fate = query.fate(reference, low, high)
        if fate is Fate.PRUNED:
            return None
        return Drawn(Shape.STUB, fate, name, None, path, label=_count(query, low, high))

    def first(self, name: Hash) -> Shape:
        """`LEAF`, to be looked into, for a node that is not drawn yet."""
        if name in self.drawn:
            return Shape.AGAIN
        self.drawn[name] = None
        return Shape.LEAF

    def open(self, todo: _Todo) -> list[_Todo]:
        """Give a place its children; returns those that are to be opened next."""
        place, query, low, high = todo
        again = place.shape is Shape.AGAIN
        if place.data is None or (again and low == high):
            return []  # a node that is drawn elsewhere is followed for keys alone: a hostile proof may share endlessly
        node = open_node(place.data)
        if node is None:
            place.shape = Shape.AGAIN if again else Shape.MALFORMED
            return []
        if not again:
            place.shape = Shape.BRANCH if node.children else Shape.LEAF if node.kind else Shape.EMPTY
        place.partial = node.partial
        end = place.path + node.partial
        inside = bisect_left(query.keys, end, low, high)
        after = bisect_left(query.keys, end + "g", inside, high)
        gone = [query.label(key) for key in (*query.keys[low:inside], *query.keys[after:high])]
        out: list[_Todo] = []
        here = inside < after and query.keys[inside] == end
        if here and node.value is None:
            gone.append(query.label(end))
        if node.value is not None:
            out += self.value(place, node, end, query, inside if here else None)
        start = inside + here
        cells = ["."] * 16
        for nibble, reference in node.children:
            stop = bisect_left(query.keys, f"{end}{nibble:x}g", start, after)
            begin = bisect_left(query.keys, f"{end}{nibble:x}", start, stop)
            gone += [query.label(key) for key in query.keys[start:begin]]
            child = self.reference(reference, f"{end}{nibble:x}", query, begin, stop)
            start = stop
            cells[nibble] = Fate.PRUNED.value if child is None else child.fate.value
            if child is not None:
                if child.hash is None:
                    child.fate = place.fate
                place.children.append(child)
                out.append(_Todo(child, query, begin, stop))
        gone += [query.label(key) for key in query.keys[start:after]]
        if node.children:
            place.cells = "".join(cells)
        if gone:
            if not here:
                place.label = place.note = ""
            label = f"no {gone[0]}" if len(gone) == 1 else f"{len(gone)} keys absent"
            note = "" if len(gone) == 1 else ", ".join(gone[:3]) + (" …" if len(gone) > 3 else "")
            place.children.append(Drawn(Shape.ABSENT, place.fate, path=end, label=label, note=note))
        return out

    def value(self, place: Drawn, node: Opened, end: str, query: TreeQuery, at: int | None) -> list[_Todo]:
        """The value of the key that ends in this node; `at` is its index among those asked for."""
        value = node.value or b""
        wanted = at is not None or query.everything
        place.label = query.label(end) if wanted else _short(end)
        below = query.below.get(end) if at is not None else None
        if below is not None and len(value) == _HASH and not node.detached:
            return self.child_trie(place, value, below)
        if not node.detached:
            place.note = f"{len(value)} B"
            return []
        name = Hash(value)
        found = self.sources.proof.get(name)
        fate = self.sources.used(name)
        if found is not None and (wanted or fate in _OFF_PATH or self.sources.loose):
            shape = Shape.AGAIN if self.first(name) is Shape.AGAIN else Shape.VALUE
            place.children.append(Drawn(shape, fate, name, found, end, note=f"{len(found)} B"))
            return []
        fate = Fate.PRUNED if not wanted else Fate.MISSING if at is None else query.fate(value, at, at + 1)
        note = "value as delivered" if fate is Fate.REMEMBERED else "value"
        place.children.append(Drawn(Shape.STUB, fate, name, None, end, note=note))
        return []

    def child_trie(self, place: Drawn, root: bytes, below: Below) -> list[_Todo]:
        """The trie whose root this value is."""
        place.note = below.note
        query = below.query
        if root == EMPTY_TRIE_ROOT and root not in self.sources.proof:
            return []
        if below.unread is not None and root not in self.sources.proof:
            place.children.append(Drawn(Shape.STUB, below.unread, Hash(root), label=_count(query, 0, len(query.keys))))
            return []
        child = self.reference(root, "", query, 0, len(query.keys))
        if child is None:
            return []
        place.children.append(child)
        return [_Todo(child, query, 0, len(query.keys))]


def draw(root: Hash, query: TreeQuery, sources: Sources) -> list[Drawn]:
    """The trie under `root`, and after it the nodes of the proof that nothing in it leads to."""
    builder = _Builder(sources)
    out: list[Drawn] = []
    top = builder.reference(root, "", query, 0, max(len(query.keys), 1))
    if top is not None:
        out.append(top)
        builder.todo.append(_Todo(top, query, 0, len(query.keys)))
        builder.run()
    out += [_stray(name, node, sources.used(name)) for name, node in sources.proof.items() if name not in builder.drawn]
    return out


def _stray(name: Hash, node: bytes, fate: Fate) -> Drawn:
    """A node that nothing drawn refers to: it is not looked below."""
    fate = fate if fate is Fate.WAITING else Fate.UNUSED
    label = "not come to" if fate is Fate.WAITING else "nothing leads here"
    stray = Drawn(Shape.VALUE, fate, name, node, label=label, note=f"{len(node)} B")
    opened = open_node(node)
    if opened is not None:
        stray.shape = Shape.BRANCH if opened.children else Shape.LEAF
        stray.partial = opened.partial
        nibbles = [nibble for nibble, _ in opened.children]
        stray.cells = "".join(Fate.PRUNED.value if nibble in nibbles else "." for nibble in range(16))
    return stray


def draw_trie(root: Hash, nodes: Iterable[bytes], labels: Mapping[bytes, str] | None = None) -> list[Drawn]:
    """A trie of which `nodes` are at hand, all of them asked for; `labels` by key."""
    found = {blake2_256(node): node for node in nodes}
    named = {key.hex(): label for key, label in (labels or {}).items()}
    return draw(root, TreeQuery((), named, fate=lambda *_: Fate.PRUNED, everything=True), Sources(found))


def draw_read(root: Hash, nodes: Iterable[bytes], keys: Iterable[bytes]) -> list[Drawn]:
    """A proof that some keys of one trie are read from: what it lacks for that, and what it holds beside, shows."""
    found = {blake2_256(node): node for node in nodes}
    query = TreeQuery(tuple(sorted({key.hex() for key in keys})))
    read = draw(root, query, Sources(found))[:1]
    touched = frozenset(place.hash for tree in read for place in tree.preorder())
    used = Sources(found, used=lambda name: Fate.PROVEN if name in touched else Fate.UNUSED)
    return draw(root, query, used)


def _count(query: TreeQuery, low: int, high: int) -> str:
    high = min(high, len(query.keys))
    if high - low == 1:
        return query.label(query.keys[low])
    return f"{high - low} keys" if high > low else ""


def _short(digits: str) -> str:
    return f"0x{digits}" if len(digits) <= 16 else f"0x{digits[:8]}…{digits[-4:]}"
