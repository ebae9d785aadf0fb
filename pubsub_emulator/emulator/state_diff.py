"""The difference between two states, for people.

It consists of the first storage key with different values, and the deepest trie node on the way to
it that differs. The node shows whether two implementations disagree about values or about the trie.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.storage_keys import (
    CHILD_STORAGE_PREFIX,
    CODE,
    relay_dispatch_queue_remaining_capacity,
)
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.relay_keys import item_name
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie import StateTrie
from pubsub_emulator.trie.codec import BRANCH, BRANCH_WITH_VALUE, HASHED_BRANCH, HASHED_LEAF, LEAF
from pubsub_emulator.trie.decoded import DecodedNode
from pubsub_emulator.trie.step import CHILD, INLINE, step

_KINDS: Final = {
    0: "empty trie",
    LEAF: "leaf",
    HASHED_LEAF: "leaf with a detached value",
    BRANCH: "branch without a value",
    BRANCH_WITH_VALUE: "branch with a value",
    HASHED_BRANCH: "branch with a detached value",
}
_HASH: Final = 32
_CAPACITY: Final = relay_dispatch_queue_remaining_capacity(ParaId(0))[:-4]
"""The beginning of the keys of dispatch queue capacities. The id of a parachain follows it."""


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """Two trie nodes at the same place."""

    path: str
    """The place as hexadecimal nibbles."""
    a: bytes | None
    """The bytes of the first node, or `None` if that trie has no node there."""
    b: bytes | None
    """The same of the second trie."""

    def lines(self) -> list[str]:
        """Return the parts of both nodes as lines of text."""
        here = self.path or "the root"
        return [
            f"trie node at {here}",
            *_describe("A", self.a, self.b),
            *_describe("B", self.b, self.a),
        ]


@dataclass(frozen=True, slots=True)
class StateDifference:
    """The first key, in byte order, whose values differ in two states."""

    key: bytes
    name: str
    """The pallet and item of the key."""
    a: bytes | None
    """The value in the first state, or `None`."""
    b: bytes | None
    """The value in the second state, or `None`."""
    count: int
    """The number of all keys with different values."""
    node: NodeDifference
    """The deepest differing trie node on the way to the key."""

    def lines(self) -> list[str]:
        """Return the difference as lines of text."""
        more = f" ({self.count} keys differ in all)" if self.count > 1 else ""
        return [
            f"storage key 0x{self.key.hex()}, {self.name}{more}",
            f"  A: {shown(self.a)}",
            f"  B: {shown(self.b)}",
            *self.node.lines(),
        ]


def shown(value: bytes | None, most: int = 96) -> str:
    """Return bytes as text for one line. If there are more than `most`, length and hash follow."""
    if value is None:
        return "nothing"
    text = f"0x{value[:most].hex()}"
    if len(value) <= most:
        return text
    return f"{text}… ({len(value)} bytes, blake2-256 0x{blake2_256(value).hex()})"


def diff_states(a: State, b: State) -> StateDifference | None:
    """Return the first difference between the top tries of two parachain states.

    Returns `None` if they are equal.
    """
    differences = list(a.top.differences(b.top))
    if not differences:
        return None
    key, a_value, b_value = differences[0]
    return StateDifference(
        key,
        key_name(key),
        a_value,
        b=b_value,
        count=len(differences),
        node=diff_nodes(a.top, b.top, key),
    )


def diff_nodes(a: StateTrie, b: StateTrie, key: bytes) -> NodeDifference:
    """Return the deepest differing nodes on the way to `key`.

    Only depths at which both tries have a node are compared. If none differs, the roots are
    returned.
    """
    a_nodes = dict(_path(a, key))
    b_nodes = dict(_path(b, key))
    differing = [
        depth for depth in a_nodes.keys() & b_nodes.keys() if a_nodes[depth] != b_nodes[depth]
    ]
    depth = max(differing, default=0)
    return NodeDifference(key.hex()[:depth], a_nodes.get(depth), b_nodes.get(depth))


def _path(trie: StateTrie, key: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the nodes on the way to `key`, each after the nibble depth at which it starts."""
    nodes: dict[Hash, bytes] = {}
    # A proof of the key consists of exactly the nodes on the way to it.
    trie.prove((key,), nodes)
    node = nodes.get(trie.root(), b"\x00")
    depth = 0
    while True:
        yield depth, node
        kind, payload, depth = step(node, key, depth)
        if kind == CHILD:
            node = nodes[Hash(payload)]
        elif kind == INLINE:
            node = payload
        else:
            return


def _describe(label: str, node: bytes | None, other: bytes | None) -> Iterator[str]:
    """Yield a node as lines of text. References that the other node does not have are marked."""
    if node is None:
        yield f"  {label}: no node"
        return
    parts = DecodedNode(node)
    yield f"  {label}: 0x{blake2_256(node).hex()}, {len(node)} bytes, {_KINDS[parts.kind]}"
    yield f"     encoding 0x{node.hex()}"
    yield f"     partial key {parts.partial or 'empty'} ({parts.nibbles} nibbles)"
    if parts.value_end > parts.value_at:
        yield f"     value {shown(node[parts.value_at : parts.value_end])}"
    theirs = {} if other is None else dict(DecodedNode(other).references)
    for nibble, reference in parts.references:
        mark = "" if other is None or theirs.get(nibble) == reference else "   <- differs"
        inline = "" if len(reference) == _HASH else " inline"
        yield f"     child {nibble:x} 0x{reference.hex()}{inline}{mark}"
    for nibble in sorted(theirs.keys() - dict(parts.references).keys()):
        yield f"     child {nibble:x} missing   <- differs"


UNKNOWN_KEY: Final = "a key of no known pallet"


def key_name(key: bytes) -> str:
    """Return the name of a storage key of any chain: pallet, item, and the rest of the key."""
    if key == CODE:
        return ":code"
    if key.startswith(CHILD_STORAGE_PREFIX):
        return f"root of {child_name(key[len(CHILD_STORAGE_PREFIX) :])}"
    if key.startswith(_CAPACITY):
        para = int.from_bytes(key[len(_CAPACITY) :], "little")
        return f"relay_dispatch_queue_remaining_capacity({para})"
    item = every_runtime().item_of(key)
    # The relay chain of the emulator has no randomness, but proofs show that it is absent.
    name = item_name(key) if item is None else item.name
    if name is None:
        return UNKNOWN_KEY
    rest = key[32:]
    return f"{name}[0x{rest.hex()}]" if rest else name


def child_name(child_storage_key: bytes) -> str:
    """Return the name of a child trie with its publisher's id, or with its storage key."""
    prefix = derive_child_key(ParaId(0))[:-4]
    if child_storage_key.startswith(prefix) and len(child_storage_key) == len(prefix) + 4:
        return f"child trie {int.from_bytes(child_storage_key[-4:], 'little')}"
    return f"child trie 0x{child_storage_key.hex()}"


def differing_fields(
    a: dict[str, object], b: dict[str, object]
) -> list[tuple[str, object, object]]:
    """Return the names and both values of the fields in which two records differ."""
    return [
        (name, a.get(name), b.get(name))
        for name in dict.fromkeys([*a, *b])
        if a.get(name) != b.get(name)
    ]
