"""The attribution of a proof's bytes: which key, or which several keys, need each node.

key         nodes that only this key needs, with its detached value
child trie  the same for the root of a child trie; the keys in that trie count by themselves
neighbour   an entry in a node that is needed anyway; it takes no bytes of its own
shared      nodes that several keys need, by the number of keys
absence     nodes that lead to no entry: they prove that a key is absent, or that nothing below
            them changed
unplaced    nodes to which no node of the proof leads, although nodes that the chain stores
            itself may lead to them
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
    Opened,
    ProofError,
    open_proof,
    path_nodes,
)
from pubsub_emulator.spark_audit.real_proofs.well_known import is_child_root
from pubsub_emulator.trie import MissingNode, read_proof

TOP: Final = b""
"""The key that represents the top trie among storage keys of child tries."""

_LEAST_HASHED: Final = 32
"""Bytes of the smallest node that other nodes refer to by its hash. Smaller ones are inside of
their parents."""

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
    """Bytes of all nodes on the way from the state root to the key, including shared ones. A proof
    of this key alone has these bytes."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The parts of a proof, which add up to its nodes and bytes."""

    parts: tuple[ProofShare, ...]
    unread: tuple[Hash, ...]
    """Nodes that no key needs."""
    nodes: int
    """Nodes of the proof, repetitions included."""
    weight: int
    """Bytes of the proof, repetitions included. As in a block, each node has its length before
    it."""
    node_bytes: int
    """Bytes of the nodes alone, without their lengths."""
    unplaced: tuple[Hash, ...] = ()
    """Nodes that a key may need if the chain stores the nodes above them."""


class _Path(NamedTuple):
    """The way from a root to a key."""

    nodes: tuple[Hash, ...]
    """The nodes on the way that are in the proof, and the detached value."""
    requested: bool
    """Whether the key was probably asked for, rather than lying in a node that is needed anyway."""
    state: str
    value: bytes | None


@dataclass(slots=True)
class _Ledger:
    """The keys that need each node, as far as they are known."""

    nodes: Mapping[Hash, bytes]
    users: dict[Hash, list[Place]] = field(default_factory=dict)
    """By node, the keys that need it."""
    found: dict[Place, _Path] = field(default_factory=dict)
    """By key, the way to it."""

    def add(
        self, root: Hash, place: Place, entries: Mapping[bytes, bytes | None], *, usual: bool
    ) -> None:
        """Follow the way to a key and note the nodes that it needs.

        A key that is not `usual` counts as asked for only if it needs a node that no key before it
        needs.
        """
        key = place[1]
        path, proven = path_nodes(root, self.nodes, key)
        if not proven and key not in entries:
            return
        counts = usual or any(node_hash not in self.users for node_hash in path)
        value = entries.get(key)
        if value is not None:
            state = "value"
        elif proven:
            state = "absent"
        else:
            state = "not proven"
        self.found[place] = _Path(tuple(path), counts, state, value)
        for node_hash in path if counts else ():
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
    """Attribute the bytes of a proof without knowing which keys were asked for.

    The keys `usual`, and those for which `is_usual` holds, count as asked for. With `absences`,
    nodes that lead to no entry count as proving that a key is absent; otherwise they are unread.
    With `cached`, the chain may have stored nodes of child tries: nodes to which no node leads are
    unplaced if they may be below a proven root of a child trie. Keys that are `needed` have a part
    even if they are not proven. Raises `ProofError`.
    """
    listed = list(proof)
    ledger = _Ledger({blake2_256(node): node for node in listed})
    tries = _tries(root, ledger.nodes)
    top = tries[TOP][1].entries
    first = {*usual, *(key for key in top if is_usual(key) or is_child_root(key))}
    # Usual keys come first. Any other key was asked for only if it needs a node that they do not
    # need.
    for key in sorted(first):
        ledger.add(root, (TOP, key), top, usual=True)
    for child, (trie_root, opened) in tries.items():
        others = sorted(opened.entries.keys() - (first if child == TOP else ()))
        # The deepest key was asked for. Others on the way to it may be there by chance.
        if absences:
            others.sort(key=lambda key: -len(path_nodes(trie_root, ledger.nodes, key)[0]))
        for key in others:
            ledger.add(trie_root, (child, key), opened.entries, usual=False)
    for key in needed:
        ledger.found.setdefault((TOP, key), _Path((), True, "not proven", None))
    reached = chained.from_iterable(opened.reached for _, opened in tries.values())
    below = cached and any(is_child_root(key) and value is not None for key, value in top.items())
    return _attribution(listed, ledger, frozenset(reached if absences else ()), cached=below)


def attribute_reads(
    root: Hash, proof: Iterable[bytes], requested: Mapping[bytes, Iterable[bytes]]
) -> Attribution:
    """Attribute the bytes of a proof to the keys that it was made for, given by trie.

    Raises `ProofError` if the proof does not cover one of them.
    """
    listed = list(proof)
    ledger = _Ledger({blake2_256(node): node for node in listed})
    for child, keys in requested.items():
        trie_root: Hash | None = root
        if child != TOP:
            top_key = child_root_key(child)
            value = _read(root, ledger.nodes, TOP, top_key)
            ledger.add(root, (TOP, top_key), {top_key: value}, usual=True)
            trie_root = None if value is None else Hash(value)
        for key in sorted(set(keys)):
            if trie_root is None:
                # Without the child trie, all its keys are absent, which the way to its root
                # proves. `_key_part` adds that way.
                ledger.found[child, key] = _Path((), True, "absent", None)
            else:
                value = _read(trie_root, ledger.nodes, child, key)
                ledger.add(trie_root, (child, key), {key: value}, usual=True)
    return _attribution(listed, ledger, frozenset())


def child_trie_name(child: bytes) -> str:
    """Return the name of a child trie: `child trie 1000`, or with its storage key."""
    return key_name(child_root_key(child))


def place_name(trie: bytes, key: bytes) -> str:
    """Return a key of a trie in words."""
    return key_name(key) if trie == TOP else f"{child_trie_name(trie)}: 0x{key.hex()}"


def _tries(root: Hash, nodes: Mapping[Hash, bytes]) -> dict[bytes, tuple[Hash, Opened]]:
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
    listed: list[bytes], ledger: _Ledger, reached: frozenset[Hash], *, cached: bool = False
) -> Attribution:
    """Divide the nodes of a proof among the parts.

    `reached` are nodes that a root leads to; those that no key needs prove absences.
    """
    users = ledger.users
    costs = {node_hash: node_cost(len(node)) for node_hash, node in ledger.nodes.items()}
    parts = [_key_part(place, ledger.found, users, costs) for place in ledger.found]
    shared: dict[int, list[Hash]] = {}
    for node_hash, places in users.items():
        if len(places) > 1:
            shared.setdefault(len(places), []).append(node_hash)
    parts += [
        _nodes_part("shared", f"path nodes of {n} keys", group, costs)
        for n, group in shared.items()
    ]
    left = [node_hash for node_hash in ledger.nodes if node_hash not in users]
    absence = [node_hash for node_hash in left if node_hash in reached]
    if absence:
        parts.append(
            _nodes_part(
                "absence", "on the way to keys that are absent or unchanged", absence, costs
            )
        )
    rest = [node_hash for node_hash in left if node_hash not in reached]
    # A node that is too small is never referred to by its hash, so stored nodes cannot lead to it.
    unplaced = [each for each in rest if cached and len(ledger.nodes[each]) >= _LEAST_HASHED]
    if unplaced:
        parts.append(
            _nodes_part("unplaced", "below nodes that the chain may have stored", unplaced, costs)
        )
    unread = [each for each in rest if not cached or len(ledger.nodes[each]) < _LEAST_HASHED]
    whole = sum(node_cost(len(node)) for node in listed)
    repeated = whole - sum(costs.values())
    if unread or repeated:
        own = sum(costs[node_hash] for node_hash in unread)
        parts.append(ProofShare("unread", "", len(unread), own + repeated))
    return Attribution(
        parts=tuple(parts),
        unread=tuple(unread),
        nodes=len(listed),
        weight=whole,
        node_bytes=sum(map(len, listed)),
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
    way = set(path.nodes)
    above = None if trie == TOP else paths.get((TOP, child_root_key(trie)))
    if above is not None:
        way.update(above.nodes)
    own = [node_hash for node_hash in path.nodes if users.get(node_hash) == [place]]
    if not path.requested:
        kind = "neighbour"
    elif trie == TOP and is_child_root(key):
        kind = "child trie"
    else:
        kind = "key"
    weight = sum(costs[node_hash] for node_hash in own)
    whole = sum(costs[node_hash] for node_hash in way)
    return ProofShare(
        kind, place_name(trie, key), len(own), weight, trie, key, path.state, path.value, whole
    )


def _nodes_part(kind: str, name: str, group: list[Hash], costs: Mapping[Hash, int]) -> ProofShare:
    """Return a part of several nodes."""
    return ProofShare(kind, name, len(group), sum(costs[node_hash] for node_hash in group))
