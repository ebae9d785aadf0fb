"""Whole tries at once: the root of many entries without a trie, and the nodes of a trie.

Both functions walk the sorted keys once. The number of nibbles that neighbours share determines the
shape. A key hangs from a branch as deep as the longer of the prefixes that it shares with its two
neighbours. A branch is complete as soon as a key and the next one share fewer nibbles than the
branch's depth.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie.codec import (
    BRANCH,
    BRANCH_WITH_VALUE,
    HASHED_BRANCH,
    HASHED_LEAF,
    HASHED_LEAF_HEADS,
    HIGH_BITS,
    INLINE_LENGTHS,
    LEAF,
    LEAF_HEADS,
    LOW_BITS,
    MAX_INLINE_VALUE,
    NIBBLES,
    ODD_HASHED_LEAF_HEADS,
    ODD_LEAF_HEADS,
    digest_of,
    feed,
    new_hasher,
    node_head,
)
from pubsub_emulator.trie.nibbles import shared_nibbles, shared_with_next
from pubsub_emulator.trie.nodes import NIBBLE, Node, Owner

T = TypeVar("T")


def state_root(entries: Iterable[tuple[bytes, bytes]], version: int = 1) -> Hash:
    """Return the root of a trie of `entries`, in any order.

    If a key occurs twice, the last entry counts.
    """
    listed = entries if isinstance(entries, list) else list(entries)
    if not listed:
        return EMPTY_TRIE_ROOT
    max_inline = MAX_INLINE_VALUE[version]
    return _uncollected(
        lambda: _regular_root(listed, max_inline) or _mixed_root(listed, max_inline)
    )


def _uncollected(make: Callable[[], T]) -> T:
    """Call `make` with the garbage collector paused and return its result.

    Building a trie makes many objects and no garbage, so each collection would be wasted.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        return make()
    finally:
        if paused:
            gc.enable()


def ordered_root(values: Iterable[bytes]) -> Hash:
    """Return the root of a layout 0 trie of `values` under their compact indices.

    Headers hold it as extrinsics root.
    """
    listed = list(values)
    # Every block without signed extrinsics has one extrinsic: one leaf, under the key 00.
    if len(listed) == 1:
        return blake2_256(LEAF_HEADS[2] + b"\x00" + encode_bytes(listed[0]))
    return state_root([(encode_compact(at), value) for at, value in enumerate(listed)], version=0)


def _regular_root(entries: list[tuple[bytes, bytes]], max_inline: int) -> Hash | None:
    """Return the root of entries with distinct keys of one size and detached values.

    Returns `None` for other entries, and for fewer than two. This takes three quarters of the time
    of `_mixed_root`, since every reference is a hash.
    """
    size = len(entries[0][0])
    if len(entries) < 2 or not size or 2 * size > len(HASHED_LEAF_HEADS):
        return None
    runs = _regular_runs(entries, size, max_inline)
    # For each depth of a branch: the index of the key's byte in which it branches, the index at
    # which the rest of the key begins, and two tables by that byte: the bit of the child, and the
    # beginning of a leaf up to the byte's end. If the branch takes the high nibble, the low one is
    # the first nibble of the leaf's partial key.
    ways: list[tuple[int, int, list[int], list[bytes]]] = []
    for depth in range(2 * size):
        left = 2 * size - depth - 1
        if depth & 1:
            ways.append((depth >> 1, (depth >> 1) + 1, LOW_BITS, [HASHED_LEAF_HEADS[left]] * 256))
        else:
            ways.append((depth >> 1, (depth >> 1) + 1, HIGH_BITS, ODD_HASHED_LEAF_HEADS[left] * 16))
    # The open branch: its depth, a bit for each child so far, and the children's hashes after an
    # empty element for the branch's head.
    depth = -1
    bitmap = 0
    hashes: list[bytes] = []
    half, rest, bits, heads = ways[0]
    stack: list[tuple[int, int, list[bytes]]] = []
    left = -1
    fresh, update, digest = new_hasher, feed, digest_of
    for records, shared_with_right in runs:
        for record, right in zip(records, shared_with_right):  # noqa: B905  # of one length; mypyc makes a loop of a plain zip
            if right > left:
                stack.append((depth, bitmap, hashes))
                depth = right
                half, rest, bits, heads = ways[depth]
                bitmap = 0
                hashes = [b""]
            byte = record[half]
            bitmap |= bits[byte]
            hasher = fresh()
            update(hasher, heads[byte] + record[rest:])
            hashes.append(digest(hasher))
            while depth > right:
                # The open branch is complete: it becomes a child of the next one above, which may
                # have to be opened.
                above = stack[-1][0]
                opens = above < right
                if opens:
                    above = right
                if depth == above + 1:
                    hashes[0] = (bitmap << 8 | BRANCH).to_bytes(3, "little")
                else:
                    head = node_head(BRANCH, depth - above - 1) + _packed(record, above + 1, depth)
                    hashes[0] = head + bitmap.to_bytes(2, "little")
                hasher = fresh()
                update(hasher, b"\x80".join(hashes))
                if above < 0:
                    return Hash(digest(hasher))
                if opens:
                    depth = right
                    bitmap = 0
                    hashes = [b""]
                else:
                    depth, bitmap, hashes = stack.pop()
                half, rest, bits, heads = ways[depth]
                hashes.append(digest(hasher))
                bitmap |= bits[record[half]]
            left = right
    return None


def _regular_runs(
    entries: list[tuple[bytes, bytes]], size: int, max_inline: int
) -> Iterator[tuple[list[bytes], list[int]]]:
    """Yield runs of sorted records, with the nibbles that each shares with the next (last: -1).

    A record is a key followed by the hash of its value. Only the nibbles of its key count. A run
    has the keys of one first byte, so that its records stay in the processor's cache. The runs end
    before the last record if the entries are not regular.
    """
    buckets: list[list[bytes]] = [[] for _ in range(256)]
    fresh, update, digest = new_hasher, feed, digest_of
    for key, value in entries:
        if len(value) <= max_inline or len(key) != size:
            return
        hasher = fresh()
        update(hasher, value)
        buckets[key[0]].append(key + digest(hasher))
    records: list[bytes] = []
    shared_with_right: list[int] = []
    buckets.reverse()
    while buckets:
        # A run's records are freed while they are still in the processor's cache.
        following = buckets.pop()
        if not following:
            continue
        following.sort()
        if records:
            shared_with_right.append(0 if records[0][0] ^ following[0][0] > 15 else 1)
            yield records, shared_with_right
        records = following
        shared_with_right = shared_nibbles(records, size)
        # A key that occurs twice makes the entries irregular.
        if 2 * size in shared_with_right:
            return
    shared_with_right.append(-1)
    yield records, shared_with_right


def _mixed_root(entries: list[tuple[bytes, bytes]], max_inline: int) -> Hash:
    """Return the root of at least one entry, with any keys and values."""
    table = dict(entries)
    keys = sorted(table)
    # The open branch. Its value is in the form that its encoding has.
    depth = -1
    half = -1
    bitmap = 0
    refs: list[bytes] = []
    bits = HIGH_BITS
    tail = b""
    kind = BRANCH
    stack: list[tuple[int, int, list[bytes], bytes, int]] = []
    left = -1
    fresh, update, digest = new_hasher, feed, digest_of
    for key, right in zip(keys, shared_with_next(keys), strict=True):
        value = table[key]
        detached = len(value) > max_inline
        if detached:
            hasher = fresh()
            update(hasher, value)
            stored = digest(hasher)
        else:
            stored = (
                INLINE_LENGTHS[len(value)] + value
                if len(value) < len(INLINE_LENGTHS)
                else encode_bytes(value)
            )
        if right > left:
            stack.append((depth, bitmap, refs, tail, kind))
            depth = right
            half = depth >> 1
            bits = LOW_BITS if depth & 1 else HIGH_BITS
            bitmap = 0
            refs = []
            if 2 * len(key) == right:
                tail = stored
                kind = HASHED_BRANCH if detached else BRANCH_WITH_VALUE
                left = right
                continue
            tail = b""
            kind = BRANCH

        nibbles = 2 * len(key) - depth - 1
        if depth < 0:
            return blake2_256(node_head(HASHED_LEAF if detached else LEAF, nibbles) + key + stored)
        byte = key[half]
        if nibbles >= len(LEAF_HEADS):
            head = node_head(HASHED_LEAF if detached else LEAF, nibbles) + (
                b"" if depth & 1 else NIBBLES[byte & 15]
            )
        elif depth & 1:
            head = (HASHED_LEAF_HEADS if detached else LEAF_HEADS)[nibbles]
        else:
            head = (ODD_HASHED_LEAF_HEADS if detached else ODD_LEAF_HEADS)[nibbles][byte & 15]
        encoded = head + key[half + 1 :] + stored
        if len(encoded) < 32:
            refs.append(INLINE_LENGTHS[len(encoded)] + encoded)
        else:
            hasher = fresh()
            update(hasher, encoded)
            refs.append(b"\x80" + digest(hasher))
        bitmap |= bits[byte]
        while depth > right:
            above = max(stack[-1][0], right)
            if kind == BRANCH and depth == above + 1:
                encoded = (bitmap << 8 | BRANCH).to_bytes(3, "little") + b"".join(refs)
            else:
                head = node_head(kind, depth - above - 1) + _packed(key, above + 1, depth)
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
            bits = LOW_BITS if depth & 1 else HIGH_BITS
            if len(encoded) < 32:
                refs.append(INLINE_LENGTHS[len(encoded)] + encoded)
            else:
                hasher = fresh()
                update(hasher, encoded)
                refs.append(b"\x80" + digest(hasher))
            bitmap |= bits[key[half]]
        left = right
    raise DefensiveFailure("the last entry closes the root")


def _packed(key: bytes, start: int, end: int) -> bytes:
    """Return the nibbles `start` to `end` of `key`, right-aligned."""
    number = int.from_bytes(key[start >> 1 : (end + 1) >> 1])
    if end & 1:
        number >>= 4
    count = end - start
    return (number & ((1 << 4 * count) - 1)).to_bytes((count + 1) >> 1)


def build(entries: Iterable[tuple[bytes, bytes]], owner: Owner) -> tuple[Node | None, int]:
    """Build a trie of `entries`.

    Returns its root node, which is not encoded yet, and the number of entries.
    """
    table = dict(entries)
    return (_uncollected(lambda: _build(table, owner)), len(table)) if table else (None, 0)


def _build(table: dict[bytes, bytes], owner: Owner) -> Node:
    """Build the nodes of a trie from sorted keys, with the open branches on a stack.

    A branch is closed, and gets its partial key, when a key shares fewer nibbles with the next key
    than the branch's depth.
    """
    keys = sorted(table)
    # Open branches, deepest last, with the nibbles above their children.
    stack: list[Node] = []
    depths: list[int] = [-1]
    left = -1
    node = Node(owner, "", None)
    for key, right in zip(keys, shared_with_next(keys), strict=True):
        digits = key.hex()
        if right > left:
            # The branch's partial key is known when the branch is closed.
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
