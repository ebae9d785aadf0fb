"""What judging a chain's segment came to, as it comes: measures, findings that bear their evidence out, faults."""

from dataclasses import dataclass, field
from typing import Any

from pubsub_emulator.spark_audit.audit.evidence import EvidenceError, judge
from pubsub_emulator.spark_audit.audit.findings import Severity, finding_row
from pubsub_emulator.spark_audit.audit.waste import waste_rows
from pubsub_emulator.spark_audit.engine.segment_task import ChainFiles, Task
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.rows import Row, block_place


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
            schema.WASTE: waste_rows(self.block_measures, self.proof_parts),
            schema.PROOF_PARTS: self.proof_parts,
            schema.FINDINGS: self.findings,
            schema.QUARANTINE: self.quarantine,
        }


class Notes:
    """The result of one segment of one chain while it is made; paths are those to name in faults."""

    def __init__(self, task: Task, files: ChainFiles) -> None:
        self.task = task
        self.files = files
        self.out = ChainResult()
        self.whole = True
        """Whether everything could be read and nothing contradicts itself."""

    def fault(self, path: str, error: str, row_group: int | None = None, position: int | None = None) -> None:
        """Note what is wrong with the history; the segment is not complete."""
        self.whole = False
        task = self.task
        fault = Fault(path, error, row_group, task.network, self.files.chain, task.segment, position)
        self.out.quarantine.append(fault.row())

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

    def deliveries_path(self) -> str:
        """The file of the callbacks, to name."""
        return self.files.deliveries[0].path if self.files.deliveries else self.blocks_path()

    def changes_path(self) -> str:
        """The file of collator sets and subscriptions, to name."""
        return self.task.changes[0].path if self.task.changes else self.blocks_path()

    def is_borne_out(self, code: str, evidence: bytes, position: int | None) -> bool:
        """Judge a finding from its evidence alone, as a stranger will; one that fails is told of, and not made."""
        try:
            shown = judge(evidence)
        except EvidenceError as error:
            said = str(error)
        else:
            if shown.kind == "figures" or shown.code == code:
                return True
            said = f"it shows {shown.code or 'a valid block'}"
        self.fault(self.blocks_path(), f"the evidence of a finding {code} does not show it: {said}", position=position)
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


def short(value: object) -> str:
    """The first line of what a stranger may have written, cut."""
    return (str(value).splitlines() or [""])[0][:200]


def shown(value: object) -> str:
    """A value in one line: bytes in hexadecimal digits, anything else as `short`."""
    return value.hex() if isinstance(value, bytes) else short(value)
