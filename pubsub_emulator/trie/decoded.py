"""A whole node decoded, for code that shows or rewrites nodes.

Code that follows one key uses `step.follow`.
"""

from typing import NoReturn

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.codec import BRANCH, HASHED_BRANCH, HASHED_LEAF, LEAF
from pubsub_emulator.trie.errors import BadNode


class DecodedNode:
    """The parts of `node` and their positions.

    kind      as in `pubsub_emulator.trie.codec`, or 0 for the empty trie
    nibbles   length of the partial key; its bytes are node[partial_at:body_at]
    bitmap    0 in a leaf
    value     node[value_at:value_end] is the value or its hash; empty if the node has no value
    children  nibble, start of the length, start and end of the reference
    """

    __slots__ = (
        "bitmap",
        "body_at",
        "children",
        "kind",
        "nibbles",
        "node",
        "partial_at",
        "value_at",
        "value_end",
    )

    def __init__(self, node: bytes, *, to_end: bool = True) -> None:
        """Decode `node`.

        Raises `BadNode` for nodes that `step` refuses, and with `to_end` for bytes after the node's
        end.
        """
        self.node = node
        self.kind = 0
        self.nibbles = 0
        self.bitmap = 0
        self.partial_at = self.body_at = self.value_at = self.value_end = 1
        self.children: list[tuple[int, int, int, int]] = []
        reader = Reader(node)
        try:
            self._read(reader)
            if to_end:
                reader.end()
        except ScaleError as error:
            _refuse(str(error))

    @property
    def partial(self) -> str:
        """Return the partial key in hex digits."""
        return self.node[self.partial_at : self.body_at].hex()[self.nibbles & 1 :]

    @property
    def is_detached(self) -> bool:
        """Return whether the node has a value that it names by hash."""
        return self.kind in {HASHED_LEAF, HASHED_BRANCH}

    @property
    def value(self) -> bytes | None:
        """Return the value, or the hash of a detached value; `None` if the node has no value."""
        return None if self.kind in {0, BRANCH} else self.node[self.value_at : self.value_end]

    @property
    def value_hash(self) -> Hash | None:
        """Return the hash of the detached value, or `None` if the value is not detached."""
        return Hash(self.node[self.value_at : self.value_end]) if self.is_detached else None

    @property
    def references(self) -> list[tuple[int, bytes]]:
        """Return the children by nibble: 32 bytes are a hash, anything else is the child itself."""
        return [(nibble, self.node[start:end]) for nibble, _, start, end in self.children]

    def _read(self, reader: Reader) -> None:
        """Read the parts of the node in the order of their encoding.

        Refuses the same nodes as `step`.
        """
        head = reader.u8()
        if head == 0:
            return
        if head >= LEAF:
            most = 0x3F
        elif head >= HASHED_LEAF:
            most = 0x1F
        else:
            most = 0x0F
        kind = self.kind = head & ~most
        if head < HASHED_BRANCH:
            _refuse(f"reserved header {head:#04x}")
        nibbles = head & most
        if nibbles == most:
            more = 255
            nibbles -= 1
            while more == 255:
                more = reader.u8()
                nibbles += more
            nibbles += 1
        self.nibbles = nibbles
        self.partial_at = reader.pos
        if reader.take((nibbles + 1) >> 1) and nibbles & 1 and self.node[self.partial_at] > 0x0F:
            _refuse("padding of the partial key is not zero")
        self.body_at = reader.pos
        leaf = kind in {LEAF, HASHED_LEAF}
        if not leaf:
            self.bitmap = reader.uint(2)
            if not self.bitmap:
                _refuse("branch without children")
        if kind in {HASHED_LEAF, HASHED_BRANCH}:
            length = 32
        elif kind & LEAF:
            length = reader.compact(32)
        else:
            length = 0
        self.value_at = reader.pos
        reader.take(length)
        self.value_end = reader.pos
        for nibble in range(16):
            if self.bitmap >> nibble & 1:
                start = reader.pos
                length = reader.compact(32)
                at = reader.pos
                reader.take(length)
                self.children.append((nibble, start, at, reader.pos))


def _refuse(reason: str) -> NoReturn:
    raise BadNode(b"", b"", b"", 0, reason)
