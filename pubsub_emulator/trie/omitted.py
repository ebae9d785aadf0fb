"""Proofs of trie-db's `generate_trie_proof`, which omit the values that the reader knows.

Nodes are in pre-order of the trie. The values of the read keys are left empty. In a branch, the
reference of every child that follows is left empty too. A child that is stored in its parent stays
there. The reader fills in the values that it expects and computes the root.

The answers are those of trie-db's `verify_proof`, also for proofs that no honest prover makes:

- A proof of no keys has no nodes.
- A node on the way to a key is never named by its hash. A value of a read key is never there.
- Bytes after a node's end do not matter, because the node is encoded anew.
- A child that no key needs stays as it is, even if its reference is empty or is no node.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.trie import codec
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.errors import (
    BadNode,
    ExtraneousValue,
    IncompleteProof,
    RootMismatch,
    UnusedNodes,
    ValueMismatch,
)

_HASH_LENGTH: Final = 32


def check_omitted(
    root: bytes, nodes: Iterable[bytes], reads: Mapping[bytes, bytes | None], version: int
) -> None:
    """Check that the trie `root` has these values, `None` for an absent key.

    `version` is the state version, 0 or 1. Raises `IncompleteProof`, `UnusedNodes`, `BadNode`,
    `ExtraneousValue`, and `ValueMismatch` or `RootMismatch` if the trie has other values.
    """
    proof = list(nodes)
    if not reads:
        if proof:
            raise UnusedNodes(len(proof))
        return
    reader = _Reader(proof, reads, codec.MAX_INLINE_VALUE[version])
    computed = reader.root()
    if reader.unused:
        raise UnusedNodes(reader.unused)
    if computed != root:
        raise RootMismatch(root, computed)


class _Open:
    """A node whose children are being read."""

    def __init__(self, node: bytes, path: str, *, inline: bool) -> None:
        """Decode `node`, which starts at the hex digits `path`.

        Raises `BadNode`.
        """
        parts = DecodedNode(node, to_end=False)
        self.path = path
        self.inline = inline
        """Whether the node is stored in its parent."""
        self.partial = parts.partial
        self._parts = parts
        self._value = node[parts.body_at + (2 if parts.bitmap else 0) : parts.value_end]
        self._kind = parts.kind
        self._references: list[bytes] = []
        """The finished references of the first children, each with its length."""

    def match(self, digits: str, key: bytes, value: bytes | None, max_inline: int) -> int | None:
        """Put in the value of `key`, whose `digits` begin with the path.

        Returns the index of the child on the way to the key, or `None` if the way ends here. Raises
        `ExtraneousValue` and `ValueMismatch`.
        """
        parts = self._parts
        at = len(self.path)
        end = at + len(self.partial)
        if not parts.kind or not digits.startswith(self.partial, at):
            place = None
        elif end == len(digits):
            if parts.value is not None if parts.bitmap else parts.value_at < parts.value_end:
                raise ExtraneousValue(key)
            if value is not None:
                self._put(value, max_inline)
            elif not parts.bitmap:
                raise ValueMismatch(key, is_absent=False)
            return None
        else:
            place = self._child_at(int(digits[end], 16))
        if place is None and value is not None:
            raise ValueMismatch(key, is_absent=True)
        return place

    def child(self, index: int) -> bytes:
        """Return the reference of a child. The children before it are finished.

        Raises `BadNode`.
        """
        self._finish(index)
        _, _, at, end = self._parts.children[index]
        return self._parts.node[at:end]

    def add(self, reference: bytes) -> None:
        """Add the reference of the next child."""
        self._references.append(reference)

    def encoded(self) -> bytes:
        """Return the whole node.

        Raises `BadNode`.
        """
        parts = self._parts
        if not parts.kind:
            return codec.EMPTY_NODE
        self._finish(len(parts.children))
        head = codec.node_head(self._kind, parts.nibbles)
        partial = parts.node[parts.partial_at : parts.body_at]
        bitmap = parts.node[parts.body_at : parts.body_at + 2] if parts.bitmap else b""
        return b"".join((head, partial, bitmap, self._value, *self._references))

    def _child_at(self, nibble: int) -> int | None:
        bitmap = self._parts.bitmap
        if not bitmap >> nibble & 1:
            return None
        return (bitmap & ((1 << nibble) - 1)).bit_count()

    def _finish(self, count: int) -> None:
        """Copy references until the first `count` children have theirs."""
        node = self._parts.node
        for _, start, at, end in self._parts.children[len(self._references) : count]:
            if end - at > _HASH_LENGTH:
                raise BadNode(b"", b"", b"", 0, f"an inline child of {end - at} bytes")
            self._references.append(node[start:end])

    def _put(self, value: bytes, max_inline: int) -> None:
        leaf = not self._parts.bitmap
        if len(value) > max_inline:
            self._kind = codec.HASHED_LEAF if leaf else codec.HASHED_BRANCH
            self._value = blake2_256(value)
        else:
            self._kind = codec.LEAF if leaf else codec.BRANCH_WITH_VALUE
            self._value = encode_bytes(value)


class _Reader:
    """One pass over the nodes of a proof and the keys, which are both in the order of the trie."""

    def __init__(
        self, proof: Sequence[bytes], reads: Mapping[bytes, bytes | None], max_inline: int
    ) -> None:
        self._proof = proof
        self._taken = 0
        self._reads = reads
        self._keys = sorted(reads, reverse=True)
        """The keys that are not read yet, the next one last."""
        self._max_inline = max_inline

    @property
    def unused(self) -> int:
        """Return the number of nodes that were not taken."""
        return len(self._proof) - self._taken

    def root(self) -> bytes:
        """Read all keys and return the hash of the root node.

        There is no recursion, since a path can be as long as a key.
        """
        stack: list[_Open] = []
        entry = self._next("")
        while True:
            below = self._descend(entry)
            if below is not None:
                stack.append(entry)
                entry = below
                continue
            node = entry.encoded()
            if entry.inline:
                if len(node) > _HASH_LENGTH:
                    raise BadNode(b"", b"", b"", 0, f"an inline child of {len(node)} bytes")
                reference = encode_compact(len(node)) + node
            else:
                name = blake2_256(node)
                if not stack:
                    return name
                reference = b"\x80" + name
            entry = stack.pop()
            entry.add(reference)

    def _descend(self, entry: _Open) -> _Open | None:
        """Read keys until one leads into a child of `entry`, and return the child.

        Returns `None` if no more keys begin with the path of `entry`.
        """
        while self._keys:
            key = self._keys[-1]
            digits = key.hex()
            if not digits.startswith(entry.path):
                return None
            index = entry.match(digits, key, self._reads[key], self._max_inline)
            if index is not None:
                path = digits[: len(entry.path) + len(entry.partial) + 1]
                reference = entry.child(index)
                if not reference:
                    return self._next(path)
                if len(reference) == _HASH_LENGTH:
                    raise IncompleteProof(f"the proof has no node on the way to 0x{digits}")
                return _Open(reference, path, inline=True)
            self._keys.pop()
        return None

    def _next(self, path: str) -> _Open:
        """Take the next node of the proof, which starts at `path`."""
        if not self.unused:
            raise IncompleteProof("the nodes end before the trie does")
        node = self._proof[self._taken]
        self._taken += 1
        return _Open(node, path, inline=False)
