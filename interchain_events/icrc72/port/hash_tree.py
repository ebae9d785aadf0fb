"""Hash trees, by which a certificate shows a part of a state and the root hash of the whole.

A state is a nested dictionary of labels and values. A form is its representation in certificates:

  [0]               an empty tree
  [1, a, b]         a fork
  [2, label, tree]  a labelled tree
  [3, value]        a leaf
  [4, hash]         a pruned tree, of which only the hash is shown
"""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Protocol, TypeAlias

State: TypeAlias = "Mapping[bytes, State] | Kept | bytes"
Form: TypeAlias = "list[int | bytes | Form]"
Path = tuple[bytes, ...]


class Kept(Protocol):
    """A part of a state that keeps its hashes, see `kept_tree`."""

    def witness(self, paths: Sequence[Path]) -> tuple[Form, bytes]:
        """Return the form that shows `paths` of the part, and the hash of the whole part."""


def witness(state: State, paths: Sequence[Path]) -> tuple[Form, bytes]:
    """Return the form that shows `paths` of a state, and the root hash of the whole state.

    The trees below the paths are shown whole. If a label does not exist, its neighbours in the
    order of labels are shown, which proves its absence.
    """
    if isinstance(state, bytes):
        return _kept([3, state], hash_of_node("leaf", state), shown=bool(paths))
    if not isinstance(state, Mapping):
        return state.witness(paths)
    whole = () in paths
    labels = sorted(state)
    wanted: dict[bytes, list[Path]] = {}
    for label, *rest in filter(None, paths):
        wanted.setdefault(label, []).append(tuple(rest))
    beside: set[bytes] = set()
    for absent in wanted.keys() - state.keys():
        beside.update(_neighbours(labels, absent))
    parts: list[tuple[Form, bytes]] = []
    for label in labels:
        form, inner = witness(state[label], [()] if whole else wanted.get(label, []))
        shown = whole or label in wanted or label in beside
        parts.append(_kept([2, label, form], hash_of_node("labeled", label + inner), shown=shown))
    if not parts:
        return _kept([0], hash_of_node("empty", b""), shown=bool(paths))
    return _kept(*_joined(parts), shown=bool(paths))


def _neighbours(labels: list[bytes], absent: bytes) -> list[bytes]:
    """Return the labels just before and after an absent one."""
    at = bisect(labels, absent)
    return labels[max(at - 1, 0) : at + 1]


def _joined(parts: list[tuple[Form, bytes]]) -> tuple[Form, bytes]:
    """Join labelled trees by a balanced tree of forks, and prune forks that show nothing."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    (left, first) = _joined(parts[:half])
    (right, second) = _joined(parts[half:])
    return _kept(
        [1, left, right], hash_of_node("fork", first + second), shown=(left[0], right[0]) != (4, 4)
    )


def _kept(form: Form, digest: bytes, *, shown: bool) -> tuple[Form, bytes]:
    """Return a form with its hash, pruned if it need not be shown."""
    return (form if shown else [4, digest]), digest


def digest(form: object) -> bytes:
    """Return the root hash of a form. Raises `ValueError` if it is malformed."""
    match form:
        case [0]:
            return hash_of_node("empty", b"")
        case [1, left, right]:
            return hash_of_node("fork", digest(left) + digest(right))
        case [2, bytes(label), tree]:
            return hash_of_node("labeled", label + digest(tree))
        case [3, bytes(value)]:
            return hash_of_node("leaf", value)
        case [4, bytes(pruned)] if len(pruned) == sha256().digest_size:
            return pruned
    raise ValueError("a part of a tree has an unknown form")


def shown(form: object, *path: bytes) -> object:
    """Return the form at a path, or `None` if it is absent or pruned."""
    match form:
        case [1, left, right] if path:
            return shown(left, *path) or shown(right, *path)
        case [2, label, tree] if path and label == path[0]:
            return shown(tree, *path[1:])
    return None if path else form


def leaves(form: object) -> Iterator[bytes]:
    """Yield the values that a form shows, in the order of their labels."""
    match form:
        case [1, left, right]:
            yield from leaves(left)
            yield from leaves(right)
        case [2, _, tree]:
            yield from leaves(tree)
        case [3, bytes(value)]:
            yield value


def leaf(form: object, *path: bytes) -> bytes | None:
    """Return the value at a path, or `None` if it is absent or pruned."""
    match shown(form, *path):
        case [3, bytes(value)]:
            return value
    return None


def hash_of_node(kind: str, data: bytes) -> bytes:
    """Return the hash of a node: `empty`, `fork`, `labeled` or `leaf`."""
    return sha256(separated(f"ic-hashtree-{kind}") + data).digest()


def separated(domain: str) -> bytes:
    """Return the prefix of messages that are hashed or signed for one purpose.

    It is the length of the name in one byte, and the name. It keeps a signature for one purpose
    from being valid for another.
    """
    return bytes([len(domain)]) + domain.encode()
