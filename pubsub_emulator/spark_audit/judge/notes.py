"""Results of judging a chain's segment: measures, findings that their evidence bears out, faults, and a receipt."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.evidence import EvidenceError, judge
from pubsub_emulator.spark_audit.judge.findings import Severity, finding_row
from pubsub_emulator.spark_audit.judge.task import ChainFiles, Task
from pubsub_emulator.spark_audit.judge.waste import waste_rows

Note = Row | Fault
"""A finding, or what is wrong with the history."""


@dataclass(slots=True)
class Receipt:
    """One segment of one chain in short: what the account of its network is made of."""

    network: str
    chain: int
    segment: int
    kind: str = "candidates"
    """Or `imported`."""
    candidates: int = 0
    judged: int = 0
    complete: bool = False
    seam: str = "none"
    """Or `open`, `closed`, `mismatch`."""
    genesis: bool = False
    start: str | None = None
    end: str | None = None
    end_number: int | None = None
    proof_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """One block, or the end of the segment; `head` is what the next block builds on, `None` if none can be judged."""

    head: ChainHead | None = None
    notes: Sequence[Note] = ()
    measures: Row | None = None
    publishers: Sequence[Row] = ()
    parts: Sequence[Row] = ()
    whole: bool = True
    """Whether nothing is missing that is noted elsewhere."""


@dataclass(slots=True)
class ChainResult:
    """The result of judging one segment of one chain; `passing` where a read failed that may succeed another time."""

    receipt: Receipt
    block_measures: list[Row] = field(default_factory=list)
    publisher_measures: list[Row] = field(default_factory=list)
    proof_parts: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    quarantine: list[Row] = field(default_factory=list)
    passing: bool = False
    whole: bool = True
    """Whether everything could be read and judged, and nothing contradicts itself."""

    def add(self, judged: Judged) -> None:
        """Add what judging a block gave."""
        self.note(judged.notes)
        self.block_measures += () if judged.measures is None else (judged.measures,)
        self.publisher_measures += judged.publishers
        self.proof_parts += judged.parts
        self.whole = self.whole and judged.whole
        self.receipt.judged += judged.measures is not None

    def note(self, notes: Iterable[Note]) -> None:
        """Add findings and faults; with a fault, the segment is not complete."""
        for note in notes:
            if isinstance(note, Fault):
                self.quarantine.append(note.row())
                self.passing = self.passing or note.passing
                self.whole = False
            else:
                self.findings.append(note)

    def tables(self) -> dict[schema.Table, list[Row]]:
        """The rows by table."""
        return {
            schema.BLOCK_MEASURES: self.block_measures,
            schema.PUBLISHER_MEASURES: self.publisher_measures,
            schema.WASTE: waste_rows(self.block_measures, self.proof_parts),
            schema.PROOF_PARTS: self.proof_parts,
            schema.FINDINGS: self.findings,
            schema.QUARANTINE: self.quarantine,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """A segment of a chain: it makes faults that name a file, and findings that name a block."""

    network: str
    chain: int
    segment: int
    files: ChainFiles
    changes: tuple[FileEntry, ...]

    @staticmethod
    def of(task: Task, files: ChainFiles) -> "Place":
        """The place that a task names."""
        return Place(task.network, files.chain, task.segment, files, task.changes)

    def fault(self, error: str, position: int | None = None, table: schema.Table = schema.BLOCKS) -> Fault:
        """Something wrong with the history, in the table's file if it has one, else in that of the blocks."""
        named = {
            schema.CHECKPOINTS.name: self.files.checkpoints,
            schema.DELIVERIES.name: self.files.deliveries,
            schema.AUTHORITIES.name: self.changes,
        }.get(table.name, ())
        if not named and table != schema.CHECKPOINTS:
            table, named = schema.BLOCKS, self.files.blocks
        path = named[0].path if named else f"{table.name}/network={self.network}/chain={self.chain}"
        return Fault(path, error, None, self.network, self.chain, self.segment, position)

    def finding(self, row: Row, code: str, severity: Severity, evidence: bytes, detail: str) -> Note:
        """A finding about a block, or the fault that its evidence does not show it."""
        subject = row["position"].to_bytes(8, "little") + (row["block"] or b"")
        return self.shown(code, severity, subject, evidence, detail, row)

    def shown(  # noqa: PLR0917  # what a finding is made of
        self, code: str, severity: Severity, subject: bytes, evidence: bytes, detail: str, place: Row
    ) -> Note:
        """A finding that its evidence alone shows, as a stranger will judge it; else a fault."""
        if (error := unshown(code, evidence)) is not None:
            return self.fault(f"the evidence of a finding {code} does not show it: {error}", place.get("position"))
        return finding_row((self.network, self.chain), code, severity, subject, evidence, detail, place)


def unshown(code: str, evidence: bytes) -> str | None:
    """Why evidence does not show a finding, `None` if it does."""
    try:
        shown = judge(evidence)
    except EvidenceError as error:
        return str(error)
    return None if shown.kind == "figures" or shown.code == code else f"it shows {shown.code or 'a valid block'}"


def contradictions(place: Place, row: Row, facts: Row) -> list[Fault]:
    """A fault for each column of a row that says otherwise than its block."""
    odd = ((name, shown(row[name]), shown(fact)) for name, fact in facts.items() if row[name] != fact)
    said = (f"the row says {name} {mine}, its block says {fact}" for name, mine, fact in odd)
    return [place.fault(each, row["position"]) for each in said]


_MOST_SHOWN: Final = 200


def short(value: object) -> str:
    """The first line of what a stranger may have written, cut."""
    return (str(value).splitlines() or [""])[0][:_MOST_SHOWN]


def shown(value: object) -> str:
    """A value in one line: bytes in hexadecimal digits, anything else as `short`."""
    return value.hex() if isinstance(value, bytes) else short(value)
