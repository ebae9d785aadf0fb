"""The judgement of one segment of one chain, in plain Python (AU-1, AU-4).

The chain's own function (`judge_block`) judges each candidate again. The checkpoint gives the state
at the start. Each candidate is rebuilt from its row and judged on that state, and a valid, included
block moves the state on. The state at the end must be the one from which the next segment starts.

A candidate that cannot be rebuilt ends the judgement of the segment, but never the audit. A column
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
    """Judge all candidates of a chain's segment. Never raise because of the history's content.

    Unexpected exceptions become faults. `passing` is set if one of them may not occur next time.
    """
    place = Place.of(task, files, shared.rules)
    out = ChainResult(Receipt(task.network, files.chain, task.segment))
    try:
        _check(out, place, shared)
    # A stranger may have written the history, so that any exception can be its doing (AU-11).
    except Exception as error:  # noqa: BLE001
        out.note([place.fault(f"judging it failed with {type(error).__name__}: {short(error)}")])
        out.passing = out.passing or isinstance(error, (MemoryError, OSError))
        out.receipt.complete, out.receipt.seam = False, "none"
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
        out.add(judge_imported(place, shared, row, nodes, repeated.weigh(row, nodes)))
        shared.count()
    if candidates or not imported:
        _Candidates(place, shared, candidates, nodes, repeated, read.unread).check(out)
    else:
        out.note(_misplaced(place, imported))
    out.receipt.complete = out.whole
    out.receipt.proof_bytes = sum(row["proof_bytes"] for row in out.block_measures)
    out.passing = out.passing or shared.passing


def _misplaced(place: Place, imported: list[Row]) -> Iterator[Note]:
    """Yield a fault for each imported block at another position than its manifest implies.

    The manifest states the position after the segment, so positions are counted back from there.
    """
    for at, row in enumerate(imported, (place.files.next_position or 0) - len(imported)):
        if row["position"] != at:
            yield place.fault(
                f"the row says position {row['position']}, its manifest {at}", row["position"]
            )


@dataclass(slots=True)
class _Candidates:
    """The candidates of a segment, judged from checkpoint to checkpoint.

    Imported proofs are not among them: `judge_imported` opens those one by one.
    """

    place: Place
    shared: Shared
    rows: list[Row]
    nodes: Mapping[int, bytes]
    repeated: Repeated
    unread: bool
    """Whether some part of the segment could not be read."""
    recorded: dict[int, list[Row]] = field(default_factory=dict)
    """Callbacks on record, by position. Those that were compared are removed."""
    unrecorded: int = 0
    """Number of callbacks that the blocks give in a segment that has no callbacks on record."""

    def check(self, out: ChainResult) -> None:
        """Judge the candidates and check that the segment ends where the next one starts."""
        place, shared = self.place, self.shared
        points = read_checkpoints(place, shared.store)
        out.note(points.faults)
        start = points.start
        self.unread = self.unread or points.unread
        if start is None:
            files = chained.from_iterable(chain.checkpoints for chain in shared.task.chains)
            # Without a checkpoint of any chain, the whole segment before is missing. That is noted
            # once, not for each chain.
            if place.segment and not any(each.segment < place.segment for each in files):
                shared.lack_before()
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
        before = len(out.block_measures)
        reached: ChainHead | None = None
        for judged in self.walk(start, first=points.first):
            out.add(judged)
            reached = judged.head
        # Candidates behind the one where the judgement ended still have the measures that need no
        # execution.
        left = self.rows[len(out.block_measures) - before :]
        out.block_measures += [row_measures(row, self.nodes, judged=False) for row in left]
        if reached is None:
            out.whole = False
            return
        header = reached.header
        out.receipt.end = header.hash().hex()
        out.receipt.end_number = header.number
        if out.whole:
            out.receipt.seam, notes = _seam(
                place, header, points.end, start["position"] + len(self.rows)
            )
            out.note(notes)

    def walk(self, start: Row, *, first: bool) -> Iterator[Judged]:
        """Judge every candidate in order, then check the end of the segment.

        Each yielded `Judged` has the head to build on. One without a head is the last: the segment
        cannot be judged further, or its end cannot be trusted since some of it could not be read.
        """
        place, shared = self.place, self.shared
        head = _begin(place, start, self.shared.rules)
        if isinstance(head, str):
            yield Judged(notes=[place.fault(head, table=schema.CHECKPOINTS)])
            return
        read = read_rows(place, shared.store, place.files.deliveries)
        for each in read.rows:
            self.recorded.setdefault(each["position"], []).append(each)
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
                said = (
                    f"it was judged in relay block {included_at}, but the one before it in"
                    f" {judged_at}"
                )
                yield Judged(head, [place.fault(said, position)])
            judged_at = max(judged_at, included_at)
            judged = self.judge(row, head, has_callbacks=not read.unread)
            yield judged
            if judged.head is None:
                return
            head = judged.head
            announced.reach(head.header, head.state)
            shared.count()
        # Something of the segment could not be read, which is noted already. Its consequences
        # (missing callbacks, changes without rows) must not be noted as further faults.
        if self.unread or read.unread or changes is None:
            yield Judged()
            return
        notes: list[Note] = [
            place.fault(error, table=schema.AUTHORITIES) for error in announced.errors()
        ]
        notes += _miscounted(
            place, start["position"] + len(self.rows), self.unrecorded, self.recorded
        )
        yield Judged(head, notes)

    def judge(self, row: Row, head: ChainHead, *, has_callbacks: bool) -> Judged:
        """Judge one candidate on a head. Return measures, findings and faults, and the next head.

        The next head is `head` itself if the chain refused the candidate. It is `None` if the chain
        included an invalid block: the state from which the chain then continued is not known.
        """
        place, shared, position = self.place, self.shared, row["position"]
        try:
            candidate, row, faults = rebuild(place, row, self.nodes, head)
        except LostNode as error:
            return Judged(
                notes=[] if shared.lacks(schema.NODES) else [place.fault(str(error), position)]
            )
        except Unusable as error:
            return Judged(notes=[place.fault(str(error), position)])
        relay, notes = _relay_context(place, shared, row)
        notes[:0] = faults
        if relay is None:
            return Judged(notes=notes)
        # The time of a block in the measures is the relay chain's, whatever the row says.
        row = {**row, "slot_now": relay.slot_now}
        try:
            outcome, refusal = judge_block(head, candidate, relay)
        # The machine failed, not the history.
        except (MemoryError, OSError):
            raise
        # A state can match its root and still make no sense (AU-5).
        except Exception as error:  # noqa: BLE001
            notes.append(
                place.fault(
                    f"judging it failed with {type(error).__name__}: {short(error)}", position
                )
            )
            return Judged(notes=notes)
        found = None if refusal is None else refusal.verdict.value
        included = row["status"] == "included"
        if found is not None or not included:
            stated = None if included else row["verdict"] or ""
            code, severity, detail = _weigh(row, found, refusal, stated)
            evidence = block_evidence(head, candidate, relay, Recorded(stated))
            notes.append(place.finding(row, code, severity, evidence, detail))
        measures = row_measures(row, self.nodes, judged=True)
        measures["verdict"] = found
        # The seal is checked first, and a bad one decides the verdict. So with any other verdict,
        # and with `None`, the seal is good.
        measures["sealed"] = found != Verdict.BAD_SEAL.value or is_sealed(
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
            notes += self.compare(row, head, candidate, relay, outcome)
        return Judged(
            head.followed(candidate.header, outcome.state),
            notes,
            measures,
            publisher_rows(row, outcome),
        )

    def compare(
        self,
        row: Row,
        head: ChainHead,
        candidate: Candidate,
        relay: RelayContext,
        outcome: BlockOutcome,
    ) -> list[Note]:
        """Compare the callbacks on record with those that executing the block gives."""
        on_record = self.recorded.pop(row["position"], [])
        given = delivery_rows(block_place(row), outcome.deliveries)
        # The segment has no callbacks on record at all. That is one fault of the history, not a
        # finding about each block.
        if given and not self.place.files.deliveries:
            self.unrecorded += len(given)
            return []
        on_record.sort(key=lambda each: each["sequence"])
        for sequence, each in enumerate(on_record):
            if each["sequence"] != sequence or (each["number"], each["block"]) != (
                row["number"],
                row["block"],
            ):
                said = f"callback {each['sequence']} is of another block, or not in order"
                return [self.place.fault(said, row["position"], schema.DELIVERIES)]
        stated = [[each[name] for name in DELIVERED] for each in on_record]
        if stated == [[each[name] for name in DELIVERED] for each in given]:
            return []
        callbacks = tuple(callback_bytes(*each) for each in stated)
        evidence = block_evidence(head, candidate, relay, Recorded(None, callbacks))
        detail = f"{len(on_record)} callbacks on record, executing gives {len(given)}"
        return [
            self.place.finding(row, findings.DELIVERY_MISMATCH, Severity.ERROR, evidence, detail)
        ]


def _begin(place: Place, start: Row, rules: Rules) -> ChainHead | str:
    """Return header and state of the checkpoint, or why no block can be judged on it."""
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

    It is taken from the relay headers, not from the row. It is `None` if a header that is needed is
    missing. A copy in the row that differs is a finding without a collator, since the author of a
    block does not write the row.
    """
    number, judged_at, position = row["relay_parent"], row["included_at"], row["position"]
    # A relay block after `judged_at` did not exist when the candidate was judged: the collator may
    # have invented its number, and no relay header is there to show it. A relay block before
    # `judged_at` did exist, so if its header is missing, the history has a gap.
    judged_in = shared.relay(judged_at)
    known = shared.relay(number) if judged_in is not None and number < judged_at else None
    if judged_in is None or (number < judged_at and known is None):
        missing = judged_at if judged_in is None else number
        # An unreadable file is noted once, not by each chain.
        lacks = shared.lacks(schema.RELAY_HEADERS)
        return None, (
            [] if lacks else [place.fault(f"relay block {missing} is not readable", position)]
        )
    root = None if known is None else known[0]
    slot = judged_in[1]
    notes: list[Note] = []
    if slot is None:
        notes.append(place.fault(f"relay block {judged_at} has no slot", position))
        slot = row["slot_now"]
    if (root, slot) != (row["relay_root"], row["slot_now"]):
        stated = [hexed(row["relay_root"]), row["slot_now"]]
        found = [hexed(root), slot]
        evidence = figures_evidence({"relay_parent": number, "row": stated, "relay_headers": found})
        detail = "the row states another relay storage root or slot than the relay headers"
        nobodys = {**row, "collator": None}
        notes.append(
            place.finding(nobodys, findings.RELAY_ROOT_MISMATCH, Severity.ERROR, evidence, detail)
        )
    return RelayContext(RelayBlockNumber(number), root, Slot(slot)), notes


# The end of a segment


def _miscounted(
    place: Place, position: int, unrecorded: int, left: Mapping[int, list[Row]]
) -> Iterator[Note]:
    """Yield faults about candidates and callbacks that do not match manifest and blocks.

    `left` are callbacks that belong to no included block.
    """
    if unrecorded:
        said = (
            "the history has no callbacks of the segment, and executing its blocks gives"
            f" {unrecorded}"
        )
        yield place.fault(said)
    stated = place.files.next_position
    if stated != position:
        yield place.fault(
            f"the segment ends before position {position}, but its manifest says {stated}"
        )
    for at in sorted(left):
        said = f"there are callbacks at position {at}, where there is no included block"
        yield place.fault(said, at, schema.DELIVERIES)


def _seam(place: Place, reached: Header, end: Row | None, position: int) -> tuple[str, list[Note]]:
    """Return whether the segment ends where the next one starts.

    The result is `closed`, `mismatch`, or `open` if there is no next segment. It is a fault of the
    history if the next checkpoint states a wrong position, or the right header with a wrong number.
    It is a finding `SeamMismatch` if header or state root differ.
    """
    if end is None:
        return "open", []
    same = end["header"] == reached.encode()
    if end["position"] != position or (same and end["number"] != reached.number):
        said = (
            f"the next checkpoint is at position {end['position']} and of block {end['number']}, "
        )
        said += f"the segment ends at {position} with block {reached.number}"
        return "mismatch", [place.fault(said, table=schema.CHECKPOINTS)]
    if same and end["state_root"] == reached.state_root:
        return "closed", []
    evidence = seam_evidence(reached, end["header"], end["state_root"])
    subject = place.segment.to_bytes(4, "little")
    detail = (
        f"the segment ends at block {reached.number}, {reached.hash().hex()}; the next starts"
        " elsewhere"
    )
    at = {"segment": place.segment, "number": reached.number, "block": reached.hash()}
    return "mismatch", [
        place.shown(findings.SEAM_MISMATCH, Severity.ERROR, subject, evidence, detail, at)
    ]


def _weigh(
    row: Row, found: str | None, refusal: InvalidBlock | None, recorded: str | None
) -> tuple[str, Severity, str]:
    """Return code, severity and words for a candidate that is invalid, was refused, or both.

    `found` is the verdict of this audit, `recorded` the verdict in the history, `None` for
    included. An invalid block that was rightly refused is only a warning: the attempt failed.
    """
    code = findings.weigh(found, recorded)
    if code is None or code == findings.REJECTED_VALID:
        return findings.REJECTED_VALID, Severity.ERROR, f"refused as {row['verdict']}, and valid"
    if recorded is None:
        return code, Severity.ERROR, f"the chain took it: {refusal}"
    if code == findings.VERDICT_MISMATCH:
        return code, Severity.ERROR, f"refused as {row['verdict']}, found {refusal}"
    return code, Severity.WARNING, str(refusal)
