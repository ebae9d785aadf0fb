"""The encoding of a trie node, as in sp-trie's `NodeCodec`.

    00                                       empty trie
    01nnnnnn  partial  Compact len, value            leaf
    001nnnnn  partial  [u8; 32]                      leaf, value detached: its hash (LayoutV1)
    10nnnnnn  partial  bitmap            children    branch without a value
    11nnnnnn  partial  bitmap  Compact len, value  children    branch with a value
    0001nnnn  partial  bitmap  [u8; 32]  children    branch, value detached (LayoutV1)

n        nibbles of the partial key; if all bits are set, the number goes on in the next bytes:
         each 255 adds 255, and the first byte below 255 adds itself and ends the number
partial  the nibbles, high one first, right-aligned: with an odd count, the high nibble of the
         first byte is zero
bitmap   u16, little endian, bit i for the child at nibble i; never zero
child    Compact length, then the child's reference: 32 bytes are its hash, any other length is
         the node itself

A node of fewer than 32 encoded bytes is referred to by itself, a longer one by its blake2b-256, and
the root always by its hash. Under LayoutV1 a value of more than 32 bytes is detached; LayoutV0
detaches no value.
"""

from hashlib import blake2b
from typing import Final

from pubsub_emulator.primitives.hashing import new_blake2_256

LEAF: Final = 0x40
BRANCH: Final = 0x80
BRANCH_WITH_VALUE: Final = 0xC0
HASHED_LEAF: Final = 0x20
HASHED_BRANCH: Final = 0x10
EMPTY_NODE: Final = b"\x00"
ESCAPE: Final = 0x01
"""First byte of an item of a compact proof whose detached value is the next item.

No node starts with this byte.
"""

MAX_INLINE_VALUE: Final = (1 << 62, 32)
"""The longest value that its node holds, by state version."""

new_hasher: Final = new_blake2_256
"""A new blake2b-256 object, for loops in which a call of `blake2_256` costs too much."""

feed: Final = blake2b.update
digest_of: Final = blake2b.digest
"""The methods `update` and `digest` as functions.

They save time in compiled code, which looks up a method by name at every call.
"""

_TABLED: Final = 600


def node_head(kind: int, nibbles: int) -> bytes:
    """Return the header of a node of `kind` whose partial key has `nibbles` nibbles."""
    if kind >= LEAF:
        most = 0x3F
    elif kind == HASHED_LEAF:
        most = 0x1F
    else:
        most = 0x0F
    if nibbles < most:
        return bytes((kind + nibbles,))
    more, last = divmod(nibbles - most, 255)
    return bytes((kind + most,)) + b"\xff" * more + bytes((last,))


LEAF_HEADS: Final = [node_head(LEAF, n) for n in range(_TABLED)]
HASHED_LEAF_HEADS: Final = [node_head(HASHED_LEAF, n) for n in range(_TABLED)]
NIBBLES: Final = [bytes((n,)) for n in range(16)]
ODD_LEAF_HEADS: Final = [[head + nibble for nibble in NIBBLES] for head in LEAF_HEADS]
ODD_HASHED_LEAF_HEADS: Final = [[head + nibble for nibble in NIBBLES] for head in HASHED_LEAF_HEADS]
"""The heads, followed by the first nibble of an odd partial key."""

CHILDREN: Final = bytes(bitmap.bit_count() for bitmap in range(1 << 16))
"""The number of bits in a bitmap, by bitmap.

In pure Python the table is as fast as `int.bit_count`, compiled it is ten times as fast.
"""

HIGH_BITS: Final = [1 << (byte >> 4) for byte in range(256)]
LOW_BITS: Final = [1 << (byte & 15) for byte in range(256)]
"""The bit of a byte's high or low nibble in a bitmap."""

CHILD_HASHES: Final = [slice(4 + 33 * before, 36 + 33 * before) for before in range(16)]
"""The position of a child's hash in a branch of hashes, by the number of children before it.

The branch has no partial key and no value.
"""

LENGTHS: Final = slice(3, None, 33)
"""The position of the length byte before each hash in such a branch."""

DETACHED_HASH: Final = slice(-32, None)
BEFORE_HASH: Final = slice(None, -32)
"""The hash of a leaf's detached value, and everything before it."""

HASH_LENGTHS: Final = [b"\x80" * n for n in range(17)]
"""The length bytes of n child hashes, by n."""

INLINE_LENGTHS: Final = [bytes((n << 2,)) for n in range(64)]
"""Compact lengths below 64."""


def pack(partial: str) -> bytes:
    """Return the bytes of a partial key that is given as hex digits, right-aligned."""
    return bytes.fromhex("0" + partial if len(partial) & 1 else partial)
