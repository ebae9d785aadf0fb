"""`pubsub_history`: the tables of a history, each row group compared with its manifest before it is parsed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.listing import place_of_manifest
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, Commit, FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, History, manifest_names, read_commits, read_file
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Options, Source, SourceError, may_match

FAIL, QUARANTINE = "fail", "quarantine"
TABLES: Final = {**HISTORY_TABLES, schema.QUARANTINE.name: schema.QUARANTINE}
PARTITION_BYTES: Final = 16 * 1_048_576
"""Files are read together until they have so many bytes."""


@dataclass
class FilesPartition(api.InputPartition):
    """Some files, and faults of manifests."""

    entries: tuple[FileEntry, ...]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class WantedHistory:
    """One table of one history."""

    root: str
    table: str
    faults: str
    schema: pa.Schema

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Read the options. Raises `SourceError`."""
        options = Options(HistorySource.name(), given)
        options.check("table", "faults")
        table = options.choice("table", tuple(TABLES), schema.BLOCKS.name)
        faults = options.choice("faults", (FAIL, QUARANTINE), FAIL)
        return cls(options.address(), table, faults, options.columns(TABLES[table].wider.schema))

    def all(self, filters: Sequence[api.Filter]) -> list[FilesPartition]:
        """Files of about the same size. Raises `CommitError` where there is no history, `OSError`."""
        history = History.open(self.root)
        return self._partitions(history.commits, history.faults, filters)

    def newest(self) -> Offset:
        """By network, the segment after those that follow each other. Raises `CommitError`, `OSError`."""
        return ends(open_store(self.root))

    def between(self, start: Offset, end: Offset) -> list[FilesPartition]:
        """The files of the segments between two offsets."""
        return self._partitions(*commits_between(open_store(self.root), start, end))

    def read(self, partition: FilesPartition) -> Iterator[pa.Table]:
        """The rows of some files. Raises `SourceError` for what cannot be read, unless it is quarantined."""
        faults = list(partition.faults)
        for entry in partition.entries:
            for unit in read_file(self.root, entry):
                if isinstance(unit, Fault):
                    faults.append(unit)
                elif self.table != schema.QUARANTINE.name:
                    yield unit
        if self.table == schema.QUARANTINE.name:
            yield schema.QUARANTINE.arrow([fault.row() for fault in faults])
        elif faults and self.faults == FAIL:
            said = f"{self.root}/{faults[0].path}: {faults[0].error}"
            raise SourceError(f"{said} (with faults=quarantine it is left out, and a row of the table quarantine)")

    def _partitions(
        self, commits: Sequence[Commit], faults: Sequence[Fault], filters: Sequence[api.Filter] = ()
    ) -> list[FilesPartition]:
        parts = [FilesPartition((), tuple(faults))] if faults else []
        held = size = 0
        for entry in (entry for commit in commits for entry in commit.files):
            place = {name: (getattr(entry, name),) * 2 for name in ("network", "chain", "segment")}
            if self.table not in {entry.table, schema.QUARANTINE.name} or not may_match(filters, **place):
                continue
            if not held or size + entry.weight > PARTITION_BYTES:
                parts.append(FilesPartition(()))
                size = 0
            parts[-1].entries += (entry,)
            held, size = held + 1, size + entry.weight
        return parts


class HistorySource(Source):
    """Options: `path`, `table` (blocks), `faults`, `columns`.

    `faults` is `fail`, so that what cannot be read is an error, or `quarantine`: it is left out, and is a row of the
    table `quarantine` of this source. A stream has every segment once. Filters on network, chain and segment leave
    files out.
    """

    wanted = WantedHistory

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "pubsub_history"


def _places(store: Store) -> Iterator[tuple[str, str, int]]:
    """The manifests with their networks and segments."""
    for name in manifest_names(store):
        network, segment = place_of_manifest(name)
        if network is not None and segment is not None:
            yield name, network, segment


def ends(store: Store) -> Offset:
    """By network, the segment after those that follow each other from its first. Raises `CommitError`, `OSError`."""
    found: Offset = {}
    for _, network, segment in sorted(_places(store), key=lambda place: place[1:]):
        if found.setdefault(network, segment) == segment:
            found[network] = segment + 1
    return found


def commits_between(store: Store, start: Offset, end: Offset) -> tuple[list[Commit], list[Fault]]:
    """The commits of segments from `start` to before `end`, by network, and the faults of their manifests."""
    places = [each for each in _places(store) if each[2] < end.get(each[1], 0)]
    before = [name for name, network, segment in places if segment == start.get(network, 0) - 1]
    known = {commit.network: commit for commit in read_commits(store, before)[0]}
    return read_commits(store, [name for name, network, at in places if at >= start.get(network, 0)], known)
