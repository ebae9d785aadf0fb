"""One step through one encoded trie node, and `follow`, which takes all steps towards one key.

`Descent` goes towards many keys. It uses `step` for nodes whose shape it does not recognise.

`step` accepts exactly the byte strings that sp-trie's `NodeCodec` decodes, because a verifier that
is stricter or laxer than the relay chain would fork from it. Whatever the key, it refuses
(`BadNode`):

- no bytes at all; a first byte 0x01 to 0x0f, which no kind of node has
- a header, partial key, bitmap, length, value or child that runs past the end
- an odd partial key whose padding nibble is not zero
- a branch with an empty bitmap
- a length that is not a Compact<u32> in its shortest form

It accepts some nodes that honest tries do not have, because the codec accepts them too:

- bytes after the node's end
- an inline child of more than 32 bytes
- a child or value that could have been shorter
- a branch with one child and no value
- a hashed value under LayoutV0
- 0x00 below the root

A child reference of 32 bytes is always a hash. An inline child is judged when it is stepped into,
so an empty one is a `BadNode` there and not in its parent.

The work is linear in the node's length and not recursive: an inline child is returned to the caller
as bytes.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NoReturn

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie.codec import CHILDREN, HASH_LENGTHS
from pubsub_emulator.trie.errors import BadNode

ABSENT: Final = 0
VALUE: Final = 1
DETACHED: Final = 2
CHILD: Final = 3
INLINE: Final = 4


def step(node: bytes, key: bytes, depth: int) -> tuple[int, bytes, int]:
    """Read `key` in `node`, which starts at nibble `depth` of it: `(kind, payload, depth)`.

    VALUE     the value's bytes; the key's length in nibbles
    DETACHED  the value's hash, 32 bytes; the same
    CHILD     the next node's hash, 32 bytes; the nibble at which it starts
    INLINE    the next node's bytes; the same
    ABSENT    b""; the nibble at which the node's partial key stops matching, or the one after the
              partial key if the branch has no value or no such child. The key is not in the trie.

    Raises `BadNode`, without hash and root, for the reasons listed in the module.
    """
    size = len(node)
    if not size:
        _refuse(key, depth, "no bytes")
    head = node[0]

    pos = 1

    # header
    if head >= 0x40:
        nibbles = head & 0x3F
        most = 0x3F
    elif head >= 0x20:
        nibbles = head & 0x1F
        most = 0x1F
    elif head >= 0x10:
        nibbles = head & 0x0F
        most = 0x0F
    elif head == 0:
        return ABSENT, b"", depth
    else:
        _refuse(key, depth, f"reserved header {head:#04x}")
    if nibbles == most:
        nibbles -= 1
        while True:
            if pos >= size:
                _refuse(key, depth, "truncated header")
            more = node[pos]
            pos += 1
            if more < 255:
                nibbles += more + 1
                break
            nibbles += 255

    # partial key
    partial_at = pos
    pos += (nibbles + 1) >> 1
    if pos > size:
        _refuse(key, depth, "truncated partial key")
    if nibbles & 1 and node[partial_at] > 0x0F:
        _refuse(key, depth, "padding of the partial key is not zero")
    end = depth + nibbles
    left = 2 * len(key) - end

    # leaf
    if 0x20 <= head < 0x80:
        if head < 0x40:
            stop = pos + 32
            if stop > size:
                _refuse(key, depth, "truncated value hash")
        else:
            if pos < size and not node[pos] & 3:
                length = node[pos] >> 2
                pos += 1
            else:
                length, pos = _compact(node, pos, key, depth)
            stop = pos + length
            if stop > size:
                _refuse(key, depth, "truncated value")
        if left or not _matches(node, partial_at, nibbles, key, depth):
            return ABSENT, b"", _divergence(node, partial_at, nibbles, key, depth)
        return (DETACHED if head < 0x40 else VALUE), node[pos:stop], end

    # branch
    if pos + 2 > size:
        _refuse(key, depth, "truncated bitmap")
    bitmap = node[pos] | node[pos + 1] << 8
    if not bitmap:
        _refuse(key, depth, "branch without children")
    pos += 2
    value_at = pos
    stop = pos
    if head < 0x20:
        stop = pos + 32
    elif head >= 0xC0:
        length, value_at = _compact(node, pos, key, depth)
        stop = value_at + length
    if stop > size:
        _refuse(key, depth, "truncated value")
    pos = stop
    count = CHILDREN[bitmap]
    hashes_only = size == pos + 33 * count and node[pos::33] == HASH_LENGTHS[count]
    if not hashes_only:
        check = pos
        for _ in range(count):
            if check < size and not node[check] & 3:
                check += 1 + (node[check] >> 2)
            else:
                length, check = _compact(node, check, key, depth)
                check += length
            if check > size:
                _refuse(key, depth, "truncated child")

    if nibbles and (left < 0 or not _matches(node, partial_at, nibbles, key, depth)):
        return ABSENT, b"", _divergence(node, partial_at, nibbles, key, depth)
    if not left:
        if head < 0x20:
            return DETACHED, node[value_at:stop], end
        if head >= 0xC0:
            return VALUE, node[value_at:stop], end
        return ABSENT, b"", end
    byte = key[end >> 1]
    bit = 1 << (byte & 15 if end & 1 else byte >> 4)
    if not bitmap & bit:
        return ABSENT, b"", end
    index = CHILDREN[bitmap & (bit - 1)]
    if hashes_only:
        pos += 33 * index + 1
        return CHILD, node[pos : pos + 32], end + 1
    while True:
        if node[pos] & 3:
            length, pos = _compact(node, pos, key, depth)
        else:
            length = node[pos] >> 2
            pos += 1
        if not index:
            break
        pos += length
        index -= 1
    return (CHILD if length == 32 else INLINE), node[pos : pos + length], end + 1


MOST_REMEMBERED: Final = 1_024
"""The length of the longest node that `remembered_step` is called with, in bytes.

A branch of sixteen hashes is shorter.
"""

remembered_step = lru_cache(maxsize=256)(step)
"""`step`, for the nodes of static keys, most of which stay the same from block to block."""


def follow(
    root: Hash, key: bytes, node_of: Callable[[Hash, bytes, int], bytes]
) -> tuple[int, bytes, int]:
    """Take all steps from the root node to the end of the way to `key`.

    Returns as `step`, but never `CHILD` or `INLINE`. `node_of(hash, key, depth)` must return the
    node of a hash, which starts at nibble `depth` of `key`. Raises `BadNode`.
    """
    node = node_of(root, key, 0)
    depth = 0
    while True:
        kind, payload, depth = step(node, key, depth)
        if kind == CHILD:
            node = node_of(Hash(payload), key, depth)
        elif kind == INLINE:
            node = payload
        else:
            return kind, payload, depth


def branch_of_hashes(node: bytes) -> int:
    """Return the bitmap of a branch of hashes without partial key and value, else 0.

    The hash of the child at nibble n starts at `4 + 33 * (bitmap & ((1 << n) - 1)).bit_count()`.
    Without the bit of nibble n, no key continues there.
    """
    if node.startswith(b"\x80") and len(node) > 34:
        bitmap = node[1] | node[2] << 8
        count = CHILDREN[bitmap]
        if len(node) == 3 + 33 * count and node[3::33] == HASH_LENGTHS[count]:
            return bitmap
    return 0


MOST_NIBBLES: Final = 0x3F
"""The partial key of a branch without value has fewer nibbles if its length is in the first byte.
"""


def followed_branch(node: bytes, key: bytes, depth: int) -> int:
    """Return the bitmap of a branch of hashes that `key` passes through, and 0 otherwise.

    The key passes through the branch if it has the branch's partial key and continues after it. The
    node starts at nibble `depth` of the key. It must have more than 34 bytes and the first byte of
    a branch without a value and with fewer than `MOST_NIBBLES` nibbles. After the partial key, its
    bytes are as those that `branch_of_hashes` accepts after the first byte.
    """
    nibbles = node[0] & 0x3F
    bitmap_at = (nibbles + 3) >> 1
    bitmap = node[bitmap_at] | node[bitmap_at + 1] << 8
    count = CHILDREN[bitmap]
    if (
        len(node) == bitmap_at + 2 + 33 * count
        and node[bitmap_at + 2 :: 33] == HASH_LENGTHS[count]
        and depth + nibbles < 2 * len(key)
        and _matches(node, 1, nibbles, key, depth)
    ):
        return bitmap
    return 0


def _matches(node: bytes, at: int, nibbles: int, key: bytes, depth: int) -> bool:
    """Return whether the nibbles of `key` from `depth` on are the partial key at `at`.

    The key must be long enough.
    """
    if not nibbles:
        return True
    end = depth + nibbles
    if end & 1:
        mine = int.from_bytes(node[at : at + ((nibbles + 1) >> 1)])
        other = int.from_bytes(key[depth >> 1 : (end + 1) >> 1]) >> 4
        return mine == (other & ((1 << 4 * nibbles) - 1) if depth & 1 else other)
    if nibbles & 1:
        if node[at] != key[depth >> 1] & 15:
            return False
        at += 1
        depth += 1
    return node[at : at + (nibbles >> 1)] == key[depth >> 1 : end >> 1]


def _divergence(node: bytes, at: int, nibbles: int, key: bytes, depth: int) -> int:
    """Return the first nibble at which `key` and the partial key differ.

    If they do not differ, it is the end of the shorter one.
    """
    shared = min(nibbles, 2 * len(key) - depth)
    mine = node[at : at + ((nibbles + 1) >> 1)].hex()
    mine = mine[1:] if nibbles & 1 else mine
    other = key.hex()[depth : depth + shared]
    if mine[:shared] == other:
        return depth + shared
    apart = int(mine[:shared], 16) ^ int(other, 16)
    return depth + shared - (apart.bit_length() + 3) // 4


def _compact(node: bytes, pos: int, key: bytes, depth: int) -> tuple[int, int]:
    """Return the Compact<u32> at `pos` and the position after it."""
    size = len(node)
    if pos >= size:
        _refuse(key, depth, "truncated length")
    mode = node[pos] & 3
    if mode == 0:
        return node[pos] >> 2, pos + 1
    if mode == 3:
        if node[pos] != 3:
            _refuse(key, depth, "length exceeds u32")
        width, least = 5, 1 << 30
    elif mode == 2:
        width, least = 4, 1 << 14
    else:
        width, least = 2, 1 << 6
    end = pos + width
    if end > size:
        _refuse(key, depth, "truncated length")
    value = (
        int.from_bytes(node[pos + 1 : end], "little")
        if mode == 3
        else int.from_bytes(node[pos:end], "little") >> 2
    )
    if value < least:
        _refuse(key, depth, "length is not in its shortest form")
    return value, end


def _refuse(key: bytes, depth: int, reason: str) -> NoReturn:
    raise BadNode(b"", b"", key, depth, reason)
