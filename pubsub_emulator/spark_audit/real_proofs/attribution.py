"""Every byte of a proof told apart: by the key that needs it, as shared by several keys, or as needed by none.

key         the nodes that lead to this key alone, and its detached value
child trie  the same of a child trie's root; its entries are keys of their own
neighbour   an entry within a node that is needed anyway: no bytes of its own
shared      nodes on the way to several keys, by how many
absence     nodes on the way to no entry: they prove that some key is absent, or that nothing below them changed
unplaced    nodes that no node of the proof leads to, where the chain's own state may hold what does
unread      nodes that nothing needs, or that are listed again
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, Hash
from pubsub_emulator.spark_audit.real_proofs.open_proof import Opened, ProofError, open_proof, path_nodes
from pubsub_emulator.spark_audit.real_proofs.well_known import is_child_root, key_name
from pubsub_emulator.trie import MissingNode, read_proof

TOP: Final = b""
"""The top trie, among child storage keys."""

_LEAST_HASHED: Final = 32
"""Bytes of the smallest node that another node refers to by its hash; smaller ones are part of it."""

Place = tuple[bytes, bytes]
"""A trie, by its child storage key, and a key in it."""


@dataclass(frozen=True, slots=True)
class ProofShare:
    """Some bytes of a proof. `state` of a key is `value`, `absent` or `not proven`; sizes are node costs in bytes.

    `weight` and `nodes` are its own, `path_bytes` are those of all nodes on its way, shared ones included.
    """

    kind: str
    name: str
    nodes: int
    weight: int
    trie: bytes = TOP
    key: bytes | None = None
    state: str | None = None
    value: bytes | None = None
    path_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """A proof's parts, which add up to its nodes and bytes, and the nodes that are unread or unplaced."""

    parts: tuple[ProofShare, ...]
    unread: tuple[Hash, ...]
    nodes: int
    weight: int
    unplaced: tuple[Hash, ...] = ()


class _Path(NamedTuple):
    nodes: tuple[Hash, ...]
    requested: bool
    state: str
    value: bytes | None


@dataclass(slots=True)
class _Ledger:
    """The chains that need each node, as far as is known."""

    nodes: Mapping[Hash, bytes]
    users: dict[Hash, list[Place]] = field(default_factory=dict)
    found: dict[Place, _Path] = field(default_factory=dict)

    def add(self, root: Hash, place: Place, entries: Mapping[bytes, bytes | None], *, usual: bool) -> None:
        """Follow a key; one that is not `usual` was asked for only if it needs a node that no other key does."""
        key = place[1]
        path, proven = path_nodes(root, self.nodes, key)
        if not proven and key not in entries:
            return
        counts = usual or any(node_hash not in self.users for node_hash in path)
        value = entries.get(key)
        state = "value" if value is not None else "absent" if proven else "not proven"
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
) -> Attribution:
    """Tell a proof apart without knowing what was asked: `usual` keys count as asked, entries like them too.

    With `absences`, nodes that lead to no entry are taken to prove that some key is absent; otherwise they are unread.
    With `cached`, the chain may store nodes of child tries itself: nodes that nothing leads to are unplaced, if they
    can be below a child trie's root that is proven. Raises `ProofError`.
    """
    listed = list(proof)
    ledger = _Ledger({blake2_256(node): node for node in listed})
    tries = _tries(root, ledger.nodes)
    top = tries[TOP][1].entries
    first = {*usual, *(key for key in top if is_usual(key) or is_child_root(key))}
    # The usual keys first: any other key was asked for only if it needs a node that they do not.
    for key in sorted(first):
        ledger.add(root, (TOP, key), top, usual=True)
    for child, (trie_root, opened) in tries.items():
        others = sorted(opened.entries.keys() - (first if child == TOP else ()))
        if absences:  # the deepest was asked for, and those on its way may be there by chance
            others.sort(key=lambda key: -len(path_nodes(trie_root, ledger.nodes, key)[0]))
        for key in others:
            ledger.add(trie_root, (child, key), opened.entries, usual=False)
    reached = (node_hash for _, opened in tries.values() for node_hash in opened.reached)
    below = cached and any(is_child_root(key) and value is not None for key, value in top.items())
    return _attribution(listed, ledger, frozenset(reached if absences else ()), cached=below)


def attribute_reads(root: Hash, proof: Iterable[bytes], requested: Mapping[bytes, Iterable[bytes]]) -> Attribution:
    """Attribute a proof's bytes to the keys that it was made for, by trie. Raises `ProofError` if it lacks one."""
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
                ledger.found[child, key] = _Path((), True, "absent", None)
            else:
                value = _read(trie_root, ledger.nodes, child, key)
                ledger.add(trie_root, (child, key), {key: value}, usual=True)
    return _attribution(listed, ledger, frozenset())


def child_trie_name(child: bytes) -> str:
    """`child trie 1000`, or by its storage key."""
    return key_name(child_root_key(child))


def place_name(trie: bytes, key: bytes) -> str:
    """A key in words."""
    return key_name(key) if trie == TOP else f"{child_trie_name(trie)}: 0x{key.hex()}"


def _tries(root: Hash, nodes: Mapping[Hash, bytes]) -> dict[bytes, tuple[Hash, Opened]]:
    """The top trie, and every child trie whose root is in it and whose root node is in the proof."""
    top = open_proof(root, nodes)
    tries = {TOP: (root, top)}
    for key, value in sorted(top.entries.items()):
        if is_child_root(key) and value is not None and len(value) == 32 and Hash(value) in nodes:
            tries[key[len(CHILD_STORAGE_PREFIX) :]] = (Hash(value), open_proof(Hash(value), nodes))
    return tries


def _read(root: Hash, nodes: Mapping[Hash, bytes], trie: bytes, key: bytes) -> bytes | None:
    if root not in nodes and root != EMPTY_TRIE_ROOT:
        whose = "the storage root" if trie == TOP else child_trie_name(trie)
        raise ProofError(f"the root node of {whose}, {root.hex()}, is not in the proof")
    try:
        return read_proof(root, nodes.values(), (key,))[key]
    except MissingNode as error:
        raise ProofError(
            f"{place_name(trie, key)} is not proven: node {error.hash.hex()} at nibble {error.depth} is missing"
        ) from None


def _attribution(
    listed: list[bytes], ledger: _Ledger, reached: frozenset[Hash], *, cached: bool = False
) -> Attribution:
    users = ledger.users
    costs = {node_hash: node_cost(len(node)) for node_hash, node in ledger.nodes.items()}
    parts = [_key_part(place, path, users, costs) for place, path in ledger.found.items()]
    shared: dict[int, list[Hash]] = {}
    for node_hash, places in users.items():
        if len(places) > 1:
            shared.setdefault(len(places), []).append(node_hash)
    parts += [_nodes_part("shared", f"path nodes of {n} keys", group, costs) for n, group in shared.items()]
    left = [node_hash for node_hash in ledger.nodes if node_hash not in users]
    absence = [node_hash for node_hash in left if node_hash in reached]
    if absence:
        parts.append(_nodes_part("absence", "on the way to keys that are absent or unchanged", absence, costs))
    rest = [node_hash for node_hash in left if node_hash not in reached]
    unplaced = [each for each in rest if cached and len(ledger.nodes[each]) >= _LEAST_HASHED]
    if unplaced:
        parts.append(_nodes_part("unplaced", "below nodes that the chain may have stored", unplaced, costs))
    unread = [each for each in rest if not cached or len(ledger.nodes[each]) < _LEAST_HASHED]
    whole = sum(node_cost(len(node)) for node in listed)
    repeated = whole - sum(costs.values())
    if unread or repeated:
        own = sum(costs[node_hash] for node_hash in unread)
        parts.append(ProofShare("unread", "", len(unread), own + repeated))
    return Attribution(tuple(parts), tuple(unread), len(listed), whole, tuple(unplaced))


def _key_part(place: Place, path: _Path, users: Mapping[Hash, list[Place]], costs: Mapping[Hash, int]) -> ProofShare:
    trie, key = place
    own = [node_hash for node_hash in path.nodes if users.get(node_hash) == [place]]
    kind = "neighbour" if not path.requested else "child trie" if trie == TOP and is_child_root(key) else "key"
    weight, whole = (sum(costs[node_hash] for node_hash in nodes) for nodes in (own, path.nodes))
    return ProofShare(kind, place_name(trie, key), len(own), weight, trie, key, path.state, path.value, whole)


def _nodes_part(kind: str, name: str, group: list[Hash], costs: Mapping[Hash, int]) -> ProofShare:
    return ProofShare(kind, name, len(group), sum(costs[node_hash] for node_hash in group))
