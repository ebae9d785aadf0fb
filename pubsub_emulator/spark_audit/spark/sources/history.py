"""`pubsub_history`: the tables of a history, each row group compared with its manifest before it is parsed."""

from abc import abstractmethod
from collections.abc import Iterator, MutableMapping, Sequence
from functools import partial
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, Commit, FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, History, next_segments, read_between, read_file
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Source, SourceError, may_match, partitions_of

TABLES: Final = {**HISTORY_TABLES, schema.QUARANTINE.name: schema.QUARANTINE}
PARTITION_BYTES: Final = 16 * 1_048_576
"""Files are read together until they have so many bytes."""


class OfHistory(Source):
    """What is read of a history segment by segment; the offset of a stream is the next segment of each network.

    Raises `StorageError` for an odd address; what opens a history `CommitError` where there is none, and `OSError`.
    """

    before: ClassVar[int] = 0
    """How many segments before a batch its rows need."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.root = open_store(self.text("path")).uri

    def all(self) -> list[api.InputPartition]:
        """What all segments make."""
        history = History.open(self.root)
        return self.cut(history.commits, history.faults, {})

    def latestOffset(self, *_given: object) -> Offset:  # noqa: N802  # Spark's name
        """By network, the segment after those that follow each other from its first."""
        return next_segments(open_store(self.root))

    def partitions(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """What the segments from `start` to before `end` make."""
        first = {network: at - self.before for network, at in start.items()}
        return self.cut(*read_between(open_store(self.root), first, end), start)

    @abstractmethod
    def cut(self, commits: Sequence[Commit], faults: Sequence[Fault], start: Offset) -> list[api.InputPartition]:
        """The partitions of some commits from `start` on, and of faults of manifests."""


class HistorySource(OfHistory):
    """Options: `path`, `table` (blocks), `faults`, `columns`.

    `faults` is `fail`, so that what cannot be read is an error, or `quarantine`: it is left out, and is a row of the
    table `quarantine` of this source. A stream has every segment once. Filters on network, chain and segment leave
    files out, those on numbers of blocks and other whole numbers row groups. A partition has some files, and faults.
    """

    format = "pubsub_history"
    known = ("table", "faults")

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.table = self.choice("table", TABLES, schema.BLOCKS.name)
        self.fails = self.choice("faults", ("fail", "quarantine"), "fail") == "fail"
        self.columns = self.chosen(TABLES[self.table].wider.schema)

    def rows(self, part: tuple[list[FileEntry], Sequence[Fault]]) -> Iterator[pa.Table]:
        """The rows of some files. Raises `SourceError` for what cannot be read, unless it is quarantined."""
        entries, faults = part[0], list(part[1])
        filters = () if self.table == schema.QUARANTINE.name else self.filters
        for entry in entries:
            for unit in read_file(self.root, entry, partial(may_match, filters) if filters else None):
                if isinstance(unit, Fault):
                    faults.append(unit)
                elif self.table != schema.QUARANTINE.name:
                    yield unit
        if self.table == schema.QUARANTINE.name:
            yield schema.QUARANTINE.arrow([fault.row() for fault in faults])
        elif faults and self.fails:
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
        return partitions_of(parts)
