"""The check of an imported block: header, relay root, and relay proof.

The header is compared with the row's columns, and the relay root with the relay chain's headers.
The relay proof is opened and its bytes are attributed.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import POSITIONED, LostNode, columns_of, proof_of
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.evidence import figures_evidence
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.measures import row_measures
from pubsub_emulator.spark_audit.judge.notes import Judged, Note, Place, contradictions, shown
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.real_proofs.attribution import TOP, Attribution
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import attribute_inherent, proof_parts
from pubsub_emulator.spark_audit.real_proofs.well_known import NEEDED_KEYS

_FOREIGN: Final = (
    "slot",
    "verdict",
    "detail",
    "included_at",
    "slot_now",
    "collator",
    "parent_state_root",
    "allowed_pov",
    "claimed_max_pov",
    "hashed_downward",
    "hashed_horizontal",
    "parent_head",
    "unpruned",
    "strategy",
    "extrinsics",
)
"""Columns of `blocks` that only a judged candidate has."""


class _Unneeded(NamedTuple):
    """Nodes of a proof that do not belong to a known key, and the finding about them."""

    nodes: tuple[Hash, ...]
    code: str
    severity: Severity
    detail: str
    """The end of the finding's detail, after the number of nodes and their bytes."""


def judge_imported(
    place: Place, shared: Shared, row: Row, nodes: Mapping[int, bytes], repeated: int
) -> Judged:
    """Check an imported block and attribute the bytes of its relay proof (AU-9, AU-18).

    `repeated` is the size, in bytes, of the nodes that were also in the proof of the chain's
    previous block. The block is not executed, because only its proof is known, not its state.
    """
    position = row["position"]
    notes: list[Note] = [*_foreign_columns(place, row), *_header_contradictions(place, row)]
    # `_foreign_columns` has noted these columns as faults. They must not reach the measures.
    row = {**row, **dict.fromkeys(_FOREIGN)}
    header_root = shared.header_root(row["relay_parent"])
    measures = {
        **row_measures(row, nodes, judged=True),
        "relay_root_checked": header_root is not None,
        "repeated_bytes": repeated,
    }
    if row["relay_root"] is None:
        notes.append(place.fault("the row has no relay root to open the proof against", position))
        return Judged(notes=notes, measures={**measures, "judged": False})
    root_known = row["relay_root"] in shared.relay_roots(row["relay_parent"])
    if not root_known and not shared.has_fault(schema.RELAY_HEADERS):
        message = f"relay block {row['relay_parent']} with this storage root is not in the history"
        notes.append(place.fault(message, position))
    if (header_root or row["relay_root"]) != row["relay_parent_root"]:
        notes.append(_root_mismatch(place, row, header_root))
    # The proof is opened from the root that the inherent states, because its author made it for
    # that root.
    root = row["relay_parent_root"]
    try:
        proof = proof_of(row, nodes)
    except LostNode as error:
        # A fault of the file of nodes explains the missing node already.
        if not shared.has_fault(schema.NODES):
            notes.append(place.fault(str(error), position))
        return Judged(notes=notes, measures={**measures, "judged": False}, whole=False)
    opened = {"root": root.hex(), "proof": [node.hex() for node in proof]}
    try:
        attribution = attribute_inherent(root, proof, row["chain"])
    except ProofError as error:
        evidence = figures_evidence(opened)
        notes.append(
            place.finding(
                row, findings.UNOPENED_PROOF, Severity.ERROR, evidence=evidence, detail=str(error)
            )
        )
        return Judged(
            notes=notes, measures={**measures, "verdict": findings.UNOPENED_PROOF}, whole=root_known
        )
    place_columns = columns_of(row, POSITIONED)
    parts = [{**place_columns, **part} for part in proof_parts(attribution)]
    notes += _missing_keys(place, row, attribution, proof_figures=opened)
    notes += _unneeded_nodes(place, row, attribution, proof_figures=opened)
    return Judged(notes=notes, measures=measures, parts=parts, whole=root_known)


def _missing_keys(
    place: Place, row: Row, attribution: Attribution, proof_figures: Mapping[str, object]
) -> Iterator[Note]:
    """Yield a finding for each key that every parachain reads but the proof has no value for.

    The runtime would have refused a block with such a proof.
    """
    for part in attribution.parts:
        if part.trie == TOP and part.key in NEEDED_KEYS and part.state != "value":
            evidence = figures_evidence({**proof_figures, "key": part.key.hex()})
            detail = f"{part.name}, which every parachain reads, is {part.state}"
            yield place.finding(
                row, findings.MISSING_KEY, Severity.ERROR, evidence=evidence, detail=detail
            )


def _unneeded_nodes(
    place: Place, row: Row, attribution: Attribution, proof_figures: Mapping[str, object]
) -> Iterator[Note]:
    """Yield findings about nodes of the proof that do not belong to a known key.

    The severity is `warning` for nodes that cannot belong to any key, and `info` for nodes that may
    belong to one, because the chain may have stored the nodes above them.
    """
    unread = _Unneeded(
        attribution.unread, findings.UNREAD_NODES, Severity.WARNING, detail="that no key needs"
    )
    unplaced = _Unneeded(
        attribution.unplaced,
        findings.UNPLACED_NODES,
        Severity.INFO,
        detail="below no node of the proof: the chain may have stored those",
    )
    parts = {part.kind: part for part in attribution.parts}
    for kind, group in (("unread", unread), ("unplaced", unplaced)):
        part = parts.get(kind)
        if part is None:
            continue
        hashes = [node_hash.hex() for node_hash in group.nodes]
        yield place.finding(
            row,
            group.code,
            group.severity,
            evidence=figures_evidence({**proof_figures, kind: hashes}),
            detail=f"{part.nodes} nodes, {part.weight} bytes {group.detail}",
        )


def _foreign_columns(place: Place, row: Row) -> Iterator[Fault]:
    """Yield a fault for each column that an imported block must not have.

    These columns say how a network judged a candidate, and imported blocks come from elsewhere.
    """
    for name in _FOREIGN:
        if row.get(name) is not None and row[name] != []:
            yield place.fault(
                f"the row of an imported block has {name} {shown(row[name])}", row["position"]
            )


def _facts(header: bytes) -> Row:
    """Return parent, number and state root of an encoded relay or parachain header."""
    reader = Reader(header)
    return {"parent": reader.take(32), "number": reader.compact(32), "state_root": reader.take(32)}


def _header_contradictions(place: Place, row: Row) -> Iterator[Fault]:
    """Yield faults for columns that contradict the header or the relay parent's descendants.

    The first descendant must be the relay parent itself.
    """
    if row["header"] is not None:
        try:
            facts = {**_facts(row["header"]), "block": blake2_256(row["header"])}
        except ScaleError as error:
            yield place.fault(f"the header cannot be read: {error}", row["position"])
        else:
            yield from contradictions(place, row, facts)
    # Only the first descendant is looked at.
    for descendant in (row.get("descendants") or ())[:1]:
        try:
            first = _facts(descendant)
        except ScaleError as error:
            yield place.fault(f"relay_parent_descendants cannot be read: {error}", row["position"])
        else:
            if (first["number"], first["state_root"]) != (
                row["relay_parent"],
                row["relay_parent_root"],
            ):
                message = (
                    f"relay_parent_descendants begin with block {first['number']} of another root"
                    " or number"
                )
                yield place.fault(message, row["position"])


def _root_mismatch(place: Place, row: Row, header_root: bytes | None) -> Note:
    """Return a note that the inherent states another relay root than the relay chain or the row.

    The note is a finding if the relay chain's own header says which root is right, otherwise a
    fault.
    """
    if header_root is None:
        error = (
            "the row states another relay root than its inherent, and no relay header says which is"
            " right"
        )
        return place.fault(error, row["position"])
    roots = {"inherent": row["relay_parent_root"].hex(), "relay_header": header_root.hex()}
    evidence = figures_evidence({"relay_parent": row["relay_parent"], **roots})
    detail = "the inherent states another relay storage root than the relay chain's header"
    return place.finding(
        row, findings.RELAY_ROOT_MISMATCH, Severity.ERROR, evidence=evidence, detail=detail
    )
