"""The rows of one segment of one chain, read and held to be where they belong."""

from collections.abc import Iterator

from pubsub_emulator.spark_audit.audit.notes import Notes, short
from pubsub_emulator.spark_audit.audit.shared import Shared
from pubsub_emulator.spark_audit.history.manifest import FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.rows import Row


class SegmentReader:
    """Reads a chain's files of a segment; what is wrong with them is noted."""

    def __init__(self, notes: Notes, shared: Shared) -> None:
        self.notes = notes
        self.task = notes.task
        self.files = notes.files
        self.shared = shared
        self.unread = False
        """Whether something could not be read."""
        self.first = False
        """Whether the chain is told of from this segment on: its checkpoint is in the segment's own commit."""

    def units(self, entries: tuple[FileEntry, ...]) -> Iterator[list[Row] | Fault]:
        """The rows of each readable row group, and a fault (noted) for each other."""
        for entry in entries:
            for unit in read_file(self.shared.store, entry):
                if isinstance(unit, Fault):
                    self.notes.out.quarantine.append(unit.row())
                    self.notes.out.passing = self.notes.out.passing or unit.passing
                    self.notes.whole = False
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
            self.notes.fault(
                self.notes.blocks_path(), f"{table} has a row of {short(row['network'])}, chain {row['chain']}"
            )
            return False
        if row["segment"] not in (segments or (task.segment,)):
            self.notes.fault(self.notes.blocks_path(), f"{table} has a row of segment {row['segment']}")
            return False
        return True

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
                        self.notes.fault(self.notes.checkpoints_path(), f"segment {row['segment']} has two checkpoints")
                    self.first = self.first or row["segment"] == at == entry.segment
        return found.get(at), found.get(at + 1)

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
