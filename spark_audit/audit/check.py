"""One chain's segment, judged again in plain Python by the function that the chain itself runs (AU-1, AU-4).

The checkpoint gives the state; each candidate is rebuilt from its row and judged on it; what is valid moves the state
on, what is not leaves it; the end must be where the next segment starts. Whatever cannot be read or rebuilt ends the
judgement of the segment, because no later block could be told valid from invalid; it never ends the audit.

A column that repeats what header, state, manifest or another table says is compared with it. A difference is a fault of
the history and nobody's cheat: the block is judged by its header, and the segment is not complete.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pubsub_emulator.primitives.ed25519 import verify
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, decode_spec
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.genesis import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block
from pubsub_emulator.spark_audit.audit import findings
from pubsub_emulator.spark_audit.audit.announced import Announced
from pubsub_emulator.spark_audit.audit.evidence import (
    EvidenceError,
    Recorded,
    block_evidence,
    callback_bytes,
    figures_evidence,
    judge,
    seam_evidence,
)
from pubsub_emulator.spark_audit.audit.findings import Severity, finding_row
from pubsub_emulator.spark_audit.audit.measures import executed_measures, publisher_rows, row_measures
from pubsub_emulator.spark_audit.audit.shared import Shared
from pubsub_emulator.spark_audit.engine.segment_task import ChainFiles, Task
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import FileEntry
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
_I64_MAX: Final = 2**63 - 1


@dataclass(slots=True)
class ChainResult:
    """What judging one segment of one chain gave; `passing` where a read failed that may succeed another time."""

    block_measures: list[Row] = field(default_factory=list)
    publisher_measures: list[Row] = field(default_factory=list)
    proof_parts: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    quarantine: list[Row] = field(default_factory=list)
    receipt: dict[str, Any] = field(default_factory=dict)
    passing: bool = False

    def tables(self) -> dict[schema.Table, list[Row]]:
        """The rows by table."""
        return {
            schema.BLOCK_MEASURES: self.block_measures,
            schema.PUBLISHER_MEASURES: self.publisher_measures,
            schema.PROOF_PARTS: self.proof_parts,
            schema.FINDINGS: self.findings,
            schema.QUARANTINE: self.quarantine,
        }


def check_chain(task: Task, files: ChainFiles, shared: Shared) -> ChainResult:
    """Judge all candidates of a chain's segment; never raises for what the history holds."""
    check = _Check(task, files, shared)
    try:
        check.run()
    except Exception as error:  # noqa: BLE001  # whatever a stranger's history brings about is its own fault (AU-11)
        check.lose(error)
    return check.out


class _Undecided(Exception):
    """The judgement of this segment cannot go on."""


class _Check:
    """One run over one segment of one chain."""

    def __init__(self, task: Task, files: ChainFiles, shared: Shared) -> None:
        self.task = task
        self.files = files
        self.shared = shared
        self.out = ChainResult()
        self.judged = 0
        self.whole = True
        """Whether everything could be read and nothing contradicts itself."""
        self.unread = False
        self.untold = 0
        self.first = False
        """Whether the chain is told of from this segment on: its checkpoint is in the segment's own commit."""
        self.out.receipt = {
            "network": task.network,
            "chain": files.chain,
            "segment": task.segment,
            "kind": "candidates",
            "candidates": 0,
            "judged": 0,
            "complete": False,
            "seam": "none",
            "genesis": False,
            "start": None,
            "end": None,
            "end_number": None,
            "proof_bytes": 0,
        }

    def run(self) -> None:
        rows = self.block_rows()
        receipt = self.out.receipt
        receipt["candidates"] = len(rows)
        nodes = self.shared.nodes()
        imported = [row for row in rows if row["status"] == "imported"]
        candidates = [row for row in rows if row["status"] != "imported"]
        if imported and not candidates:
            receipt["kind"] = "imported"
        for row in imported:
            self.open_imported(row, nodes)
        if candidates or not imported:
            self.judge_segment(candidates, nodes)
        receipt.update(
            judged=self.judged,
            complete=self.whole,
            proof_bytes=sum(row["proof_bytes"] for row in self.out.block_measures),
        )
        if not self.shared.readable:
            self.out.passing = self.out.passing or self.shared.passing

    def judge_segment(self, rows: list[Row], nodes: Mapping[int, bytes]) -> None:
        """Judge what is no imported proof, from checkpoint to checkpoint."""
        receipt = self.out.receipt
        start, end = self.checkpoints()
        if start is None:
            self.fault(self.blocks_path(), "the segment's checkpoint is not in the history")
            self.out.block_measures += [row_measures(row, nodes, judged=False) for row in rows]
            return
        receipt["genesis"] = start["number"] == 0
        receipt["start"] = blake2_256(start["header"]).hex()
        if not self.shared.has_headers:
            self.fault(self.blocks_path(), "the history holds no relay headers of this segment")
        reached: Header | None = None
        try:
            reached = self.judge_all(start, rows, nodes)
        except _Undecided:
            self.whole = False
        unjudged = rows[self.judged :]
        self.out.block_measures += [row_measures(row, nodes, judged=False) for row in unjudged]
        if reached is None:
            return
        receipt.update(end=reached.hash().hex(), end_number=reached.number)
        if self.whole:
            receipt["seam"] = self.check_seam(reached, end, start["position"] + len(rows))

    def lose(self, error: Exception) -> None:
        """Note that judging ended with an error that nobody foresaw."""
        self.fault(self.blocks_path(), f"judging it ended with {type(error).__name__}: {_short(error)}")
        self.out.passing = self.out.passing or isinstance(error, MemoryError)
        self.out.receipt.update(complete=False, seam="none", judged=self.judged)

    # Reading

    def fault(self, path: str, error: str, row_group: int | None = None, position: int | None = None) -> None:
        """Note what is wrong with the history; the segment is not complete."""
        self.whole = False
        task = self.task
        fault = Fault(path, error, row_group, task.network, self.files.chain, task.segment, position)
        self.out.quarantine.append(fault.row())

    def units(self, entries: tuple[FileEntry, ...]) -> Iterator[list[Row] | Fault]:
        """The rows of each readable row group, and a fault (noted) for each other."""
        for entry in entries:
            for unit in read_file(self.shared.store, entry):
                if isinstance(unit, Fault):
                    self.out.quarantine.append(unit.row())
                    self.out.passing = self.out.passing or unit.passing
                    self.whole = False
                    self.unread = True
                    yield unit
                else:
                    yield unit.to_pylist()

    def block_rows(self) -> list[Row]:
        """The candidates in order."""
        rows: list[Row] = []
        for unit in self.units(self.files.blocks):
            rows += [] if isinstance(unit, Fault) else [row for row in unit if self.is_here(row, "blocks")]
        rows.sort(key=lambda row: row["position"])
        return rows

    def is_here(self, row: Row, table: str, segments: tuple[int, ...] = ()) -> bool:
        """Whether a row is of this network, chain and segment; what is not is noted."""
        task = self.task
        if (row["network"], row["chain"]) != (task.network, self.files.chain):
            self.fault(self.blocks_path(), f"a row of {_short(row['network'])}, chain {row['chain']} stands in {table}")
            return False
        if row["segment"] not in (segments or (task.segment,)):
            self.fault(self.blocks_path(), f"a row of segment {row['segment']} stands in {table}")
            return False
        return True

    def blocks_path(self) -> str:
        """The file to name when no single one is to blame."""
        if self.files.blocks:
            return self.files.blocks[0].path
        return f"{schema.BLOCKS.name}/network={self.task.network}/chain={self.files.chain}"

    def checkpoints_path(self) -> str:
        """The file of the checkpoints, to name."""
        if self.files.checkpoints:
            return self.files.checkpoints[0].path
        return f"{schema.CHECKPOINTS.name}/network={self.task.network}/chain={self.files.chain}"

    def checkpoints(self) -> tuple[Row | None, Row | None]:
        """Where the segment starts, and where the next one does."""
        at = self.task.segment
        found: dict[int, Row] = {}
        for entry in self.files.checkpoints:
            for unit in self.units((entry,)):
                for row in () if isinstance(unit, Fault) else unit:
                    # The file before also holds the checkpoint that its own segment starts with.
                    if not self.is_here(row, "checkpoints", (at - 1, at, at + 1)):
                        continue
                    if found.setdefault(row["segment"], row) != row:
                        self.fault(self.checkpoints_path(), f"segment {row['segment']} has two checkpoints")
                    self.first = self.first or row["segment"] == at == entry.segment
        return found.get(at), found.get(at + 1)

    def relay_context(self, row: Row) -> RelayContext:
        """What the relay chain vouches for, by its headers and not by the row. Raises `_Undecided`."""
        number, judged_at = row["relay_parent"], row["included_at"]
        judged_in = self.shared.relay(judged_at)
        if judged_in is None:
            self.unreadable_relay(judged_at, row)
        # A block that came later was not there to build on: a collator may have guessed its number. One that came
        # earlier was there, so a header that is missing is a hole in the history and no invention of the author's.
        vouched = self.shared.relay(number) if number < judged_at else None
        if number < judged_at and vouched is None:
            self.unreadable_relay(number, row)
        if judged_in is not None and judged_in[1] is None:
            self.fault(self.blocks_path(), f"relay block {judged_at} has no slot", position=row["position"])
        slot = row["slot_now"] if judged_in is None or judged_in[1] is None else judged_in[1]
        root = None if vouched is None else vouched[0]
        if (root, slot) != (row["relay_root"], row["slot_now"]):
            figures = {
                "relay_parent": number,
                "row": [_hex(row["relay_root"]), row["slot_now"]],
                "relay_headers": [_hex(root), slot],
            }
            detail = "the row states another relay storage root or slot than the relay headers"
            nobodys = {**row, "collator": None}
            self.note(nobodys, findings.RELAY_ROOT_MISMATCH, Severity.ERROR, figures_evidence(figures), detail)
        return RelayContext(RelayBlockNumber(number), root, Slot(slot))

    def unreadable_relay(self, number: int, row: Row) -> None:
        """Note that a relay block is not in the history. Raises `_Undecided`."""
        self.fault(self.blocks_path(), f"relay block {number} is not readable", position=row["position"])
        raise _Undecided

    # Judging

    def judge_all(self, start: Row, rows: list[Row], nodes: Mapping[int, bytes]) -> Header:
        """Judge the candidates in order and return the header reached. Raises `_Undecided`."""
        parent, state = self.start_from(start)
        recorded = self.recorded_deliveries()
        announced = Announced(self.shared.changes(self.files.chain), parent, state, first=self.first)
        position = start["position"]
        judged_at = 0
        for row in rows:
            if row["position"] != position:
                self.fault(self.blocks_path(), f"candidate {position} is not in the history", position=position)
                raise _Undecided
            if row["included_at"] is not None and row["included_at"] < judged_at:
                said = f"it was judged in relay block {row['included_at']}, the one before it in {judged_at}"
                self.fault(self.blocks_path(), said, position=position)
            judged_at = max(judged_at, row["included_at"] or 0)
            parent, state = self.judge(row, nodes, parent, state, recorded)
            announced.reach(parent, state)
            self.judged += 1
            position += 1
        if self.unread:  # what is not there is told once, and not again as what it would have shown
            raise _Undecided
        for error in announced.errors():
            self.fault(self.changes_path(), error)
        self.check_counts(position, recorded)
        return parent

    def start_from(self, start: Row) -> tuple[Header, State]:
        """Header and state of the checkpoint, if blocks can be judged on it at all. Raises `_Undecided`."""
        try:
            header, state = state_of(start)
            spec = decode_spec(state.top.get(CODE) or b"")
            keys = AUTHORITIES.get(Storage(state))
        except (RowError, ScaleError) as error:
            self.fault(self.checkpoints_path(), str(error))
            raise _Undecided from None
        wrong = None
        if header.number != start["number"]:
            wrong = f"the checkpoint says block {start['number']}, its header {header.number}"
        elif spec.para_id != self.files.chain:
            wrong = f"the checkpoint's state is that of chain {spec.para_id}"
        elif not keys:
            wrong = "the checkpoint's state knows no collators"
        if wrong is not None:
            self.fault(self.checkpoints_path(), wrong)
            raise _Undecided
        return header, state

    def check_counts(self, position: int, recorded: dict[int, list[Row]] | None) -> None:
        """Hold the number of candidates against the manifest, and callbacks against the blocks they are of."""
        if self.untold:
            self.fault(self.blocks_path(), f"no callbacks are on record, executing gives {self.untold}")
        stated = self.files.next_position
        if stated != position:
            said = f"it ends before position {position}, its manifest says {stated}"
            self.fault(self.blocks_path(), said)
        for at in sorted(recorded or ()):
            self.fault(self.deliveries_path(), f"callbacks at position {at} are of no included block", position=at)

    def deliveries_path(self) -> str:
        """The file of the callbacks, to name."""
        return self.files.deliveries[0].path if self.files.deliveries else self.blocks_path()

    def changes_path(self) -> str:
        """The file of collator sets and subscriptions, to name."""
        return self.task.changes[0].path if self.task.changes else self.blocks_path()

    def judge(
        self,
        row: Row,
        nodes: Mapping[int, bytes],
        parent: Header,
        state: State,
        recorded: dict[int, list[Row]] | None,
    ) -> tuple[Header, State]:
        """Judge one candidate and return what the next one builds on. Raises `_Undecided`."""
        candidate, row = self.rebuild(row, nodes, parent, state)
        relay = self.relay_context(row)
        outcome: BlockOutcome | None = None
        refusal: InvalidBlock | None = None
        try:
            outcome = validate_block(parent, state, candidate, relay)
        except InvalidBlock as invalid:
            refusal = invalid
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  # a state that is consistent and senseless (AU-5)
            said = f"judging it ended with {type(error).__name__}: {_short(error)}"
            self.fault(self.blocks_path(), said, position=row["position"])
            raise _Undecided from None
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
        measures.update(executed_measures(row, state, outcome))
        self.out.block_measures.append(measures)
        self.out.publisher_measures += publisher_rows(row, outcome)
        if recorded is not None:
            self.compare_deliveries(row, recorded.pop(row["position"], []), parent, state, candidate, relay, outcome)
        return candidate.header, outcome.state

    def compare_deliveries(  # noqa: PLR0917  # all that evidence is made of
        self,
        row: Row,
        told: list[Row],
        parent: Header,
        state: State,
        candidate: Candidate,
        relay: RelayContext,
        outcome: BlockOutcome,
    ) -> None:
        """Hold the callbacks on record against those that executing the block gives."""
        given = delivery_rows(block_place(row), outcome.deliveries)
        if given and not self.files.deliveries:
            self.untold += len(given)  # none of the segment's are on record: that is no block's doing
            return
        told = sorted(told, key=lambda each: each["sequence"])
        for sequence, each in enumerate(told):
            if each["sequence"] != sequence or (each["number"], each["block"]) != (row["number"], row["block"]):
                said = f"callback {each['sequence']} is of another block, or another one in its order"
                self.fault(self.deliveries_path(), said, position=row["position"])
                return
        if [[each[name] for name in _DELIVERED] for each in told] == [
            [each[name] for name in _DELIVERED] for each in given
        ]:
            return
        callbacks = tuple(callback_bytes(*(each[name] for name in _DELIVERED)) for each in told)
        evidence = block_evidence(parent, state, candidate, relay, Recorded(None, callbacks))
        detail = f"{len(told)} callbacks on record, executing gives {len(given)}"
        self.note(row, findings.DELIVERY_MISMATCH, Severity.ERROR, evidence, detail)

    def rebuild(self, row: Row, nodes: Mapping[int, bytes], parent: Header, state: State) -> tuple[Candidate, Row]:
        """The candidate of a row, and the row with what header and state say. Raises `_Undecided`."""
        try:
            candidate = candidate_of(row, nodes)
            spec = decode_spec(state.top.get(CODE) or b"")
        except (RowError, ScaleError) as error:
            self.fault(self.blocks_path(), str(error), position=row["position"])
            raise _Undecided from None
        if spec.handler not in HANDLERS:
            said = f"the handler {_short(spec.handler)!r} is not known here"
            self.fault(self.blocks_path(), said, position=row["position"])
            raise _Undecided
        facts = _facts(candidate.header, parent, state, spec)
        for name, fact in facts.items():
            if row[name] != fact:
                said = f"the row says {name} {_shown(row[name])}, its block says {_shown(fact)}"
                self.fault(self.blocks_path(), said, position=row["position"])
        if row["status"] == "included" and (row["verdict"] is not None or row["detail"] is not None):
            said = f"the row says included and refused at once, for {_shown(row['verdict'] or row['detail'])}"
            self.fault(self.blocks_path(), said, position=row["position"])
        unpruned = row["unpruned"]
        if unpruned is not None and sum(part["bytes"] for part in unpruned) > _I64_MAX:
            self.fault(self.blocks_path(), "unpruned weighs more than can be", position=row["position"])
            unpruned = None
        return candidate, {**row, **facts, "unpruned": unpruned}

    def recorded_deliveries(self) -> dict[int, list[Row]] | None:
        """The callbacks on record by position; none when they cannot be read."""
        out: dict[int, list[Row]] = {}
        for unit in self.units(self.files.deliveries):
            if isinstance(unit, Fault):
                return None
            for row in unit:
                if self.is_here(row, "deliveries"):
                    out.setdefault(row["position"], []).append(row)
        return out

    def check_seam(self, reached: Header, end: Row | None, position: int) -> str:
        """The end must be where the next segment starts; `open` when nothing follows."""
        if end is None:
            return "open"
        same = end["header"] == reached.encode()
        if end["position"] != position or (same and end["number"] != reached.number):
            said = f"the next checkpoint is at position {end['position']} and of block {end['number']}, "
            said += f"the segment ends at {position} with block {reached.number}"
            self.fault(self.checkpoints_path(), said)
            self.out.receipt["complete"] = False
            return "mismatch"
        if end["header"] == reached.encode() and end["state_root"] == reached.state_root:
            return "closed"
        evidence = seam_evidence(reached, end["header"], end["state_root"])
        if not self.is_borne_out(findings.SEAM_MISMATCH, evidence, None):
            return "mismatch"
        subject = self.task.segment.to_bytes(4, "little")
        detail = f"the segment ends at block {reached.number}, {reached.hash().hex()}; the next starts elsewhere"
        self.out.findings.append(
            finding_row(
                network=self.task.network,
                chain=self.files.chain,
                code=findings.SEAM_MISMATCH,
                severity=Severity.ERROR,
                subject=subject,
                evidence=evidence,
                detail=detail,
                place={"segment": self.task.segment, "number": reached.number, "block": reached.hash()},
            )
        )
        return "mismatch"

    def open_imported(self, row: Row, nodes: Mapping[int, bytes]) -> None:
        """Open a real relay proof and tell its bytes apart (AU-9)."""
        self.judged += 1
        position = row["position"]
        for name in ("max_pov",):
            if (row[name] or 0) > _I64_MAX:
                self.fault(self.blocks_path(), f"{name} is {row[name]}", position=position)
                row[name] = None
        if row["unpruned"] is not None and sum(part["bytes"] for part in row["unpruned"]) > _I64_MAX:
            self.fault(self.blocks_path(), "unpruned weighs more than can be", position=position)
            row["unpruned"] = None
        measures = row_measures(row, nodes, judged=True)
        if row["relay_root"] is None or row["relay_root"] != row["relay_parent_root"]:
            self.fault(self.blocks_path(), "the row does not say which relay root it is to open to", position=position)
            self.out.block_measures.append({**measures, "judged": False})
            return
        if row["relay_root"] not in self.shared.relay_roots(row["relay_parent"]):
            said = f"relay block {row['relay_parent']} with this storage root is not in the history"
            self.fault(self.blocks_path(), said, position=position)
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

    def is_borne_out(self, code: str, evidence: bytes, position: int | None) -> bool:
        """Judge a finding from its evidence alone, as a stranger will; one that fails is told of, and not made."""
        try:
            shown = judge(evidence)
        except EvidenceError as error:
            said = str(error)
        else:
            if shown.kind == "figures" or shown.code == code:
                return True
            said = f"it shows {shown.code or 'nothing to complain of'}"
        self.fault(self.blocks_path(), f"{code} is not borne out by its evidence: {said}", position=position)
        return False

    def note(self, row: Row, code: str, severity: Severity, evidence: bytes, detail: str) -> None:
        """Add a finding about a block, once its evidence was judged."""
        if not self.is_borne_out(code, evidence, row["position"]):
            return
        subject = row["position"].to_bytes(8, "little") + (row["block"] or b"")
        self.out.findings.append(
            finding_row(
                network=self.task.network,
                chain=self.files.chain,
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
    return None if slot is None or not keys else turn_of(slot, keys)


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


def _facts(header: Header, parent: Header, state: State, spec: RuntimeSpec) -> Row:
    """Columns of a candidate's row that its header and the state it was judged on say too."""
    return {
        "number": header.number,
        "slot": header.aura_slot(),
        "parent": header.parent_hash,
        "state_root": header.state_root,
        "parent_state_root": parent.state_root,
        "max_pov": spec.max_pov_size,
        "allowed_pov": spec.allowed_pov,
        "collator": _author(state, header),
    }


def _short(value: object) -> str:
    """The first line of what a stranger may have written, cut."""
    return (str(value).splitlines() or [""])[0][:200]


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else _short(value)
