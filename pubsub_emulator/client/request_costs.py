"""What a request costs in a block, alone and with the static keys, and over several blocks."""

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
    """The proof of all keys together, which has shared nodes once."""

    @property
    def whole(self) -> RequestProof:
        """The proof that a collator would put into the block."""
        return self.request if self.both is None else self.both


class Provable(NamedTuple):
    """A way to prove requests under one state."""

    prove: Callable[[RelayProofRequest], RequestProof]
    read: Callable[[bytes], bytes | None]
    """Returns the value of a key of the top trie."""

    @staticmethod
    def of(state: State) -> "Provable":
        """Prove under a whole state."""
        return Provable(partial(prove, state), state.top.get)

    @staticmethod
    def of_nodes(root: Hash, nodes: Mapping[Hash, bytes]) -> "Provable":
        """Prove by nodes that were proven before. `MissingNode` is raised for other keys."""
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

    Raises `MissingNode` if the state is not known as far as the request needs it.
    """
    proof = state.prove(request)
    if para is None:
        return BlockCost(number, block, proof, None, None)
    static = static_request(para, state.read)
    together = state.prove(joined(static, request))
    return BlockCost(number, block, proof, state.prove(static), together)


@dataclass(frozen=True, slots=True)
class Range:
    """The sizes of a proof over several blocks, in bytes."""

    min: int
    median: float
    max: int


def sizes(proofs: Sequence[RequestProof]) -> Range:
    """Return the range of the sizes of proofs, of which there is at least one."""
    found = [proof.size for proof in proofs]
    return Range(min(found), median(found), max(found))


@dataclass(frozen=True, slots=True)
class Changes:
    """What a cache of the nodes of the block before could save."""

    steps: int
    """The number of pairs of successive blocks."""
    paths: dict[RelayStorageKey, int]
    """How often the path of each key changed, not counting the root node."""
    new_bytes: float
    """The median size of the nodes that the block before does not have."""


def changes(proofs: Sequence[RequestProof]) -> Changes | None:
    """Return how the proofs of successive blocks differ, or `None` for fewer than two."""
    if len(proofs) < 2:
        return None
    return Changes(len(proofs) - 1, path_changes(proofs), median(new_bytes(proofs)))
