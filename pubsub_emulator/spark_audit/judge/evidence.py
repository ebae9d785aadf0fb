"""Evidence: the bytes from which a finding can be judged again without the history.

    u8       version, 2
    Vec<u8>  kind: `block`, `seam`, `equivocation` or `figures`
    block          Vec<u8> parent header, Vec<u8> candidate, Option<[u8; 32]> relay storage root,
                   u64 newest slot, Vec<Vec<u8>> storage proof, Option<Vec<u8>> recorded verdict,
                   Option<Vec<Vec<u8>>> callbacks
    seam           Vec<u8> header reached, Vec<u8> header that the next checkpoint states,
                   [u8; 32] root of its state
    equivocation   [u8; 32] author, Vec<u8> header, Vec<u8> other header
    figures        Vec<u8> JSON of the figures that were compared with a threshold

    callback       u32 publisher, [u8; 32] key, Vec<u8> kind, Option<[u8; 32]> entry hash,
                   Option<Vec<u8>> ttl state, bool failed

The storage proof has exactly the nodes and detached values of the parent's state that judging the
block reads, strictly ascending by their bytes. They are opened from the state root in the parent's
header. The recorded verdict is the reason for which the chain refused the block according to the
history, `None` if the block was included. Callbacks are only present if the finding is about them.

Some assumptions cannot be proven, such as the content of the relay chain. Each judgement lists its
own (`rests_on`). This module needs neither Spark nor Arrow, so that findings can be checked
anywhere.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.ed25519 import verify
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.primitives.pubsub import encode_ttl_state
from pubsub_emulator.primitives.scale import Reader, encode_bytes
from pubsub_emulator.primitives.types import Hash, Slot
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.pallet_subscriber.config import ImpossibleConfig, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import BadState, RelayContext, judge_block
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.trie import BadNode, MissingNode
from pubsub_emulator.trie.partial import Fetch, PartialTrie

_VERSION: Final = 2
_nodes = scale.vec(scale.bytes_)
_callbacks = scale.option(_nodes)
_hash = scale.option(scale.fixed(32))
_bytes = scale.option(scale.bytes_)

T = TypeVar("T")


class EvidenceError(PubsubError):
    """Evidence that is malformed or contradicts itself, and so cannot be judged."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of judging evidence again."""

    kind: str
    """The kind of the evidence: `block`, `seam`, `equivocation` or `figures`."""
    code: str | None
    """The code of the finding that the evidence shows, `None` if it shows none."""
    detail: str
    """The result in words."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """Columns of the finding whose values the evidence shows."""
    rests_on: tuple[str, ...] = ()
    """Assumptions that the evidence does not prove. A reader who doubts them must look them up."""
    proves: bool = True
    """Whether the evidence proves the code by itself. Figures do not, and neither do two headers
    that may be of different chains."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a block on its chain, as the history states it."""

    verdict: str | None
    """The verdict with which the block was refused, `None` if it was included."""
    callbacks: tuple[bytes, ...] | None = None
    """Its callbacks, encoded as in evidence, `None` unless they are to be compared."""


def block_evidence(
    head: ChainHead, candidate: Candidate, relay: RelayContext, recorded: Recorded
) -> bytes:
    """Return evidence about a block, judged on its parent `head`, and about the recorded outcome.

    The block is judged again to find out which nodes of the state are needed.
    """
    parent = head.header
    state = head.state
    known: dict[Hash, bytes] = {}
    state.top.prove((key for key, _ in state.top_entries()), known)
    # `fetch` records every node that judging asks for.
    reads: dict[bytes, bytes | None] = {}

    def fetch(wanted: bytes) -> bytes | None:
        node = known.get(Hash(wanted))
        reads[wanted] = node
        return node

    _execute(parent, candidate, relay, fetch=fetch, rules=head.rules)
    callbacks = None if recorded.callbacks is None else list(recorded.callbacks)
    verdict = None if recorded.verdict is None else recorded.verdict.encode()
    block = encode_bytes(parent.encode()) + encode_bytes(candidate.encode())
    trusted = _hash.encode(relay.storage_root) + relay.slot_now.to_bytes(8, "little")
    nodes = _nodes.encode(sorted(node for node in reads.values() if node is not None))
    return b"".join(
        (
            _head("block"),
            block,
            trusted,
            nodes,
            _bytes.encode(verdict),
            _callbacks.encode(callbacks),
        )
    )


def callback_bytes(  # noqa: PLR0917  # the columns of a delivery
    publisher: int,
    key: bytes,
    kind: str,
    entry_hash: bytes | None,
    ttl_state: bytes | None,
    failed: bool,
) -> bytes:
    """Return a callback in the encoding of evidence. The arguments are columns of `deliveries`."""
    parts = (
        publisher.to_bytes(4, "little"),
        key,
        encode_bytes(kind.encode()),
        _hash.encode(entry_hash),
    )
    return b"".join((*parts, _bytes.encode(ttl_state), bytes((failed,))))


def seam_evidence(reached: Header, stated: bytes, header_root: bytes) -> bytes:
    """Return evidence of a segment that does not end where the next one starts."""
    return _head("seam") + encode_bytes(reached.encode()) + encode_bytes(stated) + header_root


def equivocation_evidence(author: bytes, first: bytes, second: bytes) -> bytes:
    """Return evidence of two encoded headers that one author sealed for one slot."""
    return _head("equivocation") + author + encode_bytes(first) + encode_bytes(second)


def figures_evidence(figures: Mapping[str, object]) -> bytes:
    """Return evidence that consists of figures. They are stated, not proven."""
    return _head("figures") + encode_bytes(
        json.dumps(figures, sort_keys=True, separators=(",", ":")).encode()
    )


def hexed(value: bytes | None) -> str | None:
    """Return bytes as hex digits, the form for figures."""
    return None if value is None else value.hex()


def judge(evidence: bytes, rules: Rules = SHIPPED) -> Judgement:
    """Judge evidence again from its bytes alone.

    A block is judged by `rules` if the chain's state names them, and by the shipped rules if it
    names none. Raises `EvidenceError` if the evidence is malformed or contradicts itself.
    """
    try:
        reader = Reader(evidence)
        version = reader.u8()
        kind = reader.bytes_().decode(errors="replace")
        if version != _VERSION:
            raise EvidenceError(f"evidence version {version} is not known")
        if kind not in _JUDGES:
            raise EvidenceError(f"evidence of kind {kind!r} is not known")
        return _JUDGES[kind](reader, rules)
    except ScaleError as error:
        raise EvidenceError(f"evidence does not decode: {error}") from None


def _head(kind: str) -> bytes:
    """Return the bytes with which evidence of a kind begins."""
    return bytes((_VERSION,)) + encode_bytes(kind.encode())


def partial_state(root: Hash, fetch: Fetch) -> State:
    """Return the state with this root, whose nodes `fetch` supplies. It has no child tries."""
    return State(PartialTrie(root, fetch))


class _Executed(NamedTuple):
    """The outcome of a block that was executed again."""

    outcome: BlockOutcome | None
    """The block's effects, `None` if it was refused."""
    refusal: InvalidBlock | None
    """Why the block is invalid, `None` if it is valid."""
    chain: int
    """The chain's ParaId according to the state."""
    collator: bytes | None
    """The collator whose turn the block's slot is."""


def _execute(
    parent: Header, candidate: Candidate, relay: RelayContext, fetch: Fetch, rules: Rules
) -> _Executed:
    """Judge a block on the nodes of its parent's state that `fetch` supplies.

    Raises `EvidenceError` if the state is not that of a parachain of this program. `MissingNode`
    and other errors of the state's content are passed on.
    """
    state = partial_state(parent.state_root, fetch)
    spec = runtime_spec(state.top)
    keys = AUTHORITIES.get(Storage(state))
    if not keys or spec.handler not in HANDLERS:
        raise EvidenceError(
            "the state in the storage proof is not that of a parachain of this program"
        )
    slot = candidate.header.aura_slot()
    collator = None if slot is None else turn_of(slot, keys)
    outcome, refusal = judge_block(ChainHead(parent, state, rules), candidate, relay)
    return _Executed(outcome, refusal, spec.para_id, collator=collator)


@dataclass(frozen=True, slots=True)
class BlockEvidence:
    """The input for judging a block: the block, the relay chain's part and the state's nodes."""

    parent: Header
    candidate: Candidate
    relay: RelayContext
    nodes: tuple[bytes, ...]


def read_block_evidence(evidence: bytes) -> BlockEvidence | None:
    """Read evidence about a block without judging it.

    Returns `None` if the evidence is of another kind or version. Raises `EvidenceError` if it does
    not decode.
    """
    try:
        reader = Reader(evidence)
        version = reader.u8()
        kind = reader.bytes_()
        return _read_block(reader) if (version, kind) == (_VERSION, b"block") else None
    except ScaleError as error:
        raise EvidenceError(f"evidence does not decode: {error}") from None


def _read_block(reader: Reader) -> BlockEvidence:
    parent = _decode("the parent's header", Header.decode, reader.bytes_())
    candidate = _decode("the candidate", Candidate.decode, reader.bytes_())
    root = _hash.read(reader)
    slot_now = Slot(reader.uint(8))
    relay = RelayContext(
        candidate.inherent.relay_parent_number, None if root is None else Hash(root), slot_now
    )
    return BlockEvidence(parent, candidate, relay, nodes=tuple(_nodes.read(reader)))


def _judge_block(reader: Reader, rules: Rules) -> Judgement:
    """Judge evidence about a block.

    Raises `EvidenceError` if the storage proof lacks a node, has one that is not needed, or is not
    in order, so that there is exactly one proof for a block.
    """
    block = _read_block(reader)
    parent = block.parent
    candidate = block.candidate
    relay = block.relay
    proof = block.nodes
    verdict = _bytes.read(reader)
    callbacks = _callbacks.read(reader)
    reader.end()
    if any(lower >= higher for lower, higher in pairwise(proof)):
        raise EvidenceError("the nodes of the storage proof are not strictly ascending")
    nodes = {blake2_256(node): node for node in proof}
    # `fetch` records every node that judging asks for, so that unneeded ones can be found.
    fetched: dict[bytes, None] = {}

    def fetch(wanted: bytes) -> bytes | None:
        fetched[wanted] = None
        return nodes.get(Hash(wanted))

    try:
        executed = _execute(parent, candidate, relay, fetch=fetch, rules=rules)
    except MissingNode as missing:
        node = missing.hash.hex()
        message = f"the storage proof lacks node {node}, which judging needs"
        if missing.hash == parent.state_root:
            message = (
                "the storage proof does not have the root that the parent's header commits to,"
                f" {node}"
            )
        raise EvidenceError(message) from None
    except BadNode as bad:
        raise EvidenceError(
            f"node {bad.hash.hex()} of the storage proof is malformed: {bad.reason}"
        ) from None
    except (ScaleError, ImpossibleConfig) as error:
        raise EvidenceError(f"the state in the storage proof does not decode: {error}") from None
    except BadState as error:
        raise EvidenceError(str(error)) from None
    except EvidenceError:
        raise
    # A stranger may have made a state with consistent nodes but meaningless content.
    except Exception as error:  # noqa: BLE001
        raise EvidenceError(f"judging it ended with {type(error).__name__}") from None
    unused = [node_hash for node_hash in nodes if node_hash not in fetched]
    if unused:
        raise EvidenceError(
            f"the storage proof has {counted(len(unused), 'unneeded node')}, first"
            f" {unused[0].hex()}"
        )
    recorded_verdict = None if verdict is None else verdict.decode(errors="replace")
    recorded_callbacks = None if callbacks is None else tuple(callbacks)
    return _compare(
        executed,
        parent,
        candidate,
        relay=relay,
        recorded=Recorded(recorded_verdict, recorded_callbacks),
    )


def _compare(
    executed: _Executed,
    parent: Header,
    candidate: Candidate,
    relay: RelayContext,
    recorded: Recorded,
) -> Judgement:
    """Compare the outcome of a block with the recorded one, and list the assumptions."""
    header = candidate.header
    refusal = executed.refusal
    verdict = None if refusal is None else refusal.verdict.value
    code = findings.weigh(verdict, recorded.verdict)
    detail = "the block is valid" if refusal is None else str(refusal)
    if verdict != recorded.verdict:
        recorded_as = "included" if recorded.verdict is None else recorded.verdict
        detail = f"recorded as {recorded_as}: {detail}"
    if code is None and executed.outcome is not None and recorded.callbacks is not None:
        caused = tuple(map(_callback, executed.outcome.deliveries))
        if caused != recorded.callbacks:
            code = findings.DELIVERY_MISMATCH
            detail = f"{len(recorded.callbacks)} callbacks on record, executing gives {len(caused)}"
    facts = {
        "chain": executed.chain,
        "number": header.number,
        "block": header.hash(),
        "collator": executed.collator,
    }
    rests_on = _assumptions(parent, relay, refusal)
    if verdict != recorded.verdict or recorded.callbacks is not None:
        rests_on.append("the history's data about how the chain judged the block")
    return Judgement("block", code, detail, facts=facts, rests_on=tuple(rests_on))


def _assumptions(parent: Header, relay: RelayContext, refusal: InvalidBlock | None) -> list[str]:
    """Return the assumptions of a verdict that cannot be checked with block and parent alone.

    A good seal proves who made the block. If the verdict is `BAD_SEAL`, the author is an
    assumption.
    """
    root = relay.storage_root
    if root is None:
        claim = f"it has no block {relay.number}"
    else:
        claim = f"its block {relay.number} has storage root {root.hex()}"
    assumptions = [
        f"the relay chain's statement that {claim}",
        f"the newest slot when the block was judged: {relay.slot_now}",
    ]
    offences = () if refusal is None else {offence.verdict for offence in refusal.evidence}
    if Verdict.BAD_PARENT in offences:
        assumptions.append(
            f"the chain's statement that block {parent.number}, {parent.hash().hex()}, was its"
            " newest"
        )
    if Verdict.BAD_SEAL in offences:
        assumptions.append(
            "the slot alone: the seal, which would prove who made the block, is invalid"
        )
    return assumptions


def _callback(delivery: Delivery) -> bytes:
    ttl_state = None if delivery.ttl_state is None else encode_ttl_state(delivery.ttl_state)
    return callback_bytes(
        delivery.publisher,
        delivery.key,
        delivery.kind,
        entry_hash=delivery.entry_hash,
        ttl_state=ttl_state,
        failed=delivery.failed,
    )


def _decode(name: str, decode: Callable[[bytes], T], data: bytes) -> T:
    """Decode bytes. Raises `EvidenceError`, with `name` in its message, if they do not decode."""
    try:
        return decode(data)
    except ScaleError as error:
        raise EvidenceError(f"{name} does not decode: {error}") from None


def _judge_seam(reader: Reader, _rules: Rules) -> Judgement:
    """Judge evidence of a segment's end and the next checkpoint."""
    reached = reader.bytes_()
    stated = reader.bytes_()
    root = reader.take(32)
    reader.end()
    header = _decode("the header reached", Header.decode, reached)
    next_header = _decode("the checkpoint's header", Header.decode, stated)
    facts = {"number": header.number, "block": header.hash()}
    rests_on = ("the history's data about where its segment ends and where the next one starts",)
    if reached == stated and next_header.state_root == root:
        return Judgement(
            "seam", None, "the checkpoint is where the segment ends", facts=facts, rests_on=rests_on
        )
    detail = (
        f"the segment ends at block {header.number}, {header.hash().hex()}; the next starts"
        " elsewhere"
    )
    return Judgement("seam", findings.SEAM_MISMATCH, detail, facts=facts, rests_on=rests_on)


def _judge_equivocation(reader: Reader, _rules: Rules) -> Judgement:
    """Judge evidence of two headers that one author sealed for one slot."""
    author = reader.take(32)
    first = _decode("a header", Header.decode, reader.bytes_())
    second = _decode("a header", Header.decode, reader.bytes_())
    reader.end()
    slot = first.aura_slot()
    facts = {"collator": author, "block": second.hash(), "number": second.number}
    if first.hash() == second.hash() or slot is None or slot != second.aura_slot():
        return Judgement("equivocation", None, "not two headers for one slot", facts=facts)
    if not is_sealed(author, first) or not is_sealed(author, second):
        return Judgement("equivocation", None, "a header is not sealed by the author", facts=facts)
    detail = f"blocks {first.hash().hex()} and {second.hash().hex()} for slot {slot}"
    tied = _are_tied(first, second)
    turn_claim = "the history's data about whose turn the slot was, and on which chain"
    same_chain_claim = (
        "the history's statement that both headers are of one chain, which they do not show"
    )
    rests_on = (turn_claim,) if tied else (same_chain_claim, turn_claim)
    return Judgement(
        "equivocation", findings.EQUIVOCATION, detail, facts=facts, rests_on=rests_on, proves=tied
    )


def is_sealed(author: bytes | None, header: Header) -> bool:
    """Return whether this author made the header's seal."""
    seal = header.aura_seal()
    return author is not None and seal is not None and verify(author, header.pre_hash(), seal)


def _are_tied(first: Header, second: Header) -> bool:
    """Return whether the parents of two headers show that they are of one chain.

    A collator that uses one key on two chains may seal a block of each chain in the same slot.
    """
    return (
        first.parent_hash in {second.parent_hash, second.hash()}
        or second.parent_hash == first.hash()
    )


def _judge_figures(reader: Reader, _rules: Rules) -> Judgement:
    """Return the figures as the detail of the judgement. They do not show a code by themselves."""
    figures = reader.bytes_().decode(errors="replace")
    reader.end()
    return Judgement(
        "figures",
        None,
        figures,
        facts={},
        rests_on=("the history's figures, which are stated and not proven",),
    )


_JUDGES: Final = {
    "block": _judge_block,
    "seam": _judge_seam,
    "equivocation": _judge_equivocation,
    "figures": _judge_figures,
}
