"""Manifests, which name the files of a segment and the network's previous manifest (AU-13).

    <history>/_commits/<network>-<segment>-<first 16 digits of digest>.json

    {"format": 3, "network": …, "segment": …,
     "previous": digest of the manifest before, null for the first,
     "files": [{"table", "version", "path", "network", "chain", "segment", "rows", "size", "frame",
                "row_groups": [{"offset", "length", "digest", "chain", "rows"}]}],
     "next_positions": {chain: position of its next candidate},
     "digest": blake2b-256 of everything else, canonical}

A segment has one file of each table. If a table is divided by chain, each row group of its file has
rows of one chain, the row groups are in the order of the chains, and the file's own `chain` is
null. In format 2, which can be read as well, each chain has a file, and row groups have neither
chain nor rows.

A manifest may be from a stranger, so everything in it is checked before it is used. The head of a
history is one digest over the last manifest of every network. Since each manifest names the one
before it, a reader who knows the head notices if anything is missing or was changed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain as chained
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import JsonObject
from pubsub_emulator.spark_audit.history.schema import I64_MAX, Table
from pubsub_emulator.spark_audit.history.storage import Store

FORMAT: Final = 3
"""The present format."""
BY_CHAIN: Final = 2
"""The format of 0.2.0, with a file for each chain."""
UNCHAINED: Final = 1
"""The format of 0.1.0, in which manifests do not name the ones before them."""
COMMITS: Final = "_commits"
"""The folder with the manifests."""
MOST_BYTES: Final = 64 * 1_048_576
"""The maximum size of a manifest, enough for about 200,000 files."""

HISTORY_TABLES: Final[dict[str, Table]] = {table.name: table for table in schema.OF_HISTORY}

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FILE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,149}\.parquet")
_MOST_SHOWN: Final = 60
"""Characters of a wrong value that messages show."""

T = TypeVar("T", str, int)


class CommitError(PubsubError):
    """A manifest that cannot be used, or a commit that failed."""


def history_folder(path: Path) -> Path | None:
    """Return the folder of a history, which is `path` or, in the output of a run, `history` in it.

    Returns `None` if neither is a history.
    """
    for folder in (path, path / "history"):
        if (folder / COMMITS).is_dir():
            return folder
    return None


@dataclass(frozen=True, slots=True)
class Extent:
    """The bytes of one row group in a file."""

    offset: int
    length: int
    digest: str
    """blake2b-256 of the bytes, in hex."""
    chain: int | None = None
    """The chain to which all its rows belong, `None` if the table is not divided by chain or the
    format is old."""
    rows: int | None = None
    """Number of its rows, `None` in an old format."""


@dataclass(frozen=True, slots=True)
class Share:
    """One chain's part of a file."""

    first: int
    """Number of its first row group in the file."""
    groups: int
    """Number of row groups in the whole file."""
    rows: int
    """Number of rows in the whole file."""
    others: tuple[tuple[int, int], ...]
    """The bytes of the other chains' row groups, as stretches (offset, length)."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a commit, or one chain's share of it."""

    table: str
    version: int
    path: str
    """Relative to the history."""
    network: str
    chain: int | None
    segment: int
    rows: int
    """Number of rows, in the share if there is one."""
    size: int
    """Bytes of the whole file."""
    frame: str
    """blake2b-256, in hex, of all bytes of the file that are outside of row groups."""
    row_groups: tuple[Extent, ...]
    """The row groups, those of the share if there is one."""
    share: Share | None = None

    @property
    def weight(self) -> int:
        """Bytes of the share's row groups, or of the whole file."""
        return self.size if self.share is None else sum(group.length for group in self.row_groups)

    def outside(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches (offset, length) of a file of `size` bytes outside of row groups."""
        inside = [(group.offset, group.length) for group in self.row_groups]
        if self.share is not None:
            inside += self.share.others
        return outside(size, inside)

    def shares(self) -> "tuple[FileEntry, ...]":
        """Return an entry for each chain in the file, or the entry itself if it is not divided."""
        if all(group.chain is None for group in self.row_groups):
            return (self,)
        shares: list[FileEntry] = []
        first = 0
        for chain, chain_groups in groupby(self.row_groups, lambda group: group.chain):
            groups = tuple(chain_groups)
            end = first + len(groups)
            others = [
                (group.offset, group.length)
                for group in (*self.row_groups[:first], *self.row_groups[end:])
            ]
            share = Share(first, len(self.row_groups), self.rows, others=tuple(_joined(others)))
            rows = sum(group.rows or 0 for group in groups)
            shares.append(replace(self, chain=chain, rows=rows, row_groups=groups, share=share))
            first = end
        return tuple(shares)

    @staticmethod
    def from_json(data: JsonObject) -> "FileEntry":
        """Return the entry of a task's JSON, which is trusted and not checked.

        Entries of manifests are read and checked by `read_manifest`.
        """
        groups = tuple(Extent(**extent) for extent in data["row_groups"])
        share = data["share"]
        if share is not None:
            share = Share(
                **{**share, "others": tuple((offset, length) for offset, length in share["others"])}
            )
        return FileEntry(**{**data, "row_groups": groups, "share": share})


def outside(size: int, inside: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the stretches (offset, length) of a file of `size` bytes that are not in `inside`."""
    position = 0
    for offset, length in sorted(inside):
        if offset > position:
            yield position, offset - position
        position = max(position, offset + length)
    if size > position:
        yield position, size - position


def _joined(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return stretches (offset, length), given in order, with adjacent ones joined."""
    joined: list[tuple[int, int]] = []
    for offset, length in stretches:
        if joined:
            last_offset, last_length = joined[-1]
            if last_offset + last_length == offset:
                joined[-1] = (last_offset, last_length + length)
                continue
        joined.append((offset, length))
    return joined


@dataclass(frozen=True, slots=True)
class Commit:
    """A segment of a network, as its manifest describes it."""

    network: str
    segment: int
    files: tuple[FileEntry, ...]
    """The files' entries, one for each share."""
    next_positions: Mapping[int, int]
    """By chain, the position of its next candidate."""
    previous: str | None
    """The digest of the manifest before, `None` for the first segment."""
    digest: str

    @property
    def name(self) -> str:
        """The file name of the manifest, which depends on its content."""
        return manifest_name(self.network, self.segment, self.digest)


def manifest_name(network: str, segment: int, digest: str) -> str:
    """Return the file name of a manifest."""
    return f"{network}-{segment:08d}-{digest[:16]}.json"


def digest_of(data: bytes) -> str:
    """Return the blake2b-256 of bytes, in hex."""
    return blake2_256(data).hex()


def canonical_json(body: object) -> bytes:
    """Return JSON with sorted keys and without spaces: equal values give equal bytes."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def sealed(body: object) -> bytes:
    """Return JSON after a line with its digest, for files whose names do not contain a digest."""
    data = canonical_json(body)
    return digest_of(data).encode() + b"\n" + data


def unsealed(file: bytes) -> Any:
    """Return the value of a file that `sealed` made. Raises `ValueError` if it was altered."""
    stated, _, data = file.partition(b"\n")
    if stated != digest_of(data).encode():
        raise ValueError("the file was changed after it was written")
    return json.loads(data)


def check_name(network: str) -> None:
    """Raise `CommitError` if a network's name cannot be part of a path."""
    if _NAME.fullmatch(network) is None:
        raise CommitError(
            f"a network's name is 1 to 100 letters, digits, '-', '_' and '.': {_shown(network)}"
        )


def folder_of(table: Table, network: str) -> str:
    """Return the folder of a table's files of a network, relative to the history."""
    return f"{table.name}/network={network}"


def _former_folder(table: Table, network: str, chain: int | None, segment: int) -> str:
    """Return the folder of a table's files in format 1 or 2."""
    values = {"network": network, "chain": chain, "segment": segment}
    levels = [table.name]
    levels += [f"{name}={values[name]}" for name in table.partitions]
    return "/".join(levels)


def head_of(last: Mapping[str, str]) -> str:
    """Return the head of a history. `last` has the digest of each network's last manifest."""
    return digest_of(canonical_json([[network, last[network]] for network in sorted(last)]))


def read_manifest(store: Store, name: str) -> Commit:
    """Read the manifest of this name. Raises `CommitError` if it cannot be used, and `OSError`."""
    commit, version = read_any_manifest(store, name)
    if version == UNCHAINED:
        raise CommitError(
            f"manifest format {version} is not known, only formats {BY_CHAIN} and {FORMAT} are:"
            " `pubsub migrate` brings it up to date"
        )
    if commit.name != name:
        raise CommitError(f"the manifest's name does not match its content, which is {commit.name}")
    return commit


def read_any_manifest(store: Store, name: str) -> tuple[Commit, int]:
    """Read a manifest of any format, and return the format as well.

    Raises `CommitError` if it cannot be used, and `OSError`.
    """
    body = parse_json(store.read(f"{COMMITS}/{name}", MOST_BYTES), "the manifest", CommitError)
    version = body.get("format") if isinstance(body, dict) else None
    if (
        not isinstance(body, dict)
        or type(version) is not int
        or version not in {UNCHAINED, BY_CHAIN, FORMAT}
    ):
        raise CommitError(
            f"manifest format {_shown(version)} is not known, only formats {BY_CHAIN} and"
            f" {FORMAT} are"
        )
    stated = body.pop("digest", None)
    if stated != digest_of(canonical_json(body)):
        raise CommitError("the manifest does not have the digest it states")
    if version == UNCHAINED:
        if "previous" in body:
            raise CommitError("a manifest of format 1 names none before it")
        body["previous"] = None
    return _commit(body, str(stated)), version


def committed(store: Store, network: str) -> list[Commit]:
    """Return the commits of one network in order of segments.

    Raises `CommitError` or `OSError` if one of its manifests cannot be read.
    """
    names = [
        name
        for name in store.names(COMMITS)
        if name.rsplit("-", 2)[0] == network and name.endswith(".json")
    ]
    return sorted((read_manifest(store, name) for name in names), key=lambda commit: commit.segment)


def unlinked(commits: Iterable[Commit], previous: Commit | None = None) -> list[tuple[Commit, str]]:
    """Return the commits that do not follow the previous one, each with the reason.

    `commits` are those of one network, in order of segments. `previous` is the last commit before
    them.
    """
    wrong: list[tuple[Commit, str]] = []
    for commit in commits:
        if previous is None:
            if commit.previous is not None:
                wrong.append((commit, "the manifest before it is not in the history"))
        elif commit.segment == previous.segment:
            wrong.append(
                (
                    commit,
                    f"{previous.name} is of the same segment: two writers, or two histories in one",
                )
            )
            continue
        elif commit.previous != previous.digest:
            wrong.append(
                (commit, f"it does not follow {previous.name}: a manifest between them is missing")
            )
        elif commit.segment != previous.segment + 1:
            wrong.append((commit, f"segment {commit.segment} follows segment {previous.segment}"))
        previous = commit
    return wrong


def _commit(body: dict[str, object], digest: str) -> Commit:
    """Return the commit of a manifest's content. Raises `CommitError` if it is malformed."""
    _same_keys(
        "the manifest",
        body,
        {"format", "network", "segment", "previous", "files", "next_positions"},
    )
    network = _text(body, "network")
    check_name(network)
    segment = _whole_number(body, "segment", U32_MAX)
    previous = body["previous"]
    if previous is not None and (
        not isinstance(previous, str) or _DIGEST.fullmatch(previous) is None
    ):
        raise CommitError(f"previous is not a digest: {_shown(previous)}")
    files = body["files"]
    if not isinstance(files, list):
        raise CommitError("files is not a list")
    entries = tuple(_file(data, network, segment, manifest_format=body["format"]) for data in files)
    if len({entry.path for entry in entries}) != len(entries):
        raise CommitError("a file is named twice")
    if len({(entry.table, entry.chain) for entry in entries}) != len(entries):
        raise CommitError("a table has two files")
    shares = tuple(chained.from_iterable(entry.shares() for entry in entries))
    return Commit(
        network,
        segment,
        shares,
        next_positions=_positions(body["next_positions"]),
        previous=previous,
        digest=digest,
    )


def _file(data: object, network: str, segment: int, manifest_format: object) -> FileEntry:
    """Return the entry of a file in a manifest. Raises `CommitError` if it is malformed."""
    if not isinstance(data, dict):
        raise CommitError("a file is not an object")
    _same_keys("a file", data, set(FileEntry.__dataclass_fields__) - {"share"})
    table = HISTORY_TABLES.get(_text(data, "table"))
    if table is None:
        raise CommitError(f"a table named {_shown(data['table'])} is not known")
    chain = data["chain"]
    has_chains = "chain" in table.partitions
    # Only in format 2 and before, a file belongs to one chain.
    if (has_chains and manifest_format != FORMAT) != (chain is not None):
        raise CommitError(f"a file of {table.name} has the chain {_shown(chain)}")
    if chain is not None:
        _whole_number(data, "chain", U32_MAX)
    # In Python, `True` is equal to 1.
    if (data["network"], data["segment"]) != (network, segment) or isinstance(
        data["segment"], bool
    ):
        raise CommitError("a file is of another network or segment than its manifest")
    path = _text(data, "path")
    folder, _, name = path.rpartition("/")
    if manifest_format == FORMAT:
        expected = folder_of(table, network)
    else:
        expected = _former_folder(table, network, chain, segment=segment)
    if folder != expected or _FILE.fullmatch(name) is None:
        raise CommitError(f"a file of {table.name} has the path {_shown(path)}")
    version = _whole_number(data, "version", U32_MAX)
    size = _whole_number(data, "size", I64_MAX)
    rows = _whole_number(data, "rows", I64_MAX)
    groups = _extents(data["row_groups"], size, manifest_format)
    frame = _digest(data, "frame")
    entry = FileEntry(
        table=table.name,
        version=version,
        path=path,
        network=network,
        chain=chain,
        segment=segment,
        rows=rows,
        size=size,
        frame=frame,
        row_groups=groups,
    )
    if manifest_format == FORMAT:
        _check_groups(entry, has_chains=has_chains)
    return entry


def _check_groups(entry: FileEntry, *, has_chains: bool) -> None:
    """Raise `CommitError` if row groups have wrong chains or a wrong number of rows."""
    chains = [group.chain for group in entry.row_groups]
    if any((chain is None) == has_chains for chain in chains) or (has_chains and not chains):
        raise CommitError(f"a file of {entry.table} has row groups of the chains {_shown(chains)}")
    if chains != sorted(chains, key=lambda chain: chain or 0):
        raise CommitError("row groups are not in the order of their chains")
    if sum(group.rows or 0 for group in entry.row_groups) != entry.rows:
        raise CommitError(f"rows is {_shown(entry.rows)}, and row groups have others")


def _extents(data: object, size: int, manifest_format: object) -> tuple[Extent, ...]:
    """Return the row groups of a file in a manifest.

    Raises `CommitError` if one is malformed, or if they overlap or are not in order.
    """
    if not isinstance(data, list):
        raise CommitError("row_groups is not a list")
    keys = set(Extent.__dataclass_fields__)
    if manifest_format != FORMAT:
        keys -= {"chain", "rows"}
    extents: list[Extent] = []
    end = 0
    for item in data:
        if not isinstance(item, dict):
            raise CommitError("a row group is not an object")
        _same_keys("a row group", item, keys)
        extent = Extent(
            _whole_number(item, "offset", size),
            _whole_number(item, "length", size),
            _digest(item, "digest"),
        )
        if extent.offset < end or extent.offset + extent.length > size:
            raise CommitError("row groups overlap, or reach beyond their file")
        end = extent.offset + extent.length
        if manifest_format == FORMAT:
            chain = None if item["chain"] is None else _whole_number(item, "chain", U32_MAX)
            extent = replace(extent, chain=chain, rows=_whole_number(item, "rows", I64_MAX))
        extents.append(extent)
    return tuple(extents)


def _positions(data: object) -> dict[int, int]:
    """Return `next_positions` of a manifest. Raises `CommitError` if it is malformed."""
    if not isinstance(data, dict):
        raise CommitError("next_positions is not an object")
    positions: dict[int, int] = {}
    for chain in data:
        if not is_chain(chain):
            raise CommitError(f"next_positions names the chain {_shown(chain)}")
        positions[int(chain)] = _whole_number(data, chain, U64_MAX)
    return positions


def is_chain(text: str) -> bool:
    """Return whether a text is a ParaId in decimal."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= U32_MAX


def _same_keys(object_name: str, data: Mapping[str, object], names: set[str]) -> None:
    """Raise `CommitError` unless an object has exactly these keys."""
    unexpected = sorted(data.keys() ^ names)
    if unexpected:
        raise CommitError(f"{object_name}: {_shown(unexpected[0])} is missing or unknown")


def _text(data: Mapping[str, object], name: str) -> str:
    return _checked(data, name, str, fits=lambda value: len(value) <= 1000)


def _digest(data: Mapping[str, object], name: str) -> str:
    return _checked(data, name, str, fits=lambda value: _DIGEST.fullmatch(value) is not None)


def _whole_number(data: Mapping[str, object], name: str, limit: int) -> int:
    return _checked(
        data, name, int, fits=lambda value: not isinstance(value, bool) and 0 <= value <= limit
    )


def _checked(data: Mapping[str, object], name: str, kind: type[T], fits: Callable[[T], bool]) -> T:
    """Return a value of an object. Raises `CommitError` unless it has this type and fits."""
    value = data[name]
    if not isinstance(value, kind) or not fits(value):
        raise CommitError(f"{name} is {_shown(value)}")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
