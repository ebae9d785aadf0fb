"""Checks of an imported block: header against columns, relay root against the relay chain, and its relay proof."""

from collections.abc import Mapping
from typing import NamedTuple

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.spark_audit.audit import findings
from pubsub_emulator.spark_audit.audit.evidence import figures_evidence
from pubsub_emulator.spark_audit.audit.findings import Severity
from pubsub_emulator.spark_audit.audit.measures import I64_MAX, row_measures
from pubsub_emulator.spark_audit.audit.notes import Notes, shown
from pubsub_emulator.spark_audit.audit.shared import Shared
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.rows import LostNode, Row, proof_of
from pubsub_emulator.spark_audit.real_proofs.attribution import Attribution
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import attribute_inherent, proof_parts


def open_imported(notes: Notes, shared: Shared, row: Row, nodes: Mapping[int, bytes], repeated: int) -> None:
    """Open a real relay proof and tell its bytes apart (AU-9, AU-18).

    `repeated` are bytes that the block before had proven already.
    """
    position = row["position"]
    _bound(notes, row)
    _check_header(notes, row)
    vouched = shared.vouched(row["relay_parent"])
    measures = {**row_measures(row, nodes, judged=True), "vouched": vouched is not None, "repeated_bytes": repeated}
    if row["relay_root"] is None:
        notes.fault(notes.blocks_path(), "the row has no relay root to open the proof against", position=position)
        notes.out.block_measures.append({**measures, "judged": False})
        return
    if row["relay_root"] not in shared.relay_roots(row["relay_parent"]):
        notes.whole = False
        said = f"relay block {row['relay_parent']} with this storage root is not in the history"
        if not shared.lacks(schema.RELAY_HEADERS):
            notes.fault(notes.blocks_path(), said, position=position)
    if (vouched or row["relay_root"]) != row["relay_parent_root"]:
        _note_other_root(notes, row, vouched)
    root = row["relay_parent_root"]
    try:
        proof = proof_of(row, nodes)
    except LostNode as error:
        notes.whole = False
        if not shared.lacks(schema.NODES):
            notes.fault(notes.blocks_path(), str(error), position=position)
        notes.out.block_measures.append({**measures, "judged": False})
        return
    opened = {"root": root.hex(), "proof": [node.hex() for node in proof]}
    try:
        found = attribute_inherent(root, proof, row["chain"])
    except ProofError as error:
        notes.out.block_measures.append({**measures, "verdict": findings.UNOPENED_PROOF})
        evidence = figures_evidence(opened)
        notes.note(row, findings.UNOPENED_PROOF, Severity.ERROR, evidence, str(error))
        return
    notes.out.block_measures.append(measures)
    place = {name: row[name] for name in ("network", "chain", "segment", "position", "number")}
    notes.out.proof_parts += [{**place, **part} for part in proof_parts(found)]
    _note_left(notes, row, found, opened)


def _note_left(notes: Notes, row: Row, found: Attribution, opened: Mapping[str, object]) -> None:
    """Nodes that no key can need are a finding; those that a key may need, by the chain's own state, are told."""
    kinds = {part.kind: part for part in found.parts}
    if "unread" in kinds:
        part = kinds["unread"]
        figures = {**opened, "unread": [each.hex() for each in found.unread]}
        detail = f"{part.nodes} nodes, {part.weight} bytes that no key needs"
        notes.note(row, findings.UNREAD_NODES, Severity.WARNING, figures_evidence(figures), detail)
    if "unplaced" in kinds:
        part = kinds["unplaced"]
        figures = {**opened, "unplaced": [each.hex() for each in found.unplaced]}
        detail = f"{part.nodes} nodes, {part.weight} bytes below no node of the proof: the chain may have stored those"
        notes.note(row, findings.UNPLACED_NODES, Severity.INFO, figures_evidence(figures), detail)


def _bound(notes: Notes, row: Row) -> None:
    """Leave out figures that are too large to be added up."""
    if (row["max_pov"] or 0) > I64_MAX:
        notes.fault(notes.blocks_path(), f"max_pov is {row['max_pov']}", position=row["position"])
        row["max_pov"] = None
    if row["unpruned"] is not None and sum(part["bytes"] for part in row["unpruned"]) > I64_MAX:
        notes.fault(notes.blocks_path(), "the sum of unpruned is too large", position=row["position"])
        row["unpruned"] = None


class _Facts(NamedTuple):
    """What the first fields of a header say."""

    parent: bytes
    number: int
    state_root: bytes


def _facts(header: bytes) -> _Facts:
    reader = Reader(header)
    return _Facts(reader.take(32), reader.compact(32), reader.take(32))


def _check_header(notes: Notes, row: Row) -> None:
    """Hold columns that repeat what the header says against it, and the relay parent against its descendants."""

    def fault(said: str) -> None:
        notes.fault(notes.blocks_path(), said, position=row["position"])

    if row["header"] is not None:
        try:
            facts = {**_facts(row["header"])._asdict(), "block": blake2_256(row["header"])}
        except ScaleError as error:
            fault(f"the header cannot be read: {error}")
            facts = {}
        for name, fact in facts.items():
            if row[name] != fact:
                fault(f"the row says {name} {shown(row[name])}, its block says {shown(fact)}")
    for descendant in (row.get("descendants") or ())[:1]:
        try:
            first = _facts(descendant)
        except ScaleError as error:
            fault(f"relay_parent_descendants cannot be read: {error}")
        else:
            if (first.number, first.state_root) != (row["relay_parent"], row["relay_parent_root"]):
                fault(f"relay_parent_descendants begin with block {first.number} of another root or number")


def _note_other_root(notes: Notes, row: Row, vouched: bytes | None) -> None:
    """The inherent states another root than the relay chain has, or the row does."""
    if vouched is None:
        said = "the row states another relay root than its inherent, and no relay header says which is right"
        notes.fault(notes.blocks_path(), said, position=row["position"])
        return
    figures = {
        "relay_parent": row["relay_parent"],
        "inherent": row["relay_parent_root"].hex(),
        "relay_header": vouched.hex(),
    }
    detail = "the inherent states another relay storage root than the relay chain's header"
    notes.note(row, findings.RELAY_ROOT_MISMATCH, Severity.ERROR, figures_evidence(figures), detail)
