"""A part of a state that keeps its hashes while it grows.

Certificates show the calls of users among those of strangers. If the tree of all calls were built
for each certificate, strangers could make every certificate slow. Here a call costs its own sender
some hashes, and a certificate only those on the paths that it shows.

The labels are hashes of 32 bytes. The tree forks at each bit in which labels differ, so its form
depends on the labels and not on the order in which they came. It is about as deep as the logarithm
of their number; a sender who wants a deeper one has to search for hashes that begin alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from interchain_events.icrc72.port.hash_tree import Form, Path, State, hash_of_node, witness

LENGTH: Final = 32
"""The bytes of a label."""


@dataclass(slots=True, eq=False)
class _Leaf:
    """A labelled tree with its hash."""

    label: bytes
    state: State
    digest: bytes


@dataclass(slots=True, eq=False)
class _Fork:
    """Two trees whose labels first differ in one bit, which is 0 in those on the left."""

    bit: int
    left: "_Leaf | _Fork"
    right: "_Leaf | _Fork"
    digest: bytes = b""

    def __post_init__(self) -> None:
        self.hash()

    def hash(self) -> None:
        """Compute the hash after a change of a side."""
        self.digest = hash_of_node("fork", self.left.digest + self.right.digest)


_Node = _Leaf | _Fork


class KeptTree:
    """A mapping of labels to states, which is a state itself."""

    def __init__(self) -> None:
        self._root: _Node | None = None

    def put(self, label: bytes, state: State) -> None:
        """Set the state at a label. Raises `ValueError` if the label does not have 32 bytes."""
        if len(label) != LENGTH:
            raise ValueError(f"a label has {LENGTH} bytes, not {len(label)}")
        _, inner = witness(state, [])
        leaf = _Leaf(label, state, hash_of_node("labeled", label + inner))
        if self._root is None:
            self._root = leaf
            return
        differs = _first_difference(label, self._nearest(self._root, label).label)
        path, node = self._descend(self._root, label, differs)
        if differs == LENGTH * 8:
            replaced: _Node = leaf
        elif _bit(label, differs):
            replaced = _Fork(differs, node, leaf)
        else:
            replaced = _Fork(differs, leaf, node)
        self._replace(path, label, replaced)

    def remove(self, label: bytes) -> None:
        """Remove a label. Raises `KeyError` if it does not exist."""
        root = self._root
        if root is None or self._nearest(root, label).label != label:
            raise KeyError(label)
        path, _ = self._descend(root, label, LENGTH * 8)
        if not path:
            self._root = None
            return
        parent = path.pop()
        self._replace(path, label, parent.left if _bit(label, parent.bit) else parent.right)

    def witness(self, paths: Sequence[Path]) -> tuple[Form, bytes]:
        """Return the form that shows `paths`, and the hash of the whole tree.

        It shows the same as `hash_tree.witness` does of a dictionary.
        """
        root = self._root
        if root is None:
            digest = hash_of_node("empty", b"")
            return ([0] if paths else [4, digest]), digest
        shown: dict[bytes, list[Path]] = {}
        if () in paths:
            shown = {leaf.label: [()] for leaf in _leaves(root)}
        else:
            absent: list[bytes] = []
            for label, *rest in paths:
                if len(label) == LENGTH and self._nearest(root, label).label == label:
                    shown.setdefault(label, []).append(tuple(rest))
                else:
                    absent.append(label)
            for label in absent:
                for beside in self._neighbours(root, label):
                    shown.setdefault(beside, [])
        return _form(root, shown), root.digest

    @staticmethod
    def _nearest(node: _Node, label: bytes) -> _Leaf:
        """Return the leaf that the bits of a label lead to."""
        while isinstance(node, _Fork):
            node = node.right if _bit(label, node.bit) else node.left
        return node

    @staticmethod
    def _descend(node: _Node, label: bytes, until: int) -> tuple[list[_Fork], _Node]:
        """Return the forks above the bit `until` on the way to a label, and the node below them."""
        path: list[_Fork] = []
        while isinstance(node, _Fork) and node.bit < until:
            path.append(node)
            node = node.right if _bit(label, node.bit) else node.left
        return path, node

    def _replace(self, path: list[_Fork], label: bytes, node: _Node) -> None:
        """Put a node below the last fork of a path, and compute the hashes above it."""
        for fork in reversed(path):
            if _bit(label, fork.bit):
                fork.right = node
            else:
                fork.left = node
            fork.hash()
            node = fork
        self._root = node

    def _neighbours(self, root: _Node, absent: bytes) -> list[bytes]:
        """Return the labels just before and after an absent one, if they exist.

        A label of another length is padded with zeros or cut off before it is compared. It may
        then equal a label that exists. That label is returned along with its neighbours.
        """
        label = absent[:LENGTH].ljust(LENGTH, b"\0")
        differs = _first_difference(label, self._nearest(root, label).label)
        path, node = self._descend(root, label, differs)
        labels: list[bytes] = []
        has_before = False
        has_after = False
        if differs == LENGTH * 8:
            labels.append(label)
        elif _bit(label, differs):
            labels.append(_last(node).label)
            has_before = True
        else:
            labels.append(_first(node).label)
            has_after = True
        # A neighbour that is not below this node is on the other side of the deepest fork where the
        # path took the other branch.
        for fork in reversed(path):
            if _bit(label, fork.bit):
                if not has_before:
                    labels.append(_last(fork.left).label)
                    has_before = True
            elif not has_after:
                labels.append(_first(fork.right).label)
                has_after = True
        return labels


def _bit(label: bytes, at: int) -> int:
    """Return a bit of a label, counted from its highest."""
    return label[at >> 3] >> (7 - (at & 7)) & 1


def _first_difference(one: bytes, other: bytes) -> int:
    """Return the first bit in which two labels differ, or their number of bits if they do not."""
    difference = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return LENGTH * 8 - difference.bit_length()


def _first(node: _Node) -> _Leaf:
    """Return the leaf with the lowest label."""
    while isinstance(node, _Fork):
        node = node.left
    return node


def _last(node: _Node) -> _Leaf:
    """Return the leaf with the highest label."""
    while isinstance(node, _Fork):
        node = node.right
    return node


def _leaves(root: _Node) -> list[_Leaf]:
    """Return all leaves."""
    leaves: list[_Leaf] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Fork):
            waiting += [node.left, node.right]
        else:
            leaves.append(node)
    return leaves


def _form(node: _Node, shown: dict[bytes, list[Path]]) -> Form:
    """Return the form of a tree (see `hash_tree`) that shows paths below some of its labels."""
    if not shown:
        return [4, node.digest]
    if isinstance(node, _Leaf):
        inner, _ = witness(node.state, shown[node.label])
        return [2, node.label, inner]
    left: dict[bytes, list[Path]] = {}
    right: dict[bytes, list[Path]] = {}
    for label, paths in shown.items():
        side = right if _bit(label, node.bit) else left
        side[label] = paths
    return [1, _form(node.left, left), _form(node.right, right)]
