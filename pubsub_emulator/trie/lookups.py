"""A descent towards keys that become known one after another, such as the static keys of a block.

Each key starts at the deepest node on the way to the key before it, so keys that are near each other share their steps.
"""

from collections.abc import Callable, Mapping

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.descent import Descent
from pubsub_emulator.trie.nibbles import shared


class Lookups(Descent):
    """Reads one key at a time below `root`: `node_of` is asked, as by `follow`, for each node that `nodes` lacks."""

    __slots__ = ("node_of",)

    def __init__(self, root: Hash, nodes: Mapping[Hash, bytes], node_of: Callable[[Hash, bytes, int], bytes]) -> None:
        super().__init__(root, (b"", b""), (0, 0), nodes)
        self.node_of = node_of

    def read(self, key: bytes) -> tuple[int, bytes, int]:
        """What the trie says of `key`, as `follow`. Raises `BadNode`, and what `node_of` raises."""
        before = self.keys[1]
        self.keys = (before, key)
        if not self._trail:
            self.start(self.node(self.root, 0))
        self._shared = (shared(before, key), 2 * len(key))  # all nodes on the way stay on the trail
        self.at = 0
        return self.find(1)

    def node(self, reference: Hash, depth: int) -> bytes:
        """The node or value of hash `reference`, which starts at nibble `depth` of the key read last."""
        found = self._nodes.get(reference)
        return self.node_of(reference, self.keys[1], depth) if found is None else found

    def child(self, reference: Hash, depth: int, above: int) -> bytes | None:
        """The child node, which `nodes` lacks."""
        del above
        return self.node_of(reference, self.keys[1], depth)
