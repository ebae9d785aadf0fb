"""Values of keys, read from a set of nodes under a root.

Only nodes to which the root commits are ever parsed.
"""

from collections.abc import Iterable

from pubsub_emulator.primitives.hashing import blake2_256, by_hash
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.trie.codec import EMPTY_NODE
from pubsub_emulator.trie.descent import Descent
from pubsub_emulator.trie.errors import BadNode, DuplicateNodes, MissingNode, UnusedNodes
from pubsub_emulator.trie.nibbles import shared_with_next
from pubsub_emulator.trie.step import CHILD, DETACHED, VALUE

Values = dict[bytes, bytes | None]
"""The values of keys that a proof shows, `None` for an absent key."""


def read_proof(
    root: bytes, nodes: Iterable[bytes], keys: Iterable[bytes], *, exact: bool = False
) -> Values:
    """Return the value of each key under `root`, in the order of `keys`.

    The value is `None` if the proof shows that the key is absent.

    Nodes may come in any order. As in sp-trie, repeated and unneeded nodes are ignored unless
    `exact`, and the node of the empty trie need not be listed.

    Raises `MissingNode` if the proof does not show the value of a key (for the least such key),
    `BadNode` if a node on the way to a key is malformed, and, if `exact`, `DuplicateNodes` and
    `UnusedNodes`.
    """
    found, used = _indexed(nodes, exact=exact)
    out = _read(found, Hash(root), keys, used)
    _refuse_unused(found, used)
    return out


def read_child_proof(
    root: bytes,
    nodes: Iterable[bytes],
    child_storage_key: bytes,
    keys: Iterable[bytes],
    *,
    exact: bool = False,
) -> Values:
    """Return the value of each key in a child trie, as `read_proof`.

    The child trie's root is read from the top trie `root` first. In an absent child trie every key
    is absent. A stored child root that is not 32 bytes long is a `BadNode` too.
    """
    found, used = _indexed(nodes, exact=exact)
    top_key = child_root_key(child_storage_key)
    child_root = _read(found, Hash(root), (top_key,), used)[top_key]
    if child_root is None:
        out: Values = dict.fromkeys(keys)
    else:
        if len(child_root) != 32:
            raise BadNode(
                b"", root, top_key, 2 * len(top_key), f"a child root of {len(child_root)} bytes"
            )
        out = _read(found, Hash(child_root), keys, used)
    _refuse_unused(found, used)
    return out


def _indexed(
    nodes: Iterable[bytes], *, exact: bool
) -> tuple[dict[Hash, bytes], dict[Hash, None] | None]:
    """Return the nodes by hash, with the empty trie's node.

    If `exact`, return also an empty mapping that will collect the used nodes.
    """
    listed = list(nodes)
    found = by_hash(listed)
    if exact and len(found) != len(listed):
        seen: dict[Hash, None] = {}
        repeated: dict[Hash, None] = {}
        for node_hash in map(blake2_256, listed):
            if node_hash in seen:
                repeated[node_hash] = None
            seen[node_hash] = None
        raise DuplicateNodes(tuple(repeated))
    used: dict[Hash, None] = {}
    if EMPTY_TRIE_ROOT not in found:
        found[EMPTY_TRIE_ROOT] = EMPTY_NODE
        used[EMPTY_TRIE_ROOT] = None
    return found, used if exact else None


class _Witness(Descent):
    """A descent that records in `used` the nodes that it reads."""

    def __init__(
        self, root: Hash, keys: list[bytes], found: dict[Hash, bytes], used: dict[Hash, None]
    ) -> None:
        super().__init__(root, keys, shared_with_next(keys), {})
        self.found = found
        self.used = used
        used[root] = None

    def child(self, reference: Hash, depth: int, above: int) -> bytes | None:  # noqa: ARG002  # wherever it is
        """Return the node, if it is in the set."""
        self.used[reference] = None
        return self.found.get(reference)


def _read(
    found: dict[Hash, bytes], root: Hash, keys: Iterable[bytes], used: dict[Hash, None] | None
) -> Values:
    """Return the value of each key.

    If `used` is given, the nodes that are read are added to it.
    """
    out: Values = dict.fromkeys(keys)
    wanted = sorted(out)
    if not wanted:
        return out
    node = found.get(root)
    if node is None:
        raise MissingNode(root, root, wanted[0], 0)
    reader = (
        Descent(root, wanted, shared_with_next(wanted), found)
        if used is None
        else _Witness(root, wanted, found, used)
    )
    reader.start(node)
    for at, key in enumerate(wanted):
        kind, payload, depth = reader.find(at)
        if kind == DETACHED:
            node_hash: Hash = payload  # type: ignore[assignment]  # a call of the NewType for each key is a tenth of it all
            if used is not None:
                used[node_hash] = None
            value = found.get(node_hash)
            if value is None:
                raise MissingNode(node_hash, root, key, depth)
            out[key] = value
        elif kind == VALUE:
            out[key] = payload
        elif kind == CHILD:
            raise MissingNode(payload, root, key, depth)
    return out


def _refuse_unused(found: dict[Hash, bytes], used: dict[Hash, None] | None) -> None:
    if used is not None:
        unused = tuple(node_hash for node_hash in found if node_hash not in used)
        if unused:
            raise UnusedNodes(len(unused), unused)
