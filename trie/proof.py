"""Reading a proof: what a set of nodes says about some keys under a root.

Keys are read in ascending order and share their way down. The two shapes that nearly every node of a state has, a
branch of hashes and a leaf with a detached value, are recognised here by comparing bytes; every other node goes through
`walk.step`, which decides what is malformed. A node is parsed only after its hash was asked for by its parent, so bytes
that the root does not vouch for are never looked into.
"""

from collections.abc import Iterable
from typing import Any

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT
from pubsub_emulator.trie.codec import (
    BEFORE_HASH,
    CHILD_HASHES,
    CHILDREN,
    DETACHED_HASH,
    EMPTY_NODE,
    HASH_LENGTHS,
    HASHED_LEAF_HEADS,
    HIGH_BITS,
    LENGTHS,
    LOW_BITS,
    ODD_HASHED_LEAF_HEADS,
    digest_of,
    feed,
    new_hasher,
)
from pubsub_emulator.trie.errors import BadNode, DuplicateNodes, MissingNode, UnusedNodes
from pubsub_emulator.trie.nibbles import shared_with_next
from pubsub_emulator.trie.walk import ABSENT, CHILD, DETACHED, INLINE, VALUE, branch_of_hashes, step


def read_proof(
    root: bytes, nodes: Iterable[bytes], keys: Iterable[bytes], *, exact: bool = False
) -> dict[bytes, bytes | None]:
    """The value of each key under `root`, none where the proof shows that it is absent, in the order of `keys`.

    Nodes may come in any order. As in sp-trie, repeated and unneeded ones are ignored unless `exact`, and the node of
    the empty trie need not be listed.

    Raises `MissingNode` where the proof leaves a key open (with several, the least), `BadNode` where a node that a key
    leads to is malformed; when `exact`, `DuplicateNodes` and `UnusedNodes`.
    """
    found = _by_hash(nodes, exact=exact)
    listed = tuple(found) if exact else ()
    found.setdefault(EMPTY_TRIE_ROOT, EMPTY_NODE)
    out = _read(found, root, keys)
    if exact:
        used: dict[bytes, None] = {}
        _mark_used(found, root, out, used)
        _refuse_unused(listed, used)
    return out


def read_child_proof(
    root: bytes, nodes: Iterable[bytes], child_storage_key: bytes, keys: Iterable[bytes], *, exact: bool = False
) -> dict[bytes, bytes | None]:
    """The value of each key in a child trie, whose root is read from the top trie `root` first; as `read_proof`.

    Every key of a child trie that is proven absent is absent. Raises `BadNode` too where the value that stands for the
    child root is not 32 bytes.
    """
    found = _by_hash(nodes, exact=exact)
    listed = tuple(found) if exact else ()
    found.setdefault(EMPTY_TRIE_ROOT, EMPTY_NODE)
    top_key = child_root_key(child_storage_key)
    child_root = _read(found, root, (top_key,))[top_key]
    used: dict[bytes, None] = {}
    if exact:
        _mark_used(found, root, (top_key,), used)
    if child_root is None:
        out: dict[bytes, bytes | None] = dict.fromkeys(keys)
    else:
        if len(child_root) != 32:
            raise BadNode(b"", root, top_key, 2 * len(top_key), f"a child root of {len(child_root)} bytes")
        out = _read(found, child_root, keys)
        if exact:
            _mark_used(found, child_root, out, used)
    if exact:
        _refuse_unused(listed, used)
    return out


def _by_hash(nodes: Iterable[bytes], *, exact: bool) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    fresh, update, digest = new_hasher, feed, digest_of
    if not exact:
        for node in nodes:
            hasher = fresh()
            update(hasher, node)
            found[digest(hasher)] = node
        return found
    repeated: dict[bytes, None] = {}
    for node in nodes:
        name = blake2_256(node)
        if name in found:
            repeated[name] = None
        found[name] = node
    if repeated:
        raise DuplicateNodes(tuple(repeated))
    return found


def _read(found: dict[bytes, bytes], root: bytes, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
    """The value of each key; `found` holds the empty trie's node."""
    out: dict[bytes, bytes | None] = dict.fromkeys(keys)
    wanted = sorted(out)
    if not wanted:
        return out
    node = found.get(root)
    if node is None:
        raise MissingNode(root, root, wanted[0], 0)
    # The way to the previous key, as far as this one goes it too: nodes, where each starts, and the bitmap of those
    # that are branches of hashes.
    trail = [(node, 0, branch_of_hashes(node))]
    # Every name of the inner loop is a local one: that alone is a tenth of it.
    heads, odd_heads, tabled = HASHED_LEAF_HEADS, ODD_HASHED_LEAF_HEADS, len(HASHED_LEAF_HEADS)
    high_bits, low_bits = HIGH_BITS, LOW_BITS
    children, child_hashes, lengths, of_hashes = CHILDREN, CHILD_HASHES, LENGTHS, HASH_LENGTHS
    before_hash, detached_hash = BEFORE_HASH, DETACHED_HASH
    whole: Any  # the node again: mypyc takes what indexes bytes for a number
    before = 0
    rights = shared_with_next(wanted)
    key = wanted[0]
    name = root
    depth = 0
    try:
        for at, key in enumerate(wanted):
            after = rights[at]
            node, depth, bitmap = trail[-1]
            while depth > before:
                trail.pop()
                node, depth, bitmap = trail[-1]
            before = after
            end = 2 * len(key)
            while True:
                if bitmap:
                    if depth == end:
                        break
                    byte = key[depth >> 1]
                    bit = low_bits[byte] if depth & 1 else high_bits[byte]
                    if not bitmap & bit:
                        break
                    whole = node
                    name = whole[child_hashes[children[bitmap & (bit - 1)]]]
                    depth += 1
                else:
                    try:
                        kind, name, depth = step(node, key, depth)
                    except BadNode:
                        raise _blame(found, root, key) from None
                    if kind == INLINE:
                        node = name
                        if depth <= after:
                            trail.append((node, depth, 0))
                        continue
                    if kind == VALUE:
                        out[key] = name
                        break
                    if kind == ABSENT:
                        break
                    if kind == DETACHED:
                        out[key] = found[name]
                        break
                whole = node = found[name]
                size = len(node)
                bitmap = 0
                if size > 34:
                    head = node[0]
                    if head == 0x80:
                        bitmap = node[1] | node[2] << 8
                        count = children[bitmap]
                        if size != 3 + 33 * count or whole[lengths] != of_hashes[count]:
                            bitmap = 0
                    elif head < 0x40 and end - depth < tabled:
                        half = depth >> 1
                        if depth & 1:
                            expected = odd_heads[end - depth][key[half] & 15] + key[half + 1 :]
                        else:
                            expected = heads[end - depth] + key[half:]
                        if whole[before_hash] == expected:
                            name = whole[detached_hash]
                            depth = end
                            out[key] = found[name]
                            break
                if depth <= after:
                    trail.append((node, depth, bitmap))
    except KeyError:  # of `found`, the only mapping read here
        raise MissingNode(name, root, key, depth) from None
    return out


def _blame(found: dict[bytes, bytes], root: bytes, key: bytes) -> BadNode:
    """The failure of a read of `key` that meets a malformed node, with the node's name."""
    name, depth, kind = root, 0, CHILD
    payload = root
    try:
        while True:
            if kind == CHILD:
                name = payload
                node = found[name]
            else:
                node = payload
            kind, payload, depth = step(node, key, depth)
    except BadNode as error:
        return error.placed(name, root)


def _mark_used(found: dict[bytes, bytes], root: bytes, keys: Iterable[bytes], used: dict[bytes, None]) -> None:
    """Add to `used` what reading `keys`, known to succeed, touches."""
    for key in keys:
        kind, payload, depth = CHILD, root, 0
        node = b""
        while kind in {CHILD, INLINE}:
            if kind == CHILD:
                used[payload] = None
                node = found[payload]
            else:
                node = payload
            kind, payload, depth = step(node, key, depth)
        if kind == DETACHED:
            used[payload] = None


def _refuse_unused(listed: tuple[bytes, ...], used: dict[bytes, None]) -> None:
    unused = tuple(name for name in listed if name not in used)
    if unused:
        raise UnusedNodes(len(unused), unused)
