"""Reading a history, one row group after another (AU-5).

A row group, file or manifest that cannot be read becomes a `Fault`, and everything else is still
read.
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
"""Attempts at a read that fails."""
WAIT_SECONDS: Final = 0.2
"""Seconds to wait after the first failed attempt; later waits are multiples of it."""
Bounds = Mapping[str, tuple[int, int]]
"""The minimum and maximum of columns, by name."""

MOST_OUTSIDE: Final = 64 * 1_048_576
"""Bytes that a file may have outside of row groups. There is only a footer, usually of some
kilobytes."""


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
    passing: bool = False
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
        asked = [(name, value) for name, value in wanted.items() if value is not None]
        every = chained.from_iterable(commit.files for commit in self.commits)
        return [
            entry for entry in every if all(getattr(entry, name) == value for name, value in asked)
        ]

    def read(self, entry: FileEntry) -> Iterator[pa.Table | Fault]:
        """Yield the row groups of one file, or faults."""
        return read_file(self.root, entry)

    def rows(self, entries: list[FileEntry], faults: list[Fault]) -> Iterator[Row]:
        """Yield the rows of files as dictionaries. Faults are added to `faults`."""
        for entry in entries:
            for unit in self.read(entry):
                if isinstance(unit, Fault):
                    faults.append(unit)
                else:
                    yield from unit.to_pylist()


def manifest_names(store: Store) -> list[str]:
    """Return the names of all manifests.

    Raises `CommitError` if there is no history, and `OSError`.
    """
    names = [
        name for name in store.names(COMMITS) if name.endswith(".json") and not name.startswith(".")
    ]
    if not names and not store.exists(COMMITS):
        inner = (
            "; do you mean the folder `history` in it?"
            if store.exists(f"history/{COMMITS}")
            else ""
        )
        raise CommitError(f"there is no history at {store}: it has no {COMMITS}/{inner}")
    return names


def read_commits(
    store: Store, names: Iterable[str], after: Mapping[str, Commit] | None = None
) -> tuple[list[Commit], list[Fault]]:
    """Read manifests, and return their commits by network and segment, and faults.

    A manifest that does not follow the one before it is a fault. `after` has the last commits
    before these, by network.
    """
    by_network: dict[str, list[Commit]] = {}
    faults: list[Fault] = []
    for found in store.each(partial(_read_commit, store), names):
        if isinstance(found, Fault):
            faults.append(found)
        else:
            by_network.setdefault(found.network, []).append(found)
    commits: list[Commit] = []
    for network in sorted(by_network):
        chained = sorted(by_network[network], key=lambda commit: (commit.segment, commit.name))
        wrong = unlinked(chained, (after or {}).get(network))
        faults += [
            Fault(f"{COMMITS}/{at.name}", why, network=network, segment=at.segment)
            for at, why in wrong
        ]
        # If there are two manifests for a segment, the first one counts, and the other one is a
        # fault.
        commits += {commit.segment: commit for commit in reversed(chained)}.values()
    commits.sort(key=lambda commit: (commit.network, commit.segment))
    return commits, faults


def read_between(
    store: Store, start: Mapping[str, int], end: Mapping[str, int]
) -> tuple[list[Commit], list[Fault]]:
    """Read the manifests of the segments from `start` to before `end`, both by network.

    A network that is not in `start` begins with its first segment. One that is not in `end` is left
    out.
    """
    places = [each for each in _places(store) if each[1] < end.get(each[0], 0)]
    older = [name for network, segment, name in places if segment == start.get(network, 0) - 1]
    known = {commit.network: commit for commit in read_commits(store, older)[0]}
    return read_commits(
        store, [name for network, at, name in places if at >= start.get(network, 0)], known
    )


def gapless_manifests(store: Store) -> dict[str, dict[int, str]]:
    """Return, by network, the names of the manifests by segment, in order.

    Only the segments that follow one another without a gap from the first one count.
    """
    found: dict[str, dict[int, str]] = {}
    for network, segment, name in sorted(_places(store)):
        mine = found.setdefault(network, {})
        if not mine or segment - 1 in mine:
            mine[segment] = name
    return found


def _places(store: Store) -> Iterator[tuple[str, int, str]]:
    """Yield network, segment and name of the manifests whose names tell them."""
    for name in manifest_names(store):
        network, segment = place_of_manifest(name)
        if network is not None and segment is not None:
            yield network, segment, name


def _read_commit(store: Store, name: str) -> Commit | Fault:
    """Read a manifest, or return the fault that prevents it."""
    try:
        return read_manifest(store, name)
    except (CommitError, OSError) as error:
        network, *rest = name.removesuffix(".json").rsplit("-", 2)
        reason = (
            str(error)
            if isinstance(error, CommitError)
            else f"unreadable: {error.strerror or error}"
        )
        return Fault(f"{COMMITS}/{name}", reason, network=network if len(rest) == 2 else None)


def read_file(
    root: Address | Store, entry: FileEntry, wanted: Callable[[Bounds], bool] | None = None
) -> Iterator[pa.Table | Fault]:
    """Yield the row groups of one file, each checked against its manifest, or faults.

    A failed read is tried again. After `ATTEMPTS` it becomes a passing fault. If `wanted` is given,
    it is called with the bounds of whole numbers in each row group, which are in the footer, and
    row groups for which it returns false are neither read nor checked.
    """
    store = open_store(root)
    # Row groups that were yielded already. Another attempt continues after them.
    given = 0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            for unit in _read_once(store, entry, wanted, given):
                yield unit
                given += 1
        except (FileNotFoundError, RefusedFile) as error:
            said = "the file is missing" if isinstance(error, FileNotFoundError) else str(error)
            yield _fault(entry, said, passing=isinstance(error, FileNotFoundError))
        except OSError as error:
            if attempt < ATTEMPTS:
                time.sleep(WAIT_SECONDS * attempt)
                continue
            yield _fault(
                entry, f"unreadable: {error.strerror or type(error).__name__}", passing=True
            )
        return


def _read_once(
    store: Store, entry: FileEntry, wanted: Callable[[Bounds], bool] | None, after: int
) -> Iterator[pa.Table | Fault]:
    """Yield the wanted row groups of a file, or faults, without the first `after` of them.

    Raises `OSError`.
    """
    table = HISTORY_TABLES[entry.table]
    known = table.version_of(entry.version)
    if known is None:
        yield _fault(
            entry, f"{table.name} version {entry.version} is not known, only {table.versions}"
        )
        return
    with store.open(entry.path) as file:
        verified = _VerifiedBytes(entry.size)
        try:
            # Without the bytes of its row groups, a Parquet file still has its metadata. So these
            # can be checked and read before any row group.
            metadata = pq.read_metadata(pa.BufferReader(_frame(file, entry)))
            parquet = pq.ParquetFile(verified, metadata=metadata, pre_buffer=False)
            known.check(parquet.schema_arrow)
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
                each for each in groups if wanted(_bounds(parquet.metadata.row_group(each[0])))
            ]
        spent = Spent()
        for at, extent in groups[after:]:
            verified.hold(extent.offset, read_stretches(file, [(extent.offset, extent.length)]))
            if digest_of(verified.held) != extent.digest:
                yield _fault(entry, "the row group differs from what was committed", at)
                continue
            try:
                group = read_group(parquet, verified, at, spent=spent)
                group.validate(full=True)
                group = table.present(group, entry.version)
            except (TooLarge, SchemaError) as error:
                yield _fault(entry, str(error), at)
            except pa.ArrowException as error:
                yield _fault(entry, f"unreadable: {type(error).__name__}", at)
            else:
                yield group


def _frame(file: IO[bytes], entry: FileEntry) -> bytes:
    """Return all bytes of a file outside of its row groups.

    Raises `SchemaError` unless they are those that were committed, and `OSError`.
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
    """Return the bounds of a row group's columns of whole numbers.

    Unsigned numbers that are too large for the signed type look negative, and are left out.
    """
    columns = [group.column(at) for at in range(group.num_columns)]
    whole = [
        each for each in columns if each.physical_type in {"INT32", "INT64"} and each.is_stats_set
    ]
    found = {
        each.path_in_schema: (each.statistics.min, each.statistics.max)
        for each in whole
        if each.statistics.has_min_max
    }
    return {
        name: ends
        for name, ends in found.items()
        if all(isinstance(end, int) and end >= 0 for end in ends)
    }


class _VerifiedBytes(io.RawIOBase):
    """A file for Arrow that has the bytes of one row group only.

    The bytes are read once, so that Arrow parses exactly those whose digest was compared.
    """

    def __init__(self, size: int) -> None:
        """Start without a row group. `size` is the size of the whole file."""
        self.held = b""
        self._size = size
        self._start = 0
        self._at = 0

    def hold(self, start: int, held: bytes) -> None:
        """Have the bytes of another row group, which start at this place of the file."""
        self._start, self.held = start, held

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return bytes from the present place on.

        Raises `ArrowInvalid` if some of them are not in the row group. A footer can claim that a
        column is anywhere.
        """
        start = self._at - self._start
        end = len(self.held) if size < 0 else start + size
        if not 0 <= start <= end <= len(self.held):
            raise pa.ArrowInvalid("a column is outside of its row group")
        self._at += end - start
        return self.held[start:end]


def _check_shape(metadata: pq.FileMetaData, entry: FileEntry) -> None:
    """Raise `SchemaError` if a footer has other row groups or rows than the manifest says."""
    whole = entry.share or Share(0, len(entry.row_groups), entry.rows, ())
    if metadata.num_row_groups != whole.groups:
        raise SchemaError(
            f"the file has {metadata.num_row_groups} row groups, its manifest {whole.groups}"
        )
    if metadata.num_rows != whole.rows:
        raise SchemaError(f"the file has {metadata.num_rows} rows, its manifest says {whole.rows}")
    for at, extent in enumerate(entry.row_groups, whole.first):
        found = metadata.row_group(at).num_rows
        if extent.rows not in {None, found}:
            raise SchemaError(f"row group {at} has {found} rows, its manifest says {extent.rows}")
        if extent.length > MOST_UNPACKED:
            raise SchemaError(f"row group {at} has more than {MOST_UNPACKED} bytes")


def _fault(
    entry: FileEntry, error: str, row_group: int | None = None, *, passing: bool = False
) -> Fault:
    return Fault(
        entry.path, error, row_group, entry.network, entry.chain, entry.segment, passing=passing
    )


def check_file(root: Address | Store, entry: FileEntry) -> list[Fault]:
    """Return the faults of a file whose rows are not needed."""
    return [unit for unit in read_file(root, entry) if isinstance(unit, Fault)]
