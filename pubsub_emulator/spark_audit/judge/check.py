"""The judgement of one segment of one chain, in plain Python (AU-1, AU-4).

The chain's own function (`judge_block`) judges each candidate again. The checkpoint gives the state
at the start. Each candidate is rebuilt from its row and judged on that state, and a valid, included
block moves the state on. The state at the end must be the one from which the next segment starts.

A candidate that cannot be rebuilt ends the judgement of its segment, but not the audit. A column
that contradicts the header, the state, the manifest or another table is a fault of the history.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain as chained

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.runtime.rules import Rules
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import (
    DELIVERED,
    LostNode,
    RowError,
    block_place,
    columns_of,
    delivery_rows,
    state_of,
)
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.announced import Announced
from pubsub_emulator.spark_audit.judge.evidence import (
    Recorded,
    block_evidence,
    callback_bytes,
    figures_evidence,
    hexed,
    is_sealed,
    seam_evidence,
)
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.imported import judge_imported
from pubsub_emulator.spark_audit.judge.measures import (
    executed_measures,
    publisher_rows,
    row_measures,
)
from pubsub_emulator.spark_audit.judge.notes import ChainResult, Judged, Note, Place, Receipt, short
from pubsub_emulator.spark_audit.judge.reading import read_checkpoints, read_rows
from pubsub_emulator.spark_audit.judge.rebuild import Unusable, rebuild
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.judge.task import ChainFiles, Task
from pubsub_emulator.spark_audit.judge.waste import Repeated, junk_bytes


def check_chain(task: Task, files: ChainFiles, shared: Shared) -> ChainResult:
    """Judge all candidates of a chain's segment.

    The history's content cannot make it raise: unexpected exceptions become faults. The result's
    `transient` is set if the same read or judgement may succeed another time.
    """
    place = Place.of(task, files, shared.rules)
    out = ChainResult(Receipt(task.network, files.chain, task.segment))
    try:
        _check(out, place, shared)
    # A stranger may have written the history, so its content can cause any exception (AU-11).
    except Exception as error:  # noqa: BLE001
        out.note([place.fault(f"judging it failed with {type(error).__name__}: {short(error)}")])
        out.transient = out.transient or isinstance(error, (MemoryError, OSError))
        out.receipt.complete = False
        out.receipt.seam = "none"
    return out


def _check(out: ChainResult, place: Place, shared: Shared) -> None:
    """Judge imported proofs and candidates, and fill in the receipt."""
    read = read_rows(place, shared.store, place.files.blocks)
    out.note(read.faults)
    rows = sorted(read.rows, key=lambda row: row["position"])
    nodes = shared.nodes()
    imported = [row for row in rows if row["status"] == "imported"]
    candidates = [row for row in rows if row["status"] != "imported"]
    out.receipt.kind = "imported" if imported and not candidates else "candidates"
    out.receipt.candidates = len(rows)
    repeated = Repeated()
    for row in imported:
        out.add(
            judge_imported(place, shared, row, nodes=nodes, repeated=repeated.weigh(row, nodes))
        )
        shared.count()
    if candidates or not imported:
        _Candidates(
            place, shared, candidates, nodes=nodes, repeated=repeated, unread=read.unread
        ).check(out)
    else:
        out.note(_misplaced(place, imported))
    out.receipt.complete = out.whole
    out.receipt.proof_bytes = sum(row["proof_bytes"] for row in out.block_measures)
    out.transient = out.transient or shared.transient


def _misplaced(place: Place, imported: list[Row]) -> Iterator[Note]:
    """Yield a fault for each imported block at another position than its manifest implies.

    The manifest states the position after the segment, so positions are counted back from there.
    """
    for expected, row in enumerate(imported, (place.files.next_position or 0) - len(imported)):
        if row["position"] != expected:
            yield place.fault(
                f"the row says position {row['position']}, its manifest {expected}", row["position"]
            )


@dataclass(slots=True)
class _Candidates:
    """The candidates of a segment, judged from checkpoint to checkpoint.

    Imported proofs are not candidates: `judge_imported` opens those one by one.
    """

    place: Place
    shared: Shared
    rows: list[Row]
    nodes: Mapping[int, bytes]
    repeated: Repeated
    unread: bool
    """Whether some part of the segment could not be read."""
    recorded: dict[int, list[Row]] = field(default_factory=dict)
    """Rows of `deliveries`, by position. They are removed once they are compared."""
    unrecorded: int = 0
    """Number of callbacks that executing the blocks gave, if the segment has no rows of
    `deliveries` at all."""

    def check(self, out: ChainResult) -> None:
        """Judge the candidates and check that the segment ends where the next one starts."""
        place = self.place
        shared = self.shared
        points = read_checkpoints(place, shared.store)
        out.note(points.faults)
        start = points.start
        self.unread = self.unread or points.unread
        if start is None:
            files = chained.from_iterable(chain.checkpoints for chain in shared.task.chains)
            # If no chain has a checkpoint from the previous segment, that whole segment is missing.
            # That is noted once, not for each chain.
            if place.segment and not any(entry.segment < place.segment for entry in files):
                shared.note_missing_segment()
                out.whole = False
            elif not self.unread:
                out.note([place.fault("the segment's checkpoint is not in the history")])
            out.block_measures += [row_measures(row, self.nodes, judged=False) for row in self.rows]
            return
        out.receipt.genesis = start["number"] == 0
        out.receipt.start = blake2_256(start["header"]).hex()
        if not shared.has_headers:
            out.note([place.fault("the history holds no relay headers of this segment")])
        # Imported proofs of the segment have measures already.
        imported_count = len(out.block_measures)
        last_head: ChainHead | None = None
        for judged in self.walk(start, first=points.first):
            out.add(judged)
            last_head = judged.head
        # If judging ended early, the remaining candidates get the measures that do not need
        # execution.
        not_judged = self.rows[len(out.block_measures) - imported_count :]
        out.block_measures += [row_measures(row, self.nodes, judged=False) for row in not_judged]
        if last_head is None:
            out.whole = False
            return
        header = last_head.header
        out.receipt.end = header.hash().hex()
        out.receipt.end_number = header.number
        if out.whole:
            out.receipt.seam, notes = _seam(
                place, header, points.end, position=start["position"] + len(self.rows)
            )
            out.note(notes)

    def walk(self, start: Row, *, first: bool) -> Iterator[Judged]:
        """Judge every candidate in order, then check the end of the segment.

        Each yielded `Judged` has the head on which the next candidate is judged. A `Judged` without
        a head is the last one: the segment cannot be judged further, or its end cannot be trusted
        because part of the segment could not be read.
        """
        place = self.place
        shared = self.shared
        head = _begin(place, start, self.shared.rules)
        if isinstance(head, str):
            yield Judged(notes=[place.fault(head, table=schema.CHECKPOINTS)])
            return
        read = read_rows(place, shared.store, place.files.deliveries)
        for delivery in read.rows:
            self.recorded.setdefault(delivery["position"], []).append(delivery)
        # The callbacks' faults do not end the judgement: blocks can be judged without them.
        yield Judged(head, read.faults)
        changes = shared.changes(place.chain)
        announced = Announced(changes or (), head.header, head.state, first=first)
        judged_at = 0
        for position, row in enumerate(self.rows, start["position"]):
            if row["position"] != position:
                yield Judged(
                    notes=[place.fault(f"candidate {position} is not in the history", position)]
                )
                return
            included_at = row["included_at"] or 0
            if row["included_at"] is not None and included_at < judged_at:
                error = (
                    f"it was judged in relay block {included_at}, but the one before it in"
                    f" {judged_at}"
                )
                yield Judged(head, [place.fault(error, position)])
            judged_at = max(judged_at, included_at)
            judged = self.judge(row, head, has_callbacks=not read.unread)
            yield judged
            if judged.head is None:
                return
            head = judged.head
            announced.reach(head.header, head.state)
            shared.count()
        # Part of the segment could not be read, and that is noted already. The consequences
        # (missing callbacks, changes without rows) must not be noted as further faults.
        if self.unread or read.unread or changes is None:
            yield Judged()
            return
        notes: list[Note] = [
            place.fault(error, table=schema.AUTHORITIES) for error in announced.errors()
        ]
        notes += _miscounted(
            place, start["position"] + len(self.rows), self.unrecorded, unmatched=self.recorded
        )
        yield Judged(head, notes)

    def judge(self, row: Row, head: ChainHead, *, has_callbacks: bool) -> Judged:
        """Judge one candidate on a head. Return measures, findings and faults, and the next head.

        The next head is `head` itself if the chain refused the candidate. It is `None` if the chain
        included an invalid block: the state from which the chain then continued is not known.
        Callbacks are compared only if `has_callbacks` says that they could be read.
        """
        place = self.place
        shared = self.shared
        position = row["position"]
        try:
            candidate, row, faults = rebuild(place, row, self.nodes, head=head)
        except LostNode as error:
            # A fault of the file of nodes explains the missing node already.
            if shared.has_fault(schema.NODES):
                return Judged()
            return Judged(notes=[place.fault(str(error), position)])
        except Unusable as error:
            return Judged(notes=[place.fault(str(error), position)])
        relay, relay_notes = _relay_context(place, shared, row)
        notes: list[Note] = [*faults, *relay_notes]
        if relay is None:
            return Judged(notes=notes)
        # The measures use the relay chain's slot, even if the row states another one.
        row = {**row, "slot_now": relay.slot_now}
        try:
            outcome, refusal = judge_block(head, candidate, relay)
        # These say that the machine failed, not that the history is wrong.
        except (MemoryError, OSError):
            raise
        # A state can match its root and still have meaningless content (AU-5).
        except Exception as error:  # noqa: BLE001
            notes.append(
                place.fault(
                    f"judging it failed with {type(error).__name__}: {short(error)}", position
                )
            )
            return Judged(notes=notes)
        verdict = None if refusal is None else refusal.verdict.value
        included = row["status"] == "included"
        if verdict is not None or not included:
            stated = None if included else row["verdict"] or ""
            code, severity, detail = _describe(row, verdict, refusal, recorded=stated)
            evidence = block_evidence(head, candidate, relay, recorded=Recorded(stated))
            notes.append(place.finding(row, code, severity, evidence=evidence, detail=detail))
        measures = row_measures(row, self.nodes, judged=True)
        measures["verdict"] = verdict
        # Judging checks the seal first, so only the verdict `BAD_SEAL` leaves it in doubt. That
        # verdict can also mean a wrong slot or body, with a good signature.
        measures["sealed"] = verdict != Verdict.BAD_SEAL.value or is_sealed(
            row["collator"], candidate.header
        )
        if refusal is not None:
            measures["junk_bytes"] = junk_bytes(candidate.inherent.proof, refusal)
        if outcome is None or not included:
            # If the chain included an invalid block, the state from which it continued is not
            # known.
            return Judged(None if included else head, notes, measures)
        repeated = self.repeated.weigh(row, self.nodes)
        measures |= {**executed_measures(row, head.state, outcome), "repeated_bytes": repeated}
        if has_callbacks:
            notes += self.compare(row, head, candidate, relay=relay, outcome=outcome)
        return Judged(
            head.followed(candidate.header, outcome.state),
            notes,
            measures,
            publishers=publisher_rows(row, outcome),
        )

    def compare(
        self,
        row: Row,
        head: ChainHead,
        candidate: Candidate,
        relay: RelayContext,
        outcome: BlockOutcome,
    ) -> list[Note]:
        """Return a finding or fault if executing the block gave other callbacks than recorded.

        The list is empty if they are the same.
        """
        on_record = self.recorded.pop(row["position"], [])
        executed = delivery_rows(block_place(row), outcome.deliveries)
        # If the segment has no rows of `deliveries` at all, that is one fault of the history, not a
        # finding about each block.
        if executed and not self.place.files.deliveries:
            self.unrecorded += len(executed)
            return []
        on_record.sort(key=lambda delivery: delivery["sequence"])
        for sequence, delivery in enumerate(on_record):
            if delivery["sequence"] != sequence or (delivery["number"], delivery["block"]) != (
                row["number"],
                row["block"],
            ):
                error = f"callback {delivery['sequence']} is of another block, or not in order"
                return [self.place.fault(error, row["position"], schema.DELIVERIES)]
        recorded = [columns_of(delivery, DELIVERED) for delivery in on_record]
        if recorded == [columns_of(delivery, DELIVERED) for delivery in executed]:
            return []
        callbacks = tuple(callback_bytes(**delivery) for delivery in recorded)
        evidence = block_evidence(head, candidate, relay, recorded=Recorded(None, callbacks))
        detail = f"{len(on_record)} callbacks on record, executing gives {len(executed)}"
        return [
            self.place.finding(
                row, findings.DELIVERY_MISMATCH, Severity.ERROR, evidence=evidence, detail=detail
            )
        ]


def _begin(place: Place, start: Row, rules: Rules) -> ChainHead | str:
    """Return the head that a checkpoint describes, or the reason why it cannot be used."""
    try:
        header, state = state_of(start)
        spec = runtime_spec(state.top)
        keys = AUTHORITIES.get(Storage(state))
    except (RowError, ScaleError) as error:
        return str(error)
    if header.number != start["number"]:
        return f"the checkpoint says block {start['number']}, its header {header.number}"
    if spec.para_id != place.chain:
        return f"the checkpoint's state is that of chain {spec.para_id}"
    return ChainHead(header, state, rules) if keys else "the checkpoint's state has no collators"


def _relay_context(
    place: Place, shared: Shared, row: Row
) -> tuple[RelayContext | None, list[Note]]:
    """Return the relay chain's part of a candidate's input, and notes about the row's copy of it.

    That part is taken from the relay headers, not from the row. It is `None` if a header that is
    needed is missing. If the row states other values, there is a finding without a collator,
    because the author of a block does not write the row.
    """
    number = row["relay_parent"]
    judged_at = row["included_at"]
    position = row["position"]
    # A relay parent after `judged_at` did not exist when the candidate was judged. The collator may
    # have invented its number, so a missing header is not a fault. A relay parent before
    # `judged_at` did exist, so if its header is missing, the history has a gap.
    judged_in = shared.relay(judged_at)
    known = shared.relay(number) if judged_in is not None and number < judged_at else None
    if judged_in is None or (number < judged_at and known is None):
        missing = judged_at if judged_in is None else number
        # An unreadable file of relay headers is noted once, not by each chain.
        if shared.has_fault(schema.RELAY_HEADERS):
            return None, []
        return None, [place.fault(f"relay block {missing} is not readable", position)]
    root = None if known is None else known.root
    slot = judged_in.newest_slot
    notes: list[Note] = []
    if slot is None:
        notes.append(place.fault(f"relay block {judged_at} has no slot", position))
        slot = row["slot_now"]
    if (root, slot) != (row["relay_root"], row["slot_now"]):
        in_row = [hexed(row["relay_root"]), row["slot_now"]]
        in_headers = [hexed(root), slot]
        evidence = figures_evidence(
            {"relay_parent": number, "row": in_row, "relay_headers": in_headers}
        )
        detail = "the row states another relay storage root or slot than the relay headers"
        without_collator = {**row, "collator": None}
        notes.append(
            place.finding(
                without_collator,
                findings.RELAY_ROOT_MISMATCH,
                Severity.ERROR,
                evidence=evidence,
                detail=detail,
            )
        )
    return RelayContext(RelayBlockNumber(number), root, Slot(slot)), notes


# The end of a segment


def _miscounted(
    place: Place, position: int, unrecorded: int, unmatched: Mapping[int, list[Row]]
) -> Iterator[Note]:
    """Yield faults about candidates and callbacks that do not match manifest and blocks.

    `unmatched` has the callbacks that do not belong to an included block, by position.
    """
    if unrecorded:
        error = (
            "the history has no callbacks of the segment, and executing its blocks gives"
            f" {unrecorded}"
        )
        yield place.fault(error)
    stated = place.files.next_position
    if stated != position:
        yield place.fault(
            f"the segment ends before position {position}, but its manifest says {stated}"
        )
    for odd_position in sorted(unmatched):
        error = f"there are callbacks at position {odd_position}, where there is no included block"
        yield place.fault(error, odd_position, schema.DELIVERIES)


def _seam(place: Place, reached: Header, end: Row | None, position: int) -> tuple[str, list[Note]]:
    """Return whether the segment ends where the next one starts, and notes if it does not.

    The result is `closed`, `mismatch`, or `open` if there is no next segment. A wrong position in
    the next checkpoint, or a wrong number with the right header, is a fault of the history. A
    different header or state root is a finding `SeamMismatch`.
    """
    if end is None:
        return "open", []
    same_header = end["header"] == reached.encode()
    if end["position"] != position or (same_header and end["number"] != reached.number):
        error = (
            f"the next checkpoint is at position {end['position']} and of block {end['number']},"
            f" the segment ends at {position} with block {reached.number}"
        )
        return "mismatch", [place.fault(error, table=schema.CHECKPOINTS)]
    if same_header and end["state_root"] == reached.state_root:
        return "closed", []
    evidence = seam_evidence(reached, end["header"], end["state_root"])
    subject = place.segment.to_bytes(4, "little")
    detail = (
        f"the segment ends at block {reached.number}, {reached.hash().hex()}; the next starts"
        " elsewhere"
    )
    place_columns = {"segment": place.segment, "number": reached.number, "block": reached.hash()}
    return "mismatch", [
        place.checked_finding(
            findings.SEAM_MISMATCH,
            Severity.ERROR,
            subject,
            evidence=evidence,
            detail=detail,
            place=place_columns,
        )
    ]


def _describe(
    row: Row, verdict: str | None, refusal: InvalidBlock | None, recorded: str | None
) -> tuple[str, Severity, str]:
    """Return code, severity and detail for a candidate that is invalid, was refused, or both.

    `verdict` is the verdict of this audit, `None` if the candidate is valid. `recorded` is the
    verdict in the history, `None` if the candidate was included. An invalid block that was rightly
    refused is only a warning: the attempt failed.
    """
    code = findings.weigh(verdict, recorded)
    # `None` is the code of a valid included block, which never gets here.
    if code is None or code == findings.REJECTED_VALID:
        return findings.REJECTED_VALID, Severity.ERROR, f"refused as {row['verdict']}, and valid"
    if recorded is None:
        return code, Severity.ERROR, f"the chain took it: {refusal}"
    if code == findings.VERDICT_MISMATCH:
        return code, Severity.ERROR, f"refused as {row['verdict']}, found {refusal}"
    return code, Severity.WARNING, str(refusal)
