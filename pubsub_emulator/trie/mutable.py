"""The trie of a whole state: an ordered map with incremental root, cheap forks and proofs.

Keys are walked as hex digits, which have the order of the bytes. The walks are loops and not
recursive, because a path may be thousands of nodes long.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie.batch import write
from pubsub_emulator.trie.bulk import build
from pubsub_emulator.trie.codec import CHILDREN, EMPTY_NODE, MAX_INLINE_VALUE
from pubsub_emulator.trie.difference import Difference, differences
from pubsub_emulator.trie.nibbles import shared_digits
from pubsub_emulator.trie.nodes import NIBBLE, Node, Owner, encode_stale
from pubsub_emulator.trie.recording import Recording

COMMON_BYTES: Final = 16
"""The length of the common beginning of a pallet's keys, which recorded reads walk once."""


class Trie:
    """An ordered map from byte keys to byte values with a Merkle root.

    `version` is the layout, 0 or 1. Empty values count as values. `fork` takes constant time: both
    tries share their nodes and copy a node before they write to it.
    """

    __slots__ = ("_count", "_max_inline", "_owner", "_root", "_root_hash", "version")

    def __init__(self, version: int = 1) -> None:
        self.version = version
        self._max_inline = MAX_INLINE_VALUE[version]
        self._owner = Owner()
        self._root: Node | None = None
        self._root_hash: Hash | None = EMPTY_TRIE_ROOT
        self._count = 0

    @staticmethod
    def from_entries(entries: Iterable[tuple[bytes, bytes]], version: int = 1) -> "Trie":
        """Build a trie of `entries`, in any order.

        If a key occurs twice, the last entry counts.
        """
        out = Trie(version)
        out._root, out._count = build(entries, out._owner)
        out._root_hash = None if out._count else EMPTY_TRIE_ROOT
        return out

    def fork(self) -> "Trie":
        """Return a snapshot in constant time.

        Neither trie sees later writes to the other.
        """
        out = Trie(self.version)
        out._root = self._root
        out._root_hash = self._root_hash
        out._count = self._count
        # With a new owner, this trie too copies the shared nodes before it writes to them.
        self._owner = Owner()
        return out

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`, or `None`."""
        node = self._root
        digits = key.hex()
        depth = 0
        size = len(digits)
        while node is not None:
            partial = node.partial
            if partial:
                if not digits.startswith(partial, depth):
                    return None
                depth += len(partial)
            if depth == size:
                return node.value
            children = node.children
            if children is None:
                return None
            node = children[NIBBLE[digits[depth]]]
            depth += 1
        return None

    def get_recorded(self, key: bytes, recording: Recording) -> bytes | None:
        """Return the value under `key`, and record what reading it touches, as `prove`.

        The trie must not be written between the calls with one `recording`.
        """
        absent = recording.absent
        if absent is not None and key.startswith(absent):
            return None
        start = recording.starts.get(key[:COMMON_BYTES]) or self._start(key, recording)
        if start is None:
            recording.add(EMPTY_NODE)
            return None
        node, depth = start
        visited = recording.visited
        digits = key.hex()
        size = len(digits)
        while True:
            partial = node.partial
            if partial:
                if not digits.startswith(partial, depth):
                    depth += len(partial)
                    if depth <= size:
                        # No key follows the partial key that has the same nibbles up to its end.
                        recording.absent = key[: (depth + 1) >> 1]
                    return None
                depth += len(partial)
            if depth == size:
                value = node.value
                if value is not None and len(value) > self._max_inline:
                    recording.add(value)
                return value
            children = node.children
            child = None if children is None else children[NIBBLE[digits[depth]]]
            depth += 1
            if child is None:
                recording.absent = key[: (depth + 1) >> 1]
                return None
            if child not in visited:
                # No node is written while they are recorded, so encoding them once suffices.
                visited.add(child)
                encoded = child.encoded
                if len(encoded) >= 32:
                    recording.add(encoded)
            node = child

    def _start(self, key: bytes, recording: Recording) -> tuple[Node, int] | None:
        """Return the last node whose way lies in the first `COMMON_BYTES` of `key`.

        It is returned with the nibble at which it starts, and is the same for all keys with these
        bytes. The nodes down to it are recorded. Returns `None` for an empty trie.
        """
        node = self._root
        if node is None:
            return None
        # This encodes all nodes.
        self.root()
        recording.add(node.encoded)
        common = key[:COMMON_BYTES]
        digits = common.hex()
        depth = 0
        while True:
            end = depth + len(node.partial)
            children = node.children
            if end >= len(digits) or children is None or not digits.startswith(node.partial, depth):
                break
            child = children[NIBBLE[digits[end]]]
            if child is None:
                break
            if child not in recording.visited:
                recording.visited.add(child)
                if len(child.encoded) >= 32:
                    recording.add(child.encoded)
            node = child
            depth = end + 1
        start = (node, depth)
        recording.starts[common] = start
        return start

    def insert(self, key: bytes, value: bytes) -> None:
        """Put `value` under `key`."""
        digits = key.hex()
        owner = self._owner
        node = self._root
        self._root_hash = None
        if node is None:
            self._root = Node(owner, digits, value)
            self._count = 1
            return
        if node.owner is owner:
            node.stale = True
        else:
            node = self._root = node.copy(owner)
        parent: Node | None = None
        nibble = 0
        depth = 0
        size = len(digits)
        # From here on, each visited node belongs to this trie and lies on the way to the change.
        while True:
            partial = node.partial
            if partial:
                if not digits.startswith(partial, depth):
                    branch = self._split(node, digits[depth:], value)
                    if parent is None:
                        self._root = branch
                    else:
                        parent.set_child(nibble, branch)
                    return
                depth += len(partial)
            if depth == size:
                if node.value is None:
                    self._count += 1
                if node.children is None:
                    node.value = value
                    node.tail = b""
                else:
                    node.set_value(value)
                return
            nibble = NIBBLE[digits[depth]]
            depth += 1
            children = node.children
            child = None if children is None else children[nibble]
            if child is None or children is None:
                node.set_child(nibble, Node(owner, digits[depth:], value))
                self._count += 1
                return
            node.dirty |= 1 << nibble
            if child.owner is owner:
                child.stale = True
            elif child.children is None and child.partial == digits[depth:]:
                children[nibble] = child.with_value(owner, value)
                return
            else:
                child = children[nibble] = child.copy(owner)
            parent = node
            node = child

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply many changes at once (`None` deletes a key), and encode the changed nodes.

        This is faster than `insert` for keys with long common prefixes, such as a state's, and as
        fast for others.
        """
        # `write` expects an encoded trie, and `root` encodes what changed.
        self.root()
        self._root, grown = write(self._root, changes, self._owner, self._max_inline)
        self._count += grown
        self._root_hash = None

    def remove(self, key: bytes) -> bool:
        """Remove `key` and return whether it was there."""
        before = self._count
        self.update({key: None})
        return self._count < before

    def remove_prefix(self, prefix: bytes, limit: int | None = None) -> int:
        """Remove the keys that start with `prefix`, at most the first `limit`.

        Returns how many were removed.
        """
        doomed = dict.fromkeys(islice(self.keys(prefix), limit))
        self.update(doomed)
        return len(doomed)

    def items(
        self, prefix: bytes = b"", after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries under `prefix`, strictly after `after`, ascending.

        Later writes do not change what the iterator yields.
        """
        # With a new owner, later writes copy the nodes that the iterator is to read.
        self._owner = Owner()
        return _ordered(self._root, prefix.hex(), None if after is None else after.hex())

    def keys(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[bytes]:
        """Return the keys of `items`."""
        return (key for key, _ in self.items(prefix, after))

    def differences(self, other: "Trie") -> Iterator[Difference]:
        """Return every key whose value differs between two tries, ascending, with both values.

        A value is `None` if the trie lacks the key. Subtries that forks share are skipped. Later
        writes do not change what the iterator yields.
        """
        # With new owners, later writes copy the nodes that the iterator is to read.
        self._owner = Owner()
        other._owner = Owner()  # noqa: SLF001  # of its own kind
        return differences(self._root, other._root)  # noqa: SLF001  # as above

    def root(self) -> Hash:
        """Return the Merkle root.

        Only nodes that changed since the last call are encoded and hashed.
        """
        known = self._root_hash
        if known is not None:
            return known
        root = self._root
        if root is None:
            known = EMPTY_TRIE_ROOT
        else:
            if root.stale:
                encode_stale(root, self._max_inline)
            known = blake2_256(root.encoded)
        self._root_hash = known
        return known

    def merkle_value(self, key: bytes) -> bytes | None:
        """Return the Merkle value of the node at `key` or of the first node below it.

        The Merkle value is the node itself if it has fewer than 32 bytes and is not the root, else
        its hash. Returns `None` if there is no such node.
        """
        root_hash = self.root()
        node = self._root
        digits = key.hex()
        depth = 0
        while node is not None:
            partial = node.partial
            if partial.startswith(digits[depth:]):
                if node is self._root:
                    return root_hash
                return node.encoded if len(node.encoded) < 32 else blake2_256(node.encoded)
            if not digits.startswith(partial, depth) or node.children is None:
                return None
            depth += len(partial)
            node = node.children[NIBBLE[digits[depth]]]
            depth += 1
        return None

    def prove(self, keys: Iterable[bytes], into: dict[Hash, bytes]) -> None:
        """Add to `into` every node and detached value that reading `keys` touches.

        This includes the nodes that prove absence. Inline nodes are part of their parent. An empty
        trie adds its node 0x00 if there is a key.
        """
        wanted = sorted(key.hex() for key in keys)
        if not wanted:
            return
        root_hash = self.root()
        root = self._root
        if root is None:
            into[EMPTY_TRIE_ROOT] = EMPTY_NODE
            return
        into[root_hash] = root.encoded
        max_inline = self._max_inline
        # The way to the previous key: nodes and the nibble at which each starts.
        trail: list[Node] = [root]
        starts: list[int] = [0]
        previous = ""
        for digits in wanted:
            # Go back to the deepest node that starts within the common prefix of the two keys.
            depth = starts[-1]
            while depth and digits[:depth] != previous[:depth]:
                trail.pop()
                starts.pop()
                depth = starts[-1]
            previous = digits
            node = trail[-1]
            size = len(digits)
            while True:
                partial = node.partial
                if partial:
                    if not digits.startswith(partial, depth):
                        break
                    depth += len(partial)
                if depth == size:
                    value = node.value
                    if value is not None and len(value) > max_inline:
                        into[node.tail] = value  # type: ignore[index]  # a hash; the NewType call costs a tenth of it all
                    break
                if node.children is None:
                    break
                nibble = NIBBLE[digits[depth]]
                child = node.children[nibble]
                if child is None:
                    break
                encoded = child.encoded
                if len(encoded) >= 32:
                    at = node.refs
                    # This repeats `child_hash`, whose call would take a tenth of the time of a
                    # proof.
                    if at > 0:
                        at += 33 * CHILDREN[node.shape & ((1 << nibble) - 1)] + 1
                        into[node.encoded[at : at + 32]] = encoded  # type: ignore[index]  # as above
                    else:
                        into[node.child_hash(nibble)] = encoded  # type: ignore[index]  # as above
                node = child
                depth += 1
                trail.append(node)
                starts.append(depth)

    def _split(self, node: Node, digits: str, value: bytes) -> Node:
        """Split the owned `node`, whose partial key diverges from a new key.

        `digits` is the new key from the node's start on. Returns a branch above the node and the
        key.
        """
        partial = node.partial
        shared = shared_digits(partial, digits, 0)
        branch = Node(self._owner, partial[:shared], None)
        node.set_partial(partial[shared + 1 :])
        branch.set_child(NIBBLE[partial[shared]], node)
        if shared == len(digits):
            branch.set_value(value)
        else:
            branch.set_child(NIBBLE[digits[shared]], Node(self._owner, digits[shared + 1 :], value))
        self._count += 1
        return branch


def _ordered(root: Node | None, prefix: str, after: str | None) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries under `prefix` in ascending order, strictly after `after`.

    Both are hex digits.
    """
    if root is None:
        return
    stack = [root]
    paths = [""]
    while stack:
        node = stack.pop()
        path = paths.pop() + node.partial
        # Subtries that cannot hold a wanted key are dropped here, so a seek costs one path.
        if not path.startswith(prefix) and not prefix.startswith(path):
            continue
        seeking = after is not None and path <= after
        if after is not None and seeking and not after.startswith(path):
            continue
        if node.value is not None and not seeking and len(path) >= len(prefix):
            yield bytes.fromhex(path), node.value
        if node.children is not None:
            lowest = -1
            if after is not None and seeking and len(path) < len(after):
                lowest = NIBBLE[after[len(path)]]
            only = NIBBLE[prefix[len(path)]] if len(path) < len(prefix) else -1
            for nibble in range(15, lowest - 1 if lowest > 0 else -1, -1):
                child = node.children[nibble]
                if child is not None and only in (-1, nibble):
                    stack.append(child)
                    paths.append(f"{path}{nibble:x}")
