"""The keys in which two tries differ.

Subtries that both share are skipped, so forks compare fast.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pubsub_emulator.trie.nibbles import shared_digits
from pubsub_emulator.trie.nodes import Node

Difference = tuple[bytes, bytes | None, bytes | None]


class _Side(NamedTuple):
    """A node of one trie with the unread rest of its partial key."""

    node: Node
    rest: str


def differences(a: Node | None, b: Node | None) -> Iterator[Difference]:
    """Yield every key whose value differs under two roots, ascending, with both values.

    A value is `None` if the trie lacks the key.
    """
    stack = [("", _side(a), _side(b))]
    while stack:
        path, mine, theirs = stack.pop()
        if _same(mine, theirs):
            continue
        shared = _shared(mine, theirs)
        path += shared
        mine = _past(mine, shared)
        theirs = _past(theirs, shared)
        left = _value(mine)
        right = _value(theirs)
        if left != right:
            yield bytes.fromhex(path), left, right
        below = _children(mine)
        others = _children(theirs)
        for nibble in range(15, -1, -1):
            child = below[nibble]
            other = others[nibble]
            if child is not other:
                stack.append((f"{path}{nibble:x}", _side(child), _side(other)))


_NONE: Final[tuple[None, ...]] = (None,) * 16


def _side(node: Node | _Side | None) -> _Side | None:
    return _Side(node, node.partial) if isinstance(node, Node) else node


def _same(mine: _Side | None, theirs: _Side | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    if mine.rest != theirs.rest:
        return False
    a, b = mine.node, theirs.node
    return a is b or (
        not a.stale and not b.stale and a.partial == b.partial and a.encoded == b.encoded
    )


def _shared(mine: _Side | None, theirs: _Side | None) -> str:
    """Return the nibbles that both sides share from here.

    If there is only one side, they are all nibbles that it has left.
    """
    if mine is None or theirs is None:
        side = mine or theirs
        return "" if side is None else side.rest
    return mine.rest[: shared_digits(mine.rest, theirs.rest, 0)]


def _past(side: _Side | None, shared: str) -> _Side | None:
    return None if side is None else _Side(side.node, side.rest[len(shared) :])


def _value(side: _Side | None) -> bytes | None:
    """Return the value at this place: the node's own if nothing of its partial key is left."""
    return None if side is None or side.rest else side.node.value


def _children(side: _Side | None) -> Sequence[Node | _Side | None]:
    """Return the next nodes by nibble.

    They are the children, or the node itself if some of its partial key is left.
    """
    if side is None:
        return _NONE
    if side.rest:
        out: list[Node | _Side | None] = [None] * 16
        out[int(side.rest[0], 16)] = _Side(side.node, side.rest[1:])
        return out
    return side.node.children or _NONE
