"""A state trie whose nodes are stored elsewhere and are fetched on demand.

`PartialTrie` does the work. `LazyTrie` requests a missing node by its place in the trie, because a
chain's node serves proofs of keys but not nodes by hash. Each fetched node was verified by its
hash, so the trie either has its first root or fails. It has the methods of `Trie` that states,
blocks and their readers use.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.partial import PartialNode, PartialTrie, Reference

MOST_LOADS: Final = 8 * 1_048_576
"""The maximum number of nodes that one walk visits.

References can repeat: sixteen references to one node make a walk sixteen times as long, on each
level.
"""


class StateUnavailable(PubsubError):
    """A part of a state cannot be fetched.

    This says nothing about the state itself.
    """

    is_infrastructure = True


class NodeFetcher(Protocol):
    """A source of the nodes of one trie."""

    def node(self, wanted: bytes, place: str, *, ahead: bool) -> bytes:
        """Return the node or value `wanted` at the hex digits `place`.

        `ahead` says that more nodes below will be read. Raises `StateUnavailable`.
        """


class LazyTrie(PartialTrie):
    """A trie with a root and a source of nodes.

    Every method may raise `StateUnavailable` and `BadNode`.
    """

    def __init__(self, root: Hash, source: NodeFetcher) -> None:
        super().__init__(root, lambda _wanted: None)
        self._source = source
        self._ahead = False
        self._loads = 0

    def fork(self) -> "LazyTrie":
        """Return a trie that is written separately from this one."""
        out = LazyTrie(self._first, self._source)
        out._root, out._seen = self._root, self._seen
        return out

    def items(
        self, prefix: bytes = b"", after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries as `Trie.items`; the next nodes are fetched in batches."""
        reader = self.fork()
        reader._ahead = True  # noqa: SLF001  # of its own kind
        return super(LazyTrie, reader).items(prefix, after)

    def _load(self, reference: Reference, digits: str, depth: int) -> PartialNode:
        node = super()._load(reference, digits, depth)
        self._loads += self._ahead
        if self._loads > MOST_LOADS:
            raise StateUnavailable(f"a walk of more than {MOST_LOADS:,} nodes")
        return node

    def _fetched(self, wanted: bytes, digits: str, depth: int) -> bytes:
        return self._source.node(wanted, digits[:depth], ahead=self._ahead)
