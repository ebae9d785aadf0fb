"""Whole tries at once: the root of many entries without building a trie, and the nodes of a trie of many entries.

Both walk the sorted keys once. How many nibbles two neighbours share says everything about the shape: a key hangs from
a branch as deep as the longer of the prefixes that it shares with its two neighbours, and a branch is complete as soon
as a key shares less than the branch's depth with the next.
"""

import gc
from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from operator import itemgetter
from typing import Final

from primitives.errors import DefensiveFailure
from primitives.hashing import blake2_256
from primitives.scale import encode_bytes
from primitives.types import EMPTY_TRIE_ROOT, Hash
from trie.codec import (
    BRANCH,
    BRANCH_WITH_VALUE,
    HASHED_BRANCH,
    HASHED_LEAF,
    INLINE_LENGTHS,
    LEAF,
    MAX_INLINE_VALUE,
    NIBBLES,
    new_hasher,
    node_head,
)
from trie.nibbles import shared, shared_nibbles
from trie.nodes import NIBBLE, Node, Owner


def state_root(entries: Iterable[tuple[bytes, bytes]], version: int = 1) -> Hash:
    """The root of a trie of `entries`, in any order; of entries with the same key the last one counts."""
    listed = entries if isinstance(entries, list) else list(entries)
    if not listed:
        return EMPTY_TRIE_ROOT
    paused = gc.isenabled()
    gc.disable()
    try:
        return _fold(listed, MAX_INLINE_VALUE[version])
    finally:
        if paused:
            gc.enable()


def _fold(entries: list[tuple[bytes, bytes]], max_inline: int) -> Hash:
    """The root of at least one entry.

    A record is a key and its value as a node stores it. Records that are sorted, cut into leaves and hashed soon after
    one another stay in the processor's cache; that is why they come in runs.
    """
    plain: set[bytes] = set()
    runs = _uniform_runs(entries, max_inline, plain)
    if runs is None:
        plain.clear()
        runs = _mixed_run(entries, max_inline, plain)
    # The open branch: nibbles above its children, bits of the children it has, their references, its value.
    depth = -1
    half = -1
    bits = _HIGH_BIT
    bitmap = 0
    refs: list[bytes] = []
    tail = b""
    kind = BRANCH
    stack: list[tuple[int, int, list[bytes], bytes, int]] = []
    left = -1
    fresh = new_hasher
    for records, sizes, rights in runs:
        for record, size, right in zip(records, sizes, rights, strict=False):
            detached = len(record) == size + 32 and (not plain or record not in plain)
            if right > left:
                stack.append((depth, bitmap, refs, tail, kind))
                depth = right
                half = depth >> 1
                bits = _LOW_BIT if depth & 1 else _HIGH_BIT
                bitmap = 0
                refs = []
                if 2 * size == right:
                    tail = record[size:]
                    kind = HASHED_BRANCH if detached else BRANCH_WITH_VALUE
                    left = right
                    continue
                tail = b""
                kind = BRANCH

            nibbles = 2 * size - depth - 1
            if depth < 0:
                return blake2_256(_leaf_heads(HASHED_LEAF if detached else LEAF, nibbles, odd=False)[0] + record)
            byte = record[half]
            if detached:
                heads = _hashed_heads[nibbles] if nibbles < _TABLED else None
                if heads is None:
                    heads = _leaf_heads(HASHED_LEAF, nibbles, odd=not depth & 1)
                hasher = fresh()
                hasher.update(heads[byte] + record[half + 1 :])
                refs.append(b"\x80" + hasher.digest())
            else:
                heads = _plain_heads[nibbles] if nibbles < _TABLED else None
                if heads is None:
                    heads = _leaf_heads(LEAF, nibbles, odd=not depth & 1)
                refs.append(_reference(heads[byte] + record[half + 1 :]))
            bitmap |= bits[byte]
            while depth > right:
                # The open branch is complete: it becomes a child of the next one above, which may have to be opened.
                above = stack[-1][0]
                above = max(above, right)
                if kind == BRANCH and depth == above + 1:
                    encoded = (bitmap << 8 | BRANCH).to_bytes(3, "little") + b"".join(refs)
                else:
                    head = node_head(kind, depth - above - 1) + _packed(record, above + 1, depth)
                    encoded = b"".join((head, bitmap.to_bytes(2, "little"), tail, *refs))
                if above < 0:
                    return blake2_256(encoded)
                if stack[-1][0] == above:
                    depth, bitmap, refs, tail, kind = stack.pop()
                else:
                    depth = right
                    bitmap = 0
                    refs = []
                    tail = b""
                    kind = BRANCH
                half = depth >> 1
                bits = _LOW_BIT if depth & 1 else _HIGH_BIT
                if len(encoded) < 32:
                    refs.append(INLINE_LENGTHS[len(encoded)] + encoded)
                else:
                    hasher = fresh()
                    hasher.update(encoded)
                    refs.append(b"\x80" + hasher.digest())
                bitmap |= bits[record[half]]
            left = right
    raise DefensiveFailure("the last record closes the root")


_Run = tuple[list[bytes], Iterable[int], list[int]]
"""Records in ascending order of their keys, the keys' sizes, and the nibbles that each shares with the next."""


def _uniform_runs(entries: list[tuple[bytes, bytes]], max_inline: int, plain: set[bytes]) -> Iterator[_Run] | None:
    """Runs of records by first byte, or none unless all keys are distinct and of one size, at least one byte.

    Adds to `plain` the records that have the length of one with a detached value but hold the value itself.
    """
    size = len(entries[0][0])
    if not size or any(map(size.__ne__, map(len, map(itemgetter(0), entries)))):
        return None
    buckets: list[list[bytes]] = [[] for _ in range(256)]
    regular = True
    fresh = new_hasher
    for key, value in entries:
        if len(value) > max_inline:
            hasher = fresh()
            hasher.update(value)
            buckets[key[0]].append(key + hasher.digest())
        else:
            regular = False
            record = key + encode_bytes(value)
            if len(record) == size + 32:
                plain.add(record)
            buckets[key[0]].append(record)
    runs: list[_Run] = []
    following: bytes | None = None
    buckets.reverse()
    for records in buckets:
        if records:
            records.sort()
            shared = shared_nibbles(records, size, regular=regular)
            if 2 * size in shared:
                return None
            shared.append(-1 if following is None else 0 if records[0][0] ^ following[0] > 15 else 1)
            following = records[0]
            runs.append((records, repeat(size), shared))
    runs.reverse()
    return iter(runs)


def _mixed_run(entries: list[tuple[bytes, bytes]], max_inline: int, plain: set[bytes]) -> Iterator[_Run]:
    """One run of whatever keys there are; `plain` as above."""
    table = dict(entries)
    keys = sorted(table)
    records: list[bytes] = []
    for key in keys:
        value = table[key]
        if len(value) > max_inline:
            records.append(key + blake2_256(value))
        else:
            record = key + encode_bytes(value)
            if len(record) == len(key) + 32:
                plain.add(record)
            records.append(record)
    shared_with_next = [shared(key, following) for key, following in zip(keys, islice(keys, 1, None), strict=False)]
    shared_with_next.append(-1)
    return iter([(records, map(len, keys), shared_with_next)])


_TABLED: Final = 256
_HIGH_BIT: Final = [1 << (byte >> 4) for byte in range(256)]
_LOW_BIT: Final = [1 << (byte & 15) for byte in range(256)]
# By the nibbles of a leaf's partial key, and by the byte in which the branch above it branches: the leaf up to that
# byte's end. Where the branch takes the high nibble, the low one opens the partial key.
_plain_heads: Final[list[list[bytes] | None]] = [None] * _TABLED
_hashed_heads: Final[list[list[bytes] | None]] = [None] * _TABLED


def _leaf_heads(kind: int, nibbles: int, *, odd: bool) -> list[bytes]:
    """The table's row for `nibbles`, which it keeps."""
    head = node_head(kind, nibbles)
    row = [head + NIBBLES[byte & 15] for byte in range(256)] if odd else [head] * 256
    if nibbles < _TABLED:
        (_hashed_heads if kind == HASHED_LEAF else _plain_heads)[nibbles] = row
    return row


def _reference(encoded: bytes) -> bytes:
    if len(encoded) < 32:
        return INLINE_LENGTHS[len(encoded)] + encoded
    hasher = new_hasher()
    hasher.update(encoded)
    return b"\x80" + hasher.digest()


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
    shared_with_next = [shared(key, following) for key, following in zip(keys, islice(keys, 1, None), strict=False)]
    shared_with_next.append(-1)
    for key, right in zip(keys, shared_with_next, strict=True):
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
