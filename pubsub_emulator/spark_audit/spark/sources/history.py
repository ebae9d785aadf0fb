"""The format `pubsub_history`: the tables of a history, each row group checked by its manifest."""

from abc import abstractmethod
from collections.abc import Iterator, MutableMapping, Sequence
from functools import partial
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, Commit, FileEntry
from pubsub_emulator.spark_audit.history.reader import (
    Fault,
    History,
    next_segments,
    read_between,
    read_file,
)
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.spark.sources.common import (
    Offset,
    Source,
    SourceError,
    may_match,
    partitions_of,
)

TABLES: Final = {**HISTORY_TABLES, schema.QUARANTINE.name: schema.QUARANTINE}
"""The tables that can be read: those of a history, and the faults met while reading."""
PARTITION_BYTES: Final = 16 * 1_048_576
"""Bytes of files that are read together as one partition."""


class OfHistory(Source):
    """The base of sources that read a history segment by segment.

    The offset of a stream is the next segment of each network. Raises `StorageError` for a wrong
    address. Opening a history raises `CommitError` if there is none, and `OSError`.
    """

    before: ClassVar[int] = 0
    """How many segments before a batch its rows need."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.root = open_store(self.text("path")).uri

    def all(self) -> list[api.InputPartition]:
        """Return the partitions of all segments."""
        history = History.open(self.root)
        return self.cut(history.commits, history.faults, {})

    def latestOffset(self, *_given: object) -> Offset:  # noqa: N802  # Spark's name
        """Return, by network, the segment that is to follow."""
        return next_segments(open_store(self.root))

    def partitions(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """Return the partitions of the segments from `start` to before `end`."""
        first = {network: at - self.before for network, at in start.items()}
        return self.cut(*read_between(open_store(self.root), first, end), start)

    @abstractmethod
    def cut(
        self, commits: Sequence[Commit], faults: Sequence[Fault], start: Offset
    ) -> list[api.InputPartition]:
        """Return the partitions of commits from `start` on, and of faults of manifests."""


class HistorySource(OfHistory):
    """A reader of a history. Options: `path`, `table` (default `blocks`), `faults`, `columns`.

    With `faults` `fail` (the default), data that cannot be read raises an error. With `quarantine`
    it is left out, and is a row of the table `quarantine` of this source. A stream has every
    segment once.

    Filters on network, chain and segment leave files out. Filters on block numbers and other whole
    numbers leave row groups out. A partition is some files, or the faults of manifests.
    """

    format = "pubsub_history"
    known = ("table", "faults")

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.table = self.choice("table", TABLES, schema.BLOCKS.name)
        self.fails = self.choice("faults", ("fail", "quarantine"), "fail") == "fail"
        self.columns = self.chosen(TABLES[self.table].wider.schema)

    def rows(self, part: tuple[list[FileEntry], Sequence[Fault]]) -> Iterator[pa.Table]:
        """Yield the rows of some files.

        Raises `SourceError` for data that cannot be read, unless it is quarantined.
        """
        entries, faults = part[0], list(part[1])
        filters = () if self.table == schema.QUARANTINE.name else self.filters
        for entry in entries:
            for unit in read_file(
                self.root, entry, partial(may_match, filters) if filters else None
            ):
                if isinstance(unit, Fault):
                    faults.append(unit)
                elif self.table != schema.QUARANTINE.name:
                    yield unit
        if self.table == schema.QUARANTINE.name:
            yield schema.QUARANTINE.arrow([fault.row() for fault in faults])
        elif faults and self.fails:
            said = f"{self.root}/{faults[0].path}: {faults[0].error}"
            raise SourceError(
                f"{said} (with faults=quarantine it is left out, and a row of the table quarantine)"
            )

    def cut(
        self, commits: Sequence[Commit], faults: Sequence[Fault], start: Offset
    ) -> list[api.InputPartition]:
        """Return partitions of about the same size."""
        del start
        parts: list[tuple[list[FileEntry], Sequence[Fault]]] = [([], faults)] if faults else []
        size = PARTITION_BYTES
        for entry in (entry for commit in commits for entry in commit.files):
            place = {name: (getattr(entry, name),) * 2 for name in ("network", "chain", "segment")}
            if self.table not in {entry.table, schema.QUARANTINE.name} or not may_match(
                self.filters, place
            ):
                continue
            if size + entry.weight > PARTITION_BYTES:
                parts.append(([], ()))
                size = 0
            parts[-1][0].append(entry)
            size += entry.weight
        return partitions_of(parts)
