"""A state trie of which only some nodes are known: reads, writes and the new root.

`Trie` holds a whole state; `PartialTrie` holds a storage proof. It requests every node and detached
value by its hash when it first needs it, and raises `MissingNode` if it is unknown. The requested
nodes are the smallest proof on which the same reads and writes can be repeated.

Writes are of layout version 1. A state that was upgraded from version 0 still has long values in
its nodes. As in sp-trie, such a value stays where it is until it is written itself, even with the
same bytes.

Nodes are replaced and never changed, so a fork copies one reference. This code prefers being
obviously right to speed; `Trie` is the fast one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie import codec
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.difference import Difference
from pubsub_emulator.trie.errors import BadNode, MissingNode
from pubsub_emulator.trie.nibbles import shared_digits
from pubsub_emulator.trie.recording import Recording

Fetch = Callable[[bytes], bytes | None]
"""A function from a hash to the node or detached value with that hash.

It returns `None` if the hash is unknown.
"""

MAX_KEY: Final = 4096
"""The length of the longest key that a walk yields, in bytes."""
_MAX_INLINE: Final = codec.MAX_INLINE_VALUE[1]


@dataclass(frozen=True, slots=True)
class Far:
    """A node or a value of which only the hash is known."""

    hash: bytes


@dataclass(frozen=True, slots=True)
class PartialNode:
    """A decoded node; `partial` in hex digits, `children` by nibble."""

    partial: str
    value: bytes | Far | None
    children: dict[int, "PartialNode | Far"]
    is_value_inline: bool = False
    """Whether the value stays in the node at any length, as layout version 0 stores it."""
    encodings: list[bytes] = field(default_factory=list, init=False, compare=False, repr=False)
    """A cache of the node's bytes: empty, or one element. It stays valid because nodes never
    change."""

    def with_child(self, nibble: int, child: "PartialNode | Far | None") -> "PartialNode":
        """Return the same node with another child at `nibble`, or `None` for no child."""
        children = dict(self.children)
        if child is None:
            children.pop(nibble, None)
        else:
            children[nibble] = child
        return PartialNode(self.partial, self.value, children, self.is_value_inline)

    def with_value(self, value: bytes | None) -> "PartialNode":
        """Return the same node with another value, in layout version 1."""
        return PartialNode(self.partial, value, self.children)

    @property
    def is_detached(self) -> bool:
        """Return whether the node names its value by hash."""
        value = self.value
        if value is None or isinstance(value, Far):
            return value is not None
        return len(value) > _MAX_INLINE and not self.is_value_inline


Reference = PartialNode | Far


class PartialTrie:
    """The methods of `trie.Trie` that a block needs.

    Nodes of both layout versions are read, and version 1 is written. Each method may raise
    `MissingNode` or `BadNode`.
    """

    def __init__(self, root: Hash, fetch: Fetch) -> None:
        self._fetch = fetch
        self._first = root
        self._seen: dict[bytes, PartialNode] = {}
        self._root: Reference | None = None if root == EMPTY_TRIE_ROOT else Far(root)

    def fork(self) -> "PartialTrie":
        """Return a snapshot in constant time.

        Neither trie sees later writes to the other.
        """
        out = PartialTrie(self._first, self._fetch)
        out._root, out._seen = self._root, self._seen
        return out

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`, or `None`."""
        digits = key.hex()
        node, _, rest = self._descend(digits)
        return None if node is None or rest is not None else self._value(node, digits)

    def get_recorded(self, key: bytes, recording: Recording) -> bytes | None:
        """Return the value under `key`, and record what reading it touches."""
        value = self.get(key)
        nodes: dict[Hash, bytes] = {}
        self.prove((key,), nodes)
        for node in nodes.values():
            recording.add(node)
        return value

    def update(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply many changes in the order given; `None` deletes a key."""
        for key, value in changes.items():
            if value is None:
                self.remove(key)
            else:
                self.insert(key, value)

    def insert(self, key: bytes, value: bytes) -> None:
        """Put `value` under `key`."""
        node, path, rest = self._descend(key.hex())
        if rest is None and node is not None:
            self._ascend(path, node.with_value(value))
        elif node is None:
            self._ascend(path, PartialNode(rest or "", value, {}))
        else:
            self._ascend(path, _split(node, rest or "", value))

    def remove(self, key: bytes) -> bool:
        """Remove `key` and return whether it was there."""
        node, path, rest = self._descend(key.hex())
        if node is None or rest is not None or node.value is None:
            return False
        start = "".join(f"{above.partial}{nibble:x}" for above, nibble in path)
        self._ascend(path, self._merged(node.with_value(None), start))
        return True

    def remove_prefix(self, prefix: bytes) -> None:
        """Remove every key that starts with `prefix`, without reading the nodes below it."""
        node, path, rest = self._descend(prefix.hex())
        if node is not None and (rest is None or node.partial.startswith(rest)):
            self._ascend(path, None)

    def items(
        self, prefix: bytes = b"", after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries whose keys start with `prefix`, ascending, strictly after `after`.

        Later writes do not change what the iterator yields.
        """
        return self._items(self._root, prefix.hex(), None if after is None else after.hex())

    def keys(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[bytes]:
        """Return the keys of `items`."""
        return (key for key, _ in self.items(prefix, after))

    def __bool__(self) -> bool:
        return self._root is not None

    def __len__(self) -> int:
        """Return the number of keys.

        This reads all of them.
        """
        return sum(1 for _ in self.keys())

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def merkle_value(self, key: bytes) -> bytes | None:
        """Return the Merkle value of the node at `key` or of the first node below it.

        Returns `None` if there is no such node.
        """
        digits = key.hex()
        for node, depth in self._way(digits):
            if node.partial.startswith(digits[depth:]):
                encoded = encode(node)
                return encoded if depth and len(encoded) < 32 else blake2_256(encoded)
        return None

    def differences(self, other: Self) -> Iterator[Difference]:
        """Return the differences as `Trie.differences` does.

        Only nodes that one trie has and the other does not have at the same place are read.
        """
        # The iterator reads forks, which do not see later writes.
        return _differences(self.fork(), other.fork())

    def places(self) -> set[tuple[str, bytes]]:
        """Return the place and hash of every node that is known without a request."""
        found: set[tuple[str, bytes]] = set()
        waiting: list[tuple[Reference, str]] = [] if self._root is None else [(self._root, "")]
        while waiting:
            reference, place = waiting.pop()
            found.add((place, _hash(reference)))
            if not isinstance(reference, Far):
                waiting += _below(reference, place)
        return found

    def keys_beside(self, known: set[tuple[str, bytes]]) -> Iterator[bytes]:
        """Yield the keys of every node that is not in `known`, nor below a node in it."""
        waiting: list[tuple[Reference, str]] = [] if self._root is None else [(self._root, "")]
        while waiting:
            reference, place = waiting.pop()
            if (place, _hash(reference)) in known:
                continue
            node = self._load(reference, place, len(place))
            waiting += _below(node, place)
            if node.value is not None:
                yield self._key(place + node.partial)

    def root(self) -> Hash:
        """Return the Merkle root."""
        if self._root is None:
            return EMPTY_TRIE_ROOT
        return (
            Hash(self._root.hash) if isinstance(self._root, Far) else blake2_256(encode(self._root))
        )

    def prove(self, keys: Iterable[bytes], into: dict[Hash, bytes]) -> None:
        """Add to `into` every node and detached value that reading `keys` touches."""
        for key in keys:
            digits = key.hex()
            if self._root is None:
                into[EMPTY_TRIE_ROOT] = codec.EMPTY_NODE
            for node, depth in self._way(digits):
                encoded = encode(node)
                if len(encoded) >= 32 or not depth:
                    into[blake2_256(encoded)] = encoded
                value = self._value(node, digits) if node.partial == digits[depth:] else None
                if value is not None and node.is_detached:
                    into[blake2_256(value)] = value

    def _items(
        self, root: Reference | None, prefix: str, after: str | None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries below `root` in ascending order, as `items`.

        Loads only nodes that can hold a wanted key. `prefix` and `after` are hex digits.
        """
        waiting: list[tuple[Reference, str, str]] = [] if root is None else [(root, "", "")]
        while waiting:
            # The path above is one string that all children of a node share.
            reference, above, digit = waiting.pop()
            path = above + digit
            # A subtree that cannot hold a wanted key is not read: its node may be unknown.
            if not _overlap(path, prefix) or _behind(path, after):
                continue
            node = self._load(reference, path, len(path))
            path += node.partial
            if not _overlap(path, prefix) or _behind(path, after):
                continue
            if len(path) > 2 * MAX_KEY:
                self._key(path)
            waiting += [
                (node.children[nibble], path, f"{nibble:x}")
                for nibble in sorted(node.children, reverse=True)
            ]
            if path.startswith(prefix) and (after is None or path > after):
                value = self._value(node, path)
                if value is not None:
                    yield self._key(path), value

    def _key(self, path: str) -> bytes:
        """Return the key at a path.

        Raises `BadNode` for half a byte and for a key longer than `MAX_KEY`, since a chain writes
        no value there.
        """
        if len(path) % 2 or len(path) > 2 * MAX_KEY:
            why = f"a value after {len(path)} nibbles"
            raise BadNode(
                b"",
                self._first,
                bytes.fromhex(path[: len(path) & ~1][: 2 * MAX_KEY]),
                len(path),
                why,
            )
        return bytes.fromhex(path)

    def _descend(
        self, digits: str
    ) -> tuple[PartialNode | None, list[tuple[PartialNode, int]], str | None]:
        """Descend towards a key.

        Returns the last node, the nodes above it with the nibbles taken, and the rest of the key.
        There are three cases. If the rest is `None`, the node is the key's own. If there are both a
        node and a rest, the key diverges from the node's partial key, and the rest starts at the
        node. If there is no node, the place is empty.
        """
        path: list[tuple[PartialNode, int]] = []
        rest = digits
        for node, depth in self._way(digits):
            rest = digits[depth:]
            if not rest.startswith(node.partial):
                return node, path, rest
            if rest == node.partial:
                return node, path, None
            path.append((node, int(rest[len(node.partial)], 16)))
            rest = rest[len(node.partial) + 1 :]
        return None, path, rest

    def _way(self, digits: str) -> Iterator[tuple[PartialNode, int]]:
        """Yield the nodes on the way to a key, and the nibble at which each starts.

        The last node may diverge from the key.
        """
        reference, depth = self._root, 0
        while reference is not None:
            node = self._load(reference, digits, depth)
            yield node, depth
            end = depth + len(node.partial)
            if not digits.startswith(node.partial, depth) or end == len(digits):
                return
            reference = node.children.get(int(digits[end], 16))
            depth = end + 1

    def _ascend(self, path: list[tuple[PartialNode, int]], reference: Reference | None) -> None:
        """Put `reference` at the end of `path`."""
        starts = [""]
        for node, nibble in path:
            starts.append(f"{starts[-1]}{node.partial}{nibble:x}")
        for (node, nibble), start in zip(reversed(path), reversed(starts[:-1]), strict=True):
            changed = node.with_child(nibble, reference)
            reference = self._merged(changed, start) if reference is None else changed
        self._root = reference

    def _merged(self, node: PartialNode, start: str) -> PartialNode | None:
        """Return the replacement of a node at `start` that lost its value or a child.

        It is `None` if the node is empty now, the merger with its only child if it has just one,
        and else the node itself.
        """
        if node.value is not None or len(node.children) > 1:
            return node
        if not node.children:
            return None
        ((nibble, reference),) = node.children.items()
        below = f"{start}{node.partial}{nibble:x}"
        child = self._load(reference, below, len(below))
        return replace(child, partial=f"{node.partial}{nibble:x}{child.partial}")

    def _value(self, node: PartialNode, digits: str) -> bytes | None:
        return (
            self._fetched(node.value.hash, digits, len(digits))
            if isinstance(node.value, Far)
            else node.value
        )

    def _load(self, reference: Reference, digits: str, depth: int) -> PartialNode:
        if isinstance(reference, PartialNode):
            return reference
        node = self._seen.get(reference.hash)
        if node is None:
            encoded = self._fetched(reference.hash, digits, depth)
            try:
                node = _decode(encoded)
            except BadNode as bad:
                raise bad.placed(reference.hash, self._first) from None
            self._seen[reference.hash] = node
        return node

    def _fetched(self, wanted: bytes, digits: str, depth: int) -> bytes:
        encoded = self._fetch(wanted)
        if encoded is None:
            raise MissingNode(wanted, self._first, bytes.fromhex(digits[: len(digits) & ~1]), depth)
        return encoded


def _differences(mine: PartialTrie, theirs: PartialTrie) -> Iterator[Difference]:
    for key in sorted({*mine.keys_beside(theirs.places()), *theirs.keys_beside(mine.places())}):
        here = mine.get(key)
        there = theirs.get(key)
        if here != there:
            yield key, here, there


def _below(node: PartialNode, place: str) -> list[tuple[Reference, str]]:
    """Return the children of a node and their places."""
    return [(child, f"{place}{node.partial}{nibble:x}") for nibble, child in node.children.items()]


def _hash(reference: Reference) -> bytes:
    return reference.hash if isinstance(reference, Far) else blake2_256(encode(reference))


def _split(node: PartialNode, rest: str, value: bytes) -> PartialNode:
    """Split a node whose partial key diverges from a new key.

    `rest` is the new key from the node's start on. Returns a branch above the node and the key.
    """
    partial = node.partial
    shared = shared_digits(partial, rest, 0)
    below: dict[int, Reference] = {
        int(partial[shared], 16): replace(node, partial=partial[shared + 1 :])
    }
    if shared == len(rest):
        return PartialNode(rest, value, below)
    below[int(rest[shared], 16)] = PartialNode(rest[shared + 1 :], value, {})
    return PartialNode(partial[:shared], None, below)


def _overlap(path: str, prefix: str) -> bool:
    """Return whether keys below `path` can start with `prefix`."""
    return path.startswith(prefix) or prefix.startswith(path)


def _behind(path: str, after: str | None) -> bool:
    """Return whether no key below `path` comes after `after`."""
    return after is not None and path < after and not after.startswith(path)


def _decode(encoded: bytes) -> PartialNode:
    """Decode a node.

    Raises `BadNode`.
    """
    parts = DecodedNode(encoded)
    if not parts.kind:
        raise BadNode(b"", b"", b"", 0, "an empty trie below a root")
    value: bytes | Far | None = parts.value
    if parts.is_detached:
        value = Far(encoded[parts.value_at : parts.value_end])
    children: dict[int, Reference] = {}
    for nibble, reference in parts.references:
        # Honest tries have no such child. Nested ones would be decoded without bound.
        if len(reference) > 32:
            raise BadNode(b"", b"", b"", 0, f"an inline child of {len(reference)} bytes")
        children[nibble] = Far(reference) if len(reference) == 32 else _decode(reference)
    is_value_inline = value is not None and not parts.is_detached
    return PartialNode(parts.partial, value, children, is_value_inline)


def encode(node: PartialNode) -> bytes:
    """Return a node's bytes."""
    # The node is frozen, so its cache is a list.
    if not node.encodings:
        node.encodings.append(_encoded(node))
    return node.encodings[0]


def _encoded(node: PartialNode) -> bytes:
    """Encode a node, with its inline children inside of it."""
    value = node.value
    detached = node.is_detached
    if not node.children:
        kind = codec.HASHED_LEAF if detached else codec.LEAF
    elif value is None:
        kind = codec.BRANCH
    elif detached:
        kind = codec.HASHED_BRANCH
    else:
        kind = codec.BRANCH_WITH_VALUE
    pieces = [codec.node_head(kind, len(node.partial)), codec.pack(node.partial)]
    if node.children:
        pieces.append(sum(1 << nibble for nibble in node.children).to_bytes(2, "little"))
    if isinstance(value, Far):
        pieces.append(value.hash)
    elif value is not None:
        pieces.append(blake2_256(value) if detached else encode_compact(len(value)) + value)
    for nibble in sorted(node.children):
        child = node.children[nibble]
        encoded = b"" if isinstance(child, Far) else encode(child)
        if isinstance(child, Far) or len(encoded) >= 32:
            encoded = child.hash if isinstance(child, Far) else blake2_256(encoded)
        pieces.append(encode_compact(len(encoded)) + encoded)
    return b"".join(pieces)
