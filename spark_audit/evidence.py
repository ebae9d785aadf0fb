"""Evidence: what a finding rests on, so complete that a stranger can judge it again with nothing else.

    u8       version, 1
    Vec<u8>  kind: `block`, `seam`, `equivocation` or `figures`
    block          Vec<u8> parent header, Vec<u8> candidate, Option<[u8; 32]> relay storage root, u64 newest slot,
                   Vec<(Vec<u8>, Vec<u8>)> state, Vec<(Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>)> child tries
    seam           Vec<u8> header reached, Vec<u8> header that the next checkpoint states, [u8; 32] root of its state
    equivocation   [u8; 32] author, Vec<u8> header, Vec<u8> other header
    figures        Vec<u8> JSON of the figures that a threshold was held against

The state is the parent's, whole: its root is computed again and must be the one in the parent's header, so it proves
itself, absences included. The relay storage root is what the relay chain vouches for; whoever doubts it asks a relay
node for the header that the candidate names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from primitives import scale
from primitives.ed25519 import verify
from primitives.errors import PubsubError, ScaleError
from primitives.header import Header
from primitives.scale import Reader, encode_bytes
from primitives.storage_keys import CHILD_STORAGE_PREFIX
from primitives.types import Hash, Slot
from runtime.parachain_system.block import Candidate, InvalidBlock
from runtime.parachain_system.validate import RelayContext, validate_block
from runtime.storage import State
from spark_audit.rows import RowError, build_state

_VERSION: Final = 1
_root = scale.option(scale.fixed(32))
_entries = scale.vec(scale.pair(scale.bytes_, scale.bytes_))
_children = scale.vec(scale.pair(scale.bytes_, _entries))


class EvidenceError(PubsubError):
    """Evidence that does not hold together: it proves nothing."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What evidence shows when judged again; `code` is none when the block in it is valid."""

    kind: str
    code: str | None
    detail: str


def block_evidence(parent: Header, state: State, candidate: Candidate, relay: RelayContext) -> bytes:
    """Evidence of what executing `candidate` on `state` gives."""
    top = [(k, v) for k, v in state.top_entries() if not k.startswith(CHILD_STORAGE_PREFIX)]
    children = [(child, list(state.child_entries(child))) for child in sorted(state.children)]
    return _head("block") + b"".join(
        (
            encode_bytes(parent.encode()),
            encode_bytes(candidate.encode()),
            _root.encode(relay.storage_root),
            relay.slot_now.to_bytes(8, "little"),
            _entries.encode(top),
            _children.encode(children),
        )
    )


def seam_evidence(reached: Header, stated: bytes, stated_root: bytes) -> bytes:
    """Evidence of a segment that ends elsewhere than the next one starts."""
    return _head("seam") + encode_bytes(reached.encode()) + encode_bytes(stated) + stated_root


def equivocation_evidence(author: bytes, first: bytes, second: bytes) -> bytes:
    """Evidence of two headers sealed by one author for one slot."""
    return _head("equivocation") + author + encode_bytes(first) + encode_bytes(second)


def figures_evidence(figures: Mapping[str, Any]) -> bytes:
    """Evidence of what only figures show."""
    return _head("figures") + encode_bytes(json.dumps(figures, sort_keys=True, separators=(",", ":")).encode())


def judge(evidence: bytes) -> Judgement:
    """Judge evidence again, from its bytes alone. Raises `EvidenceError` when it proves nothing."""
    try:
        reader = Reader(evidence)
        version, kind = reader.u8(), reader.bytes_().decode(errors="replace")
        if version != _VERSION:
            raise EvidenceError(f"evidence version {version} is not known")
        if kind == "block":
            return _judge_block(reader)
        if kind == "seam":
            return _judge_seam(reader)
        if kind == "equivocation":
            return _judge_equivocation(reader)
        if kind == "figures":
            return Judgement(kind, None, reader.bytes_().decode(errors="replace"))
    except ScaleError as error:
        raise EvidenceError(f"evidence does not decode: {error}") from None
    raise EvidenceError(f"evidence of kind {kind!r} is not known")


def _head(kind: str) -> bytes:
    return bytes((_VERSION,)) + encode_bytes(kind.encode())


def _judge_block(reader: Reader) -> Judgement:
    parent = Header.decode(reader.bytes_())
    candidate = Candidate.decode(reader.bytes_())
    root = _root.read(reader)
    slot_now = Slot(reader.uint(8))
    top, children = _entries.read(reader), dict(_children.read(reader))
    reader.end()
    try:
        state = build_state(top, children)
    except RowError as error:
        raise EvidenceError(str(error)) from None
    if state.root() != parent.state_root:
        raise EvidenceError("the state does not have the root that the parent's header commits to")
    number = candidate.inherent.relay_parent_number
    relay = RelayContext(number, None if root is None else Hash(root), slot_now)
    try:
        validate_block(parent, state, candidate, relay)
    except InvalidBlock as invalid:
        return Judgement("block", invalid.verdict.value, str(invalid))
    return Judgement("block", None, "the block is valid")


def _judge_seam(reader: Reader) -> Judgement:
    reached, stated = reader.bytes_(), reader.bytes_()
    root = reader.take(32)
    reader.end()
    if reached == stated and Header.decode(stated).state_root == root:
        return Judgement("seam", None, "the checkpoint is where the segment ends")
    return Judgement("seam", "SeamMismatch", "the next checkpoint is not where the segment ends")


def _judge_equivocation(reader: Reader) -> Judgement:
    author = reader.take(32)
    first, second = Header.decode(reader.bytes_()), Header.decode(reader.bytes_())
    reader.end()
    slots = first.aura_slot(), second.aura_slot()
    seals = first.aura_seal(), second.aura_seal()
    if first.hash() == second.hash() or slots[0] is None or slots[0] != slots[1]:
        return Judgement("equivocation", None, "not two headers for one slot")
    for header, seal in zip((first, second), seals, strict=True):
        if seal is None or not verify(author, header.pre_hash(), seal):
            return Judgement("equivocation", None, "a header is not sealed by the author")
    return Judgement("equivocation", "Equivocation", f"two headers of one author for slot {slots[0]}")
