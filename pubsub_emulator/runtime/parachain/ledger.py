"""The ledger of a block, which counts how its bytes are used (PS-70).

Costs are bytes in the proof (with SCALE length prefixes). Charges are the bytes that the rules
count for reads of the parachain's own state. `own_state_bytes` are those that such reads really add
to its storage proof. They are measured on its trie.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pubsub_emulator.primitives.pubsub import nodes_cost
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_pubsub.weights import PER_VALUE_BYTE, READ, WRITE
from pubsub_emulator.runtime.pallet_subscriber.own_state import OwnState
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, PublisherPlan


@value_type
class PublisherLedger:
    """The bytes that one publisher used in a block."""

    para: ParaId
    unchanged: bool
    complete: bool
    top_path_bytes: int
    child_node_bytes: int
    value_bytes: int
    cache_charges: int
    row_charges: int
    cached_bytes: int
    """The cost that the nodes in the cache would have had in the proof."""


@dataclass(frozen=True, slots=True)
class BlockLedger:
    """The bytes that one block used."""

    budget: int
    used: int
    messages_bytes: int
    static_bytes: int
    map_charges: int
    proof_bytes: int
    proof_nodes: int
    own_state_bytes: int
    """The bytes that reads add to the parachain's storage proof."""
    cache_state_bytes: int
    """The part of `own_state_bytes` that only the rows of caches cause.

    A cache pays off if it saves more than that.
    """
    publishers: tuple[PublisherLedger, ...]
    extrinsics_bytes: int = 0
    """The bytes of signed extrinsics in the block, with their lengths."""
    extrinsics_state_bytes: int = 0
    """The bytes that running them adds to the storage proof, beyond `own_state_bytes`."""
    requested_bytes: int = 0
    """The cost of the nodes that only the requested keys outside pub-sub need (UP-13)."""
    ref_time: int = 0
    """The time of the block's accesses in picoseconds (`accesses`), by the reference weights of a
    node on RocksDB.
    """

    @property
    def weight(self) -> Weight:
        """Return the time of the block's accesses, and all bytes that proving the block takes."""
        return Weight(
            self.ref_time, self.proof_bytes + self.own_state_bytes + self.extrinsics_state_bytes
        )

    @property
    def unused(self) -> int:
        """Return the unused part of the budget, which the stop rule can leave."""
        return max(self.budget - self.used, 0)


def accesses(read: int, written: int, plan: Plan) -> int:
    """Return the ref_time of a block's accesses in picoseconds.

    It counts reading and writing rows of own state, and hashing the proof (2 ns per byte).
    """
    hashed = sum(map(len, plan.taken.values()))
    return READ.ref_time * read + WRITE.ref_time * written + PER_VALUE_BYTE.ref_time * hashed


def own_state_bytes(
    state: State, keys: Iterable[bytes], known: OwnState | None = None
) -> tuple[int, int]:
    """Return the size of a proof of `keys` in bytes, and the part that only rows of caches cause.

    `state` is the parachain's. `known` is the count of a walk over that state, to continue from.
    The runtime under `:code` is never counted.
    """
    counted = own_state_of(state, known)
    counted.add(keys)
    return own_bytes(counted)


def own_state_of(state: State, known: OwnState | None) -> OwnState:
    """Return a count of reads of `state` that continues from the count of a walk, if it is known.

    The walk's count does not change.
    """
    return OwnState(state) if known is None else known.of(state)


def own_bytes(counted: OwnState) -> tuple[int, int]:
    """Return the bytes of a count, and the part of them that only rows of caches cause."""
    total = counted.total
    return total, total - counted.without_cache


def added_bytes(state: State, before: Collection[bytes], all_keys: Collection[bytes]) -> int:
    """Return the bytes that proving `all_keys` takes beyond proving `before`.

    `all_keys` must begin with the keys in `before`.
    """
    if len(all_keys) == len(before):
        return 0
    nodes: dict[Hash, bytes] = {}
    state.top.prove(before, nodes)
    without = nodes_cost(nodes.values())
    state.top.prove(all_keys, nodes)
    return nodes_cost(nodes.values()) - without


def make_ledger(
    plan: Plan,
    messages_bytes: int,
    own_state: tuple[int, int],
    extrinsics: tuple[int, int] = (0, 0),
    ref_time: int = 0,
) -> BlockLedger:
    """Return the ledger of a block with the walk `plan`.

    `own_state` has the two numbers that `own_state_bytes` returns. `extrinsics` has the bytes of
    signed extrinsics and of their reads.
    """
    return BlockLedger(
        budget=plan.budget,
        used=plan.used,
        messages_bytes=messages_bytes,
        static_bytes=plan.static_bytes,
        map_charges=plan.map_charges,
        proof_bytes=nodes_cost(plan.taken.values()),
        proof_nodes=len(plan.taken),
        own_state_bytes=own_state[0],
        cache_state_bytes=own_state[1],
        publishers=tuple([_publisher(publisher) for publisher in plan.publishers.values()]),
        extrinsics_bytes=extrinsics[0],
        extrinsics_state_bytes=extrinsics[1],
        requested_bytes=plan.requested_bytes,
        ref_time=ref_time,
    )


def _publisher(plan: PublisherPlan) -> PublisherLedger:
    return PublisherLedger(
        para=plan.para,
        unchanged=plan.unchanged,
        complete=plan.complete,
        top_path_bytes=plan.top_path_bytes,
        child_node_bytes=plan.child_node_bytes,
        value_bytes=plan.value_bytes,
        cache_charges=plan.cache.charges,
        row_charges=plan.row_charges,
        cached_bytes=plan.cache.saved,
    )
