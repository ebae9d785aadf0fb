"""A proof opened without knowing what it was made for: every entry and every node that its root leads to.

Each node is entered once for each place that refers to it, at most `_MOST_VISITS` in all.
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


class ProofError(PubsubError):
    """A proof that cannot be opened against its root."""


@dataclass(slots=True)
class Opened:
    """The entries below a root in a set of nodes."""

    entries: dict[bytes, bytes | None] = field(default_factory=dict)
    """Values by key; `None` if the value is detached and not in the proof."""
    reached: set[Hash] = field(default_factory=set)


def open_proof(root: Hash, nodes: Mapping[Hash, bytes]) -> Opened:
    """Every entry reachable from `root`. Raises `ProofError` when the root node is missing or a node is malformed."""
    out = Opened()
    if root not in nodes:
        raise ProofError(f"the node of the storage root {root.hex()} is not in the proof")
    stack: list[tuple[bytes, str]] = [(nodes[root], "")]
    out.reached.add(root)
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
                out.reached.add(detached)
        if node.value is not None:
            if len(path) & 1:
                raise ProofError(f"a key of half a byte: {path}")
            out.entries[bytes.fromhex(path)] = value
        for nibble, reference in node.references:
            child: bytes | None = reference
            if len(reference) == 32 and (child := nodes.get(Hash(reference))) is not None:
                out.reached.add(Hash(reference))
            if child is not None:
                stack.append((child, f"{path}{nibble:x}"))
    return out


def path_nodes(root: Hash, nodes: Mapping[Hash, bytes], key: bytes) -> tuple[dict[Hash, None], bool]:
    """Nodes, and detached value, on the path to `key`, and whether none is missing. Raises `ProofError`."""
    out: dict[Hash, None] = {}
    wanted, depth = root, 0
    while True:
        node = nodes.get(wanted)
        if node is None:
            return out, False
        out[wanted] = None
        kind, payload = INLINE, node
        while kind == INLINE:
            try:
                kind, payload, depth = step(payload, key, depth)
            except BadNode as error:
                raise ProofError(f"node {wanted.hex()}: {error.reason}") from None
        if kind == DETACHED:
            value_hash = Hash(payload)
            if value_hash in nodes:
                out[value_hash] = None
            return out, value_hash in nodes
        if kind != CHILD:
            return out, True
        wanted = Hash(payload)


def decode_node(raw: bytes) -> DecodedNode:
    """A node's parts. Raises `ProofError`."""
    try:
        return DecodedNode(raw)
    except BadNode as error:
        raise ProofError(f"not a trie node: {error.reason}") from None
