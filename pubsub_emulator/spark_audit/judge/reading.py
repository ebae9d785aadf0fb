"""Reading the rows of one segment of one chain, with faults for rows that do not belong there."""

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
    """Rows that were read, and faults about rows or files that could not be used."""

    rows: list[Row] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unread: bool = False
    """Whether some rows could not be read."""


def read_rows(place: Place, store: Store, entries: tuple[FileEntry, ...]) -> Read:
    """Read the rows of a segment from the files of one table."""
    read = Read()
    for _, rows in _row_groups(place, store, entries, segments=(place.segment,), read=read):
        read.rows += rows
    return read


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
    segment = place.segment
    out = Checkpoints()
    by_segment: dict[int, Row] = {}
    # A file of the previous segment may also have that segment's own checkpoint.
    for entry, rows in _row_groups(
        place,
        store,
        place.files.checkpoints,
        segments=(segment - 1, segment, segment + 1),
        read=out,
    ):
        for row in rows:
            if by_segment.setdefault(row["segment"], row) != row:
                error = f"segment {row['segment']} has two checkpoints"
                out.faults.append(place.fault(error, table=schema.CHECKPOINTS))
            # Only a chain's first segment has its own checkpoint in a file of its own commit.
            out.first = out.first or row["segment"] == segment == entry.segment
    out.start = by_segment.get(segment)
    out.end = by_segment.get(segment + 1)
    return out


def _row_groups(
    place: Place,
    store: Store,
    entries: tuple[FileEntry, ...],
    segments: tuple[int, ...],
    read: Read,
) -> Iterator[tuple[FileEntry, list[Row]]]:
    """Yield the file and the rows of each row group that could be read.

    Rows of another chain or of other segments are left out. These and the row groups that could not
    be read are recorded in `read`.
    """
    for entry in entries:
        for group in read_file(store, entry):
            if isinstance(group, Fault):
                read.faults.append(group)
                read.unread = True
                continue
            rows: list[Row] = []
            for row in group.to_pylist():
                stray = _stray(place, row, segments)
                if stray is None:
                    rows.append(row)
                else:
                    read.faults.append(place.fault(f"{entry.table} has a row of {stray}"))
            yield entry, rows


def _stray(place: Place, row: Row, segments: tuple[int, ...]) -> str | None:
    """Return the chain or segment of a row that does not belong here, `None` if it belongs here."""
    if (row["network"], row["chain"]) != (place.network, place.chain):
        return f"{short(row['network'])}, chain {row['chain']}"
    return None if row["segment"] in segments else f"segment {row['segment']}"
