"""Commits of a history: each file is named by its content, and a manifest, written last, names them all.

    <history>/<table>/network=…/<name>.parquet           data: a file for each segment, chain after chain
    <history>/_commits/<network>-<segment>-<digest>.json manifests, see `manifest`

What no manifest names is not there. Digests of row groups, and of all else, make damage cost the row group it hit.
Nothing is renamed or replaced, so a commit is the same on a disk and in an object store.
"""

import contextlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.spark_audit.history import manifest
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import CommitError
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Store, open_store

_PAGE_BYTES: Final = 8 * 1_048_576
_ROWS_PER_GROUP: Final = dict.fromkeys(("relay_headers", "deliveries", "events", "nodes", "truth"), 4096)
NEWEST: Final = "newest"


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """Rows that are to become one file, together with those of other chains; a row group has as many as is usual."""

    table: Table
    rows: list[Row]
    name: str
    chain: int | None = None
    rows_per_group: int | None = None


def write_commit(  # noqa: PLR0917  # what a manifest holds
    root: Address | Store,
    network: str,
    segment: int,
    parts: list[HistoryPart],
    next_positions: Mapping[int, int],
    after: manifest.Commit | Literal["newest"] | None = NEWEST,
) -> manifest.Commit:
    """Add the parts to the history at `root`, all of them or none, after the commit `after` of the same network.

    Raises `CommitError` when the storage is full or refuses, or when another writer was there. Raises `SchemaError` for
    rows that do not fit. A process killed at any moment leaves at most files that no manifest names.
    """
    manifest.check_name(network)
    store = open_store(root)
    fresh: list[str] = []
    try:
        if after == NEWEST:
            known = manifest.committed(store, network)
            after = known[-1] if known else None
        entries = write_files(store, network, segment, parts, fresh)
        previous = after.digest if isinstance(after, manifest.Commit) else None
        commit = write_manifest(store, network, segment, entries, next_positions, previous)
    except OSError as error:
        for path in fresh:
            with contextlib.suppress(OSError):
                store.remove(path)
        raise CommitError(f"nothing was added to {store}: {error.strerror or error}") from error
    # Two writers at once leave two manifests of one segment: neither goes on.
    start = f"{network}-{segment:08d}-"
    others = [other for other in store.names(manifest.COMMITS) if other.startswith(start) and other != commit.name]
    if others:
        raise CommitError(f"another writer added segment {segment} of {network} to {store}: {others[0]}")
    return commit


def write_manifest(  # noqa: PLR0917  # what a manifest holds
    store: Store,
    network: str,
    segment: int,
    entries: Sequence[manifest.FileEntry],
    next_positions: Mapping[int, int],
    previous: str | None,
) -> manifest.Commit:
    """Name whole files as a segment, after the manifest with the digest `previous`. Raises `OSError`."""
    body = {
        "format": manifest.FORMAT,
        "network": network,
        "segment": segment,
        "previous": previous,
        "files": [{name: value for name, value in asdict(entry).items() if name != "share"} for entry in entries],
        "next_positions": {str(chain): next_positions[chain] for chain in sorted(next_positions)},
    }
    digest = manifest.digest_of(manifest.canonical_json(body))
    name = manifest.manifest_name(network, segment, digest)
    store.put_new(f"{manifest.COMMITS}/{name}", manifest.canonical_json({**body, "digest": digest}))
    shares = tuple(share for entry in entries for share in entry.shares())
    return manifest.Commit(network, segment, shares, dict(next_positions), previous, digest)


def encode_parquet(table: Table, rows: list[Row], rows_per_group: int = 4096) -> bytes:
    """One Parquet file, zstd level 3. Raises `SchemaError`."""
    return _encode(table, [rows], rows_per_group)


def _encode(table: Table, parts: Sequence[list[Row]], rows_per_group: int) -> bytes:
    """One file with row groups of each part. Raises `SchemaError`."""
    every = [row for rows in parts for row in rows]
    tables = [table.arrow(rows, every) for rows in parts]
    out = pa.BufferOutputStream()
    shape = {"compression": "zstd", "compression_level": 3, "data_page_size": _PAGE_BYTES, "write_page_checksum": True}
    with pq.ParquetWriter(out, tables[0].schema, **shape) as writer:
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
) -> list[manifest.FileEntry]:
    """Write parts, all chains of a table in one file; new paths join `fresh`. Raises `SchemaError`, `OSError`."""
    files: dict[tuple[str, str], list[HistoryPart]] = {}
    for part in (part for part in parts if part.rows):
        files.setdefault((part.table.name, part.name), []).append(part)
    return [_write_file(store, network, segment, each, fresh) for each in files.values()]


def _write_file(
    store: Store, network: str, segment: int, parts: Sequence[HistoryPart], fresh: list[str]
) -> manifest.FileEntry:
    parts = sorted(parts, key=lambda part: part.chain or 0)
    table, every = parts[0].table, [row for part in parts for row in part.rows]
    usual = 1 if table.name == "checkpoints" else _ROWS_PER_GROUP.get(table.name, 256)
    data = _encode(table, [part.rows for part in parts], parts[0].rows_per_group or usual)
    metadata = pq.read_metadata(pa.BufferReader(data))
    extents: list[manifest.Extent] = []
    for part in parts:
        left = len(part.rows)
        while left > 0:  # however many row groups that made
            left -= metadata.row_group(len(extents)).num_rows
            extents.append(_extent(data, metadata, len(extents), part.chain))
    inside = [(extent.offset, extent.length) for extent in extents]
    frame = manifest.digest_of(read_stretches(io.BytesIO(data), manifest.outside(len(data), inside)))
    # Named by content, so that what is there already is these very bytes.
    content = manifest.digest_of("".join((frame, *(extent.digest for extent in extents))).encode())
    path = f"{manifest.folder_of(table, network)}/{parts[0].name}-{content[:16]}.parquet"
    if store.put_new(path, data):
        fresh.append(path)
    elif (found := store.stamp(path)) is None or found.size != len(data):
        store.put(path, data)  # cut short, by a file system that lost what was written
    version = table.for_rows(every).version
    return manifest.FileEntry(
        table.name, version, path, network, None, segment, len(every), len(data), frame, tuple(extents)
    )


def _extent(data: bytes, metadata: pq.FileMetaData, at: int, chain: int | None) -> manifest.Extent:
    group = metadata.row_group(at)
    columns = [group.column(index) for index in range(group.num_columns)]
    starts = [min(each.dictionary_page_offset or each.data_page_offset, each.data_page_offset) for each in columns]
    offset = min(starts)
    end = max(start + column.total_compressed_size for start, column in zip(starts, columns, strict=True))
    return manifest.Extent(offset, end - offset, manifest.digest_of(data[offset:end]), chain, group.num_rows)
