"""Compact proofs: the nodes of a proof without the hashes that follow from the other nodes.

Items are in pre-order of the trie. If the proof holds a child of a branch, the child's reference is
left empty (a Compact length of 0), and the child follows. If the proof holds the detached value of
a node, the item starts with 0x01 and has an empty value in place of the hash, and the value is the
next item.

After the top trie follow the child tries under `:child_storage:default:` that the proof holds, in
the order of their keys.

A node or value that occurs at several places is written at the first one. At the others its hash
stays, like the hash of a node that the proof does not hold. Only the root of a child trie is
written even if it was written before, because a trie's items begin with its root. sp-trie before
version 47 wrote a node at every place; `encode_compact` does so with `repeat_shared`. Decoding
takes both forms.

Places can multiply: sixty-five branches, each with sixteen times the same child, describe 16^65 of
them. Both directions therefore stop at a limit and do not rely on the proof's size.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT
from pubsub_emulator.trie import codec
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.errors import (
    BadNode,
    IncompleteProof,
    MissingNode,
    ProofTooLarge,
    RootMismatch,
    UnusedNodes,
)

DEFAULT_LIMIT: Final = 1 << 20


def encode_compact(
    root: bytes,
    nodes: Iterable[bytes],
    limit: int = DEFAULT_LIMIT,
    *,
    repeat_shared: bool = False,
) -> list[bytes]:
    """Convert the nodes of a proof to its compact form.

    A node or value that occurs at several places is written once, as by sp-trie from version 47 on,
    or with `repeat_shared` at every place, as by older versions.

    Raises `MissingNode` if the root's node is missing, `BadNode`, and `ProofTooLarge` if there are
    more than `limit` items.
    """
    found: dict[bytes, bytes] = {EMPTY_TRIE_ROOT: codec.EMPTY_NODE}
    found.update((blake2_256(node), node) for node in nodes)
    if root not in found:
        raise MissingNode(root, root, b"", 0)
    written = None if repeat_shared else _Written()
    items: list[bytes] = []
    _encode_trie(found, root, items, limit, written)
    for child_root in _child_roots(found, root, limit):
        if child_root in found:
            _encode_trie(found, child_root, items, limit, written)
    return items


def decode_compact(root: bytes, items: Iterable[bytes], limit: int = DEFAULT_LIMIT) -> list[bytes]:
    """Return the nodes and detached values that `items` describe, each once, in ascending order.

    Raises `BadNode`, `IncompleteProof` if the items end too early, `RootMismatch` if they are of
    another trie, `UnusedNodes` for items after the last child trie and for a trie that no child
    root names, and `ProofTooLarge` if the search for child roots takes more than `limit` steps.
    """
    waiting = list(items)
    waiting.reverse()
    found: dict[bytes, bytes] = {}
    top = _decode_trie(waiting, found)
    if top != root:
        raise RootMismatch(root, top)
    # The proof may have the root of a child trie without any of its nodes. So a decoded trie is
    # pending until the search finds its root.
    pending: bytes | None = None
    for child_root in _child_roots(found, root, limit):
        if pending is None and waiting:
            pending = _decode_trie(waiting, found)
        if child_root == pending:
            pending = None
    if pending is not None:
        raise UnusedNodes(1, (pending,))
    if waiting:
        raise UnusedNodes(len(waiting))
    return sorted(found.values())


def _parts(node: bytes, name: bytes, root: bytes) -> DecodedNode:
    try:
        parts = DecodedNode(node)
    except BadNode as error:
        raise error.placed(name, root) from None
    for _, _, start, end in parts.children:
        if end - start > 32:
            raise BadNode(name, root, b"", 0, f"an inline child of {end - start} bytes")
    return parts


@dataclass(frozen=True, slots=True)
class _Written:
    """The hashes of the nodes and values that were written.

    They are kept apart: a value can have the bytes of a node, but it has no nodes below it.
    """

    nodes: set[bytes] = field(default_factory=set)
    values: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A node on its way into an item."""

    node: bytes
    parts: DecodedNode
    value: bytes | None
    """The detached value, if it follows."""
    following: set[int] = field(default_factory=set)
    """The start of the reference of each child that follows."""

    def item(self) -> bytes:
        """Return the node without the references and the hash that follow from other items."""
        node = self.node
        parts = self.parts
        head = node[: parts.body_at]
        middle = node[parts.body_at : parts.value_end]
        if self.value is not None:
            kind = codec.LEAF if parts.kind == codec.HASHED_LEAF else codec.BRANCH_WITH_VALUE
            plain = codec.node_head(kind, parts.nibbles)
            head = bytes((codec.ESCAPE,)) + plain + node[parts.partial_at : parts.body_at]
            middle = node[parts.body_at : parts.value_at] + b"\x00"
        pieces = [head, middle]
        for _, start, _, end in parts.children:
            pieces.append(b"\x00" if start in self.following else node[start:end])
        return b"".join(pieces)


def _encode_trie(
    found: dict[bytes, bytes],
    root: bytes,
    items: list[bytes],
    limit: int,
    written: _Written | None,
) -> None:
    """Append the items of the trie `root`, whose node must be in `found`.

    Nodes and values in `written` are left out; `None` writes everything at each of its places.
    """
    entries: list[_Entry] = []
    room = limit - len(items)
    # A node's hash and its place in the node above it: the entry, and where its reference starts.
    waiting: list[tuple[bytes, _Entry | None, int]] = [(root, None, 0)]
    while waiting:
        name, above, reference_at = waiting.pop()
        if written is not None:
            # The root's item is the first one of a trie, so it is never left out.
            if above is not None and name in written.nodes:
                continue
            written.nodes.add(name)
        node = found[name]
        parts = _parts(node, name, root)
        value_hash = parts.value_hash
        value = None if value_hash is None else found.get(value_hash)
        if value is not None and value_hash is not None and written is not None:
            if value_hash in written.values:
                value = None
            written.values.add(value_hash)
        entry = _Entry(node, parts, value)
        entries.append(entry)
        if above is not None:
            above.following.add(reference_at)
        room -= 1 if value is None else 2
        if room < 0:
            raise ProofTooLarge(limit)
        for _, start, at, end in reversed(parts.children):
            child = node[at:end]
            if len(child) != 32:
                _check_inline(child, name, root)
            elif child in found:
                waiting.append((child, entry, start))
    for entry in entries:
        items.append(entry.item())
        if entry.value is not None:
            items.append(entry.value)


def _check_inline(node: bytes, name: bytes, root: bytes) -> None:
    """Check that an inline child of the node `name`, and its own inline children, are nodes.

    No node of fewer than 32 bytes refers to another one by hash. Raises `BadNode`.
    """
    waiting = [node]
    while waiting:
        inline = waiting.pop()
        parts = _parts(inline, name, root)
        waiting += [inline[at:end] for _, _, at, end in parts.children]


class _Open(NamedTuple):
    """A branch whose omitted children are being read."""

    head: bytes
    """The bytes before the references."""
    refs: list[bytes]
    """The references by child, each with its length."""
    omitted: list[int]
    """The positions in `refs` that are still missing, last one first."""


def _decode_trie(waiting: list[bytes], found: dict[bytes, bytes]) -> bytes:
    """Take the items of one trie from the end of `waiting` and return the trie's root.

    Its nodes are added to `found`.
    """
    stack: list[_Open] = []
    while waiting:
        entry = _decode_item(waiting, found)
        while not entry.omitted:
            node = entry.head + b"".join(entry.refs)
            name = blake2_256(node)
            found[name] = node
            if not stack:
                return name
            entry = stack.pop()
            entry.refs[entry.omitted.pop()] = b"\x80" + name
        stack.append(entry)
    raise IncompleteProof("the items end before the trie does")


def _decode_item(waiting: list[bytes], found: dict[bytes, bytes]) -> _Open:
    """Take one node from the end of `waiting`, with its detached value if that follows.

    A node whose value follows is turned into the node that names the value by its hash.
    """
    item = waiting.pop()
    attached = item[:1] == bytes((codec.ESCAPE,))
    node = item[1:] if attached else item
    parts = _parts(node, b"", b"")
    if attached:
        if (
            parts.kind not in {codec.LEAF, codec.BRANCH_WITH_VALUE}
            or parts.value_at != parts.value_end
        ):
            raise BadNode(
                b"", b"", b"", 0, "the node of an attached value has no empty value in its place"
            )
        if not waiting:
            raise IncompleteProof("the items end before an attached value")
        value = waiting.pop()
        name = blake2_256(value)
        found[name] = value
        head = (
            codec.node_head(
                codec.HASHED_LEAF if parts.kind == codec.LEAF else codec.HASHED_BRANCH,
                parts.nibbles,
            )
            + node[parts.partial_at : parts.body_at]
            + (b"" if parts.kind == codec.LEAF else node[parts.body_at : parts.body_at + 2])
            + name
        )
    else:
        head = node[: parts.value_end]
    refs = [node[start:end] for _, start, _, end in parts.children]
    omitted = [at for at, (_, _, start, end) in enumerate(parts.children) if start == end]
    omitted.reverse()
    return _Open(head, refs, omitted)


def _child_roots(found: dict[bytes, bytes], root: bytes, limit: int) -> list[bytes]:
    """Return the child roots among the top trie's nodes, by key.

    Raises `BadNode` for one that is not 32 bytes long.
    """
    prefix = CHILD_STORAGE_PREFIX.hex()
    out: list[bytes] = []
    # Only a path's length and its part within the prefix are stored: copying long paths would take
    # quadratic time.
    waiting: list[tuple[bytes, bytes | None, str, int]] = [(root, None, "", 0)]
    visits = 0
    while waiting:
        name, inline, path, depth = waiting.pop()
        node = found.get(name) if inline is None else inline
        if node is None:
            continue
        visits += 1
        if visits > limit:
            raise ProofTooLarge(limit)
        parts = _parts(node, name, root)
        if len(path) < len(prefix):
            path = (path + parts.partial)[: len(prefix)]
            if not prefix.startswith(path):
                continue
        depth += parts.nibbles
        value = parts.value
        if depth >= len(prefix) and value is not None:
            if parts.is_detached:
                value = found.get(value)
            if depth & 1:
                raise BadNode(name, root, CHILD_STORAGE_PREFIX, depth, "a value at half a byte")
            if value is not None:
                if len(value) != 32:
                    raise BadNode(
                        name,
                        root,
                        CHILD_STORAGE_PREFIX,
                        depth,
                        f"a child root of {len(value)} bytes",
                    )
                out.append(value)
        for nibble, _, at, end in reversed(parts.children):
            child = node[at:end]
            below = path if len(path) == len(prefix) else f"{path}{nibble:x}"
            waiting.append(
                (child, None, below, depth + 1)
                if len(child) == 32
                else (name, child, below, depth + 1)
            )
    return out
