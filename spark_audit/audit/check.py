"""One segment of one chain, judged again in plain Python by the function that the chain itself runs (AU-1, AU-4).

The checkpoint gives the state; each candidate is rebuilt from its row and judged on it; what is valid moves the state
on, what is not leaves it; the end must be where the next segment starts. Whatever cannot be read or rebuilt ends the
judgement of the segment, because no later block could be told valid from invalid; it never ends the audit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.primitives.ed25519 import verify
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS
from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.genesis import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block
from pubsub_emulator.spark_audit.audit import findings
from pubsub_emulator.spark_audit.audit.evidence import (
    Recorded,
    block_evidence,
    callback_bytes,
    figures_evidence,
    seam_evidence,
)
from pubsub_emulator.spark_audit.audit.findings import Severity, finding_row
from pubsub_emulator.spark_audit.audit.measures import executed_measures, publisher_rows, row_measures
from pubsub_emulator.spark_audit.engine.segment_task import Task, history_of
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.rows import (
    Row,
    RowError,
    block_place,
    candidate_of,
    delivery_rows,
    proof_of,
    state_of,
)
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import proof_parts

_DELIVERED: Final = ("publisher", "key", "kind", "entry_hash", "ttl_state", "failed")


@dataclass(slots=True)
class SegmentResult:
    """What judging one segment of one chain gave."""

    block_measures: list[Row] = field(default_factory=list)
    publisher_measures: list[Row] = field(default_factory=list)
    proof_parts: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    quarantine: list[Row] = field(default_factory=list)
    receipt: dict[str, Any] = field(default_factory=dict)

    def tables(self) -> dict[schema.Table, list[Row]]:
        """The rows by table."""
        return {
            schema.BLOCK_MEASURES: self.block_measures,
            schema.PUBLISHER_MEASURES: self.publisher_measures,
            schema.PROOF_PARTS: self.proof_parts,
            schema.FINDINGS: self.findings,
            schema.QUARANTINE: self.quarantine,
        }


def check_segment(task: Task) -> SegmentResult:
    """Judge all candidates of a segment; never raises for what the history holds."""
    return _Check(task).run()


class _Undecided(Exception):
    """The judgement of this segment cannot go on."""


class _Check:
    """One run over one segment."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.root = Path(task.root)
        self.out = SegmentResult()
        self.judged = 0
        self.damaged_relay = False
        self.relay: dict[int, tuple[Hash, int | None]] = {}

    def run(self) -> SegmentResult:
        rows, whole = self.block_rows()
        nodes = self.nodes({reference for row in rows for reference in row["proof"]})
        imported = [row for row in rows if row["status"] == "imported"]
        candidates = [row for row in rows if row["status"] != "imported"]
        for row in imported:
            self.open_imported(row, nodes)
        start, end = self.checkpoints() if candidates or not imported else (None, None)
        reached: Header | None = None
        complete = whole
        seam = "none"
        if start is not None:
            self.read_relay(self.task.relay)
            try:
                reached = self.judge_all(start, candidates, nodes, whole=whole)
            except _Undecided:
                complete = False
            for row in candidates[self.judged :]:
                self.out.block_measures.append(row_measures(row, nodes, judged=False))
            if complete and reached is not None:
                seam = self.check_seam(reached, end)
        elif candidates or not imported:
            complete = False
            self.fault(self.blocks_path(), "the segment's checkpoint is not in the history")
            self.out.block_measures += [row_measures(row, nodes, judged=False) for row in candidates]
        self.out.receipt = {
            "network": self.task.network,
            "chain": self.task.chain,
            "segment": self.task.segment,
            "kind": "imported" if imported and not candidates else "candidates",
            "candidates": len(rows),
            "judged": self.judged,
            "complete": complete,
            "seam": seam,
            "genesis": start is not None and start["number"] == 0,
            "start": None if start is None else blake2_256(start["header"]).hex(),
            "end": None if reached is None else reached.hash().hex(),
            "end_number": None if reached is None else reached.number,
            "proof_bytes": sum(row["proof_bytes"] for row in self.out.block_measures),
        }
        return self.out

    # Reading

    def fault(self, path: str, error: str, row_group: int | None = None, position: int | None = None) -> None:
        task = self.task
        fault = Fault(path, error, row_group, task.network, task.chain, task.segment, position)
        self.out.quarantine.append(fault.row())

    def units(self, entries: tuple[FileEntry, ...]) -> Iterator[list[Row] | Fault]:
        """The rows of each readable row group, and a fault (noted) for each other."""
        for entry in entries:
            for unit in read_file(self.root, entry):
                if isinstance(unit, Fault):
                    self.out.quarantine.append(unit.row())
                    yield unit
                else:
                    yield unit.to_pylist()

    def block_rows(self) -> tuple[list[Row], bool]:
        """The candidates in order, and whether all could be read."""
        rows: list[Row] = []
        whole = True
        for unit in self.units(self.task.blocks):
            if isinstance(unit, Fault):
                whole = False
                continue
            for row in unit:
                if (row["network"], row["chain"], row["segment"]) != self.place:
                    self.fault(self.blocks_path(), f"a row of {row['network']}, chain {row['chain']} stands here")
                    whole = False
                else:
                    rows.append(row)
        rows.sort(key=lambda row: row["position"])
        return rows, whole

    @property
    def place(self) -> tuple[str, int, int]:
        """Network, chain and segment."""
        return self.task.network, self.task.chain, self.task.segment

    def blocks_path(self) -> str:
        """The file to name when no single one is to blame."""
        task = self.task
        if task.blocks:
            return task.blocks[0].path
        return f"{schema.BLOCKS.name}/network={task.network}/chain={task.chain}"

    def nodes(self, wanted: set[int]) -> dict[int, bytes]:
        """The nodes that the segment's proofs refer to, each checked against its hash; no number has two."""
        out: dict[int, bytes] = {}
        numbers = pa.array(wanted, schema.U32)
        for entry in self.task.nodes if wanted else ():
            for unit in read_file(self.root, entry):
                if isinstance(unit, Fault):
                    self.out.quarantine.append(unit.row())
                    continue
                # The nodes of all chains stand in one table: other chains' never become Python's.
                mine = unit.filter(pc.is_in(unit["number"], value_set=numbers))
                columns = (mine[name].to_pylist() for name in ("number", "hash", "data"))
                for number, name, data in zip(*columns, strict=True):
                    if blake2_256(data) != name:
                        self.fault(entry.path, f"node {name.hex()} does not have that hash")
                    elif out.setdefault(number, data) != data:
                        self.fault(entry.path, f"there are two nodes {number} in the segment")
                        del out[number]
        return out

    def checkpoints(self) -> tuple[Row | None, Row | None]:
        """Where the segment starts, and where the next one does."""
        found: dict[int, Row] = {}
        for unit in self.units(self.task.checkpoints):
            for row in () if isinstance(unit, Fault) else unit:
                found.setdefault(row["segment"], row)
        return found.get(self.task.segment), found.get(self.task.segment + 1)

    def read_relay(self, entries: tuple[FileEntry, ...]) -> None:
        """Relay headers; a number that two rows give different roots is damage."""
        for entry in entries:
            for unit in self.units((entry,)):
                if isinstance(unit, Fault):
                    self.damaged_relay = True
                    continue
                for row in unit:
                    known = self.relay.setdefault(row["number"], (row["storage_root"], row["slot"]))
                    if known[0] != row["storage_root"]:
                        self.fault(entry.path, f"relay block {row['number']} has two storage roots")
                        self.damaged_relay = True

    def relay_context(self, row: Row) -> RelayContext:
        """What the relay chain vouches for, by its headers and not by the row."""
        number = row["relay_parent"]
        # A block that came later was not there to build on: a collator may have guessed its number.
        there = number < row["included_at"]
        if there and number not in self.relay:
            read = {entry.path for entry in self.task.relay}
            older = [
                entry
                for entry in history_of(self.task.root).files(schema.RELAY_HEADERS, self.task.network)
                if entry.segment < self.task.segment and entry.path not in read
            ]
            self.read_relay(tuple(older))
        # A number below a known one is a hole in the history, not a relay block that its author made up.
        if there and number not in self.relay and (self.damaged_relay or number < max(self.relay, default=0)):
            self.fault(self.blocks_path(), f"relay block {number} is not readable", position=row["position"])
            raise _Undecided
        judged_in = self.relay.get(row["included_at"])
        slot = row["slot_now"] if judged_in is None or judged_in[1] is None else judged_in[1]
        root = self.relay[number][0] if there and number in self.relay else None
        if (root, slot) != (row["relay_root"], row["slot_now"]):
            self.note(
                row,
                findings.RELAY_ROOT_MISMATCH,
                Severity.ERROR,
                figures_evidence(
                    {
                        "relay_parent": number,
                        "row": [_hex(row["relay_root"]), row["slot_now"]],
                        "relay_headers": [_hex(root), slot],
                    }
                ),
                "the row states another relay storage root or slot than the relay headers",
            )
        return RelayContext(RelayBlockNumber(number), root, Slot(slot))

    # Judging

    def judge_all(self, start: Row, rows: list[Row], nodes: dict[int, bytes], *, whole: bool) -> Header:
        """Judge the candidates in order and return the header reached. Raises `_Undecided`."""
        try:
            parent, state = state_of(start)
        except RowError as error:
            self.fault(f"{schema.CHECKPOINTS.name}/network={self.task.network}/chain={self.task.chain}", str(error))
            raise _Undecided from None
        recorded = self.recorded_deliveries()
        position = start["position"]
        for row in rows:
            if row["position"] != position:
                self.fault(self.blocks_path(), f"candidate {position} is not in the history", position=position)
                raise _Undecided
            parent, state = self.judge(row, nodes, parent, state, recorded)
            self.judged += 1
            position += 1
        if not whole:
            raise _Undecided
        return parent

    def judge(
        self, row: Row, nodes: dict[int, bytes], parent: Header, state: State, recorded: dict[int, list[Row]] | None
    ) -> tuple[Header, State]:
        """Judge one candidate and return what the next one builds on. Raises `_Undecided`."""
        try:
            candidate = candidate_of(row, nodes)
        except RowError as error:
            self.fault(self.blocks_path(), str(error), position=row["position"])
            raise _Undecided from None
        try:
            handler = decode_spec(state.top.get(CODE) or b"").handler
        except ScaleError as error:
            self.fault(self.blocks_path(), f"the chain's runtime does not decode: {error}", position=row["position"])
            raise _Undecided from None
        if handler not in HANDLERS:
            self.fault(self.blocks_path(), f"the handler {handler!r} is not known here", position=row["position"])
            raise _Undecided
        row = {**row, "collator": _author(state, candidate.header)}
        relay = self.relay_context(row)
        outcome: BlockOutcome | None = None
        refusal: InvalidBlock | None = None
        try:
            outcome = validate_block(parent, state, candidate, relay)
        except InvalidBlock as invalid:
            refusal = invalid
        found = None if refusal is None else refusal.verdict.value
        included = row["status"] == "included"
        if found is not None or not included:
            stated = None if included else row["verdict"] or ""
            code, severity, detail = _weigh(row, found, refusal, stated)
            evidence = block_evidence(parent, state, candidate, relay, Recorded(stated))
            self.note(row, code, severity, evidence, detail)
        measures = row_measures(row, nodes, judged=True)
        measures["verdict"] = found
        # Any other verdict, and none, means that the seal was found good.
        measures["sealed"] = found != Verdict.BAD_SEAL.value or _is_sealed(row["collator"], candidate.header)
        if outcome is None or not included:
            self.out.block_measures.append(measures)
            if included:
                # The chain went on from a state that no valid block leads to: what follows cannot be judged.
                self.judged += 1
                raise _Undecided
            return parent, state
        deliveries = delivery_rows(block_place(row), outcome.deliveries)
        measures.update(executed_measures(row, state, outcome))
        self.out.block_measures.append(measures)
        self.out.publisher_measures += publisher_rows(row, outcome)
        if recorded is not None and not _same_deliveries(recorded.get(row["position"], []), deliveries):
            told = recorded.get(row["position"], [])
            callbacks = tuple(callback_bytes(*(each[name] for name in _DELIVERED)) for each in _in_order(told))
            evidence = block_evidence(parent, state, candidate, relay, Recorded(None, callbacks))
            detail = f"{len(told)} callbacks on record, executing gives {len(deliveries)}"
            self.note(row, findings.DELIVERY_MISMATCH, Severity.ERROR, evidence, detail)
        return candidate.header, outcome.state

    def recorded_deliveries(self) -> dict[int, list[Row]] | None:
        """The callbacks on record by position; none when they cannot be read."""
        out: dict[int, list[Row]] = {}
        for unit in self.units(self.task.deliveries):
            if isinstance(unit, Fault):
                return None
            for row in unit:
                out.setdefault(row["position"], []).append(row)
        return out

    def check_seam(self, reached: Header, end: Row | None) -> str:
        """The end must be where the next segment starts; `open` when nothing follows."""
        if end is None:
            return "open"
        if end["header"] == reached.encode() and end["state_root"] == reached.state_root:
            return "closed"
        evidence = seam_evidence(reached, end["header"], end["state_root"])
        subject = self.task.segment.to_bytes(4, "little")
        detail = f"the segment ends at block {reached.number}, {reached.hash().hex()}; the next starts elsewhere"
        self.out.findings.append(
            finding_row(
                network=self.task.network,
                chain=self.task.chain,
                code=findings.SEAM_MISMATCH,
                severity=Severity.ERROR,
                subject=subject,
                evidence=evidence,
                detail=detail,
                place={"segment": self.task.segment, "number": reached.number, "block": reached.hash()},
            )
        )
        return "mismatch"

    def open_imported(self, row: Row, nodes: dict[int, bytes]) -> None:
        """Open a real relay proof and tell its bytes apart (AU-9)."""
        self.judged += 1
        measures = row_measures(row, nodes, judged=True)
        try:
            proof = proof_of(row, nodes)
        except RowError as error:
            self.fault(self.blocks_path(), str(error), position=row["position"])
            self.out.block_measures.append({**measures, "judged": False})
            return
        try:
            parts = proof_parts(row["relay_root"], proof, row["chain"])
        except ProofError as error:
            self.out.block_measures.append({**measures, "verdict": findings.UNOPENED_PROOF})
            evidence = figures_evidence({"root": row["relay_root"].hex(), "proof": [node.hex() for node in proof]})
            self.note(row, findings.UNOPENED_PROOF, Severity.ERROR, evidence, str(error))
            return
        self.out.block_measures.append(measures)
        place = {name: row[name] for name in ("network", "chain", "segment", "position", "number")}
        self.out.proof_parts += [{**place, **part} for part in parts]
        unread = next((part for part in parts if part["kind"] == "unread"), None)
        if unread is not None:
            detail = f"{unread['nodes']} nodes, {unread['bytes']} bytes that no key needs"
            evidence = figures_evidence({"root": row["relay_root"].hex(), "proof": [node.hex() for node in proof]})
            self.note(row, findings.UNREAD_NODES, Severity.WARNING, evidence, detail)

    def note(self, row: Row, code: str, severity: Severity, evidence: bytes, detail: str) -> None:
        subject = row["position"].to_bytes(8, "little") + (row["block"] or b"")
        self.out.findings.append(
            finding_row(
                network=self.task.network,
                chain=self.task.chain,
                code=code,
                severity=severity,
                subject=subject,
                evidence=evidence,
                detail=detail,
                place={**block_place(row)},
                collator=row["collator"],
            )
        )


def _author(state: State, header: Header) -> bytes | None:
    """The collator whose turn the header's slot is, by the state that it was judged on."""
    slot, keys = header.aura_slot(), AUTHORITIES.get(Storage(state))
    return None if slot is None or not keys else keys[slot % len(keys)]


def _is_sealed(author: bytes | None, header: Header) -> bool:
    """Whether the author made the seal, whatever else may be wrong with it."""
    seal = header.aura_seal()
    return author is not None and seal is not None and verify(author, header.pre_hash(), seal)


def _weigh(
    row: Row, found: str | None, refusal: InvalidBlock | None, recorded: str | None
) -> tuple[str, Severity, str]:
    """Code, severity and words for a candidate that is invalid, or was refused, or both."""
    code = findings.weigh(found, recorded)
    if code is None or code == findings.REJECTED_VALID:
        return findings.REJECTED_VALID, Severity.ERROR, f"refused as {row['verdict']}, and valid"
    if recorded is None:
        return code, Severity.ERROR, f"the chain took it: {refusal}"
    if code == findings.VERDICT_MISMATCH:
        return code, Severity.ERROR, f"refused as {row['verdict']}, found {refusal}"
    return code, Severity.WARNING, str(refusal)


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _same_deliveries(recorded: list[Row], executed: list[Row]) -> bool:
    return [[row[name] for name in _DELIVERED] for row in _in_order(recorded)] == [
        [row[name] for name in _DELIVERED] for row in executed
    ]


def _in_order(deliveries: list[Row]) -> list[Row]:
    return sorted(deliveries, key=lambda row: row["sequence"])
