"""A state trie whose nodes lie elsewhere and are fetched when something first needs them.

`PartialTrie` does the work; here a node that is not at hand is asked for by its place in the trie, since a chain's node
tells proofs of keys and no nodes by hash. What is handed back was held against its hash, so a fetched trie has the root
it was begun with or fails. It has the methods of `Trie` that states, blocks and their readers use.
"""

from collections.abc import Iterator
from typing import Protocol

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.codec import MAX_INLINE_VALUE
from pubsub_emulator.trie.difference import Difference
from pubsub_emulator.trie.partial import Far, PartialNode, PartialTrie, Reference, encode


class StateUnavailable(PubsubError):
    """A part of a state that is fetched by need cannot be had. Nothing about the state follows from it."""

    of_the_machine = True


class NodeSource(Protocol):
    """Where the nodes of one trie come from."""

    def node(self, wanted: bytes, place: str, *, ahead: bool) -> bytes:
        """The node or detached value with the hash `wanted`, which is at `place`, in hex digits from the root.

        `ahead` says that what follows `place` will be read too. Raises `StateUnavailable`.
        """


class LazyTrie(PartialTrie):
    """A trie of layout version 1 with a root and a source. Everything may raise `StateUnavailable`, `BadNode`."""

    __slots__ = ("_ahead", "_source")

    version = 1

    def __init__(self, root: Hash, source: NodeSource) -> None:
        super().__init__(root, lambda _wanted: None)
        self._source = source
        self._ahead = False

    def fork(self) -> "LazyTrie":
        """A trie that is written apart from this one."""
        out = LazyTrie(self._first, self._source)
        out._root, out._seen = self._root, self._seen
        return out

    def items(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """As `Trie.items`; what comes next is fetched many nodes at a time."""
        reader = self.fork()
        reader._ahead = True  # noqa: SLF001  # of its own kind
        return super(LazyTrie, reader).items(prefix, after)

    def keys(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[bytes]:
        """The keys of `items`."""
        return (key for key, _ in self.items(prefix, after))

    def __bool__(self) -> bool:
        return self._root is not None

    def __len__(self) -> int:
        """How many keys there are: all of them are fetched."""
        return sum(1 for _ in self.keys())

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def merkle_value(self, key: bytes) -> bytes | None:
        """As `Trie.merkle_value`."""
        digits = key.hex()
        reference, depth = self._root, 0
        while reference is not None:
            node = self._load(reference, digits, depth)
            if node.partial.startswith(digits[depth:]):
                encoded = encode(node)
                return encoded if depth and len(encoded) < 32 else blake2_256(encoded)
            if not digits.startswith(node.partial, depth):
                return None
            depth += len(node.partial)
            reference = node.children.get(int(digits[depth], 16))
            depth += 1
        return None

    def differences(self, other: "LazyTrie") -> Iterator[Difference]:
        """As `Trie.differences`: only what either has and the other has not at the same place is looked into."""
        for key in sorted({*self.keys_beside(other.places()), *other.keys_beside(self.places())}):
            mine, theirs = self.get(key), other.get(key)
            if mine != theirs:
                yield key, mine, theirs

    def places(self) -> set[tuple[str, bytes]]:
        """Every node that is known without fetching anything, by its place and hash."""
        found: set[tuple[str, bytes]] = set()
        waiting: list[tuple[Reference, str]] = [] if self._root is None else [(self._root, "")]
        while waiting:
            reference, place = waiting.pop()
            found.add((place, _hash(reference)))
            if not isinstance(reference, Far):
                place += reference.partial
                waiting += [(child, f"{place}{nibble:x}") for nibble, child in reference.children.items()]
        return found

    def keys_beside(self, known: set[tuple[str, bytes]]) -> Iterator[bytes]:
        """The keys of every node that is not `known`, nor below one that is."""
        waiting: list[tuple[Reference, str]] = [] if self._root is None else [(self._root, "")]
        while waiting:
            reference, place = waiting.pop()
            if (place, _hash(reference)) in known:
                continue
            node = self._load(reference, place, len(place))
            place += node.partial
            waiting += [(child, f"{place}{nibble:x}") for nibble, child in node.children.items()]
            if node.value is not None:
                yield bytes.fromhex(place)

    def _load(self, reference: Reference, digits: str, depth: int) -> PartialNode:
        node = super()._load(reference, digits, depth)
        if isinstance(reference, Far) and isinstance(node.value, bytes) and len(node.value) > MAX_INLINE_VALUE[1]:
            raise StateUnavailable(
                f"node {reference.hash.hex()} is of layout version 0, in which values are not detached: only states of "
                "version 1 are fetched by need"
            )
        return node

    def _fetched(self, wanted: bytes, digits: str, depth: int) -> bytes:
        return self._source.node(wanted, digits[:depth], ahead=self._ahead)


def _hash(reference: Reference) -> bytes:
    return reference.hash if isinstance(reference, Far) else blake2_256(encode(reference))
