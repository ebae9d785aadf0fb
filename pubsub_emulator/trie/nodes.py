"""The nodes of a trie in memory, and the encoding of changed nodes.

A node belongs to the trie whose token it carries. Any other trie that shares it copies it before
writing. The caches of a node (`tail` and `encoded`) follow from its content alone, so a trie may
fill in the caches of a node that belongs to another trie.

A branch that changes keeps its last encoding, and with it the references of the unchanged children;
only new hashes are put into it. If the sixteen references were separate objects, each copy of a
branch would have to touch them all, at one cache line each.
"""

from typing import Final

from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.trie.codec import (
    BRANCH,
    BRANCH_WITH_VALUE,
    CHILDREN,
    HASHED_BRANCH,
    HASHED_LEAF,
    HASHED_LEAF_HEADS,
    INLINE_LENGTHS,
    LEAF,
    LEAF_HEADS,
    digest_of,
    feed,
    new_hasher,
    node_head,
    pack,
)

NIBBLE: Final = {digit: value for value, digit in enumerate("0123456789abcdef")}


class Owner:
    """The identity of one trie between two forks."""

    __slots__ = ()


class Node:
    """A leaf (`children` is `None`) or a branch.

    partial   nibbles as hex digits
    value     `None` only in a branch
    tail      the encoded value: length and bytes, or its hash; empty until needed
    children  by nibble; `bits` says which nibbles have a child
    dirty     bits of the children whose reference in `encoded` is missing or old
    stale     whether anything at or below this node changed since `encoded` was made
    encoded   the last encoding: a branch's has references of the children in `shape`, a leaf's may
              have an old value
    refs      where in `encoded` the references (a leaf: the value) begin; zero or negative if a
              reference is inline or if something before them has changed
    """

    __slots__ = (
        "bits",
        "children",
        "dirty",
        "encoded",
        "owner",
        "partial",
        "refs",
        "shape",
        "stale",
        "tail",
        "value",
    )

    def __init__(self, owner: Owner, partial: str, value: bytes | None, tail: bytes = b"") -> None:
        self.owner = owner
        self.partial = partial
        self.value = value
        self.tail = tail
        self.stale = True
        self.encoded = b""
        self.children: list[Node | None] | None = None
        self.bits = 0
        self.dirty = 0
        self.refs = 0
        self.shape = 0

    def copy(self, owner: Owner) -> "Node":
        """Return the same node for another owner, marked as stale."""
        out = Node(owner, self.partial, self.value, self.tail)
        children = self.children
        if children is not None:
            out.children = children.copy()
            out.bits = self.bits
            out.dirty = self.dirty
            out.encoded = self.encoded
            out.refs = self.refs
            out.shape = self.shape
        return out

    def with_value(self, owner: Owner, value: bytes) -> "Node":
        """Return the same leaf with another owner and value, marked as stale."""
        out = Node(owner, self.partial, value)
        out.encoded = self.encoded
        out.refs = self.refs
        return out

    def set_partial(self, partial: str) -> None:
        """Replace the partial key."""
        self.partial = partial
        self.refs = -abs(self.refs)

    def set_value(self, value: bytes | None) -> None:
        """Replace the value."""
        self.value = value
        self.tail = b""
        self.refs = -abs(self.refs)

    def set_child(self, nibble: int, child: "Node") -> None:
        """Put `child` at `nibble`; a leaf becomes a branch."""
        children = self.children
        if children is None:
            children = self.children = [None] * 16
            self.shape = 0
        children[nibble] = child
        bit = 1 << nibble
        self.dirty |= bit
        if not self.bits & bit:
            self.bits |= bit
            self.refs = -abs(self.refs)

    def drop_child(self, nibble: int) -> None:
        """Remove the child at `nibble`; a branch without children becomes a leaf."""
        if self.children is None:
            return
        self.bits &= ~(1 << nibble)
        self.refs = -abs(self.refs)
        self.children[nibble] = None
        if not self.bits:
            self.children = None

    def child_hash(self, nibble: int) -> bytes:
        """Return the hash of the child at `nibble`, which must be there, encoded and not inline."""
        below = CHILDREN[self.shape & ((1 << nibble) - 1)]
        encoded = self.encoded
        pos = self.refs
        if pos > 0:
            pos += 33 * below
        else:
            pos = -pos
            for _ in range(below):
                pos += 1 + (encoded[pos] >> 2)
        return encoded[pos + 1 : pos + 33]


def encode_stale(root: Node, max_inline: int) -> None:
    """Encode all stale nodes from `root` on.

    The nodes are listed from the top and then encoded from the bottom, without recursion, because a
    path may be thousands of nodes long.
    """
    branches = [root] if root.children is not None else []
    # A branch, a changed child, and the index of the child's hash in the branch's encoding. The
    # index is 0 if the branch has to be encoded anew.
    steps: list[tuple[Node, Node, int]] = [(root, root, 0)]
    for node in branches:
        dirty = node.dirty
        children = node.children or []
        bitmap = node.bits
        first = node.refs + 1
        while dirty:
            bit = dirty & -dirty
            dirty ^= bit
            child = children[bit.bit_length() - 1]
            if child is None:
                continue
            steps.append(
                (node, child, first + 33 * CHILDREN[bitmap & (bit - 1)] if first > 1 else 0)
            )
            if child.stale and child.children is not None:
                branches.append(child)
    fresh, update, digest = new_hasher, feed, digest_of
    for node, child, at in reversed(steps):
        if child.stale:
            if child.children is None:
                encode_leaf(child, max_inline)
            elif child.refs > 0:
                child.dirty = 0
                child.stale = False
            else:
                encode_branch(child, max_inline)
        if at:
            below = child.encoded
            if len(below) < 32:
                node.refs = -abs(node.refs)
                continue
            hasher = fresh()
            update(hasher, below)
            encoded = node.encoded
            node.encoded = encoded[:at] + digest(hasher) + encoded[at + 32 :]


def encode_branch(node: Node, max_inline: int) -> None:
    """Encode a branch whose child branches are encoded."""
    partial = node.partial
    value = node.value
    bitmap = node.bits
    if value is None:
        kind = BRANCH
        tail = b""
    else:
        kind = HASHED_BRANCH if len(value) > max_inline else BRANCH_WITH_VALUE
        tail = node.tail or _store_value(node, max_inline)
    if partial:
        head = node_head(kind, len(partial)) + pack(partial) + bitmap.to_bytes(2, "little") + tail
    else:
        head = (bitmap << 8 | kind).to_bytes(3, "little") + tail

    old = node.encoded
    at = abs(node.refs)
    shape = node.shape
    dirty = node.dirty
    children = node.children or []
    if len(old) == at + 33 * CHILDREN[shape]:
        pieces = _replaced_hashes(node, old[at:], max_inline)
    else:
        pieces = []
        left = shape | bitmap
        while left:
            bit = left & -left
            left ^= bit
            start = at
            if shape & bit:
                at += 1 + (old[at] >> 2)
            if dirty & bitmap & bit:
                pieces.append(_reference(children[bit.bit_length() - 1], max_inline))
            elif bitmap & bit:
                pieces.append(old[start:at])
    references = b"".join(pieces)
    node.encoded = head + references
    # An inline reference is shorter than a hash with its length byte. So if the references have the
    # greatest possible length, all of them are hashes.
    hashes_only = len(references) == 33 * CHILDREN[bitmap]
    node.refs = len(head) if hashes_only else -len(head)
    node.shape = bitmap
    node.dirty = 0
    node.stale = False


def _replaced_hashes(node: Node, hashes: bytes, max_inline: int) -> list[bytes]:
    """Return the references of a branch in pieces, given those of its last encoding.

    All of the old ones are hashes. Those that stay between two changes are one piece.
    """
    children = node.children or []
    shape = node.shape
    bitmap = node.bits
    pieces: list[bytes] = []
    copied = 0
    changed = (node.dirty & bitmap) | (shape ^ bitmap)
    while changed:
        bit = changed & -changed
        changed ^= bit
        start = 33 * CHILDREN[shape & (bit - 1)]
        pieces.append(hashes[copied:start])
        copied = start + 33 if shape & bit else start
        if bitmap & bit:
            pieces.append(_reference(children[bit.bit_length() - 1], max_inline))
    pieces.append(hashes[copied:])
    return pieces


def _reference(node: Node | None, max_inline: int) -> bytes:
    """Return the length and reference of a child.

    A leaf that is stale is encoded first.
    """
    if node is None:
        return b""
    if node.stale:
        encode_leaf(node, max_inline)
    encoded = node.encoded
    if len(encoded) < 32:
        return INLINE_LENGTHS[len(encoded)] + encoded
    hasher = new_hasher()
    feed(hasher, encoded)
    return b"\x80" + digest_of(hasher)


def encode_leaf(node: Node, max_inline: int) -> None:
    """Encode a leaf."""
    detached = len(node.value or b"") > max_inline
    tail = node.tail or _store_value(node, max_inline)
    at = node.refs
    old = node.encoded
    if at > 0 and (old[0] < LEAF) == detached:
        node.encoded = old[:at] + tail
    else:
        partial = node.partial
        count = len(partial)
        kind, heads = (HASHED_LEAF, HASHED_LEAF_HEADS) if detached else (LEAF, LEAF_HEADS)
        head = (heads[count] if count < len(heads) else node_head(kind, count)) + pack(partial)
        node.encoded = head + tail
        node.refs = len(head)
    node.stale = False


def with_encoded_value(leaf: Node, owner: Owner, value: bytes, max_inline: int) -> Node:
    """Return the same leaf with another owner and value, encoded."""
    at = leaf.refs
    old = leaf.encoded
    node = Node(owner, leaf.partial, value)
    if at > 0 and (old[0] < LEAF) == (len(value) > max_inline):
        # The header and the partial key stay, as in `encode_leaf`.
        node.encoded = old[:at] + _store_value(node, max_inline)
        node.refs = at
        node.stale = False
    else:
        encode_leaf(node, max_inline)
    return node


def _store_value(node: Node, max_inline: int) -> bytes:
    """Fill in the `tail` of a node with a value."""
    value = node.value or b""
    if len(value) > max_inline:
        hasher = new_hasher()
        feed(hasher, value)
        tail = digest_of(hasher)
    else:
        tail = (
            INLINE_LENGTHS[len(value)] + value
            if len(value) < len(INLINE_LENGTHS)
            else encode_bytes(value)
        )
    node.tail = tail
    return tail
