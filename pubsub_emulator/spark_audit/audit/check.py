"""One chain's segment, judged again in plain Python by the function that the chain itself runs (AU-1, AU-4).

The checkpoint gives the state; each candidate is rebuilt from its row and judged on it; what is valid moves the state
on, what is not leaves it; the end must be where the next segment starts. Whatever cannot be read or rebuilt ends the
judgement of the segment, because no later block could be told valid from invalid; it never ends the audit.

A column that repeats what header, state, manifest or another table says is compared with it. A difference is a fault of
the history and nobody's cheat: the block is judged by its header, and the segment is not complete.
"""

from collections.abc import Mapping
from typing import Final

from pubsub_emulator.primitives.ed25519 import verify
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.spark_audit.audit import findings
from pubsub_emulator.spark_audit.audit.announced import Announced
from pubsub_emulator.spark_audit.audit.evidence import (
    Recorded,
    block_evidence,
    callback_bytes,
    figures_evidence,
    seam_evidence,
)
from pubsub_emulator.spark_audit.audit.findings import Severity, finding_row
from pubsub_emulator.spark_audit.audit.imported import open_imported
from pubsub_emulator.spark_audit.audit.measures import executed_measures, publisher_rows, row_measures
from pubsub_emulator.spark_audit.audit.notes import ChainResult, Notes, short
from pubsub_emulator.spark_audit.audit.reading import SegmentReader
from pubsub_emulator.spark_audit.audit.rebuild import Undecided, rebuild
from pubsub_emulator.spark_audit.audit.shared import Shared
from pubsub_emulator.spark_audit.audit.waste import Repeated, junk_bytes
from pubsub_emulator.spark_audit.engine.segment_task import ChainFiles, Task
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.rows import (
    LostNode,
    Row,
    RowError,
    block_place,
    delivery_rows,
    state_of,
)

_DELIVERED: Final = ("publisher", "key", "kind", "entry_hash", "ttl_state", "failed")
_I64_MAX: Final = 2**63 - 1


def check_chain(task: Task, files: ChainFiles, shared: Shared) -> ChainResult:
    """Judge all candidates of a chain's segment; never raises for what the history holds."""
    check = _Check(task, files, shared)
    try:
        check.run()
    except Exception as error:  # noqa: BLE001  # whatever a stranger's history brings about is its own fault (AU-11)
        check.lose(error)
    return check.notes.out


class _Check:
    """One run over one segment of one chain."""

    def __init__(self, task: Task, files: ChainFiles, shared: Shared) -> None:
        self.task = task
        self.files = files
        self.shared = shared
        self.notes = Notes(task, files)
        self.reader = SegmentReader(self.notes, shared)
        self.repeated = Repeated()
        self.judged = 0
        self.untold = 0
        self.notes.out.receipt = {
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
        rows = self.reader.block_rows()
        receipt = self.notes.out.receipt
        receipt["candidates"] = len(rows)
        nodes = self.shared.nodes()
        imported = [row for row in rows if row["status"] == "imported"]
        candidates = [row for row in rows if row["status"] != "imported"]
        if imported and not candidates:
            receipt["kind"] = "imported"
        for row in imported:
            open_imported(self.notes, self.shared, row, nodes, self.repeated.weigh(row, nodes))
            self.judged += 1
            self.shared.count()
        if candidates or not imported:
            self.judge_segment(candidates, nodes)
        receipt.update(
            judged=self.judged,
            complete=self.notes.whole,
            proof_bytes=sum(row["proof_bytes"] for row in self.notes.out.block_measures),
        )
        if not self.shared.readable:
            self.notes.out.passing = self.notes.out.passing or self.shared.passing

    def judge_segment(self, rows: list[Row], nodes: Mapping[int, bytes]) -> None:
        """Judge the candidates (not imported proofs) from checkpoint to checkpoint."""
        receipt = self.notes.out.receipt
        start, end = self.reader.checkpoints()
        if start is None:
            self.lack_start()
            self.notes.out.block_measures += [row_measures(row, nodes, judged=False) for row in rows]
            return
        receipt["genesis"] = start["number"] == 0
        receipt["start"] = blake2_256(start["header"]).hex()
        if not self.shared.has_headers:
            self.notes.fault(self.notes.blocks_path(), "the history holds no relay headers of this segment")
        reached: Header | None = None
        try:
            reached = self.judge_all(start, rows, nodes)
        except Undecided:
            self.notes.whole = False
        unjudged = rows[self.judged :]
        self.notes.out.block_measures += [row_measures(row, nodes, judged=False) for row in unjudged]
        if reached is None:
            return
        receipt.update(end=reached.hash().hex(), end_number=reached.number)
        if self.notes.whole:
            receipt["seam"] = self.check_seam(reached, end, start["position"] + len(rows))

    def lack_start(self) -> None:
        """Note that the chain's checkpoint is not there, unless that follows from something that is noted already."""
        at = self.task.segment
        if at and not any(entry.segment < at for files in self.task.chains for entry in files.checkpoints):
            self.shared.lack_before()
            self.notes.whole = False
        elif not self.reader.unread:
            self.notes.fault(self.notes.blocks_path(), "the segment's checkpoint is not in the history")

    def lose(self, error: Exception) -> None:
        """Note an unexpected error that ended the judgement."""
        self.notes.fault(self.notes.blocks_path(), f"judging it failed with {type(error).__name__}: {short(error)}")
        self.notes.out.passing = self.notes.out.passing or isinstance(error, (MemoryError, OSError))
        self.notes.out.receipt.update(complete=False, seam="none", judged=self.judged)

    # The relay chain

    def relay_context(self, row: Row) -> RelayContext:
        """The relay chain's part of the input, taken from its headers and not from the row. Raises `Undecided`."""
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
            self.notes.fault(self.notes.blocks_path(), f"relay block {judged_at} has no slot", position=row["position"])
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
            self.notes.note(nobodys, findings.RELAY_ROOT_MISMATCH, Severity.ERROR, figures_evidence(figures), detail)
        return RelayContext(RelayBlockNumber(number), root, Slot(slot))

    def unreadable_relay(self, number: int, row: Row) -> None:
        """Note that a relay block is not in the history. Raises `Undecided`."""
        if not self.shared.lacks(schema.RELAY_HEADERS):  # of a file that cannot be read is told once, not by each chain
            said = f"relay block {number} is not readable"
            self.notes.fault(self.notes.blocks_path(), said, position=row["position"])
        raise Undecided

    # Judging

    def judge_all(self, start: Row, rows: list[Row], nodes: Mapping[int, bytes]) -> Header:
        """Judge the candidates in order and return the header reached. Raises `Undecided`."""
        parent, state = self.start_from(start)
        recorded = self.reader.recorded_deliveries()
        changes = self.shared.changes(self.files.chain)
        announced = Announced(changes or (), parent, state, first=self.reader.first)
        position = start["position"]
        judged_at = 0
        for row in rows:
            if row["position"] != position:
                self.notes.fault(
                    self.notes.blocks_path(), f"candidate {position} is not in the history", position=position
                )
                raise Undecided
            if row["included_at"] is not None and row["included_at"] < judged_at:
                said = f"it was judged in relay block {row['included_at']}, but the one before it in {judged_at}"
                self.notes.fault(self.notes.blocks_path(), said, position=position)
            judged_at = max(judged_at, row["included_at"] or 0)
            parent, state = self.judge(row, nodes, parent, state, recorded)
            announced.reach(parent, state)
            self.judged += 1
            self.shared.count()
            position += 1
        # What is not there is told once, and not again as what it would have shown.
        if self.reader.unread or changes is None:
            raise Undecided
        for error in announced.errors():
            self.notes.fault(self.notes.changes_path(), error)
        self.check_counts(position, recorded)
        return parent

    def start_from(self, start: Row) -> tuple[Header, State]:
        """Header and state of the checkpoint, if blocks can be judged on it at all. Raises `Undecided`."""
        try:
            header, state = state_of(start)
            spec = runtime_spec(state.top)
            keys = AUTHORITIES.get(Storage(state))
        except (RowError, ScaleError) as error:
            self.notes.fault(self.notes.checkpoints_path(), str(error))
            raise Undecided from None
        wrong = None
        if header.number != start["number"]:
            wrong = f"the checkpoint says block {start['number']}, its header {header.number}"
        elif spec.para_id != self.files.chain:
            wrong = f"the checkpoint's state is that of chain {spec.para_id}"
        elif not keys:
            wrong = "the checkpoint's state has no collators"
        if wrong is not None:
            self.notes.fault(self.notes.checkpoints_path(), wrong)
            raise Undecided
        return header, state

    def check_counts(self, position: int, recorded: dict[int, list[Row]] | None) -> None:
        """Hold the number of candidates against the manifest, and callbacks against the blocks they are of."""
        if self.untold:
            self.notes.fault(
                self.notes.blocks_path(),
                f"the history has no callbacks of the segment, and executing its blocks gives {self.untold}",
            )
        stated = self.files.next_position
        if stated != position:
            said = f"the segment ends before position {position}, but its manifest says {stated}"
            self.notes.fault(self.notes.blocks_path(), said)
        for at in sorted(recorded or ()):
            self.notes.fault(
                self.notes.deliveries_path(),
                f"there are callbacks at position {at}, where there is no included block",
                position=at,
            )

    def judge(
        self,
        row: Row,
        nodes: Mapping[int, bytes],
        parent: Header,
        state: State,
        recorded: dict[int, list[Row]] | None,
    ) -> tuple[Header, State]:
        """Judge one candidate and return what the next one builds on. Raises `Undecided`."""
        try:
            candidate, row = rebuild(self.notes, row, nodes, parent, state)
        except LostNode as error:
            if not self.shared.lacks(schema.NODES):
                self.notes.fault(self.notes.blocks_path(), str(error), position=row["position"])
            raise Undecided from None
        relay = self.relay_context(row)
        try:
            outcome, refusal = judge_block(ChainHead(parent, state), candidate, relay)
        except (MemoryError, OSError):  # of the machine
            raise
        except Exception as error:  # noqa: BLE001  # a state that is consistent and senseless (AU-5)
            said = f"judging it failed with {type(error).__name__}: {short(error)}"
            self.notes.fault(self.notes.blocks_path(), said, position=row["position"])
            raise Undecided from None
        found = None if refusal is None else refusal.verdict.value
        included = row["status"] == "included"
        if found is not None or not included:
            stated = None if included else row["verdict"] or ""
            code, severity, detail = _weigh(row, found, refusal, stated)
            evidence = block_evidence(parent, state, candidate, relay, Recorded(stated))
            self.notes.note(row, code, severity, evidence, detail)
        measures = row_measures(row, nodes, judged=True)
        measures["verdict"] = found
        # Any other verdict, and none, means that the seal was found good.
        measures["sealed"] = found != Verdict.BAD_SEAL.value or _is_sealed(row["collator"], candidate.header)
        if refusal is not None:
            measures["junk_bytes"] = junk_bytes(candidate.inherent.proof, refusal)
        if outcome is None or not included:
            self.notes.out.block_measures.append(measures)
            if included:
                # The chain went on from a state that no valid block leads to: what follows cannot be judged.
                self.judged += 1
                raise Undecided
            return parent, state
        measures.update(executed_measures(row, state, outcome))
        measures["repeated_bytes"] = self.repeated.weigh(row, nodes)
        self.notes.out.block_measures.append(measures)
        self.notes.out.publisher_measures += publisher_rows(row, outcome)
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
                said = f"callback {each['sequence']} is of another block, or not in order"
                self.notes.fault(self.notes.deliveries_path(), said, position=row["position"])
                return
        if [[each[name] for name in _DELIVERED] for each in told] == [
            [each[name] for name in _DELIVERED] for each in given
        ]:
            return
        callbacks = tuple(callback_bytes(*(each[name] for name in _DELIVERED)) for each in told)
        evidence = block_evidence(parent, state, candidate, relay, Recorded(None, callbacks))
        detail = f"{len(told)} callbacks on record, executing gives {len(given)}"
        self.notes.note(row, findings.DELIVERY_MISMATCH, Severity.ERROR, evidence, detail)

    def check_seam(self, reached: Header, end: Row | None, position: int) -> str:
        """The end must be where the next segment starts; `open` when nothing follows."""
        if end is None:
            return "open"
        same = end["header"] == reached.encode()
        if end["position"] != position or (same and end["number"] != reached.number):
            said = f"the next checkpoint is at position {end['position']} and of block {end['number']}, "
            said += f"the segment ends at {position} with block {reached.number}"
            self.notes.fault(self.notes.checkpoints_path(), said)
            self.notes.out.receipt["complete"] = False
            return "mismatch"
        if end["header"] == reached.encode() and end["state_root"] == reached.state_root:
            return "closed"
        evidence = seam_evidence(reached, end["header"], end["state_root"])
        if not self.notes.is_borne_out(findings.SEAM_MISMATCH, evidence, None):
            return "mismatch"
        subject = self.task.segment.to_bytes(4, "little")
        detail = f"the segment ends at block {reached.number}, {reached.hash().hex()}; the next starts elsewhere"
        self.notes.out.findings.append(
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


def _is_sealed(author: bytes | None, header: Header) -> bool:
    """Whether the author made the seal."""
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
