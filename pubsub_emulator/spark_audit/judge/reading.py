"""Reading the rows of one segment of one chain. Rows of other chains or segments become faults."""

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
    """Rows that were read, and faults about others."""

    rows: list[Row] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unread: bool = False
    """Whether some rows could not be read."""


def read_rows(place: Place, store: Store, entries: tuple[FileEntry, ...]) -> Read:
    """Read the rows of a segment from the files of one table."""
    out = Read()
    for _, unit in _units(place, store, entries, (place.segment,), out):
        out.rows += unit
    return out


@dataclass(slots=True)
class Checkpoints(Read):
    """The checkpoints at the start of a segment and at the start of the next one."""

    start: Row | None = None
    """The row of the segment's own checkpoint, `None` if it was not found."""
    end: Row | None = None
    """The row of the next segment's checkpoint, `None` if it was not found."""
    first: bool = False
    """Whether the chain's history begins with this segment. Then its checkpoint is in the segment's
    own commit; otherwise it is in the commit of the segment before."""


def read_checkpoints(place: Place, store: Store) -> Checkpoints:
    """Read the checkpoints at the start and the end of a segment."""
    at = place.segment
    out = Checkpoints()
    found: dict[int, Row] = {}
    # A file of the segment before may have that segment's own checkpoint, too.
    for entry, unit in _units(place, store, place.files.checkpoints, (at - 1, at, at + 1), out):
        for row in unit:
            if found.setdefault(row["segment"], row) != row:
                said = f"segment {row['segment']} has two checkpoints"
                out.faults.append(place.fault(said, table=schema.CHECKPOINTS))
            out.first = out.first or row["segment"] == at == entry.segment
    out.start = found.get(at)
    out.end = found.get(at + 1)
    return out


def _units(
    place: Place, store: Store, entries: tuple[FileEntry, ...], segments: tuple[int, ...], out: Read
) -> Iterator[tuple[FileEntry, list[Row]]]:
    """Yield the rows of each row group that could be read, without those that do not belong here.

    Faults go to `out`.
    """
    for entry in entries:
        for unit in read_file(store, entry):
            if isinstance(unit, Fault):
                out.faults.append(unit)
                out.unread = True
                continue
            rows = unit.to_pylist()
            strays = {
                at: stray
                for at, row in enumerate(rows)
                if (stray := _stray(place, row, segments)) is not None
            }
            out.faults += [
                place.fault(f"{entry.table} has a row of {stray}") for stray in strays.values()
            ]
            yield entry, [row for at, row in enumerate(rows) if at not in strays]


def _stray(place: Place, row: Row, segments: tuple[int, ...]) -> str | None:
    """Return where a row belongs if it is not of this chain and these segments, else `None`."""
    if (row["network"], row["chain"]) != (place.network, place.chain):
        return f"{short(row['network'])}, chain {row['chain']}"
    return None if row["segment"] in segments else f"segment {row['segment']}"
