"""Where two tries differ, without looking into what they share: forks of one trie differ in little."""

from collections.abc import Iterator
from typing import NamedTuple

from trie.nodes import Node

Difference = tuple[bytes, bytes | None, bytes | None]


class _Side(NamedTuple):
    """A node of one trie with what is left of its partial key."""

    node: Node
    rest: str


def differences(a: Node | None, b: Node | None) -> Iterator[Difference]:
    """Every key under two roots that is held differently, ascending, with both values; none where there is none."""
    stack = [("", _side(a), _side(b))]
    while stack:
        path, mine, theirs = stack.pop()
        if _same(mine, theirs):
            continue
        shared = _shared(mine, theirs)
        path += shared
        mine, theirs = _past(mine, shared), _past(theirs, shared)
        left, right = _value(mine), _value(theirs)
        if left != right:
            yield bytes.fromhex(path), left, right
        for nibble in "fedcba9876543210":
            below, other = _child(mine, nibble), _child(theirs, nibble)
            if below is not None or other is not None:
                stack.append((path + nibble, below, other))


def _side(node: Node | None) -> _Side | None:
    return None if node is None else _Side(node, node.partial)


def _same(mine: _Side | None, theirs: _Side | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    if mine.rest != theirs.rest:
        return False
    a, b = mine.node, theirs.node
    return a is b or (not a.stale and not b.stale and a.partial == b.partial and a.encoded == b.encoded)


def _shared(mine: _Side | None, theirs: _Side | None) -> str:
    """The nibbles that both go on with; all that is left where there is one side only."""
    if mine is None or theirs is None:
        side = mine or theirs
        return "" if side is None else side.rest
    count = 0
    for x, y in zip(mine.rest, theirs.rest, strict=False):
        if x != y:
            break
        count += 1
    return mine.rest[:count]


def _past(side: _Side | None, shared: str) -> _Side | None:
    return None if side is None else _Side(side.node, side.rest[len(shared) :])


def _value(side: _Side | None) -> bytes | None:
    """The value right here: a node's own where nothing of its partial key is left."""
    return None if side is None or side.rest else side.node.value


def _child(side: _Side | None, nibble: str) -> _Side | None:
    """What goes on with `nibble` from here: the rest of the node itself, or one of its children."""
    if side is None:
        return None
    if side.rest:
        return _Side(side.node, side.rest[1:]) if side.rest[0] == nibble else None
    children = side.node.children
    return None if children is None else _side(children[int(nibble, 16)])
