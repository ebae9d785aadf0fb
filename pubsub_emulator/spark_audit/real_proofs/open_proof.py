"""The opening of a proof without knowing which keys it was made for.

The result is every entry and every node to which the root leads. A node that can be reached in
several ways is visited several times. The number of all visits is limited by `_MOST_VISITS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import BadNode
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.step import CHILD, DETACHED, INLINE, step

_MOST_VISITS: Final = 1 << 20
"""The maximum number of visits. A few nodes that refer to one another repeatedly could otherwise
stand for any number of entries."""


class ProofError(PubsubError):
    """A proof that cannot be opened from its root."""


@dataclass(slots=True)
class TrieContents:
    """The entries and nodes below a root."""

    entries: dict[bytes, bytes | None] = field(default_factory=dict)
    """Values by key, `None` if the value is detached and not in the proof."""
    reached: set[Hash] = field(default_factory=set)
    """Hashes of the nodes and detached values to which the root leads."""


def open_proof(root: Hash, nodes: Mapping[Hash, bytes]) -> TrieContents:
    """Return every entry and node that can be reached from `root`.

    Raises `ProofError` if the root's node is missing or a node is malformed.
    """
    opened = TrieContents()
    if root not in nodes:
        raise ProofError(f"the node of the storage root {root.hex()} is not in the proof")
    stack: list[tuple[bytes, str]] = [(nodes[root], "")]
    opened.reached.add(root)
    visits = 0
    while stack:
        visits += 1
        if visits > _MOST_VISITS:
            raise ProofError("the proof unfolds into too many nodes")
        raw, path = stack.pop()
        node = decode_node(raw)
        path += node.partial
        value = node.value
        detached = node.value_hash
        if detached is not None:
            value = nodes.get(detached)
            if value is not None:
                opened.reached.add(detached)
        if node.value is not None:
            if len(path) & 1:
                raise ProofError(f"a key of half a byte: {path}")
            opened.entries[bytes.fromhex(path)] = value
        for nibble, reference in node.references:
            # A reference is a hash of 32 bytes, or a shorter node itself.
            child: bytes | None = reference
            if len(reference) == 32:
                child = nodes.get(Hash(reference))
                if child is not None:
                    opened.reached.add(Hash(reference))
            if child is not None:
                stack.append((child, f"{path}{nibble:x}"))
    return opened


def path_nodes(
    root: Hash, nodes: Mapping[Hash, bytes], key: bytes
) -> tuple[dict[Hash, None], bool]:
    """Return the nodes on the way to a key, and whether the proof covers the key.

    The nodes include the detached value. The key is covered if no node on the way is missing,
    whether it has a value or not. Raises `ProofError` if a node is malformed.
    """
    path: dict[Hash, None] = {}
    current = root
    depth = 0
    while True:
        node = nodes.get(current)
        if node is None:
            return path, False
        path[current] = None
        kind = INLINE
        payload = node
        while kind == INLINE:
            try:
                kind, payload, depth = step(payload, key, depth)
            except BadNode as error:
                raise ProofError(f"node {current.hex()}: {error.reason}") from None
        if kind == DETACHED:
            value_hash = Hash(payload)
            if value_hash in nodes:
                path[value_hash] = None
            return path, value_hash in nodes
        if kind != CHILD:
            return path, True
        current = Hash(payload)


def decode_node(raw: bytes) -> DecodedNode:
    """Return the parts of a node. Raises `ProofError` if it is malformed."""
    try:
        return DecodedNode(raw)
    except BadNode as error:
        raise ProofError(f"not a trie node: {error.reason}") from None
