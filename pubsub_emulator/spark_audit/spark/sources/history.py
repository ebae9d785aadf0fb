"""The format `pubsub_history`: tables of a history, with each row group checked by its manifest."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from itertools import chain as chained
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as api
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
)

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import (
    HISTORY_TABLES,
    Commit,
    CommitError,
    FileEntry,
    read_manifest,
)
from pubsub_emulator.spark_audit.history.reader import (
    Fault,
    History,
    gapless_manifests,
    read_between,
    read_file,
)
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.spark.sources.common import (
    Offset,
    Source,
    SourceError,
    may_match,
    partitions_of,
    same_bounds,
)

TABLES: Final = {**HISTORY_TABLES, schema.READ_ERRORS.name: schema.READ_ERRORS}
"""The tables that can be read: those of a history, and the faults met while reading."""
_FAIL: Final = "failfast"
_DROP: Final = "dropmalformed"
"""How to treat data that cannot be read. Spark's own file sources have modes of these names."""
PARTITION_BYTES: Final = 16 * 1_048_576
"""The approximate size of the files that are read together as one partition, in bytes."""


class OfHistory(Source):
    """The base of sources that read a history segment by segment.

    Options of all of them:

    - `network` and `chain`: the networks and chains to read, separated by commas; by default all.
      Unlike filters, they also save the work of a stream.
    - `from`: the segment at which reading begins, by default the first one.
    - `maxSegmentsPerTrigger` and `maxBlocksPerTrigger`: how much a batch of a stream reads. A batch
      has at least one segment.

    The offset of a stream has, by network, the next segment (`next`) and the manifest of the
    segment before it (`after`). If that manifest is not in the history any more, the history was
    replaced, and the stream ends with an error.

    Raises `StorageError` for a wrong address. Opening a history raises `CommitError` if there is
    none, and `OSError`.
    """

    known: ClassVar[tuple[str, ...]] = (
        "network",
        "chain",
        "from",
        "maxSegmentsPerTrigger",
        "maxBlocksPerTrigger",
    )
    before: ClassVar[int] = 0
    """How many segments before a batch must be read as well."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.root = open_store(self.text("path")).uri
        self.networks = frozenset(self.listed("network"))
        self.chains = frozenset(self.whole("chain", chain) for chain in self.listed("chain"))
        self.begin = self.number("from", 0)
        self.most_segments = self.limit("maxSegmentsPerTrigger")
        self.most_blocks = self.limit("maxBlocksPerTrigger")

    def all(self) -> list[api.InputPartition]:
        """Return the partitions of all segments."""
        history = History.open(self.root)
        return self.cut(self._wanted(history.commits), history.faults, {})

    def newest(self) -> Offset:
        """Return, by network, the number after the last segment, and the last manifest."""
        return {
            network: {"next": max(manifests) + 1, "after": manifests[max(manifests)]}
            for network, manifests in self._manifests().items()
            if manifests
        }

    def limited(self, start: Offset, end: Offset) -> Offset:
        """Return the offset after as many segments as a batch may have, the earliest ones first."""
        self._check(start)
        store = open_store(self.root)
        waiting: list[tuple[int, str, str]] = []
        for network, manifests in self._manifests().items():
            waiting += [
                (segment, network, name)
                for segment, name in manifests.items()
                if max(self._next(start, network), self.begin) <= segment < self._next(end, network)
            ]
        waiting.sort()
        offset = {network: place for network, place in start.items() if network in end}
        blocks = 0
        for count, (segment, network, name) in enumerate(waiting):
            if self.most_segments is not None and count >= self.most_segments:
                break
            if self.most_blocks is not None:
                blocks += _blocks(store, name)
                # A batch has at least one segment.
                if count and blocks > self.most_blocks:
                    break
            offset[network] = {"next": segment + 1, "after": name}
        return offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """Return a limit if the options set one. Spark passes it on to `latestOffset`."""
        if self.most_segments is not None:
            return ReadMaxFiles(self.most_segments)
        return ReadAllAvailable() if self.most_blocks is None else ReadMaxRows(self.most_blocks)

    def partitions(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """Return the partitions of the segments from `start` to before `end`.

        Raises `SourceError` if the history was replaced since an offset was made.
        """
        self._check(start)
        self._check(end)
        first = {network: self._next(start, network) - self.before for network in start}
        last = {network: self._next(end, network) for network in end}
        commits, faults = read_between(open_store(self.root), first, last)
        nexts = {network: self._next(start, network) for network in start}
        return self.cut(self._wanted(commits), faults, nexts)

    def fits(self, place: Mapping[str, Any]) -> bool:
        """Return whether the options select rows of a place, which may lack network or chain."""
        network = place.get("network")
        chain = place.get("chain")
        return (network is None or not self.networks or network in self.networks) and (
            chain is None or not self.chains or chain in self.chains
        )

    def _wanted(self, commits: Sequence[Commit]) -> list[Commit]:
        """Return the commits of the networks that the options name.

        Segments before the first wanted one stay if others need them; `cut` leaves them out.
        """
        first = self.begin - self.before
        return [
            commit
            for commit in commits
            if self.fits({"network": commit.network}) and commit.segment >= first
        ]

    def _manifests(self) -> dict[str, dict[int, str]]:
        """Return, by network, the names of manifests by segment."""
        by_network = gapless_manifests(open_store(self.root))
        return {
            name: manifests
            for name, manifests in by_network.items()
            if self.fits({"network": name})
        }

    @staticmethod
    def _next(offset: Offset, network: str) -> int:
        """Return the next segment of a network. In earlier versions, the offset was this number."""
        place = offset.get(network, 0)
        return int(place["next"] if isinstance(place, dict) else place)

    def _check(self, offset: Offset) -> None:
        """Raise `SourceError` if a manifest in an offset is not in the history."""
        names: dict[str, set[str]] | None = None
        for network, place in offset.items():
            if not isinstance(place, dict):
                continue
            if names is None:
                by_network = gapless_manifests(open_store(self.root))
                names = {name: set(manifests.values()) for name, manifests in by_network.items()}
            if place["after"] not in names.get(network, ()):
                raise SourceError(
                    f"{self.root}: the stream has read segment {place['next'] - 1} of network"
                    f" {network} as {place['after']}, which is not in the history any more: the"
                    " history was replaced or cut; begin a new stream, with another checkpoint"
                )

    @abstractmethod
    def cut(
        self, commits: Sequence[Commit], faults: Sequence[Fault], start: Mapping[str, int]
    ) -> list[api.InputPartition]:
        """Return the partitions of commits from `start` on, and of faults of manifests.

        `start` is the first segment by network; a network that is missing begins with `from`.
        """


class HistorySource(OfHistory):
    """A reader of a history. Options: `path`, `table` (default `blocks`), `mode`, `columns`.

    With `mode` `failfast` (the default), data that cannot be read raises an error. With
    `dropmalformed` it is left out, and is a row of the table `read_errors` of this source. A stream
    has every segment once.

    Filters on network, chain and segment leave files out. Filters on block numbers and other whole
    numbers leave row groups out. A partition is some files, or the faults of manifests.
    """

    format = "pubsub_history"
    known = (*OfHistory.known, "table", "mode")

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.table = self.choice("table", TABLES, schema.BLOCKS.name)
        self.fails = self.choice("mode", (_FAIL, _DROP), _FAIL) == _FAIL
        self.columns = self.chosen(TABLES[self.table].wider.schema)

    def rows(self, part: tuple[list[FileEntry], Sequence[Fault]]) -> Iterator[pa.Table]:
        """Yield the rows of some files.

        Raises `SourceError` for data that cannot be read, unless it is to be left out.
        """
        entries, manifest_faults = part
        faults = list(manifest_faults)
        wanted = None
        # To find all faults, every row group must be read.
        if self.filters and self.table != schema.READ_ERRORS.name:
            wanted = partial(may_match, self.filters)
        for entry in entries:
            for group in read_file(self.root, entry, wanted):
                if isinstance(group, Fault):
                    faults.append(group)
                elif self.table != schema.READ_ERRORS.name:
                    yield self._of_chains(group)
        if self.table == schema.READ_ERRORS.name:
            yield schema.READ_ERRORS.arrow([fault.row() for fault in faults])
        elif faults and self.fails:
            problem = f"{self.root}/{faults[0].path}: {faults[0].error}"
            raise SourceError(
                f"{problem} (with mode={_DROP} it is left out, and a row of the table read_errors)"
            )

    def _of_chains(self, rows: pa.Table) -> pa.Table:
        """Leave out rows of other chains, in tables that are not divided by chain."""
        if not self.chains or "chain" not in rows.column_names:
            return rows
        chains = pa.array(sorted(self.chains), rows.schema.field("chain").type)
        return rows.filter(pc.is_in(rows["chain"], chains))

    def cut(
        self, commits: Sequence[Commit], faults: Sequence[Fault], start: Mapping[str, int]
    ) -> list[api.InputPartition]:
        """Return partitions of about the same size."""
        del start
        parts: list[tuple[list[FileEntry], Sequence[Fault]]] = [([], faults)] if faults else []
        size = PARTITION_BYTES
        for entry in chained.from_iterable(commit.files for commit in commits):
            place = same_bounds(network=entry.network, chain=entry.chain, segment=entry.segment)
            if (
                self.table not in {entry.table, schema.READ_ERRORS.name}
                or not self.fits({"chain": entry.chain})
                or not may_match(self.filters, place)
            ):
                continue
            if size + entry.weight > PARTITION_BYTES:
                parts.append(([], ()))
                size = 0
            parts[-1][0].append(entry)
            size += entry.weight
        return partitions_of(parts)


def _blocks(store: Store, name: str) -> int:
    """Return the number of blocks in a segment, 0 if its manifest cannot be read."""
    try:
        commit = read_manifest(store, name)
    except (CommitError, OSError):
        return 0
    return sum(entry.rows for entry in commit.files if entry.table == schema.BLOCKS.name)
