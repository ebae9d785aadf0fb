"""The descent from a trie's root towards one key after another, over encoded nodes.

Readers of many keys use `Descent`. A subclass decides where a child node comes from, how much
reading it costs, and when to stop on the way to a key. Readers of one key use `follow`. `Descent`
knows the rest:

the trail    The nodes on the way to the last key that are also on the way to the next key. The
             next key starts at the deepest of them, so sorted keys read each node once.
the shapes   Nearly every node of a state is a branch of hashes without a value, or
             the leaf of the wanted key with its value of at most 63 bytes or the value's hash.
             `find` recognises these by comparing bytes. It passes every other node to `step`,
             which decides whether the node is malformed.

A property in the tests holds `find` equal to a walk that takes every step with `step`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.codec import (
    BEFORE_HASH,
    BRANCH,
    CHILD_HASHES,
    CHILDREN,
    DETACHED_HASH,
    HASH_LENGTHS,
    HASHED_LEAF_HEADS,
    HIGH_BITS,
    LEAF,
    LEAF_HEADS,
    LENGTHS,
    LOW_BITS,
    ODD_HASHED_LEAF_HEADS,
    ODD_LEAF_HEADS,
)
from pubsub_emulator.trie.errors import BadNode
from pubsub_emulator.trie.nibbles import shared
from pubsub_emulator.trie.step import (
    ABSENT,
    CHILD,
    DETACHED,
    INLINE,
    MOST_NIBBLES,
    MOST_REMEMBERED,
    VALUE,
    branch_of_hashes,
    followed_branch,
    remembered_step,
    step,
)

_shared_by_neighbours = lru_cache(maxsize=4096)(shared)
"""`shared`, for keys that a chain reads one after the other in every block."""


class Descent:
    """A descent below `root` towards the sorted `keys`.

    `at` is the index of the key of the last `find`. `shared_with_next` has the number of nibbles
    that each key shares with the next. A child in `nodes` is used without a call of `child`.
    """

    def __init__(
        self,
        root: Hash,
        keys: Sequence[bytes],
        shared_with_next: Sequence[int],
        nodes: Mapping[Hash, bytes],
    ) -> None:
        self.root = root
        self.keys = keys
        self.at = 0
        self._nodes = nodes
        self._shared = shared_with_next
        # For each node: its hash, its bytes, and the nibble at which it starts. These are followed
        # by zeros, or by the bitmap and the length of the partial key of a branch of hashes that
        # the last key passes through.
        self._trail: list[tuple[Hash, bytes, int, int, int]] = []

    def child(self, reference: Hash, depth: int, above: int) -> bytes | None:  # noqa: ARG002  # for subclasses
        """Return the node `reference`, or `None` to end the way.

        The node starts at nibble `depth` of `keys[at]` and has `above` nodes above it.
        """
        return None

    def inline(self, node: bytes, depth: int, above: int) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether to go on into an inline child.

        The arguments are those of `child`.
        """
        return True

    def start(self, node: bytes) -> None:
        """Set out from the bytes of the root node.

        This must be called before the first `find`.
        """
        self._trail = [(self.root, node, 0, branch_of_hashes(node), 0)]

    def find(self, at: int) -> tuple[int, bytes, int]:
        """Go down towards `keys[at]` and return the trie's answer, as `step`.

        The answer is `(kind, payload, depth)`. The kinds `CHILD` and `INLINE` mean that `child` or
        `inline` ended the way. The keys may be read in any order; ascending order is fast. Raises
        `BadNode`.
        """
        keys, trail, nodes = self.keys, self._trail, self._nodes
        key = keys[at]
        last = self.at
        self.at = at
        # The table has the common prefix of neighbours, the usual case.
        common = self._shared[last] if at == last + 1 else shared(keys[last], key)
        node_hash, node, depth, bitmap, nibbles = trail[-1]
        while depth > common:
            trail.pop()
            node_hash, node, depth, bitmap, nibbles = trail[-1]
        if nibbles and depth + nibbles > common:
            # This key leaves the last one within the node's partial key.
            bitmap = 0
            nibbles = 0
            trail[-1] = (node_hash, node, depth, 0, 0)
        above = len(trail)
        shared_after = self._shared[at]
        end = 2 * len(key)
        # This is `node` again, but untyped: mypyc assumes that an index of bytes is an integer, and
        # the indices of `whole` are slices.
        whole: Any
        while True:
            if bitmap and depth + nibbles < end:
                depth += nibbles
                byte = key[depth >> 1]
                bit = LOW_BITS[byte] if depth & 1 else HIGH_BITS[byte]
                if not bitmap & bit:
                    return ABSENT, b"", depth
                whole = node[(nibbles + 1) >> 1 :] if nibbles else node
                node_hash = whole[CHILD_HASHES[CHILDREN[bitmap & (bit - 1)]]]
                depth += 1
            else:
                try:
                    if len(node) > MOST_REMEMBERED:
                        kind, payload, depth = step(node, key, depth)
                    else:
                        kind, payload, depth = remembered_step(node, key, depth)
                except BadNode as error:
                    raise error.placed(node_hash, self.root) from None
                if kind == INLINE:
                    if not self.inline(payload, depth, above):
                        return INLINE, payload, depth
                    node = payload
                    bitmap = 0
                    above += 1
                    if depth <= shared_after:
                        trail.append((node_hash, node, depth, 0, 0))
                    continue
                if kind != CHILD:
                    return kind, payload, depth
                node_hash = Hash(payload)
            found = nodes.get(node_hash)
            if found is None:
                found = self.child(node_hash, depth, above)
                if found is None:
                    return CHILD, node_hash, depth
            whole = node = found
            above += 1
            bitmap = 0
            nibbles = 0
            size = len(node)
            if size > 34:
                head = node[0]
                if head == BRANCH:
                    bitmap = node[1] | node[2] << 8
                    count = CHILDREN[bitmap]
                    if size != 3 + 33 * count or whole[LENGTHS] != HASH_LENGTHS[count]:
                        bitmap = 0
                elif BRANCH < head < BRANCH + MOST_NIBBLES:
                    bitmap = followed_branch(node, key, depth)
                    nibbles = head - BRANCH if bitmap else 0
                elif head < LEAF and end - depth < len(HASHED_LEAF_HEADS):
                    half = depth >> 1
                    if depth & 1:
                        rest = ODD_HASHED_LEAF_HEADS[end - depth][key[half] & 15] + key[half + 1 :]
                    else:
                        rest = HASHED_LEAF_HEADS[end - depth] + key[half:]
                    if whole[BEFORE_HASH] == rest:
                        return DETACHED, whole[DETACHED_HASH], end
                elif LEAF <= head < BRANCH and end - depth < len(LEAF_HEADS):
                    half = depth >> 1
                    if depth & 1:
                        rest = ODD_LEAF_HEADS[end - depth][key[half] & 15] + key[half + 1 :]
                    else:
                        rest = LEAF_HEADS[end - depth] + key[half:]
                    value_at = len(rest) + 1
                    if (
                        node.startswith(rest)
                        and size > value_at
                        and node[value_at - 1] == size - value_at << 2
                    ):
                        return VALUE, node[value_at:], end
            if depth <= shared_after:
                trail.append((node_hash, node, depth, bitmap, nibbles))


class Lookups(Descent):
    """A descent towards keys that become known one after another, as a block's static keys.

    Each key starts at the deepest node that it shares with the last one. `node_of` supplies the
    nodes that are not in `nodes`, as in `follow`.
    """

    def __init__(
        self, root: Hash, nodes: Mapping[Hash, bytes], node_of: Callable[[Hash, bytes, int], bytes]
    ) -> None:
        super().__init__(root, (b"", b""), (0, 0), nodes)
        self.node_of = node_of

    def read(self, key: bytes) -> tuple[int, bytes, int]:
        """Return the trie's answer for `key`, as `follow`.

        Raises `BadNode`, and the errors of `node_of`.
        """
        before = self.keys[1]
        self.keys = (before, key)
        if not self._trail:
            self.start(self.node(self.root, 0))
        # The second number, the key's own length, leaves all nodes on the way on the trail.
        self._shared = (_shared_by_neighbours(before, key), 2 * len(key))
        self.at = 0
        return self.find(1)

    def node(self, reference: Hash, depth: int) -> bytes:
        """Return the node or value with the hash `reference`.

        It starts at nibble `depth` of the key that was read last.
        """
        found = self._nodes.get(reference)
        return self.node_of(reference, self.keys[1], depth) if found is None else found

    def child(self, reference: Hash, depth: int, above: int) -> bytes | None:  # noqa: ARG002  # none is too deep
        """Return the child node, which `nodes` lacks."""
        return self.node_of(reference, self.keys[1], depth)
