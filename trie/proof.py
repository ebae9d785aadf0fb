"""Reading a proof: what a set of nodes says about some keys under a root.

Keys are read in ascending order and share their way down. The two shapes that nearly every node of a state has, a
branch of hashes and a leaf with a detached value, are recognised here by comparing bytes; every other node goes through
`walk.step`, which decides what is malformed. A node is parsed only after its hash was asked for by its parent, so bytes
that the root does not vouch for are never looked into.
"""

from collections.abc import Iterable

from primitives.storage_keys import child_root_key
from primitives.types import EMPTY_TRIE_ROOT
from trie.codec import EMPTY_NODE, HASH_LENGTHS, HASHED_LEAF_HEADS, ODD_HASHED_LEAF_HEADS, new_hasher
from trie.errors import BadNode, DuplicateNodes, MissingNode, UnusedNodes
from trie.walk import ABSENT, CHILD, DETACHED, INLINE, VALUE, step


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
    count = 0
    repeated: dict[bytes, None] = {}
    for node in nodes:
        hasher = new_hasher()
        hasher.update(node)
        name = hasher.digest()
        if exact:
            count += 1
            if name in found:
                repeated[name] = None
        found[name] = node
    if repeated:
        raise DuplicateNodes(tuple(repeated))
    return found


def _read(found: dict[bytes, bytes], root: bytes, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
    out: dict[bytes, bytes | None] = dict.fromkeys(keys)
    wanted = sorted(out)
    if not wanted:
        return out
    # Groups of keys that share the way to one node: where it is, the node itself if inline, first key, end, nibble.
    names = [root]
    inlines: list[bytes | None] = [None]
    lows = [0]
    highs = [len(wanted)]
    depths = [0]
    while names:
        name = names.pop()
        node = inlines.pop()
        low = lows.pop()
        high = highs.pop()
        depth = depths.pop()
        if high - low == 1:
            out[wanted[low]] = _read_one(found, root, wanted[low], name, node, depth)
            continue
        if node is None:
            node = found.get(name)
            if node is None:
                raise MissingNode(name, root, wanted[low], depth)
        # From the last key to the first, so that the stack yields the first one first.
        at = high - 1
        size = len(node)
        if size > 68 and node[0] == 0x80:
            bitmap = node[1] | node[2] << 8
            count = bitmap.bit_count()
            if size == 3 + 33 * count and node[3::33] == HASH_LENGTHS[count]:
                half = depth >> 1
                odd = depth & 1
                while at >= low:
                    key = wanted[at]
                    high = at + 1
                    at -= 1
                    if len(key) <= half:
                        continue  # the key ends at a branch without a value
                    nibble = key[half] & 15 if odd else key[half] >> 4
                    bit = 1 << nibble
                    while at >= low:
                        key = wanted[at]
                        if len(key) <= half or (key[half] & 15 if odd else key[half] >> 4) != nibble:
                            break
                        at -= 1
                    if bitmap & bit:
                        pos = 4 + 33 * (bitmap & (bit - 1)).bit_count()
                        names.append(node[pos : pos + 32])
                        inlines.append(None)
                        lows.append(at + 1)
                        highs.append(high)
                        depths.append(depth + 1)
                continue
        last_child = -1
        while at >= low:
            key = wanted[at]
            try:
                kind, payload, below = step(node, key, depth)
            except BadNode as error:
                raise error.placed(name, root) from None
            if kind in {CHILD, INLINE}:
                # Keys of one child stand together, and differ at the nibble before it from those of any other.
                child = key[(below - 1) >> 1] & 15 if not below & 1 else key[(below - 1) >> 1] >> 4
                if child == last_child and lows[-1] == at + 1:
                    lows[-1] = at
                else:
                    names.append(payload if kind == CHILD else name)
                    inlines.append(None if kind == CHILD else payload)
                    lows.append(at)
                    highs.append(at + 1)
                    depths.append(below)
                    last_child = child
            elif kind == VALUE:
                out[key] = payload
            elif kind == DETACHED:
                value = found.get(payload)
                if value is None:
                    raise MissingNode(payload, root, key, below)
                out[key] = value
            at -= 1
    return out


def _read_one(  # noqa: PLR0917  # one call for every key; an object to hold six values would cost more than the call
    found: dict[bytes, bytes], root: bytes, key: bytes, name: bytes, inline: bytes | None, depth: int
) -> bytes | None:
    """The value of `key`, from the node that starts at its nibble `depth`: node `name`, or `inline` inside of it."""
    end = 2 * len(key)
    node = inline
    while True:
        if node is None:
            node = found.get(name)
            if node is None:
                raise MissingNode(name, root, key, depth)
        size = len(node)
        if size > 34 and depth < end:
            head = node[0]
            if head == 0x80:
                bitmap = node[1] | node[2] << 8
                count = bitmap.bit_count()
                if size == 3 + 33 * count and node[3::33] == HASH_LENGTHS[count]:
                    byte = key[depth >> 1]
                    bit = 1 << (byte & 15 if depth & 1 else byte >> 4)
                    if not bitmap & bit:
                        return None
                    pos = 4 + 33 * (bitmap & (bit - 1)).bit_count()
                    name = node[pos : pos + 32]
                    node = None
                    depth += 1
                    continue
            elif head < 0x40 and end - depth < len(HASHED_LEAF_HEADS):
                at = depth >> 1
                if depth & 1:
                    same = node[:-32] == ODD_HASHED_LEAF_HEADS[end - depth][key[at] & 15] + key[at + 1 :]
                else:
                    same = node[:-32] == HASHED_LEAF_HEADS[end - depth] + key[at:]
                if same:
                    value = found.get(node[-32:])
                    if value is None:
                        raise MissingNode(node[-32:], root, key, end)
                    return value
        try:
            kind, payload, depth = step(node, key, depth)
        except BadNode as error:
            raise error.placed(name, root) from None
        if kind == CHILD:
            name = payload
            node = None
        elif kind == INLINE:
            node = payload
        elif kind == VALUE:
            return payload
        elif kind == ABSENT:
            return None
        else:
            value = found.get(payload)
            if value is None:
                raise MissingNode(payload, root, key, depth)
            return value


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
