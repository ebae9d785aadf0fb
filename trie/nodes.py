"""The nodes of a trie in memory, and how those that changed become bytes.

A node belongs to the trie whose token it carries; any other trie that shares it copies it before writing. What a node
caches (`tail`, `encoded`, `ref`, and in a branch the references of its children) follows from its content alone, so a
trie may fill in the caches of a node that it does not own.
"""

from typing import Final

from primitives.scale import encode_compact
from trie.codec import (
    BITMAPS,
    BRANCH,
    BRANCH_HEADS,
    BRANCH_WITH_VALUE,
    BRANCH_WITH_VALUE_HEADS,
    HASHED_BRANCH,
    HASHED_BRANCH_HEADS,
    HASHED_LEAF,
    HASHED_LEAF_HEADS,
    INLINE_LENGTHS,
    LEAF,
    LEAF_HEADS,
    node_head,
    pack,
)
from trie.codec import new_hasher as _copy

NIBBLE: Final = {digit: value for value, digit in enumerate("0123456789abcdef")}
NO_REFS: Final = [b""] * 16


class Owner:
    """Identity of one trie between two forks."""

    __slots__ = ()


class Node:
    """A leaf (`children` is none) or a branch.

    partial   nibbles as hex digits
    value     none only in a branch
    tail      the value as it stands in the encoding: length and bytes, or its hash; empty until needed
    children  by nibble; `bitmap` has their bits
    refs      of the children: length and reference, as they stand in the encoding; b"" where there is no child
    dirty     bits of the children whose entry in `refs` is stale
    encoded   empty until needed
    ref       this node's entry in its parent's `refs`; empty while anything at or below it is unencoded
    """

    __slots__ = ("bitmap", "children", "dirty", "encoded", "owner", "partial", "ref", "refs", "tail", "value")

    def __init__(self, owner: Owner, partial: str, value: bytes | None) -> None:
        self.owner = owner
        self.partial = partial
        self.value = value
        self.tail = b""
        self.children: list[Node | None] | None = None
        self.refs: list[bytes] = NO_REFS
        self.bitmap = 0
        self.dirty = 0
        self.encoded = b""
        self.ref = b""

    def copy(self, owner: Owner, partial: str) -> "Node":
        """The same node for another owner or under another partial key, not yet encoded."""
        out = Node(owner, partial, self.value)
        out.tail = self.tail
        if self.children is not None:
            out.children = self.children.copy()
            out.refs = self.refs.copy()
            out.bitmap = self.bitmap
            out.dirty = self.dirty
        return out

    def set_value(self, value: bytes | None) -> None:
        """Replace the value."""
        self.value = value
        self.tail = b""

    def set_child(self, nibble: int, child: "Node") -> None:
        """Put `child` at `nibble`; a leaf becomes a branch."""
        children = self.children
        if children is None:
            children = self.children = [None] * 16
            self.refs = NO_REFS.copy()
        children[nibble] = child
        bit = 1 << nibble
        self.bitmap |= bit
        self.dirty |= bit

    def drop_child(self, nibble: int) -> None:
        """Remove the child at `nibble`; a branch without children becomes a leaf."""
        if self.children is None:
            return
        bit = 1 << nibble
        self.bitmap &= ~bit
        self.dirty &= ~bit
        self.children[nibble] = None
        self.refs[nibble] = b""
        if not self.bitmap:
            self.children = None
            self.refs = NO_REFS


def encode_dirty(root: Node, max_inline: int) -> None:
    """Encode `root` and everything unencoded below it, and fill in every reference.

    Parents are listed before their children and encoded in the opposite order, so depth costs no recursion.
    """
    nodes = [root]
    parents = [0]
    nibbles = [0]
    at = 0
    while at < len(nodes):
        node = nodes[at]
        dirty = node.dirty
        if dirty:
            children = node.children or []
            while dirty:
                bit = dirty & -dirty
                dirty ^= bit
                nibble = bit.bit_length() - 1
                child = children[nibble]
                if child is None:
                    continue
                if child.ref:
                    node.refs[nibble] = child.ref
                else:
                    nodes.append(child)
                    parents.append(at)
                    nibbles.append(nibble)
            node.dirty = 0
        at += 1
    for at in range(len(nodes) - 1, -1, -1):
        node = nodes[at]
        encoded = _encode(node, max_inline)
        node.encoded = encoded
        if len(encoded) < 32:
            ref = INLINE_LENGTHS[len(encoded)] + encoded
        else:
            hasher = _copy()
            hasher.update(encoded)
            ref = b"\x80" + hasher.digest()
        node.ref = ref
        if at:
            nodes[parents[at]].refs[nibbles[at]] = ref


def _encode(node: Node, max_inline: int) -> bytes:
    partial = node.partial
    count = len(partial)
    value = node.value
    tail = node.tail
    detached = value is not None and len(value) > max_inline
    if not tail and value is not None:
        if detached:
            hasher = _copy()
            hasher.update(value)
            tail = hasher.digest()
        else:
            tail = encode_compact(len(value)) + value
        node.tail = tail
    if node.children is None:
        if count < len(LEAF_HEADS):
            head = HASHED_LEAF_HEADS[count] if detached else LEAF_HEADS[count]
        else:
            head = node_head(HASHED_LEAF if detached else LEAF, count)
        return head + pack(partial) + tail
    if value is None:
        head = BRANCH_HEADS[count] if count < len(BRANCH_HEADS) else node_head(BRANCH, count)
    elif count >= len(BRANCH_HEADS):
        head = node_head(HASHED_BRANCH if detached else BRANCH_WITH_VALUE, count)
    else:
        head = HASHED_BRANCH_HEADS[count] if detached else BRANCH_WITH_VALUE_HEADS[count]
    if partial:
        head += pack(partial)
    return head + BITMAPS[node.bitmap] + tail + b"".join(node.refs)
