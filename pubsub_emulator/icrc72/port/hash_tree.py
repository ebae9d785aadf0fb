"""Hash trees: what a certificate shows of a state, and the hash of the whole.

A state is a labelled tree: a dictionary of labels, or a value. A form is what agents read: `[0]` is empty, `[1, a, b]`
a fork, `[2, label, tree]` labelled, `[3, value]` a leaf, `[4, hash]` pruned.
"""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

State: TypeAlias = "Mapping[bytes, State] | bytes"
Form: TypeAlias = "list[int | bytes | Form]"
Path = tuple[bytes, ...]


def witness(state: State, paths: Sequence[Path]) -> tuple[Form, bytes]:
    """What shows `paths` and all below each, or that there is nothing, and the hash of the whole state."""
    if isinstance(state, bytes):
        return _kept([3, state], _hash("leaf", state), shown=bool(paths))
    whole = () in paths
    labels = sorted(state)
    wanted: dict[bytes, list[Path]] = {}
    for label, *rest in filter(None, paths):
        wanted.setdefault(label, []).append(tuple(rest))
    beside = {near for each in wanted.keys() - state.keys() for near in _neighbours(labels, each)}
    parts: list[tuple[Form, bytes]] = []
    for label in labels:
        form, inner = witness(state[label], [()] if whole else wanted.get(label, []))
        shown = whole or label in wanted or label in beside
        parts.append(_kept([2, label, form], _hash("labeled", label + inner), shown=shown))
    if not parts:
        return _kept([0], _hash("empty", b""), shown=bool(paths))
    return _kept(*_joined(parts), shown=bool(paths))


def _neighbours(labels: list[bytes], absent: bytes) -> list[bytes]:
    at = bisect(labels, absent)
    return labels[max(at - 1, 0) : at + 1]


def _joined(parts: list[tuple[Form, bytes]]) -> tuple[Form, bytes]:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    (left, first), (right, second) = _joined(parts[:half]), _joined(parts[half:])
    return _kept([1, left, right], _hash("fork", first + second), shown=(left[0], right[0]) != (4, 4))


def _kept(form: Form, digest: bytes, *, shown: bool) -> tuple[Form, bytes]:
    return (form if shown else [4, digest]), digest


def digest(form: object) -> bytes:
    """The hash of the state that a form shows. Raises `ValueError` for what is no form."""
    match form:
        case [0]:
            return _hash("empty", b"")
        case [1, left, right]:
            return _hash("fork", digest(left) + digest(right))
        case [2, bytes(label), tree]:
            return _hash("labeled", label + digest(tree))
        case [3, bytes(value)]:
            return _hash("leaf", value)
        case [4, bytes(pruned)] if len(pruned) == sha256().digest_size:
            return pruned
    raise ValueError("a part of a tree is no form of one")


def shown(form: object, *path: bytes) -> object:
    """The form at a path; `None` where a form shows none."""
    match form:
        case [1, left, right] if path:
            return shown(left, *path) or shown(right, *path)
        case [2, label, tree] if path and label == path[0]:
            return shown(tree, *path[1:])
    return None if path else form


def leaves(form: object) -> Iterator[bytes]:
    """The values that a form shows, in the order of their labels."""
    match form:
        case [1, left, right]:
            yield from leaves(left)
            yield from leaves(right)
        case [2, _, tree]:
            yield from leaves(tree)
        case [3, bytes(value)]:
            yield value


def leaf(form: object, *path: bytes) -> bytes | None:
    """The value at a path; `None` where a form shows none."""
    match shown(form, *path):
        case [3, bytes(value)]:
            return value
    return None


def _hash(kind: str, data: bytes) -> bytes:
    return sha256(separated(f"ic-hashtree-{kind}") + data).digest()


def separated(domain: str) -> bytes:
    """The prefix of what is hashed or signed for one purpose: its length in a byte, and its name."""
    return bytes([len(domain)]) + domain.encode()
