"""The proof of a `RelayProofRequest`, and the cost of each of its keys.

A collator puts one proof into a block, for the keys that its runtime requests and for the static
keys. Nodes that several keys need are in it once. The cost of a key therefore has two parts: its
own nodes, which the proof would not have without the key, and its share of the nodes that others
need as well.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash, ParaId
from pubsub_emulator.runtime.framework.relay_request import (
    ChildKey,
    RelayProofRequest,
    RelayStorageKey,
    TopKey,
)
from pubsub_emulator.runtime.framework.static_keys import fixed_keys, read_static_keys
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie.codec import EMPTY_NODE
from pubsub_emulator.trie.compact import encode_compact
from pubsub_emulator.trie.errors import BadNode, MissingNode
from pubsub_emulator.trie.step import CHILD, DETACHED, INLINE, VALUE, step

POV: Final = 5 * 1_048_576
"""The size of a PoV of most parachains in bytes."""
LARGE_POV: Final = 10 * 1_048_576
"""The size of a PoV that the relay chain allows since 2024, in bytes."""
BUDGET: Final = 1_048_576
"""The part of the PoV that RFC-0160 leaves to a relay proof, in bytes."""


@dataclass(frozen=True, slots=True)
class KeyCost:
    """The cost of one key of a request. Sizes are bytes of nodes and detached values."""

    asked: RelayStorageKey
    value: bytes | None
    """The value, or `None` if the proof shows that the key is absent."""
    path: tuple[Hash, ...]
    """The nodes that reading the key needs, from the root on, and its detached value."""
    path_bytes: int
    """The size of all nodes of `path`. A request for this key alone has this size."""
    own_nodes: int
    """The number of nodes that no other key of the request needs."""
    own_bytes: int
    shared_bytes: float
    """The size of the other nodes, each divided by the number of keys that need it."""


@dataclass(frozen=True, slots=True)
class RequestProof:
    """A proof, and the costs of the keys that it was made for."""

    root: Hash
    """The state root, which commits to all values."""
    nodes: Mapping[Hash, bytes]
    """Nodes and detached values by hash."""
    keys: tuple[KeyCost, ...]
    """The keys in the order of the request, each once."""

    @property
    def size(self) -> int:
        """Return the size of all nodes in bytes."""
        return sum(map(len, self.nodes.values()))

    def listed(self) -> list[bytes]:
        """Return the nodes in ascending order, as in a `StorageProof`."""
        return sorted(self.nodes.values())

    def compact(self) -> list[bytes]:
        """Return the items of the compact form. Raises `ProofTooLarge`."""
        return encode_compact(self.root, self.nodes.values())


def prove(state: State, request: RelayProofRequest) -> RequestProof:
    """Return the proof of all keys of a request under a state's root.

    Absent keys and absent child tries are proven absent (UP-6). A state that is fetched on demand
    may raise `StateUnavailable`.
    """
    paths: dict[RelayStorageKey, _Path] = {}
    for requested in request.keys:
        if requested in paths:
            continue
        path: dict[Hash, bytes] = {}
        if isinstance(requested, TopKey):
            state.prove((requested.key,), {}, path)
            value = state.top.get(requested.key)
        else:
            state.prove((), {requested.storage_key: (requested.key,)}, path)
            trie = state.children.get(requested.storage_key)
            value = None if trie is None else trie.get(requested.key)
        paths[requested] = _Path(path, value)
    return _proof(state.root(), paths)


def open_request(
    root: Hash, nodes: Mapping[Hash, bytes], request: RelayProofRequest
) -> RequestProof:
    """Return the part of some nodes that proves all keys of a request under a root.

    `nodes` has trie nodes of any layout version and detached values by hash, and may have others.
    Raises `MissingNode` if they do not cover a key, and `BadNode`.
    """
    paths: dict[RelayStorageKey, _Path] = {}
    for requested in request.keys:
        if requested not in paths:
            paths[requested] = _path_to(root, nodes, requested)
    return _proof(root, paths)


class _Path(NamedTuple):
    """The nodes on the path from the state root to a key, by hash, and the value of the key."""

    nodes: Mapping[Hash, bytes]
    value: bytes | None


def _proof(root: Hash, paths: Mapping[RelayStorageKey, _Path]) -> RequestProof:
    """Return the proof that consists of these paths."""
    nodes: dict[Hash, bytes] = {}
    users: dict[Hash, int] = {}
    for path in paths.values():
        nodes.update(path.nodes)
        for name in path.nodes:
            users[name] = users.get(name, 0) + 1
    costs = tuple(_cost(requested, path, users) for requested, path in paths.items())
    return RequestProof(root, nodes, costs)


def _cost(requested: RelayStorageKey, path: _Path, users: Mapping[Hash, int]) -> KeyCost:
    own_sizes = [len(node) for name, node in path.nodes.items() if users[name] == 1]
    shared_sizes = [len(node) / users[name] for name, node in path.nodes.items() if users[name] > 1]
    return KeyCost(
        asked=requested,
        value=path.value,
        path=tuple(path.nodes),
        path_bytes=sum(map(len, path.nodes.values())),
        own_nodes=len(own_sizes),
        own_bytes=sum(own_sizes),
        shared_bytes=sum(shared_sizes),
    )


def _path_to(root: Hash, nodes: Mapping[Hash, bytes], requested: RelayStorageKey) -> _Path:
    """Return the path to a key. Raises `MissingNode` or `BadNode`."""
    match requested:
        case TopKey(key):
            return _descend(root, nodes, key)
        case ChildKey(storage_key, key):
            above = _descend(root, nodes, child_root_key(storage_key))
            if above.value is None:
                return above._replace(value=None)
            below = _descend(Hash(above.value), nodes, key)
            return _Path({**above.nodes, **below.nodes}, below.value)


def _descend(root: Hash, nodes: Mapping[Hash, bytes], key: bytes) -> _Path:
    """Return the path from the root of a trie to a key. Raises `MissingNode` or `BadNode`."""
    path: dict[Hash, bytes] = {}
    wanted = root
    depth = 0
    while True:
        node = nodes.get(wanted)
        if node is None and wanted == EMPTY_TRIE_ROOT:
            node = EMPTY_NODE
        if node is None:
            raise MissingNode(wanted, root, key, depth)
        path[wanted] = node
        kind, payload = INLINE, node
        while kind == INLINE:
            try:
                kind, payload, depth = step(payload, key, depth)
            except BadNode as error:
                raise error.placed(wanted, root) from None
        if kind == CHILD:
            wanted = Hash(payload)
            continue
        if kind != DETACHED:
            return _Path(path, payload if kind == VALUE else None)
        value = nodes.get(Hash(payload))
        if value is None:
            raise MissingNode(payload, root, key, depth)
        path[Hash(payload)] = value
        return _Path(path, value)


def static_request(para: ParaId, read: Callable[[bytes], bytes | None]) -> RelayProofRequest:
    """Return the static keys of a parachain, which travel with every request (PS-44).

    `read` returns values of the relay state, on which the keys depend: each channel of the
    parachain adds one.
    """
    fixed = frozenset(fixed_keys(para))
    # The values of the channels add no keys, so they need not be read.
    statics = read_static_keys(para, lambda key: read(key) if key in fixed else None)
    return RelayProofRequest(tuple(TopKey(key) for key in statics.values))


def joined(*requests: RelayProofRequest) -> RelayProofRequest:
    """Return a request for the keys of several, each once."""
    keys: dict[RelayStorageKey, None] = {}
    for request in requests:
        keys |= dict.fromkeys(request.keys)
    return RelayProofRequest(tuple(keys))


def read_entry(root: Hash, nodes: Iterable[bytes], requested: RelayStorageKey) -> bytes | None:
    """Return the value of a requested key in a proof, or `None` if it is proven absent.

    `root` is the relay chain's state root, and nodes may be listed in any order. Raises
    `MissingNode` if the proof does not cover the key, and `BadNode` for a malformed node.
    """
    return _path_to(root, {blake2_256(node): node for node in nodes}, requested).value


def absent_bytes(proof: RequestProof, requested: RelayProofRequest | None = None) -> int:
    """Return the size of the nodes that only absent keys of a request need, in bytes.

    `proof` may have further keys, which need their nodes even if they are absent. Without a
    request, all keys of the proof are requested. The keys of one absent child trie have the same
    path, so this can be more than their own bytes.
    """
    removable = None if requested is None else frozenset(requested.keys)
    needed: set[Hash] = set()
    for cost in proof.keys:
        if cost.value is not None or (removable is not None and cost.asked not in removable):
            needed.update(cost.path)
    return sum(len(node) for name, node in proof.nodes.items() if name not in needed)


def path_changes(proofs: Iterable[RequestProof]) -> dict[RelayStorageKey, int]:
    """Return how often the path of each key changed between proofs of successive blocks.

    A cache saves the path of a key in every block in which it does not change.
    """
    changes: dict[RelayStorageKey, int] = {}
    before: dict[RelayStorageKey, tuple[Hash, ...]] = {}
    for proof in proofs:
        for cost in proof.keys:
            changes.setdefault(cost.asked, 0)
            # The root changes with every block, so it says nothing about a key.
            path = tuple(name for name in cost.path if name != proof.root)
            if before.get(cost.asked, path) != path:
                changes[cost.asked] += 1
            before[cost.asked] = path
    return changes


def new_bytes(proofs: Iterable[RequestProof]) -> list[int]:
    """Return the size of the nodes of each proof that the proof before it does not have.

    The first proof is left out. A cache of one block's nodes would leave these sizes.
    """
    sizes: list[int] = []
    before: Mapping[Hash, bytes] | None = None
    for proof in proofs:
        if before is not None:
            known = before
            sizes.append(sum(len(node) for name, node in proof.nodes.items() if name not in known))
        before = proof.nodes
    return sizes
