"""Commits: a segment is added to a history by data files and a manifest that names them.

    <history>/<table>/network=…/<name>.parquet           data: one file per table and segment
    <history>/_commits/<network>-<segment>-<digest>.json manifests, see `manifest`

The manifest is written last. A file that no manifest names does not belong to the history. A
manifest has a digest of each row group and one of the remaining bytes, so that a damaged row group
does not make the others useless. Files are never renamed or replaced, so a commit works the same
way on a disk and in an object store.
"""

import contextlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain as chained
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
_ROWS_PER_GROUP: Final = {
    "checkpoints": 1,
    **dict.fromkeys(("relay_headers", "deliveries", "events", "nodes", "truth"), 4096),
}
"""Rows in a row group, for tables whose rows are very large or very small."""
_USUAL_ROWS: Final = 256
"""Rows in a row group of all other tables."""
NEWEST: Final = "newest"
"""A value of `after` that means the last commit in the history."""


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """Rows of a table for a file. Parts of the same table and name are written to one file."""

    table: Table
    rows: list[Row]
    name: str
    """The beginning of the file's name."""
    chain: int | None = None
    """The chain of all rows, for tables that are divided by chain."""
    rows_per_group: int | None = None
    """Rows in a row group, `None` for the usual number."""


def write_commit(  # noqa: PLR0917  # the content of a manifest
    root: Address | Store,
    network: str,
    segment: int,
    parts: list[HistoryPart],
    next_positions: Mapping[int, int],
    after: manifest.Commit | Literal["newest"] | None = NEWEST,
) -> manifest.Commit:
    """Add a segment to the history at `root`, completely or not at all.

    `after` is the previous commit of the same network, by default the last one in the history, and
    `None` for the first segment. Raises `CommitError` if the storage fails or another writer added
    the same segment, and `SchemaError` if a row does not fit its table. If the process is killed,
    files may remain that no manifest names. They do no harm.
    """
    manifest.check_name(network)
    store = open_store(root)
    created: list[str] = []
    try:
        if after == NEWEST:
            commits = manifest.committed(store, network)
            after = commits[-1] if commits else None
        entries = write_files(store, network, segment, parts=parts, created=created)
        previous = after.digest if isinstance(after, manifest.Commit) else None
        commit, is_new = write_manifest(
            store,
            network,
            segment,
            entries=entries,
            next_positions=next_positions,
            previous=previous,
        )
    except OSError as error:
        for path in created:
            with contextlib.suppress(OSError):
                store.remove(path)
        raise CommitError(f"nothing was added to {store}: {error.strerror or error}") from error
    # Two writers' manifests of the same segment have different names. If two writers commit at the
    # same time, at least the one that lists the manifests last finds the other's manifest, and then
    # removes its own. Perhaps both do.
    prefix = f"{network}-{segment:08d}-"
    rivals = [
        other
        for other in store.names(manifest.COMMITS)
        if other.startswith(prefix) and other != commit.name
    ]
    if rivals:
        if is_new:
            with contextlib.suppress(OSError):
                store.remove(f"{manifest.COMMITS}/{commit.name}")
        raise CommitError(
            f"another writer added segment {segment} of {network} to {store}: {rivals[0]}"
        )
    return commit


def write_manifest(  # noqa: PLR0917  # the content of a manifest
    store: Store,
    network: str,
    segment: int,
    entries: Sequence[manifest.FileEntry],
    next_positions: Mapping[int, int],
    previous: str | None,
) -> tuple[manifest.Commit, bool]:
    """Write the manifest of a segment. Return its commit, and whether the manifest is new.

    The entries must be whole files, not shares. `previous` is the digest of the network's previous
    manifest. Raises `OSError`.
    """
    body = {
        "format": manifest.FORMAT,
        "network": network,
        "segment": segment,
        "previous": previous,
        "files": [
            {name: value for name, value in asdict(entry).items() if name != "share"}
            for entry in entries
        ],
        "next_positions": {str(chain): next_positions[chain] for chain in sorted(next_positions)},
    }
    digest = manifest.digest_of(manifest.canonical_json(body))
    name = manifest.manifest_name(network, segment, digest)
    content = manifest.canonical_json({**body, "digest": digest})
    is_new = store.put_new(f"{manifest.COMMITS}/{name}", content)
    shares = tuple(chained.from_iterable(entry.shares() for entry in entries))
    commit = manifest.Commit(
        network,
        segment,
        shares,
        next_positions=dict(next_positions),
        previous=previous,
        digest=digest,
    )
    return commit, is_new


def encode_parquet(table: Table, rows: list[Row], rows_per_group: int = 4096) -> bytes:
    """Return rows as a Parquet file, compressed by zstd at level 3. Raises `SchemaError`."""
    return _encode(table, [rows], rows_per_group)


def _encode(table: Table, parts: Sequence[list[Row]], rows_per_group: int) -> bytes:
    """Return a Parquet file in which no row group has rows of two parts. Raises `SchemaError`."""
    all_rows = list(chained.from_iterable(parts))
    tables = [table.arrow(rows, all_rows) for rows in parts]
    out = pa.BufferOutputStream()
    options = {
        "compression": "zstd",
        "compression_level": 3,
        "data_page_size": _PAGE_BYTES,
        "write_page_checksum": True,
    }
    with pq.ParquetWriter(out, tables[0].schema, **options) as writer:
        for part in tables:
            writer.write_table(part, rows_per_group)
    return bytes(out.getvalue().to_pybytes())


def read_stretches(file: IO[bytes], stretches: Iterable[tuple[int, int]]) -> bytes:
    """Return the joined bytes of some stretches (offset, length) of a file.

    The result is shorter if the file is truncated. Its digest then differs. Raises `OSError`.
    """
    pieces = []
    for offset, length in stretches:
        file.seek(offset)
        missing = length
        while missing and (data := file.read(missing)):
            pieces.append(data)
            missing -= len(data)
    return b"".join(pieces)


def write_files(
    store: Store, network: str, segment: int, parts: Iterable[HistoryPart], created: list[str]
) -> list[manifest.FileEntry]:
    """Write parts, with all chains of a table in one file, and return the files' entries.

    The paths of files that did not exist before are added to `created`, so that the caller can
    remove them if the commit fails. Raises `SchemaError`, `OSError`.
    """
    files: dict[tuple[str, str], list[HistoryPart]] = {}
    for part in (part for part in parts if part.rows):
        files.setdefault((part.table.name, part.name), []).append(part)
    return [
        _write_file(store, network, segment, parts=file_parts, created=created)
        for file_parts in files.values()
    ]


def _write_file(
    store: Store, network: str, segment: int, parts: Sequence[HistoryPart], created: list[str]
) -> manifest.FileEntry:
    """Write parts of one table into a file, ordered by chain."""
    parts = sorted(parts, key=lambda part: part.chain or 0)
    table = parts[0].table
    rows = list(chained.from_iterable(part.rows for part in parts))
    rows_per_group = parts[0].rows_per_group
    if rows_per_group is None:
        rows_per_group = _ROWS_PER_GROUP.get(table.name, _USUAL_ROWS)
    data = _encode(table, [part.rows for part in parts], rows_per_group)
    metadata = pq.read_metadata(pa.BufferReader(data))
    extents: list[manifest.Extent] = []
    for part in parts:
        unassigned = len(part.rows)
        # Arrow may divide a part into several row groups.
        while unassigned > 0:
            unassigned -= metadata.row_group(len(extents)).num_rows
            extents.append(_extent(data, metadata, len(extents), chain=part.chain))
    stretches = [(extent.offset, extent.length) for extent in extents]
    frame = manifest.digest_of(
        read_stretches(io.BytesIO(data), manifest.outside(len(data), stretches))
    )
    # The name contains a digest of the content, so an existing file has the same bytes.
    digests = [frame]
    digests += [extent.digest for extent in extents]
    content = manifest.digest_of("".join(digests).encode())
    path = f"{manifest.folder_of(table, network)}/{parts[0].name}-{content[:16]}.parquet"
    if store.put_same(path, data):
        created.append(path)
    else:
        stamp = store.stamp(path)
        # A file of another size is incomplete, for example after a power failure.
        if stamp is None or stamp.size != len(data):
            store.put(path, data)
    version = table.for_rows(rows).version
    return manifest.FileEntry(
        table=table.name,
        version=version,
        path=path,
        network=network,
        chain=None,
        segment=segment,
        rows=len(rows),
        size=len(data),
        frame=frame,
        row_groups=tuple(extents),
    )


def _extent(
    data: bytes, metadata: pq.FileMetaData, number: int, chain: int | None
) -> manifest.Extent:
    """Return position and digest of a row group in a file, given by its number.

    A row group reaches from the first page of its first column to the end of its last column.
    """
    group = metadata.row_group(number)
    columns = [group.column(index) for index in range(group.num_columns)]
    starts = [
        min(column.dictionary_page_offset or column.data_page_offset, column.data_page_offset)
        for column in columns
    ]
    offset = min(starts)
    end = max(
        start + column.total_compressed_size for start, column in zip(starts, columns, strict=True)
    )
    return manifest.Extent(
        offset, end - offset, manifest.digest_of(data[offset:end]), chain=chain, rows=group.num_rows
    )
