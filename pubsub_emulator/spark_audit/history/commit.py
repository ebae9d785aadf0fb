"""Commits of a history: each file is named by its content, and a manifest, written last, names them all.

    <history>/<table>/network=…/<name>.parquet           data: a file for each segment, chain after chain
    <history>/_commits/<network>-<segment>-<digest>.json manifests, see `manifest`

What no manifest names is not there. A manifest holds for each file its size, a digest of every row group's bytes and
one of all other bytes, so that damage costs the row group it hit and nothing else, and no flipped bit passes for data.
Nothing is renamed and nothing is replaced, so a commit is the same on a disk and in an object store.
"""

import contextlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    FORMAT,
    Commit,
    CommitError,
    Extent,
    FileEntry,
    canonical_json,
    check_name,
    committed,
    digest_of,
    folder_of,
    manifest_name,
    outside,
)
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Store, open_store

_PAGE_BYTES: Final = 8 * 1_048_576
NEWEST: Final = "newest"


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """Rows that are to become one file, together with those of other chains."""

    table: Table
    rows: list[Row]
    name: str
    chain: int | None = None
    rows_per_group: int = 256


def write_commit(  # noqa: PLR0917  # what a manifest holds
    root: Address | Store,
    network: str,
    segment: int,
    parts: list[HistoryPart],
    next_positions: Mapping[int, int],
    after: Commit | Literal["newest"] | None = NEWEST,
) -> Commit:
    """Add the parts to the history at `root`, all of them or none, after the commit `after` of the same network.

    Raises `CommitError` when the storage is full or refuses, or when another writer was there. Raises `SchemaError` for
    rows that do not fit. A process killed at any moment leaves at most files that no manifest names.
    """
    check_name(network)
    store = open_store(root)
    fresh: list[str] = []
    try:
        if after == NEWEST:
            known = committed(store, network)
            after = known[-1] if known else None
        entries = write_files(store, network, segment, parts, fresh)
        previous = after.digest if isinstance(after, Commit) else None
        commit = write_manifest(store, network, segment, entries, next_positions, previous)
    except OSError as error:
        for path in fresh:
            with contextlib.suppress(OSError):
                store.remove(path)
        raise CommitError(f"nothing was added to {store}: {error.strerror or error}") from error
    _check_alone(store, network, segment, commit.name)
    return commit


def write_manifest(  # noqa: PLR0917  # what a manifest holds
    store: Store,
    network: str,
    segment: int,
    entries: Sequence[FileEntry],
    next_positions: Mapping[int, int],
    previous: str | None,
) -> Commit:
    """Name whole files as a segment, after the manifest with the digest `previous`. Raises `OSError`."""
    body = {
        "format": FORMAT,
        "network": network,
        "segment": segment,
        "previous": previous,
        "files": [{name: value for name, value in asdict(entry).items() if name != "share"} for entry in entries],
        "next_positions": {str(chain): next_positions[chain] for chain in sorted(next_positions)},
    }
    digest = digest_of(canonical_json(body))
    name = manifest_name(network, segment, digest)
    store.put_new(f"{COMMITS}/{name}", canonical_json({**body, "digest": digest}))
    shares = tuple(share for entry in entries for share in entry.shares())
    return Commit(network, segment, shares, dict(next_positions), previous, digest)


def _check_alone(store: Store, network: str, segment: int, name: str) -> None:
    """Two writers at once leave two manifests of one segment: neither goes on."""
    start = f"{network}-{segment:08d}-"
    others = [other for other in store.names(COMMITS) if other.startswith(start) and other != name]
    if others:
        raise CommitError(f"another writer added segment {segment} of {network} to {store}: {others[0]}")


def encode_parquet(table: Table, rows: list[Row], rows_per_group: int = 4096) -> bytes:
    """One Parquet file, zstd level 3. Raises `SchemaError`."""
    return _encode(table, [rows], rows_per_group)


def _encode(table: Table, parts: Sequence[list[Row]], rows_per_group: int) -> bytes:
    """One file with row groups of each part. Raises `SchemaError`."""
    every = [row for rows in parts for row in rows]
    tables = [table.arrow(rows, every) for rows in parts]
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(
        out,
        tables[0].schema,
        compression="zstd",
        compression_level=3,
        data_page_size=_PAGE_BYTES,
        write_page_checksum=True,
    ) as writer:
        for each in tables:
            writer.write_table(each, rows_per_group)
    return bytes(out.getvalue().to_pybytes())


def read_stretches(file: IO[bytes], stretches: Iterable[tuple[int, int]]) -> bytes:
    """Stretches (offset, length) of a file, joined. Raises `OSError`; what a truncated file lacks is left out."""
    parts = []
    for offset, length in stretches:
        file.seek(offset)
        left = length
        while left and (data := file.read(left)):
            parts.append(data)
            left -= len(data)
    return b"".join(parts)


def write_files(
    store: Store, network: str, segment: int, parts: Iterable[HistoryPart], fresh: list[str]
) -> list[FileEntry]:
    """Write parts with rows, all chains of a table in one file, and add the paths of new files to `fresh`.

    Raises `SchemaError`, `OSError`.
    """
    files: dict[tuple[str, str], list[HistoryPart]] = {}
    for part in (part for part in parts if part.rows):
        files.setdefault((part.table.name, part.name), []).append(part)
    return [_write_file(store, network, segment, each, fresh) for each in files.values()]


def _write_file(store: Store, network: str, segment: int, parts: Sequence[HistoryPart], fresh: list[str]) -> FileEntry:
    parts = sorted(parts, key=lambda part: part.chain or 0)
    table, every = parts[0].table, [row for part in parts for row in part.rows]
    data = _encode(table, [part.rows for part in parts], parts[0].rows_per_group)
    metadata = pq.read_metadata(pa.BufferReader(data))
    extents: list[Extent] = []
    for part in parts:
        left = len(part.rows)
        while left > 0:  # however many row groups that made
            left -= metadata.row_group(len(extents)).num_rows
            extents.append(_extent(data, metadata, len(extents), part.chain))
    inside = [(extent.offset, extent.length) for extent in extents]
    frame = digest_of(read_stretches(io.BytesIO(data), outside(len(data), inside)))
    # Named by content, so that what is there already is these very bytes.
    content = digest_of("".join((frame, *(extent.digest for extent in extents))).encode())
    path = f"{folder_of(table, network)}/{parts[0].name}-{content[:16]}.parquet"
    if store.put_new(path, data):
        fresh.append(path)
    elif (found := store.stamp(path)) is None or found.size != len(data):
        store.put(path, data)  # cut short, by a file system that lost what was written
    version = table.for_rows(every).version
    return FileEntry(table.name, version, path, network, None, segment, len(every), len(data), frame, tuple(extents))


def _extent(data: bytes, metadata: pq.FileMetaData, at: int, chain: int | None) -> Extent:
    offset, length = _row_group_stretch(metadata, at)
    rows = metadata.row_group(at).num_rows
    return Extent(offset, length, digest_of(data[offset : offset + length]), chain, rows)


def _row_group_stretch(metadata: pq.FileMetaData, at: int) -> tuple[int, int]:
    group = metadata.row_group(at)
    columns = [group.column(index) for index in range(group.num_columns)]
    starts = [
        column.data_page_offset
        if column.dictionary_page_offset is None
        else min(column.dictionary_page_offset, column.data_page_offset)
        for column in columns
    ]
    end = max(start + column.total_compressed_size for start, column in zip(starts, columns, strict=True))
    return min(starts), end - min(starts)
