"""The results of judging a chain's segment: measures, findings, faults and a receipt.

`Place` makes a finding about a block only after the finding's own evidence was judged (AU-11).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.evidence import EvidenceError, judge
from pubsub_emulator.spark_audit.judge.findings import Severity, finding_row
from pubsub_emulator.spark_audit.judge.task import ChainFiles, Task
from pubsub_emulator.spark_audit.judge.waste import waste_rows

Note = Row | Fault
"""A finding (a row) about a block, or a fault of the history."""


@dataclass(slots=True)
class Receipt:
    """A summary of one segment of one chain. The network's account adds up receipts."""

    network: str
    chain: int
    segment: int
    kind: str = "candidates"
    """`candidates`, or `imported` if all its blocks are imported relay proofs."""
    candidates: int = 0
    """Rows of `blocks`."""
    judged: int = 0
    """Candidates that were judged, and all imported proofs."""
    complete: bool = False
    """Whether everything could be read and judged."""
    seam: str = "none"
    """`closed` if the segment ends where the next one starts, `mismatch` if not, `open` if there is
    no next one, `none` if the end was not reached."""
    genesis: bool = False
    """Whether it starts at the genesis block."""
    start: str | None = None
    """Hash, in hex, of the header at which it starts."""
    end: str | None = None
    """Hash, in hex, of the last header reached."""
    end_number: int | None = None
    proof_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of judging one block, or of checking the end of a segment."""

    head: ChainHead | None = None
    """The head on which the next block is judged, `None` if no further block can be judged."""
    notes: Sequence[Note] = ()
    measures: Row | None = None
    """The row of `block_measures`, `None` if the block was not judged."""
    publishers: Sequence[Row] = ()
    """Rows of `publisher_measures`."""
    parts: Sequence[Row] = ()
    """Rows of `proof_parts`."""
    whole: bool = True
    """Whether everything that was needed could be read. If not, the reason is noted elsewhere."""


@dataclass(slots=True)
class ChainResult:
    """The result of judging one segment of one chain."""

    receipt: Receipt
    block_measures: list[Row] = field(default_factory=list)
    publisher_measures: list[Row] = field(default_factory=list)
    proof_parts: list[Row] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    read_errors: list[Row] = field(default_factory=list)
    transient: bool = False
    """Whether a read failed that may succeed another time. The result is then not reused."""
    whole: bool = True
    """Whether everything could be read and judged, without contradictions."""

    def add(self, judged: Judged) -> None:
        """Add the result of judging a block."""
        self.note(judged.notes)
        if judged.measures is not None:
            self.block_measures.append(judged.measures)
            self.receipt.judged += 1
        self.publisher_measures += judged.publishers
        self.proof_parts += judged.parts
        self.whole = self.whole and judged.whole

    def note(self, notes: Iterable[Note]) -> None:
        """Add findings and faults. A fault makes the segment incomplete."""
        for note in notes:
            if isinstance(note, Fault):
                self.read_errors.append(note.row())
                self.transient = self.transient or note.transient
                self.whole = False
            else:
                self.findings.append(note)

    def tables(self) -> dict[schema.Table, list[Row]]:
        """Return the rows by table."""
        return {
            schema.BLOCK_MEASURES: self.block_measures,
            schema.PUBLISHER_MEASURES: self.publisher_measures,
            schema.WASTE: waste_rows(self.block_measures, self.proof_parts),
            schema.PROOF_PARTS: self.proof_parts,
            schema.FINDINGS: self.findings,
            schema.READ_ERRORS: self.read_errors,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """A segment of a chain. It makes faults that name a file and findings that name a block."""

    network: str
    chain: int
    segment: int
    files: ChainFiles
    changes: tuple[FileEntry, ...]
    """Files with changes of collator sets and subscriptions."""
    rules: Rules = SHIPPED
    """The rules by which evidence about blocks is judged."""

    @staticmethod
    def of(task: Task, files: ChainFiles, rules: Rules) -> "Place":
        """Return the place of a chain's files in a task."""
        return Place(
            task.network, files.chain, task.segment, files=files, changes=task.changes, rules=rules
        )

    def fault(
        self, error: str, position: int | None = None, table: schema.Table = schema.BLOCKS
    ) -> Fault:
        """Return a fault of the history.

        It names the segment's first file of this table or, if there is none, its first file of
        blocks.
        """
        files = {
            schema.CHECKPOINTS.name: self.files.checkpoints,
            schema.DELIVERIES.name: self.files.deliveries,
            schema.AUTHORITIES.name: self.changes,
        }.get(table.name, ())
        if not files and table != schema.CHECKPOINTS:
            table = schema.BLOCKS
            files = self.files.blocks
        path = files[0].path if files else f"{table.name}/network={self.network}/chain={self.chain}"
        return Fault(
            path,
            error,
            network=self.network,
            chain=self.chain,
            segment=self.segment,
            position=position,
        )

    def finding(
        self, row: Row, code: str, severity: Severity, evidence: bytes, detail: str
    ) -> Note:
        """Return a finding about a block, or a fault if its evidence does not prove it."""
        subject = row["position"].to_bytes(8, "little") + (row["block"] or b"")
        return self.checked_finding(
            code, severity, subject, evidence=evidence, detail=detail, place=row
        )

    def checked_finding(  # noqa: PLR0917  # the parts of a finding
        self,
        code: str,
        severity: Severity,
        subject: bytes,
        evidence: bytes,
        detail: str,
        place: Row,
    ) -> Note:
        """Return a finding, or a fault if its evidence does not prove it.

        The evidence is judged in the same way when somebody checks the finding later.
        """
        error = evidence_error(code, evidence, self.rules)
        if error is not None:
            return self.fault(
                f"the evidence of a finding {code} does not show it: {error}", place.get("position")
            )
        return finding_row(
            (self.network, self.chain),
            code,
            severity,
            subject=subject,
            evidence=evidence,
            detail=detail,
            place=place,
        )


def evidence_error(code: str, evidence: bytes, rules: Rules = SHIPPED) -> str | None:
    """Return the reason why evidence does not prove a finding, `None` if it does.

    Figures are accepted for every code, since they are not meant as proof.
    """
    try:
        judgement = judge(evidence, rules)
    except EvidenceError as error:
        return str(error)
    if judgement.kind == "figures" or judgement.code == code:
        return None
    return f"it shows {judgement.code or 'a valid block'}"


def contradictions(place: Place, row: Row, facts: Row) -> list[Fault]:
    """Return a fault for each column of a row that differs from the block itself.

    `facts` has the values from the block, by column.
    """
    return [
        place.fault(
            f"the row says {name} {shown(row[name])}, its block says {shown(fact)}",
            row["position"],
        )
        for name, fact in facts.items()
        if row[name] != fact
    ]


_MOST_SHOWN: Final = 200
"""Characters of a value that messages show."""


def short(value: object) -> str:
    """Return the first line of a value, cut to at most `_MOST_SHOWN` characters.

    Values in a history can have any length.
    """
    return (str(value).splitlines() or [""])[0][:_MOST_SHOWN]


def shown(value: object) -> str:
    """Return a value in one line: bytes in hex, anything else as `short` gives it."""
    return value.hex() if isinstance(value, bytes) else short(value)
