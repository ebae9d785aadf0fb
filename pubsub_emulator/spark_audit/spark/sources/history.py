"""`pubsub_history`: the tables of a history, each row group compared with its manifest before it is parsed."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.listing import place_of_manifest
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, Commit, FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, History, manifest_names, read_commits, read_file
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Source, SourceError, Wanted, may_match

FAIL, QUARANTINE = "fail", "quarantine"
TABLES: Final = {**HISTORY_TABLES, schema.QUARANTINE.name: schema.QUARANTINE}
PARTITION_BYTES: Final = 16 * 1_048_576
"""Files are read together until they have so many bytes."""


class OfHistory(Wanted):
    """What is read of a history segment by segment; the offset of a stream is the next segment of each network.

    What opens a history raises `CommitError` where there is none, and `OSError`.
    """

    before: ClassVar[int] = 0
    """How many segments before a batch its rows need."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.root = self.address()

    def all(self) -> list[api.InputPartition]:
        """What all segments make."""
        history = History.open(self.root)
        return self.cut(history.commits, history.faults, {})

    def newest(self) -> Offset:
        """By network, the segment after those that follow each other from its first."""
        found: Offset = {}
        for _, network, segment in sorted(_places(open_store(self.root)), key=lambda place: place[1:]):
            if found.setdefault(network, segment) == segment:
                found[network] = segment + 1
        return found

    def between(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """What the segments from `start` to before `end` make."""
        store = open_store(self.root)
        first = {network: at - self.before for network, at in start.items()}
        places = [each for each in _places(store) if each[2] < end.get(each[1], 0)]
        older = [name for name, network, segment in places if segment == first.get(network, 0) - 1]
        known = {commit.network: commit for commit in read_commits(store, older)[0]}
        names = [name for name, network, at in places if at >= first.get(network, 0)]
        return self.cut(*read_commits(store, names, known), start)

    @abstractmethod
    def cut(self, commits: Sequence[Commit], faults: Sequence[Fault], start: Offset) -> list[api.InputPartition]:
        """The partitions of some commits from `start` on, and of faults of manifests."""


class WantedHistory(OfHistory):
    """One table of one history; a partition has some files, and faults of manifests."""

    source = "pubsub_history"
    options = ("table", "faults")

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.table = self.choice("table", tuple(TABLES), schema.BLOCKS.name)
        self.faults = self.choice("faults", (FAIL, QUARANTINE), FAIL)
        self.schema = self.columns(TABLES[self.table].wider.schema)

    def rows(self, part: tuple[list[FileEntry], Sequence[Fault]]) -> Iterator[pa.Table]:
        """The rows of some files. Raises `SourceError` for what cannot be read, unless it is quarantined."""
        entries, faults = part[0], list(part[1])
        for entry in entries:
            for unit in read_file(self.root, entry, self._may_match):
                if isinstance(unit, Fault):
                    faults.append(unit)
                elif self.table != schema.QUARANTINE.name:
                    yield unit
        if self.table == schema.QUARANTINE.name:
            yield schema.QUARANTINE.arrow([fault.row() for fault in faults])
        elif faults and self.faults == FAIL:
            said = f"{self.root}/{faults[0].path}: {faults[0].error}"
            raise SourceError(f"{said} (with faults=quarantine it is left out, and a row of the table quarantine)")

    def cut(self, commits: Sequence[Commit], faults: Sequence[Fault], start: Offset) -> list[api.InputPartition]:
        """Files of about the same size."""
        del start
        parts: list[tuple[list[FileEntry], Sequence[Fault]]] = [([], faults)] if faults else []
        size = PARTITION_BYTES
        for entry in (entry for commit in commits for entry in commit.files):
            place = {name: (getattr(entry, name),) * 2 for name in ("network", "chain", "segment")}
            if self.table not in {entry.table, schema.QUARANTINE.name} or not may_match(self.filters, place):
                continue
            if size + entry.weight > PARTITION_BYTES:
                parts.append(([], ()))
                size = 0
            parts[-1][0].append(entry)
            size += entry.weight
        return [api.InputPartition(part) for part in parts]

    def _may_match(self, group: pq.RowGroupMetaData) -> bool:
        """Whether rows of a row group may pass the filters, by what its footer tells of its whole numbers."""
        found = (group.column(at) for at in range(group.num_columns if self.filters else 0))
        bounds = {each.path_in_schema: (each.statistics.min, each.statistics.max) for each in found if _tells(each)}
        return self.table == schema.QUARANTINE.name or may_match(self.filters, bounds)


class HistorySource(Source):
    """Options: `path`, `table` (blocks), `faults`, `columns`.

    `faults` is `fail`, so that what cannot be read is an error, or `quarantine`: it is left out, and is a row of the
    table `quarantine` of this source. A stream has every segment once. Filters on network, chain and segment leave
    files out, those on numbers of blocks and other whole numbers row groups.
    """

    wanted = WantedHistory


def _tells(column: pq.ColumnChunkMetaData) -> bool:
    """Whether a footer has bounds of whole numbers; unsigned ones beyond what their type has signed look negative."""
    known = column.physical_type in {"INT32", "INT64"} and column.is_stats_set and column.statistics.has_min_max
    ends = (column.statistics.min, column.statistics.max) if known else (None, None)
    return all(isinstance(end, int) and end >= 0 for end in ends)


def _places(store: Store) -> Iterator[tuple[str, str, int]]:
    """The manifests with their networks and segments."""
    for name in manifest_names(store):
        network, segment = place_of_manifest(name)
        if network is not None and segment is not None:
            yield name, network, segment
