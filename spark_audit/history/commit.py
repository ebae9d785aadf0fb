"""How files join a history: staged, synced, renamed, and named at last by a manifest; what none names is not there.

    <history>/<table>/network=…/chain=…/<name>.parquet   data
    <history>/_staging/<random>/                         files of a commit that has not happened
    <history>/_commits/<network>-<segment>-<digest>.json manifests, each with the digest of its own body

A manifest holds for each file its size, a digest of every row group's bytes and one of all other bytes, so that damage
costs the row group it hit and nothing else, and no flipped bit passes for data.
"""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow.parquet as pq

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.schema import Table

FORMAT: Final = 1
COMMITS: Final = "_commits"
STAGING: Final = "_staging"
_PAGE_BYTES: Final = 8 * 1_048_576
_CHUNK: Final = 1_048_576


class CommitError(PubsubError):
    """A commit that did not happen; the history is what it was before."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The bytes of one row group: where they start, how many, their blake2b-256 in hex."""

    offset: int
    length: int
    digest: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a commit; `path` is relative to the history, `frame` the digest of all bytes outside row groups."""

    table: str
    version: int
    path: str
    network: str
    chain: int | None
    segment: int
    rows: int
    size: int
    frame: str
    row_groups: tuple[Extent, ...]

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "FileEntry":
        """The entry that a manifest states. Raises `KeyError` or `TypeError` when it does not."""
        groups = tuple(Extent(**extent) for extent in data["row_groups"])
        return FileEntry(**{**data, "row_groups": groups})


@dataclass(frozen=True, slots=True)
class Commit:
    """One manifest: what joined a network's history together; `next_positions` by chain, for the next writer."""

    network: str
    segment: int
    files: tuple[FileEntry, ...]
    next_positions: Mapping[int, int]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are to become one file."""

    table: Table
    rows: list[dict[str, Any]]
    name: str
    chain: int | None = None
    rows_per_group: int = 256


def digest_of(data: bytes) -> str:
    """blake2b-256 in hex."""
    return blake2b(data, digest_size=32).hexdigest()


def write_commit(
    root: Path, network: str, segment: int, parts: list[Part], next_positions: Mapping[int, int]
) -> Commit:
    """Add the parts to the history at `root`, all of them or none.

    Raises `CommitError` when the disk is full or refuses; what was staged is removed again. Raises `SchemaError` for
    rows that do not fit. A process killed at any moment leaves at most files that no manifest names.
    """
    check_name(network)
    staging = root / STAGING / secrets.token_hex(8)
    renamed: list[Path] = []
    try:
        staging.mkdir(parents=True)
        staged = [(_write_part(staging / str(at), network, segment, part), at) for at, part in enumerate(parts)]
        for entry, at in staged:
            target = root / entry.path
            _make_directories(root, target.parent)
            if not target.exists():
                renamed.append(target)
            (staging / str(at)).replace(target)
        for directory in sorted({(root / entry.path).parent for entry, _ in staged}):
            sync_directory(directory)
        body = {
            "format": FORMAT,
            "network": network,
            "segment": segment,
            "files": [asdict(entry) for entry, _ in staged],
            "next_positions": {str(chain): next_positions[chain] for chain in sorted(next_positions)},
        }
        digest = digest_of(canonical_json(body))
        name = f"{network}-{segment:08d}-{digest[:16]}.json"
        _make_directories(root, root / COMMITS)
        write_atomically(root / COMMITS / name, canonical_json({**body, "digest": digest}), staging)
    except OSError as error:
        for path in renamed:
            with contextlib.suppress(OSError):
                path.unlink()
        raise CommitError(f"nothing was added to {root}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        with contextlib.suppress(OSError):
            staging.parent.rmdir()
    return Commit(network, segment, tuple(entry for entry, _ in staged), dict(next_positions), name)


def read_manifest(path: Path) -> Commit:
    """The commit that a manifest states. Raises `CommitError` when it is damaged or of another format."""
    try:
        body = json.loads(path.read_bytes())
    except OSError as error:
        raise CommitError(f"unreadable manifest: {error.strerror}") from None
    except ValueError:
        raise CommitError("the manifest is not JSON") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise CommitError(f"manifest format {body.get('format') if isinstance(body, dict) else None!r} is not known")
    stated = body.pop("digest", None)
    if stated != digest_of(canonical_json(body)):
        raise CommitError("the manifest does not have the digest it states")
    files = tuple(FileEntry.from_json(entry) for entry in body["files"])
    positions = {int(chain): at for chain, at in body["next_positions"].items()}
    return Commit(body["network"], body["segment"], files, positions, path.name)


def committed(root: Path, network: str) -> list[Commit]:
    """The commits of one network, by segment; a manifest that cannot be read raises `CommitError`."""
    found = (read_manifest(path) for path in sorted((root / COMMITS).glob(f"{network}-*.json")))
    return [commit for commit in found if commit.network == network]  # `a-*` finds `a-b` too


def canonical_json(body: object) -> bytes:
    """JSON with sorted keys and no spare space: equal values, equal bytes."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def check_name(network: str) -> None:
    """Raises `CommitError` for a network name that could not stand in a path."""
    if not network or not all(letter.isalnum() or letter in "-_." for letter in network) or network.startswith("."):
        raise CommitError(f"a network's name is made of letters, digits, '-', '_' and '.': {network!r}")


def write_atomically(path: Path, data: bytes, staging: Path | None = None) -> None:
    """Replace `path` by `data`: a reader sees the old file or the whole new one. Raises `OSError`."""
    temporary = (staging or path.parent) / f".{path.name}.{secrets.token_hex(4)}"
    try:
        with temporary.open("wb") as file:
            file.write(data)
            sync_file(file)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def sync_file(file: BinaryIO) -> None:
    """Have what was written on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Have a directory's names on the disk, where the system knows how."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_parquet(path: Path, table: Table, rows: list[dict[str, Any]], rows_per_group: int = 4096) -> None:
    """One Parquet file, zstd level 3, synced. Raises `OSError`, `SchemaError`."""
    data = table.arrow(rows)
    with path.open("wb") as file:
        pq.write_table(
            data,
            file,
            compression="zstd",
            compression_level=3,
            data_page_size=_PAGE_BYTES,
            row_group_size=rows_per_group,
            write_page_checksum=True,
        )
        sync_file(file)


def outside(size: int, extents: tuple[Extent, ...]) -> Iterator[tuple[int, int]]:
    """The stretches (offset, length) of a file of `size` bytes that are in no row group."""
    at = 0
    for extent in sorted(extents, key=lambda extent: extent.offset):
        if extent.offset > at:
            yield at, extent.offset - at
        at = max(at, extent.offset + extent.length)
    if size > at:
        yield at, size - at


def digest_stretches(file: BinaryIO, stretches: Iterator[tuple[int, int]]) -> str:
    """blake2b-256 in hex over stretches of a file. Raises `OSError`; what a truncated file lacks is just not hashed."""
    hasher = blake2b(digest_size=32)
    for offset, length in stretches:
        file.seek(offset)
        left = length
        while left:
            data = file.read(min(left, _CHUNK))
            if not data:
                break
            hasher.update(data)
            left -= len(data)
    return hasher.hexdigest()


def _write_part(path: Path, network: str, segment: int, part: Part) -> FileEntry:
    write_parquet(path, part.table, part.rows, part.rows_per_group)
    values = {"network": network, "chain": part.chain, "segment": segment}
    folders = [f"{name}={values[name]}" for name in part.table.partitions]
    with path.open("rb") as file:
        metadata = pq.read_metadata(file)
        stretches = [_row_group_stretch(metadata, at) for at in range(metadata.num_row_groups)]
        extents = tuple(Extent(*at, digest_stretches(file, iter((at,)))) for at in stretches)
        size = path.stat().st_size
        frame = digest_stretches(file, outside(size, extents))
    # Named by content, so that a commit can only ever overwrite a file by the same bytes.
    content = digest_of("".join((frame, *(extent.digest for extent in extents))).encode())
    relative = "/".join((part.table.name, *folders, f"{part.name}-{content[:16]}.parquet"))
    return FileEntry(
        part.table.name,
        part.table.version,
        relative,
        network,
        part.chain,
        segment,
        len(part.rows),
        size,
        frame,
        extents,
    )


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


def _make_directories(root: Path, path: Path) -> None:
    missing = []
    while path != root and not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)
