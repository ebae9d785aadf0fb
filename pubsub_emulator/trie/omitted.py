"""Proofs of trie-db's `generate_trie_proof`, which omit the values that the reader knows.

Nodes are in pre-order of the trie. The values of the read keys are left empty. In a branch, the
reference of every child that follows is left empty too. The reader fills in the values that it
expects and computes the root.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.trie import codec
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.errors import BadNode, IncompleteProof, RootMismatch, UnusedNodes

_DEEPEST: Final = 600
"""The nibbles of the longest key that is followed."""


def check_omitted(
    root: bytes, nodes: Iterable[bytes], reads: Mapping[bytes, bytes | None], version: int
) -> None:
    """Check that the trie `root` has these values, `None` for an absent key.

    Raises `BadNode`, `IncompleteProof`, `UnusedNodes`, and `RootMismatch` if a value differs.
    """
    reader = _Reader(nodes, reads, version)
    found = reader.reference("")
    if reader.waiting:
        raise UnusedNodes(len(reader.waiting))
    name = found[1:] if found[:1] == b"\x80" else blake2_256(found[1:])
    if name != root or reader.unread:
        raise RootMismatch(root, name)


class _Reader:
    def __init__(
        self, nodes: Iterable[bytes], reads: Mapping[bytes, bytes | None], version: int
    ) -> None:
        self.waiting = [*nodes][::-1]
        self._reads = {key.hex(): value for key, value in reads.items()}
        self.unread = {key for key, value in self._reads.items() if value is not None}
        """The keys with a value that the proof has not used so far."""
        self._paths = sorted(self._reads)
        self._most = codec.MAX_INLINE_VALUE[version]

    def reference(self, path: str) -> bytes:
        """Return the reference of the next node, which is at `path`.

        The reference is the length, followed by the node's hash or the node itself.
        """
        if len(path) > _DEEPEST:
            raise BadNode(b"", b"", b"", 0, "a path longer than any key")
        if not self.waiting:
            raise IncompleteProof("the nodes end before the trie does")
        return _reference(self._restored(self.waiting.pop(), path))

    def _restored(self, node: bytes, path: str) -> bytes:
        """Return a node with its value and the references of its children."""
        if node == codec.EMPTY_NODE:
            return node
        parts = DecodedNode(node)
        path += parts.partial
        kind, value = parts.kind, node[parts.body_at + (2 if parts.bitmap else 0) : parts.value_end]
        known = self._reads.get(path)
        if known is None and path in self._reads and parts.value is not None:
            raise BadNode(b"", b"", b"", 0, f"0x{path} has a value")
        if known is not None and parts.value_at == parts.value_end:
            self.unread.discard(path)
            is_leaf = not parts.bitmap
            if len(known) > self._most:
                kind, value = (
                    codec.HASHED_LEAF if is_leaf else codec.HASHED_BRANCH,
                    blake2_256(known),
                )
            else:
                kind, value = (
                    codec.LEAF if is_leaf else codec.BRANCH_WITH_VALUE,
                    encode_compact(len(known)) + known,
                )
        bitmap = node[parts.body_at : parts.body_at + 2] if parts.bitmap else b""
        head = (
            codec.node_head(kind, parts.nibbles)
            + node[parts.partial_at : parts.body_at]
            + bitmap
            + value
        )
        return head + b"".join(
            self._child(child, f"{path}{nibble:x}") for nibble, child in parts.references
        )

    def _child(self, child: bytes, path: str) -> bytes:
        if not child:
            return self.reference(path)
        if len(child) < 32:
            return _reference(self._restored(child, path))
        at = bisect_left(self._paths, path)
        if at < len(self._paths) and self._paths[at].startswith(path):
            raise IncompleteProof(f"the proof has no node on the way to 0x{self._paths[at]}")
        return b"\x80" + child


def _reference(node: bytes) -> bytes:
    return b"\x80" + blake2_256(node) if len(node) >= 32 else encode_compact(len(node)) + node
