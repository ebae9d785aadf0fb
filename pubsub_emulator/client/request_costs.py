"""The cost of a request: the sizes of its proofs, without and with the static keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import NamedTuple

from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.relay_request import (
    RelayProofRequest,
    RelayStorageKey,
    TopKey,
)
from pubsub_emulator.runtime.framework.request_proof import (
    RequestProof,
    absent_bytes,
    joined,
    new_bytes,
    open_request,
    path_changes,
    prove,
    static_request,
)
from pubsub_emulator.runtime.framework.storage import State


@dataclass(frozen=True, slots=True)
class BlockCost:
    """The proofs of one block."""

    number: int
    block: Hash | None
    """The hash of the block, or `None` if it is unknown."""
    request: RequestProof
    static: RequestProof | None
    """The proof of the static keys, or `None` if no parachain is given."""
    both: RequestProof | None
    """The proof of all keys together, which contains shared nodes only once. `None` as above."""

    @property
    def whole(self) -> RequestProof:
        """Return the proof that a collator would put into the block."""
        return self.request if self.both is None else self.both

    @property
    def absent_bytes(self) -> int:
        """Return by how many bytes the request's proof would be smaller without its absent keys."""
        return absent_bytes(self.request)

    @property
    def absent_block_bytes(self) -> int | None:
        """Return by how many bytes the block would be smaller without the request's absent keys.

        Nodes that the static keys need are not counted, because the block has them anyway. Returns
        `None` if no parachain is given.
        """
        if self.both is None or self.static is None:
            return None
        static = {cost.asked for cost in self.static.keys}
        requested = (cost.asked for cost in self.request.keys)
        not_static = RelayProofRequest(tuple(key for key in requested if key not in static))
        return absent_bytes(self.both, not_static)


class Provable(NamedTuple):
    """A way to prove requests under one state."""

    prove: Callable[[RelayProofRequest], RequestProof]
    read: Callable[[bytes], bytes | None]
    """Returns the value of a key of the top trie."""

    @staticmethod
    def of(state: State) -> "Provable":
        """Prove requests under a whole state."""
        return Provable(partial(prove, state), state.top.get)

    @staticmethod
    def of_nodes(root: Hash, nodes: Mapping[Hash, bytes]) -> "Provable":
        """Prove requests by the given nodes only. Other keys raise `MissingNode`."""
        return Provable(
            partial(open_request, root, nodes),
            lambda key: open_request(root, nodes, _one(key)).keys[0].value,
        )


def _one(key: bytes) -> RelayProofRequest:
    return RelayProofRequest((TopKey(key),))


def cost_of(
    state: Provable,
    number: int,
    block: Hash | None,
    request: RelayProofRequest,
    para: ParaId | None,
) -> BlockCost:
    """Return the cost of a request under the state after a block.

    With `para`, the static keys of that parachain are proven as well. Raises `MissingNode` if a
    node is missing that the request needs.
    """
    proof = state.prove(request)
    if para is None:
        return BlockCost(number, block, proof, static=None, both=None)
    static = static_request(para, state.read)
    together = state.prove(joined(static, request))
    return BlockCost(number, block, proof, static=state.prove(static), both=together)


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The sizes of a proof over several blocks, in bytes."""

    min: int
    median: float
    max: int


def sizes(proofs: Sequence[RequestProof]) -> SizeRange:
    """Return the range of the sizes of one or more proofs."""
    in_bytes = [proof.size for proof in proofs]
    return SizeRange(min(in_bytes), median(in_bytes), max(in_bytes))


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between the proofs of successive blocks.

    The differences show how much a cache with the nodes of the previous block would save.
    """

    steps: int
    """The number of pairs of successive blocks."""
    paths: dict[RelayStorageKey, int]
    """The number of changes of each key's path. The root node is not counted."""
    new_bytes: float
    """The median size of the nodes in bytes that are not in the previous block's proof."""


def changes(proofs: Sequence[RequestProof]) -> Changes | None:
    """Return how the proofs of successive blocks differ, or `None` for fewer than two."""
    if len(proofs) < 2:
        return None
    return Changes(len(proofs) - 1, path_changes(proofs), median(new_bytes(proofs)))
