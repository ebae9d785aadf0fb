"""The attribution of a proof's bytes to the keys that need them.

key         nodes that only this key needs, with its detached value
child trie  the same for the root of a child trie; the keys in that trie have their own parts
neighbour   an entry in a node that another key needs; it has no bytes of its own
shared      nodes that several keys need, by the number of keys
absence     nodes without entries below them: they prove that a key is absent, or that the trie
            below them did not change
unplaced    nodes to which the proof's other nodes do not lead, although nodes that the chain
            stores itself may lead to them
unread      nodes that no key needs, and repetitions
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain as chained
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.runtime.framework.relay_keys import key_name
from pubsub_emulator.spark_audit.real_proofs.open_proof import (
    ProofError,
    TrieContents,
    open_proof,
    path_nodes,
)
from pubsub_emulator.spark_audit.real_proofs.well_known import is_child_root
from pubsub_emulator.trie import MissingNode, read_proof

TOP: Final = b""
"""The key that represents the top trie among storage keys of child tries."""

_MIN_HASHED: Final = 32
"""The size of the smallest node that is referred to by its hash, in bytes. Smaller nodes are
encoded inside of their parents."""

Place = tuple[bytes, bytes]
"""The storage key of a child trie, or `TOP`, and a key in that trie."""


@dataclass(frozen=True, slots=True)
class ProofShare:
    """A part of a proof. Sizes are costs of nodes in bytes."""

    kind: str
    """One of the kinds that the module's docstring lists."""
    name: str
    """The key, or the group of nodes, in words."""
    nodes: int
    """Nodes that only belong to this part."""
    weight: int
    """Bytes of `nodes`."""
    trie: bytes = TOP
    """The trie that the key is in."""
    key: bytes | None = None
    state: str | None = None
    """`value`, `absent` or `not proven`, for a key."""
    value: bytes | None = None
    """The value of the key, if it has one."""
    path_bytes: int | None = None
    """Bytes of all nodes on the way from the state root to the key, including shared ones. That is
    the size of a proof of this key alone."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The parts of a proof, which add up to its nodes and bytes."""

    parts: tuple[ProofShare, ...]
    unread: tuple[Hash, ...]
    """Nodes that no key needs."""
    nodes: int
    """Nodes of the proof, repetitions included."""
    weight: int
    """Bytes of the proof, repetitions included. As in a block, the length of each node counts as
    well."""
    node_bytes: int
    """Bytes of the nodes alone, without their lengths."""
    unplaced: tuple[Hash, ...] = ()
    """Nodes that a key may need if the chain stores the nodes above them."""


class _Path(NamedTuple):
    """The way from a root to a key."""

    nodes: tuple[Hash, ...]
    """The nodes on the way that are in the proof, and the detached value."""
    requested: bool
    """Whether the key was probably requested. If not, it is in a node that another key needs."""
    state: str
    value: bytes | None


@dataclass(slots=True)
class _Ledger:
    """The keys that need each node of a proof."""

    nodes: Mapping[Hash, bytes]
    """The nodes of the proof by hash."""
    users: dict[Hash, list[Place]] = field(default_factory=dict)
    """By node, the keys that need it."""
    paths: dict[Place, _Path] = field(default_factory=dict)
    """By key, the way to it."""

    def add(
        self, root: Hash, place: Place, entries: Mapping[bytes, bytes | None], *, usual: bool
    ) -> None:
        """Follow the way to a key and record the nodes that it needs.

        A key that is not `usual` counts as requested only if it needs a node that the keys before
        it do not need. A key that the proof does not cover is left out.
        """
        key = place[1]
        path, proven = path_nodes(root, self.nodes, key)
        if not proven and key not in entries:
            return
        is_requested = usual or any(node_hash not in self.users for node_hash in path)
        value = entries.get(key)
        if value is not None:
            state = "value"
        elif proven:
            state = "absent"
        else:
            state = "not proven"
        self.paths[place] = _Path(tuple(path), is_requested, state, value=value)
        if is_requested:
            for node_hash in path:
                self.users.setdefault(node_hash, []).append(place)


def attribute(
    root: Hash,
    proof: Iterable[bytes],
    usual: Iterable[bytes] = (),
    is_usual: Callable[[bytes], bool] = is_child_root,
    *,
    absences: bool = False,
    cached: bool = False,
    needed: Iterable[bytes] = (),
) -> Attribution:
    """Attribute the bytes of a proof without knowing which keys were requested.

    The keys `usual`, and those for which `is_usual` holds, count as requested. With `absences`,
    nodes without entries below them count as proving that a key is absent, otherwise as unread.
    With `cached`, the chain may have stored nodes of child tries. So nodes to which other nodes do
    not lead are unplaced, not unread, if the proof has the root of a child trie. The keys `needed`
    have a part even if they are not proven. Raises `ProofError`.
    """
    node_list = list(proof)
    ledger = _Ledger({blake2_256(node): node for node in node_list})
    tries = _tries(root, ledger.nodes)
    top = tries[TOP][1].entries
    usual_keys = set(usual)
    usual_keys.update(key for key in top if is_usual(key) or is_child_root(key))
    # Usual keys come first. Any other key counts as requested only if it needs a node that the
    # usual keys do not need.
    for key in sorted(usual_keys):
        ledger.add(root, (TOP, key), top, usual=True)
    for child, (trie_root, opened) in tries.items():
        other_keys = set(opened.entries)
        if child == TOP:
            other_keys -= usual_keys
        ordered = sorted(other_keys)
        # The deepest key was requested. Others on the way to it may be in the proof by chance.
        if absences:
            ordered.sort(key=lambda key: -len(path_nodes(trie_root, ledger.nodes, key)[0]))
        for key in ordered:
            ledger.add(trie_root, (child, key), opened.entries, usual=False)
    for key in needed:
        ledger.paths.setdefault((TOP, key), _Path((), True, "not proven", value=None))
    reached = chained.from_iterable(opened.reached for _, opened in tries.values())
    may_be_cached = cached and any(
        is_child_root(key) and value is not None for key, value in top.items()
    )
    return _attribution(
        node_list, ledger, frozenset(reached if absences else ()), cached=may_be_cached
    )


def attribute_reads(
    root: Hash, proof: Iterable[bytes], requested: Mapping[bytes, Iterable[bytes]]
) -> Attribution:
    """Attribute the bytes of a proof to the keys that it was made for, given by trie.

    Raises `ProofError` if the proof does not cover one of them.
    """
    node_list = list(proof)
    ledger = _Ledger({blake2_256(node): node for node in node_list})
    for child, keys in requested.items():
        trie_root: Hash | None = root
        if child != TOP:
            top_key = child_root_key(child)
            value = _read(root, ledger.nodes, TOP, key=top_key)
            ledger.add(root, (TOP, top_key), {top_key: value}, usual=True)
            trie_root = None if value is None else Hash(value)
        for key in sorted(set(keys)):
            if trie_root is None:
                # The child trie does not exist, so all its keys are absent. The nodes on the way
                # to its root prove that. `_key_part` adds them.
                ledger.paths[child, key] = _Path((), True, "absent", value=None)
            else:
                value = _read(trie_root, ledger.nodes, child, key=key)
                ledger.add(trie_root, (child, key), {key: value}, usual=True)
    return _attribution(node_list, ledger, frozenset())


def child_trie_name(child: bytes) -> str:
    """Return the name of a child trie: `child trie 1000`, or with its storage key."""
    return key_name(child_root_key(child))


def place_name(trie: bytes, key: bytes) -> str:
    """Return a key of a trie in words."""
    return key_name(key) if trie == TOP else f"{child_trie_name(trie)}: 0x{key.hex()}"


def _tries(root: Hash, nodes: Mapping[Hash, bytes]) -> dict[bytes, tuple[Hash, TrieContents]]:
    """Return the top trie, and every child trie with a root in it and a root node in the proof."""
    top = open_proof(root, nodes)
    tries = {TOP: (root, top)}
    for key, value in sorted(top.entries.items()):
        if is_child_root(key) and value is not None and len(value) == 32 and Hash(value) in nodes:
            tries[key[len(CHILD_STORAGE_PREFIX) :]] = (Hash(value), open_proof(Hash(value), nodes))
    return tries


def _read(root: Hash, nodes: Mapping[Hash, bytes], trie: bytes, key: bytes) -> bytes | None:
    """Return the value of a key, `None` if it is absent.

    Raises `ProofError` if the proof does not cover the key.
    """
    if root not in nodes and root != EMPTY_TRIE_ROOT:
        whose = "the storage root" if trie == TOP else child_trie_name(trie)
        raise ProofError(f"the root node of {whose}, {root.hex()}, is not in the proof")
    try:
        return read_proof(root, nodes.values(), (key,))[key]
    except MissingNode as error:
        raise ProofError(
            f"{place_name(trie, key)} is not proven: node {error.hash.hex()} at nibble"
            f" {error.depth} is missing"
        ) from None


def _attribution(
    node_list: list[bytes], ledger: _Ledger, reached: frozenset[Hash], *, cached: bool = False
) -> Attribution:
    """Divide the nodes of a proof among the parts.

    `reached` has the nodes to which a root leads. Those that no key needs prove absences.
    """
    users = ledger.users
    costs = {node_hash: node_cost(len(node)) for node_hash, node in ledger.nodes.items()}
    parts = [_key_part(place, ledger.paths, users, costs=costs) for place in ledger.paths]
    shared: dict[int, list[Hash]] = {}
    for node_hash, places in users.items():
        if len(places) > 1:
            shared.setdefault(len(places), []).append(node_hash)
    parts += [
        _nodes_part("shared", f"path nodes of {key_count} keys", group, costs=costs)
        for key_count, group in shared.items()
    ]
    unneeded = [node_hash for node_hash in ledger.nodes if node_hash not in users]
    absence = [node_hash for node_hash in unneeded if node_hash in reached]
    if absence:
        parts.append(
            _nodes_part(
                "absence", "on the way to keys that are absent or unchanged", absence, costs=costs
            )
        )
    unreached = [node_hash for node_hash in unneeded if node_hash not in reached]
    unplaced: list[Hash] = []
    unread: list[Hash] = []
    for node_hash in unreached:
        # Stored nodes cannot lead to a very small node, because it is not referred to by its hash.
        if cached and len(ledger.nodes[node_hash]) >= _MIN_HASHED:
            unplaced.append(node_hash)
        else:
            unread.append(node_hash)
    if unplaced:
        parts.append(
            _nodes_part(
                "unplaced", "below nodes that the chain may have stored", unplaced, costs=costs
            )
        )
    total = sum(node_cost(len(node)) for node in node_list)
    repeated = total - sum(costs.values())
    if unread or repeated:
        own = sum(costs[node_hash] for node_hash in unread)
        parts.append(ProofShare("unread", "", len(unread), weight=own + repeated))
    return Attribution(
        parts=tuple(parts),
        unread=tuple(unread),
        nodes=len(node_list),
        weight=total,
        node_bytes=sum(map(len, node_list)),
        unplaced=tuple(unplaced),
    )


def _key_part(
    place: Place,
    paths: Mapping[Place, _Path],
    users: Mapping[Hash, list[Place]],
    costs: Mapping[Hash, int],
) -> ProofShare:
    """Return the part of a key: the nodes that only it needs."""
    trie, key = place
    path = paths[place]
    all_nodes = set(path.nodes)
    trie_path = None if trie == TOP else paths.get((TOP, child_root_key(trie)))
    if trie_path is not None:
        all_nodes.update(trie_path.nodes)
    own = [node_hash for node_hash in path.nodes if users.get(node_hash) == [place]]
    if not path.requested:
        kind = "neighbour"
    elif trie == TOP and is_child_root(key):
        kind = "child trie"
    else:
        kind = "key"
    weight = sum(costs[node_hash] for node_hash in own)
    path_bytes = sum(costs[node_hash] for node_hash in all_nodes)
    return ProofShare(
        kind,
        place_name(trie, key),
        len(own),
        weight=weight,
        trie=trie,
        key=key,
        state=path.state,
        value=path.value,
        path_bytes=path_bytes,
    )


def _nodes_part(kind: str, name: str, group: list[Hash], costs: Mapping[Hash, int]) -> ProofShare:
    """Return a part that consists of several nodes. `costs` has the cost of each node."""
    return ProofShare(kind, name, len(group), weight=sum(costs[node_hash] for node_hash in group))
