"""The rows of one segment of one chain, read, and each in its place."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.notes import Place, short


@dataclass(slots=True)
class Read:
    """Rows of a table, and what is wrong with the others; `unread` whether a part could not be read."""

    rows: list[Row] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unread: bool = False


def read_rows(place: Place, store: Store, entries: tuple[FileEntry, ...]) -> Read:
    """The rows of this segment in files of a table."""
    out = Read()
    for _, unit in _units(place, store, entries, (place.segment,), out):
        out.rows += unit
    return out


@dataclass(slots=True)
class Checkpoints(Read):
    """The checkpoints at the start of a segment and of the next one, each with its row."""

    start: Row | None = None
    end: Row | None = None
    first: bool = False
    """Whether the chain's history begins with this segment: its checkpoint is in the segment's own commit."""


def read_checkpoints(place: Place, store: Store) -> Checkpoints:
    """The checkpoints of a segment."""
    at = place.segment
    out = Checkpoints()
    found: dict[int, Row] = {}
    # The file before also holds the checkpoint that its own segment starts with.
    for entry, unit in _units(place, store, place.files.checkpoints, (at - 1, at, at + 1), out):
        for row in unit:
            if found.setdefault(row["segment"], row) != row:
                said = f"segment {row['segment']} has two checkpoints"
                out.faults.append(place.fault(said, table=schema.CHECKPOINTS))
            out.first = out.first or row["segment"] == at == entry.segment
    out.start, out.end = found.get(at), found.get(at + 1)
    return out


def _units(
    place: Place, store: Store, entries: tuple[FileEntry, ...], segments: tuple[int, ...], out: Read
) -> Iterator[tuple[FileEntry, list[Row]]]:
    """The rows of each readable row group that are in their place."""
    for entry in entries:
        for unit in read_file(store, entry):
            if isinstance(unit, Fault):
                out.faults.append(unit)
                out.unread = True
                continue
            rows = unit.to_pylist()
            strays = {at: stray for at, row in enumerate(rows) if (stray := _stray(place, row, segments)) is not None}
            out.faults += [place.fault(f"{entry.table} has a row of {stray}") for stray in strays.values()]
            yield entry, [row for at, row in enumerate(rows) if at not in strays]


def _stray(place: Place, row: Row, segments: tuple[int, ...]) -> str | None:
    """Whose a row is that is not of this chain or segment."""
    if (row["network"], row["chain"]) != (place.network, place.chain):
        return f"{short(row['network'])}, chain {row['chain']}"
    return None if row["segment"] in segments else f"segment {row['segment']}"
