"""Whole tries at once: the root of many entries without building a trie, and the nodes of a trie of many entries.

Both walk the sorted keys once. How many nibbles two neighbours share says everything about the shape: a key hangs from
a branch as deep as the longer of the prefixes that it shares with its two neighbours, and a branch is complete as soon
as a key shares less than the branch's depth with the next.
"""

import gc
from collections.abc import Iterable
from itertools import islice
from operator import xor

from primitives.hashing import blake2_256
from primitives.scale import encode_compact
from primitives.types import EMPTY_TRIE_ROOT, Hash
from trie.codec import (
    BITMAPS,
    BRANCH,
    BRANCH_WITH_VALUE,
    HASHED_BRANCH,
    HASHED_LEAF,
    HASHED_LEAF_HEADS,
    INLINE_LENGTHS,
    LEAF,
    LEAF_HEADS,
    MAX_INLINE_VALUE,
    NIBBLES,
    ODD_HASHED_LEAF_HEADS,
    ODD_LEAF_HEADS,
    node_head,
)
from trie.codec import new_hasher as _copy
from trie.nodes import NIBBLE, Node, Owner


def state_root(entries: Iterable[tuple[bytes, bytes]], version: int = 1) -> Hash:
    """The root of a trie of `entries`, in any order; of entries with the same key the last one counts."""
    table = dict(entries)
    if not table:
        return EMPTY_TRIE_ROOT
    paused = gc.isenabled()
    gc.disable()
    try:
        return _state_root(table, MAX_INLINE_VALUE[version])
    finally:
        if paused:
            gc.enable()


def _state_root(table: dict[bytes, bytes], max_inline: int) -> Hash:
    keys = sorted(table)
    # The open branch: nibbles above its children, bits of the children it has, their references, its value.
    depth = -1
    bitmap = 0
    refs: list[bytes] = []
    tail = b""
    kind = BRANCH
    stack: list[tuple[int, int, list[bytes], bytes, int]] = []
    left = -1
    encoded = b""
    for key, right in zip(keys, _shared_nibbles(keys), strict=True):
        value = table[key]
        detached = len(value) > max_inline
        if detached:
            hasher = _copy()
            hasher.update(value)
            stored = hasher.digest()
        else:
            stored = encode_compact(len(value)) + value
        if right > left:
            stack.append((depth, bitmap, refs, tail, kind))
            depth = right
            bitmap = 0
            refs = []
            if 2 * len(key) == right:
                tail = stored
                kind = HASHED_BRANCH if detached else BRANCH_WITH_VALUE
                left = right
                continue
            tail = b""
            kind = BRANCH

        start = depth + 1
        at = start >> 1
        nibbles = 2 * len(key) - start
        if nibbles >= len(LEAF_HEADS):
            head = node_head(HASHED_LEAF if detached else LEAF, nibbles)
            if start & 1:
                head += NIBBLES[key[at] & 15]
                at += 1
        elif start & 1:
            head = (ODD_HASHED_LEAF_HEADS if detached else ODD_LEAF_HEADS)[nibbles][key[at] & 15]
            at += 1
        else:
            head = (HASHED_LEAF_HEADS if detached else LEAF_HEADS)[nibbles]
        encoded = head + key[at:] + stored
        while True:
            # `encoded` is the child of the open branch on the way to `key`
            if depth < 0:
                return blake2_256(encoded)
            if len(encoded) < 32:
                refs.append(INLINE_LENGTHS[len(encoded)] + encoded)
            else:
                hasher = _copy()
                hasher.update(encoded)
                refs.append(b"\x80" + hasher.digest())
            bitmap |= 1 << (key[depth >> 1] & 15 if depth & 1 else key[depth >> 1] >> 4)
            if depth == right:
                break
            above = stack[-1][0]
            above = max(above, right)
            nibbles = depth - above - 1
            head = node_head(kind, nibbles)
            if nibbles:
                head += _packed(key, above + 1, depth)
            encoded = head + BITMAPS[bitmap] + tail + b"".join(refs)
            if stack[-1][0] == above:
                depth, bitmap, refs, tail, kind = stack.pop()
            else:
                depth = right
                bitmap = 0
                refs = []
                tail = b""
                kind = BRANCH
        left = right
    return blake2_256(encoded)


def _shared_nibbles(keys: list[bytes]) -> list[int]:
    """How many nibbles each of the sorted `keys` shares with the next; -1 for the last."""
    size = len(keys[0])
    if all(len(key) == size for key in keys):
        numbers = list(map(int.from_bytes, keys))
        bits = 8 * size
        out = [(bits - apart.bit_length()) >> 2 for apart in map(xor, numbers, islice(numbers, 1, None))]
    else:
        out = []
        for key, following in zip(keys, islice(keys, 1, None), strict=False):
            size = min(len(key), len(following))
            apart = int.from_bytes(key[:size]) ^ int.from_bytes(following[:size])
            out.append((8 * size - apart.bit_length()) >> 2)
    out.append(-1)
    return out


def _packed(key: bytes, start: int, end: int) -> bytes:
    """Nibbles `start` to `end` of `key`, right-aligned."""
    number = int.from_bytes(key[start >> 1 : (end + 1) >> 1])
    if end & 1:
        number >>= 4
    count = end - start
    return (number & ((1 << 4 * count) - 1)).to_bytes((count + 1) >> 1)


def build(entries: Iterable[tuple[bytes, bytes]], owner: Owner) -> tuple[Node | None, int]:
    """The root node of a trie of `entries` with nothing encoded yet, and how many entries it has."""
    table = dict(entries)
    if not table:
        return None, 0
    paused = gc.isenabled()
    gc.disable()
    try:
        return _build(table, owner), len(table)
    finally:
        if paused:
            gc.enable()


def _build(table: dict[bytes, bytes], owner: Owner) -> Node:
    keys = sorted(table)
    # Open branches, deepest last, with the nibbles above their children.
    stack: list[Node] = []
    depths: list[int] = [-1]
    left = -1
    node = Node(owner, "", None)
    for key, right in zip(keys, _shared_nibbles(keys), strict=True):
        digits = key.hex()
        if right > left:
            # Its partial key is known when it is closed.
            branch = Node(owner, "", None)
            stack.append(branch)
            depths.append(right)
            if len(digits) == right:
                branch.value = table[key]
                left = right
                continue
        node = Node(owner, digits[depths[-1] + 1 :], table[key])
        while stack:
            depth = depths[-1]
            branch = stack[-1]
            branch.set_child(NIBBLE[digits[depth]], node)
            if depth == right:
                break
            stack.pop()
            depths.pop()
            above = max(depths[-1], right)
            branch.partial = digits[above + 1 : depth]
            node = branch
            if depths[-1] != above:
                stack.append(Node(owner, "", None))
                depths.append(right)
        left = right
    return node
