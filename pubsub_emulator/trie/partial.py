"""A state trie of which only some nodes are known: reads, writes and the new root, as far as those nodes reach.

`Trie` holds a whole state; `PartialTrie` holds a storage proof. It asks for every node and detached value by its hash
when it first needs it, and raises `MissingNode` if there is none. The nodes asked for are the smallest proof on which
the same reads and writes can be done again. Nodes are never changed, only replaced, so a fork copies one reference. The
code prefers to be obviously right; `Trie` is the fast one.
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

Fetch = Callable[[bytes], bytes | None]
"""Returns the node or detached value with a hash, which must have that hash, or `None` if it is not known."""

MAX_KEY: Final = 4096
"""Bytes of the longest key that a walk yields."""
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
    kept: list[bytes] = field(default_factory=list, init=False, compare=False, repr=False)
    """Its bytes once they are known: a node is never changed."""

    def with_child(self, nibble: int, child: "PartialNode | Far | None") -> "PartialNode":
        """The same node with another child at `nibble`, or `None` for no child."""
        kept = {at: each for at, each in self.children.items() if at != nibble}
        return replace(self, children=kept if child is None else {**kept, nibble: child})


Reference = PartialNode | Far


class PartialTrie:
    """The methods of `trie.Trie`, layout version 1, that a block needs. Each may raise `MissingNode` or `BadNode`."""

    def __init__(self, root: Hash, fetch: Fetch) -> None:
        self._fetch = fetch
        self._first = root
        self._seen: dict[bytes, PartialNode] = {}
        self._root: Reference | None = None if root == EMPTY_TRIE_ROOT else Far(root)

    def fork(self) -> "PartialTrie":
        """A snapshot in constant time. Neither trie sees later writes to the other."""
        out = PartialTrie(self._first, self._fetch)
        out._root, out._seen = self._root, self._seen
        return out

    def get(self, key: bytes) -> bytes | None:
        """The value under `key`, or `None`."""
        digits = key.hex()
        node, _, rest = self._descend(digits)
        return None if node is None or rest is not None else self._value(node, digits)

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
            self._ascend(path, replace(node, value=value))
        elif node is None:
            self._ascend(path, PartialNode(rest or "", value, {}))
        else:
            self._ascend(path, _split(node, rest or "", value))

    def remove(self, key: bytes) -> bool:
        """Remove `key`. Returns whether it was there."""
        node, path, rest = self._descend(key.hex())
        if node is None or rest is not None or node.value is None:
            return False
        start = "".join(f"{above.partial}{nibble:x}" for above, nibble in path)
        self._ascend(path, self._merged(replace(node, value=None), start))
        return True

    def remove_prefix(self, prefix: bytes) -> None:
        """Remove every key that starts with `prefix`, without looking at what is below it."""
        node, path, rest = self._descend(prefix.hex())
        if node is not None and (rest is None or node.partial.startswith(rest)):
            self._ascend(path, None)

    def items(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose keys start with `prefix`, ascending, strictly after `after`. Writes do not change them."""
        return self._items(self._root, prefix.hex(), None if after is None else after.hex())

    def keys(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[bytes]:
        """The keys of `items`."""
        return (key for key, _ in self.items(prefix, after))

    def __bool__(self) -> bool:
        return self._root is not None

    def __len__(self) -> int:
        """The number of keys: all of them are read."""
        return sum(1 for _ in self.keys())

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def merkle_value(self, key: bytes) -> bytes | None:
        """The Merkle value of the node at `key` or of the first one below it; `None` if there is neither."""
        digits = key.hex()
        for node, depth in self._way(digits):
            if node.partial.startswith(digits[depth:]):
                encoded = encode(node)
                return encoded if depth and len(encoded) < 32 else blake2_256(encoded)
        return None

    def differences(self, other: Self) -> Iterator[Difference]:
        """As `Trie.differences`: only what either has and the other has not at the same place is looked into."""
        return _differences(self.fork(), other.fork())  # a fork does not see later writes

    def places(self) -> set[tuple[str, bytes]]:
        """Every node that is known without asking for anything, by its place and hash."""
        found: set[tuple[str, bytes]] = set()
        waiting: list[tuple[Reference, str]] = [] if self._root is None else [(self._root, "")]
        while waiting:
            reference, place = waiting.pop()
            found.add((place, _hash(reference)))
            if not isinstance(reference, Far):
                waiting += _below(reference, place)
        return found

    def keys_beside(self, known: set[tuple[str, bytes]]) -> Iterator[bytes]:
        """The keys of every node that is not `known`, nor below one that is."""
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
        """The Merkle root."""
        if self._root is None:
            return EMPTY_TRIE_ROOT
        return Hash(self._root.hash) if isinstance(self._root, Far) else blake2_256(encode(self._root))

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
                if value is not None and len(value) > _MAX_INLINE:
                    into[blake2_256(value)] = value

    def _items(self, root: Reference | None, prefix: str, after: str | None) -> Iterator[tuple[bytes, bytes]]:
        waiting: list[tuple[Reference, str, str]] = [] if root is None else [(root, "", "")]
        while waiting:
            reference, above, digit = waiting.pop()  # the path above is one text for all children of a node
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
            waiting += [(node.children[nibble], path, f"{nibble:x}") for nibble in sorted(node.children, reverse=True)]
            if path.startswith(prefix) and (after is None or path > after):
                value = self._value(node, path)
                if value is not None:
                    yield self._key(path), value

    def _key(self, path: str) -> bytes:
        """The key at a path. Raises `BadNode`: no write puts a value at half a byte, or below so long a key."""
        if len(path) % 2 or len(path) > 2 * MAX_KEY:
            why = f"a value after {len(path)} nibbles"
            raise BadNode(b"", self._first, bytes.fromhex(path[: len(path) & ~1][: 2 * MAX_KEY]), len(path), why)
        return bytes.fromhex(path)

    def _descend(self, digits: str) -> tuple[PartialNode | None, list[tuple[PartialNode, int]], str | None]:
        """Descend towards a key: the last node, the nodes above it with the nibbles taken, and the rest of the key.

        No rest: the key's own node. Node and rest, from the node's start on: they diverge. No node: an empty place.
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
        """The nodes on the way to a key, and the nibble at which each starts; the last may diverge from the key."""
        reference, depth = self._root, 0
        while reference is not None:
            node = self._load(reference, digits, depth)
            yield node, depth
            end = depth + len(node.partial)
            if not digits.startswith(node.partial, depth) or end == len(digits):
                return
            reference, depth = node.children.get(int(digits[end], 16)), end + 1

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
        """What replaces a node at `start` that lost its value or a child: nothing, or its only child merged with it."""
        if node.value is not None or len(node.children) > 1:
            return node
        if not node.children:
            return None
        ((nibble, reference),) = node.children.items()
        below = f"{start}{node.partial}{nibble:x}"
        child = self._load(reference, below, len(below))
        return replace(child, partial=f"{node.partial}{nibble:x}{child.partial}")

    def _value(self, node: PartialNode, digits: str) -> bytes | None:
        return self._fetched(node.value.hash, digits, len(digits)) if isinstance(node.value, Far) else node.value

    def _load(self, reference: Reference, digits: str, depth: int) -> PartialNode:
        if isinstance(reference, PartialNode):
            return reference
        seen = self._seen.get(reference.hash)
        if seen is None:
            encoded = self._fetched(reference.hash, digits, depth)
            try:
                seen = _decode(encoded)
            except BadNode as bad:
                raise bad.placed(reference.hash, self._first) from None
            self._seen[reference.hash] = seen
        return seen

    def _fetched(self, wanted: bytes, digits: str, depth: int) -> bytes:
        found = self._fetch(wanted)
        if found is None:
            raise MissingNode(wanted, self._first, bytes.fromhex(digits[: len(digits) & ~1]), depth)
        return found


def _differences(mine: PartialTrie, theirs: PartialTrie) -> Iterator[Difference]:
    for key in sorted({*mine.keys_beside(theirs.places()), *theirs.keys_beside(mine.places())}):
        here = mine.get(key)
        there = theirs.get(key)
        if here != there:
            yield key, here, there


def _below(node: PartialNode, place: str) -> list[tuple[Reference, str]]:
    """The children of a node and their places."""
    return [(child, f"{place}{node.partial}{nibble:x}") for nibble, child in node.children.items()]


def _hash(reference: Reference) -> bytes:
    return reference.hash if isinstance(reference, Far) else blake2_256(encode(reference))


def _split(node: PartialNode, rest: str, value: bytes) -> PartialNode:
    """A branch above a node and a new key that diverge within the node's partial key; `rest` is the rest of the key."""
    partial = node.partial
    shared = shared_digits(partial, rest, 0)
    below: dict[int, Reference] = {int(partial[shared], 16): replace(node, partial=partial[shared + 1 :])}
    if shared == len(rest):
        return PartialNode(rest, value, below)
    below[int(rest[shared], 16)] = PartialNode(rest[shared + 1 :], value, {})
    return PartialNode(partial[:shared], None, below)


def _overlap(path: str, prefix: str) -> bool:
    """Whether keys below `path` can start with `prefix`."""
    return path.startswith(prefix) or prefix.startswith(path)


def _behind(path: str, after: str | None) -> bool:
    """Whether no key below `path` comes after `after`."""
    return after is not None and path < after and not after.startswith(path)


def _decode(encoded: bytes) -> PartialNode:
    """A node from its bytes. Raises `BadNode`."""
    parts = DecodedNode(encoded)
    if not parts.kind:
        raise BadNode(b"", b"", b"", 0, "an empty trie below a root")
    value: bytes | Far | None = parts.value
    if parts.is_detached:
        value = Far(encoded[parts.value_at : parts.value_end])
    children: dict[int, Reference] = {}
    for nibble, reference in parts.references:
        if len(reference) > 32:  # no honest trie has one; nested, they would be decoded without bound
            raise BadNode(b"", b"", b"", 0, f"an inline child of {len(reference)} bytes")
        children[nibble] = Far(reference) if len(reference) == 32 else _decode(reference)
    return PartialNode(parts.partial, value, children)


def encode(node: PartialNode) -> bytes:
    """A node's bytes."""
    if not node.kept:
        node.kept.append(_encoded(node))
    return node.kept[0]


def _encoded(node: PartialNode) -> bytes:
    value = node.value
    detached = isinstance(value, Far) or (value is not None and len(value) > _MAX_INLINE)
    if node.children:
        kind = codec.BRANCH if value is None else codec.HASHED_BRANCH if detached else codec.BRANCH_WITH_VALUE
    else:
        kind = codec.HASHED_LEAF if detached else codec.LEAF
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
