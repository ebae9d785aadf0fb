"""Reading a history, one row group after another (AU-5).

A row group, file or manifest that cannot be read becomes a `Fault`. Everything else is still read.
"""

import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain as chained
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import read_stretches
from pubsub_emulator.spark_audit.history.listing import place_of_manifest
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    HISTORY_TABLES,
    Commit,
    CommitError,
    FileEntry,
    Share,
    digest_of,
    head_of,
    read_manifest,
    unlinked,
)
from pubsub_emulator.spark_audit.history.row import Row, fields_of
from pubsub_emulator.spark_audit.history.schema import SchemaError, Table
from pubsub_emulator.spark_audit.history.storage import RefusedFile, Store, open_store
from pubsub_emulator.spark_audit.history.unpack import MOST_UNPACKED, Spent, TooLarge, read_group

ATTEMPTS: Final = 3
"""The number of attempts to read a file."""
WAIT_SECONDS: Final = 0.2
"""Seconds to wait after the first failed attempt, and twice as many after the second one."""
Bounds = Mapping[str, tuple[int, int]]
"""The minimum and maximum of columns, by name."""

MOST_OUTSIDE: Final = 64 * 1_048_576
"""The maximum number of bytes outside of a file's row groups. These are the footer, which usually
has some kilobytes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that could not be read or judged: a row of `read_errors`."""

    path: str
    """The file, relative to the history."""
    error: str
    row_group: int | None = None
    """Number of the row group, `None` if the whole file is meant."""
    network: str | None = None
    chain: int | None = None
    segment: int | None = None
    position: int | None = None
    transient: bool = False
    """Whether the same read may succeed another time."""

    def row(self) -> Row:
        """Return the row of `read_errors`."""
        return fields_of(self, (column.name for column in schema.READ_ERRORS.columns))


@dataclass(frozen=True, slots=True)
class History:
    """The commits of a history in order of network and segment, and the faults of its manifests."""

    root: Store
    commits: tuple[Commit, ...]
    faults: tuple[Fault, ...]

    @staticmethod
    def open(address: Address | Store) -> "History":
        """Read all manifests.

        Raises `CommitError` if there is no history, `StorageError`, and `OSError`.
        """
        store = open_store(address)
        commits, faults = read_commits(store, manifest_names(store))
        return History(store, tuple(commits), tuple(faults))

    @property
    def head(self) -> str | None:
        """The history's head, `None` if manifests are damaged or missing."""
        heads = {commit.network: commit.digest for commit in self.commits}
        return head_of(heads) if heads and not self.faults else None

    def files(
        self,
        table: Table,
        network: str | None = None,
        chain: int | None = None,
        segment: int | None = None,
    ) -> list[FileEntry]:
        """Return the entries of a table's files in commit order.

        An argument that is `None` does not restrict the result.
        """
        wanted = {"table": table.name, "network": network, "chain": chain, "segment": segment}
        conditions = [(name, value) for name, value in wanted.items() if value is not None]
        entries = chained.from_iterable(commit.files for commit in self.commits)
        return [
            entry
            for entry in entries
            if all(getattr(entry, name) == value for name, value in conditions)
        ]

    def read(self, entry: FileEntry) -> Iterator[pa.Table | Fault]:
        """Yield the row groups of one file, or faults."""
        return read_file(self.root, entry)

    def rows(self, entries: list[FileEntry], faults: list[Fault]) -> Iterator[Row]:
        """Yield the rows of files as dictionaries. Faults are added to `faults`."""
        for entry in entries:
            for group in self.read(entry):
                if isinstance(group, Fault):
                    faults.append(group)
                else:
                    yield from group.to_pylist()


def manifest_names(store: Store) -> list[str]:
    """Return the names of all manifests.

    Raises `CommitError` if there is no history, and `OSError`.
    """
    names = [
        name for name in store.names(COMMITS) if name.endswith(".json") and not name.startswith(".")
    ]
    if not names and not store.exists(COMMITS):
        hint = ""
        if store.exists(f"history/{COMMITS}"):
            hint = "; do you mean the folder `history` in it?"
        raise CommitError(f"there is no history at {store}: it has no {COMMITS}/{hint}")
    return names


def read_commits(
    store: Store, names: Iterable[str], previous: Mapping[str, Commit] | None = None
) -> tuple[list[Commit], list[Fault]]:
    """Read manifests, and return their commits in order of network and segment, and faults.

    A manifest that does not follow the network's previous one is a fault. `previous` has the last
    commits before these, by network.
    """
    by_network: dict[str, list[Commit]] = {}
    faults: list[Fault] = []
    for outcome in store.each(partial(_read_commit, store), names):
        if isinstance(outcome, Fault):
            faults.append(outcome)
        else:
            by_network.setdefault(outcome.network, []).append(outcome)
    commits: list[Commit] = []
    for network in sorted(by_network):
        ordered = sorted(by_network[network], key=lambda commit: (commit.segment, commit.name))
        unlinked_commits = unlinked(ordered, (previous or {}).get(network))
        faults += [
            Fault(f"{COMMITS}/{commit.name}", reason, network=network, segment=commit.segment)
            for commit, reason in unlinked_commits
        ]
        # If there are two manifests for a segment, the first one counts, and the other one is a
        # fault.
        commits += {commit.segment: commit for commit in reversed(ordered)}.values()
    commits.sort(key=lambda commit: (commit.network, commit.segment))
    return commits, faults


def read_between(
    store: Store, start: Mapping[str, int], end: Mapping[str, int]
) -> tuple[list[Commit], list[Fault]]:
    """Read the manifests of the segments from `start` to before `end`, both by network.

    If a network is not in `start`, its first segment is the first one read. If it is not in `end`,
    it is left out.
    """
    places = [
        (network, segment, name)
        for network, segment, name in _places(store)
        if segment < end.get(network, 0)
    ]
    preceding = [name for network, segment, name in places if segment == start.get(network, 0) - 1]
    known = {commit.network: commit for commit in read_commits(store, preceding)[0]}
    return read_commits(
        store,
        [name for network, segment, name in places if segment >= start.get(network, 0)],
        known,
    )


def gapless_manifests(store: Store) -> dict[str, dict[int, str]]:
    """Return the names of manifests by network and by segment, both in ascending order.

    Segments after the first gap are left out.
    """
    by_network: dict[str, dict[int, str]] = {}
    for network, segment, name in sorted(_places(store)):
        by_segment = by_network.setdefault(network, {})
        if not by_segment or segment - 1 in by_segment:
            by_segment[segment] = name
    return by_network


def _places(store: Store) -> Iterator[tuple[str, int, str]]:
    """Yield network, segment and name of each manifest, except for malformed names."""
    for name in manifest_names(store):
        network, segment = place_of_manifest(name)
        if network is not None and segment is not None:
            yield network, segment, name


def _read_commit(store: Store, name: str) -> Commit | Fault:
    """Return the commit of a manifest, or a fault if it cannot be used."""
    try:
        return read_manifest(store, name)
    except (CommitError, OSError) as error:
        if isinstance(error, CommitError):
            reason = str(error)
        else:
            reason = f"unreadable: {error.strerror or error}"
        network: str | None = None
        # The name may have another form than `network-segment-digest.json`.
        if name.count("-") >= 2:
            network = name.rsplit("-", 2)[0]
        return Fault(f"{COMMITS}/{name}", reason, network=network)


def read_file(
    root: Address | Store, entry: FileEntry, wanted: Callable[[Bounds], bool] | None = None
) -> Iterator[pa.Table | Fault]:
    """Yield the row groups of one file, each checked against its manifest, or faults.

    A failed read is tried again. After `ATTEMPTS`, it becomes a transient fault. If `wanted` is
    given, it is called with each row group's bounds of integer columns, which are in the footer.
    Row groups for which it returns false are neither read nor checked.
    """
    store = open_store(root)
    # Row groups that were yielded already. Another attempt continues after them.
    yielded = 0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            for group in _read_once(store, entry, wanted, skip=yielded):
                yield group
                yielded += 1
        # A missing file may be there again at the next attempt.
        except FileNotFoundError:
            yield _fault(entry, "the file is missing", transient=True)
        except RefusedFile as error:
            yield _fault(entry, str(error))
        except OSError as error:
            if attempt < ATTEMPTS:
                time.sleep(WAIT_SECONDS * attempt)
                continue
            yield _fault(
                entry, f"unreadable: {error.strerror or type(error).__name__}", transient=True
            )
        return


def _read_once(
    store: Store, entry: FileEntry, wanted: Callable[[Bounds], bool] | None, skip: int
) -> Iterator[pa.Table | Fault]:
    """Yield the wanted row groups of a file, or faults, without the first `skip` of them.

    Raises `OSError`.
    """
    table = HISTORY_TABLES[entry.table]
    version = table.version_of(entry.version)
    if version is None:
        yield _fault(
            entry, f"{table.name} version {entry.version} is not known, only {table.versions}"
        )
        return
    with store.open(entry.path) as file:
        verified = _VerifiedBytes(entry.size)
        try:
            # A Parquet file without its row groups still has its metadata. So the metadata can be
            # checked and read first.
            metadata = pq.read_metadata(pa.BufferReader(_frame(file, entry)))
            parquet = pq.ParquetFile(verified, metadata=metadata, pre_buffer=False)
            version.check(parquet.schema_arrow)
            _check_shape(parquet.metadata, entry)
        except SchemaError as error:
            yield _fault(entry, str(error))
            return
        except pa.ArrowException as error:
            yield _fault(entry, f"unreadable: {type(error).__name__}")
            return
        first = 0 if entry.share is None else entry.share.first
        groups = list(enumerate(entry.row_groups, first))
        if wanted is not None:
            groups = [
                (index, extent)
                for index, extent in groups
                if wanted(_bounds(parquet.metadata.row_group(index)))
            ]
        spent = Spent()
        for index, extent in groups[skip:]:
            verified.hold(extent.offset, read_stretches(file, [(extent.offset, extent.length)]))
            if digest_of(verified.held) != extent.digest:
                yield _fault(entry, "the row group differs from what was committed", index)
                continue
            try:
                group = read_group(parquet, verified, index, spent=spent)
                group.validate(full=True)
                group = table.present(group, entry.version)
            except (TooLarge, SchemaError) as error:
                yield _fault(entry, str(error), index)
            except pa.ArrowException as error:
                yield _fault(entry, f"unreadable: {type(error).__name__}", index)
            else:
                yield group


def _frame(file: IO[bytes], entry: FileEntry) -> bytes:
    """Return all bytes of a file outside of its row groups.

    Raises `SchemaError` if they differ from the committed ones, and `OSError`.
    """
    size = file.seek(0, 2)
    if size != entry.size:
        raise SchemaError(f"the file has {size} bytes, not the {entry.size} that were committed")
    stretches = list(entry.outside(size))
    if sum(length for _, length in stretches) > MOST_OUTSIDE:
        raise SchemaError(f"the file has more than {MOST_OUTSIDE} bytes outside of its row groups")
    frame = read_stretches(file, stretches)
    if digest_of(frame) != entry.frame:
        raise SchemaError("header or footer differ from what was committed")
    return frame


def _bounds(group: pq.RowGroupMetaData) -> Bounds:
    """Return minimum and maximum of a row group's integer columns, by column.

    A column with negative bounds is left out: they may be large unsigned numbers.
    """
    columns = [group.column(index) for index in range(group.num_columns)]
    number_columns = [
        column
        for column in columns
        if column.physical_type in {"INT32", "INT64"} and column.is_stats_set
    ]
    bounds = {
        column.path_in_schema: (column.statistics.min, column.statistics.max)
        for column in number_columns
        if column.statistics.has_min_max
    }
    return {
        name: pair
        for name, pair in bounds.items()
        if all(isinstance(end, int) and end >= 0 for end in pair)
    }


class _VerifiedBytes(io.RawIOBase):
    """A file for Arrow that only has the bytes of one row group.

    The bytes are read once, so that Arrow parses the same bytes whose digest was compared.
    """

    def __init__(self, size: int) -> None:
        """Start without a row group. `size` is the size of the whole file."""
        self.held = b""
        self._size = size
        self._start = 0
        self._position = 0

    def hold(self, start: int, held: bytes) -> None:
        """Replace the bytes by those of another row group, which begins at offset `start`."""
        self._start = start
        self.held = held

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = (
            offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        )
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return bytes from the present position on.

        Raises `ArrowInvalid` if some of them are outside of the row group. A footer can claim any
        position for a column.
        """
        start = self._position - self._start
        end = len(self.held) if size < 0 else start + size
        if not 0 <= start <= end <= len(self.held):
            raise pa.ArrowInvalid("a column is outside of its row group")
        self._position += end - start
        return self.held[start:end]


def _check_shape(metadata: pq.FileMetaData, entry: FileEntry) -> None:
    """Raise `SchemaError` if a footer has other row groups or rows than the manifest says."""
    expected = entry.share
    if expected is None:
        expected = Share(0, len(entry.row_groups), entry.rows, others=())
    if metadata.num_row_groups != expected.groups:
        raise SchemaError(
            f"the file has {metadata.num_row_groups} row groups, its manifest {expected.groups}"
        )
    if metadata.num_rows != expected.rows:
        raise SchemaError(
            f"the file has {metadata.num_rows} rows, its manifest says {expected.rows}"
        )
    for index, extent in enumerate(entry.row_groups, expected.first):
        rows = metadata.row_group(index).num_rows
        if extent.rows not in {None, rows}:
            raise SchemaError(f"row group {index} has {rows} rows, its manifest says {extent.rows}")
        if extent.length > MOST_UNPACKED:
            raise SchemaError(f"row group {index} has more than {MOST_UNPACKED} bytes")


def _fault(
    entry: FileEntry, error: str, row_group: int | None = None, *, transient: bool = False
) -> Fault:
    return Fault(
        entry.path,
        error,
        row_group,
        network=entry.network,
        chain=entry.chain,
        segment=entry.segment,
        transient=transient,
    )


def check_file(root: Address | Store, entry: FileEntry) -> list[Fault]:
    """Return the faults of a file whose rows are not needed."""
    return [group for group in read_file(root, entry) if isinstance(group, Fault)]
