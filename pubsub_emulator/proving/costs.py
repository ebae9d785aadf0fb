"""The cost of a request: planned on a source, and priced in each of its blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pubsub_emulator.client.request_costs import BlockCost, Changes, changes
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.progress import Stage, unwatched
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.proving.names import OwnNames
from pubsub_emulator.proving.requests import whole_request
from pubsub_emulator.proving.sources import NEWEST, SECONDS, Blocks, opened
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest, TopKey
from pubsub_emulator.runtime.framework.request_proof import RequestProof
from pubsub_emulator.trie.errors import TrieError


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """A request, the blocks in which to prove it, and how to reach them."""

    source: str
    """A node's URL, also with @ and a block, or a state file, session, history or scenario."""
    request: str | None = None
    """SCALE as 0x…, a TOML file, or the URL of the parachain's node."""
    top: Sequence[str] = ()
    """Further keys of the top trie: 0x… or names."""
    children: Sequence[tuple[str, str]] = ()
    """Further keys of child tries, as pairs of a trie (a publisher's id or 0x…) and a key."""
    para: int | None = None
    """The parachain whose static keys are counted as well."""
    blocks: Blocks = NEWEST
    metadata: str | None = None
    """A node or file with the metadata by which keys have names."""
    seconds: float = SECONDS
    """The time for each answer of a node, in seconds."""
    cache: Path | None = None
    """The folder with the answers of earlier runs, `None` to ask the node for everything."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a request in one block or several."""

    request: RelayProofRequest
    para: int | None
    blocks: tuple[BlockCost, ...]
    names: OwnNames
    wanted: int = 1
    """The number of blocks that were asked for. The chain may have fewer."""

    @property
    def newest(self) -> BlockCost:
        """The cost in the newest block."""
        return self.blocks[-1]

    def parts(self) -> Iterator[tuple[str, list[RequestProof]]]:
        """Yield each part of the cost (request, static keys, both) with its proof in each block."""
        yield "request", [block.request for block in self.blocks]
        static = [block.static for block in self.blocks if block.static is not None]
        both = [block.both for block in self.blocks if block.both is not None]
        if static and both:
            yield "static keys", static
            yield "both, shared nodes once", both

    def changes(self) -> Changes | None:
        """Return how the requests' proofs differ from block to block."""
        return changes([block.request for block in self.blocks])


def costs_of(plan: ProofPlan, stage: Stage = unwatched) -> Costs:
    """Prove a request in each block, and return the costs.

    Raises `InputError`, `ClientError`, `StateUnavailable`, and the errors of the reader of the
    source's kind.
    """
    open_source = opened(
        plan.source,
        plan.blocks,
        plan.metadata,
        seconds=plan.seconds,
        cache=plan.cache,
        stage=stage,
    )
    with open_source as source:
        request = whole_request(
            plan.request,
            plan.top,
            plan.children,
            names=source.names,
            seconds=plan.seconds,
        )
        if not request.keys:
            raise InputError("the request has no keys")
        para = None if plan.para is None else ParaId(plan.para)
        count = plan.blocks.count
        with stage(f"proving {counted(len(request.keys), 'key')}", count) as advance:
            costs: list[BlockCost] = []
            for cost in source.costs(request, para):
                costs.append(cost)
                advance(len(costs), count)
        if not costs:
            raise InputError(f"{plan.source}: it has no block")
        if para is not None:
            _check_relay_chain(plan.source, costs[-1], para)
        return Costs(request, plan.para, tuple(costs), names=source.names, wanted=count)


def _check_relay_chain(source: str, cost: BlockCost, para: ParaId) -> None:
    """Refuse a state without the configuration that every relay chain has.

    The configuration is under a static key, so it is found without metadata. Raises `InputError`.
    """
    static = () if cost.static is None else cost.static.keys
    values = {key_cost.asked: key_cost.value for key_cost in static}
    if values.get(TopKey(ACTIVE_CONFIG)) is None:
        raise InputError(
            f"{source}: this is not the relay chain of parachain {para}: its state has no"
            " Configuration.ActiveConfig; give a node or a state of the relay chain as SOURCE"
        )


def compact_size(proof: RequestProof) -> int | str:
    """Return the bytes of a proof in the compact form, or the words `too large`."""
    try:
        return sum(map(len, proof.compact()))
    except TrieError:
        # Few nodes that refer to each other repeatedly have a compact form of any size.
        return "too large"
