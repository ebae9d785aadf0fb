"""A table's Delta log: which files are the table, version by version, so that every engine reads one whole state.

    <table>/_delta_log/00000000000000000000.json   a line per action: protocol, metaData, add, remove, commitInfo
    <table>/_delta_log/00000000000000000020.checkpoint.parquet, _last_checkpoint   all of it up to a version

Protocol 1 for readers, 2 for writers (https://github.com/delta-io/delta/blob/master/PROTOCOL.md): plain Parquet. A log
on which another engine has written goes on after its last version, or is refused.
"""

import io
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.history.unpack import TooLarge, read_group

LOG: Final = "_delta_log"
CHECKPOINT_EVERY: Final = 20
"""Versions from one checkpoint to the next; a reader lists and reads no more than these."""

_MOST_BYTES: Final = 64 * 1_048_576  # of a version, or of a checkpoint
_VERSION: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT_FILE: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_NAMES: Final = uuid.UUID("6f1a4b7e-51d6-5b0c-9c5e-0f6a3f0d7a10")
_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 2}
_TEXT, _INT, _LONG, _STRINGS = pa.string(), pa.int32(), pa.int64(), pa.map_(pa.string(), pa.string())
_DESCRIBED: Final = {
    "id": _TEXT,
    "name": _TEXT,
    "description": _TEXT,
    "format": pa.struct({"provider": _TEXT, "options": _STRINGS}),
    "schemaString": _TEXT,
    "partitionColumns": pa.list_(_TEXT),
    "configuration": _STRINGS,
    "createdTime": _LONG,
}
_ADDED: Final = {
    "path": _TEXT,
    "partitionValues": _STRINGS,
    "size": _LONG,
    "modificationTime": _LONG,
    "dataChange": pa.bool_(),
    "stats": _TEXT,
}
_CHECKPOINT: Final = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": _INT, "minWriterVersion": _INT}),
        "metaData": pa.struct(_DESCRIBED),
        "add": pa.struct(_ADDED),
    }
)


class DeltaError(PubsubError):
    """A log that somebody else wrote to, or a column that Delta has no type for."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table: its name in the table's folder, bytes, rows and milliseconds since 1970 of its writing."""

    name: str
    size: int
    rows: int
    time: int
    bounds: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Least value, largest value and number of empty ones by column: a reader skips files by them."""

    def add(self) -> dict[str, object]:
        """The action that makes it part of the table."""
        least, most = ({name: each[at] for name, each in self.bounds.items() if each[at] is not None} for at in (0, 1))
        empty = {name: each[2] for name, each in self.bounds.items()}
        return {
            "path": self.name,
            "partitionValues": {},
            "size": self.size,
            "modificationTime": self.time,
            "dataChange": True,
            "stats": json.dumps({"numRecords": self.rows, "minValues": least, "maxValues": most, "nullCount": empty}),
        }


@dataclass(slots=True)
class Log:
    """A table as its log says: the last version, -1 if there is none, its files by name, and its columns."""

    version: int = -1
    files: dict[str, DataFile] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)

    def apply(self, action: Mapping[str, Any]) -> None:
        """Go on by an action. Raises `DeltaError` for a table of another kind, and what a malformed one raises."""
        if (added := action.get("add")) is not None:
            name = unquote(added["path"])
            self.files[name] = DataFile(name, added["size"], 0, added["modificationTime"])
        if (removed := action.get("remove")) is not None:
            self.files.pop(unquote(removed["path"]), None)
        if (protocol := action.get("protocol")) is not None:
            reader, writer = protocol["minReaderVersion"], protocol["minWriterVersion"]
            if (reader, writer) > (_PROTOCOL["minReaderVersion"], _PROTOCOL["minWriterVersion"]):
                raise DeltaError(f"it needs version {reader} of the protocol to be read and {writer} to be written")
        if (described := action.get("metaData")) is not None:
            self.columns = [each["name"] for each in json.loads(described["schemaString"])["fields"]]
            if described["partitionColumns"]:
                raise DeltaError("it has partitions")


def read_log(store: Store, folder: str) -> Log:
    """A table's log, whoever wrote it. Raises `DeltaError` for one that cannot be read or continued here, `OSError`."""
    names = store.names(f"{folder}/{LOG}")
    versions = sorted(int(found[1]) for name in names if (found := _VERSION.fullmatch(name)))
    checkpoints = sorted(int(found[1]) for name in names if (found := _CHECKPOINT_FILE.fullmatch(name)))
    out = Log()
    at = "it"
    try:
        if checkpoints:
            at = f"{checkpoints[-1]:020d}.checkpoint.parquet"
            for action in _checkpointed(store.read(f"{folder}/{LOG}/{at}", _MOST_BYTES)):
                out.apply(action)
            out.version = checkpoints[-1]
        for version in (each for each in versions if each > out.version):
            at = f"{version:020d}.json"
            if version != out.version + 1:
                raise DeltaError(f"version {out.version + 1} is missing")  # noqa: TRY301  # as what `apply` raises
            for line in store.read(f"{folder}/{LOG}/{at}", _MOST_BYTES).splitlines():
                out.apply(json.loads(line) if line.strip() else {})
            out.version = version
    except DeltaError as error:
        raise DeltaError(f"{store}/{folder}: the log cannot be continued: {error}") from None
    except (pa.ArrowException, TooLarge, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DeltaError(f"{store}/{folder}/{LOG}: {at} is no version of a Delta log") from None
    return out


def _checkpointed(data: bytes) -> Iterator[dict[str, object]]:
    source = io.BytesIO(data)
    parquet = pq.ParquetFile(source, pre_buffer=False)
    known = [name for name in ("protocol", "metaData", "add") if name in parquet.schema_arrow.names]
    for at in range(parquet.num_row_groups):
        yield from read_group(parquet, source, at, known).to_pylist()


def log_table(  # noqa: PLR0917  # what a version of a table is
    store: Store,
    folder: str,
    doc: str,
    schema: pa.Schema,
    version: int,
    before: Sequence[DataFile],
    now: Sequence[DataFile],
    time: int,
    *,
    reshaped: bool = False,
    since: int = 0,
) -> None:
    """Write version `version` of a table: `now` in the place of `before`; `reshaped` if columns changed.

    Versions since the time `since`, in milliseconds, stay readable. Raises `DeltaError` if it is there, `OSError`.
    """
    gone = {each.name: each for each in before}
    fresh = [each for each in now if gone.pop(each.name, None) is None]
    metadata = _metadata(folder, doc, schema)
    removal = {"deletionTimestamp": time, "dataChange": True}
    writer = {"timestamp": time, "operation": "WRITE", "engineInfo": "pubsub-emulator"}
    actions: list[dict[str, object]] = [{"commitInfo": writer}]
    if version == 0:
        actions.append({"protocol": _PROTOCOL})
    if version == 0 or reshaped:
        actions.append({"metaData": metadata})
    actions += [{"remove": {"path": each.name, **removal, "size": each.size}} for each in gone.values()]
    actions += [{"add": each.add()} for each in fresh]
    lines = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    if not store.put_new(f"{folder}/{LOG}/{version:020d}.json", lines.encode()):
        raise DeltaError(f"{store}/{folder}: version {version} is there already: somebody else writes to it")
    if version and version % CHECKPOINT_EVERY == 0:
        _checkpoint(store, folder, version, metadata, now)
        for path, stamp in store.walk(f"{folder}/{LOG}").items():
            found = _VERSION.fullmatch(path.rpartition("/")[2])
            if found and int(found[1]) < version - CHECKPOINT_EVERY and stamp.time < since * 1_000_000:
                store.remove(path)


def _checkpoint(store: Store, folder: str, version: int, metadata: dict[str, object], now: Sequence[DataFile]) -> None:
    """All of the table in one file; the versions up to it need not be read any more."""
    rows: list[dict[str, object]] = [{"protocol": _PROTOCOL}, {"metaData": metadata}]
    rows += [{"add": each.add()} for each in now]
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_CHECKPOINT), buffer)
    store.put(f"{folder}/{LOG}/{version:020d}.checkpoint.parquet", bytes(buffer.getvalue().to_pybytes()))
    store.put(f"{folder}/{LOG}/_last_checkpoint", json.dumps({"version": version, "size": len(rows)}).encode())


def _metadata(folder: str, doc: str, schema: pa.Schema) -> dict[str, object]:
    name = folder.rpartition("/")[2]
    fields = [
        {"name": field.name, "type": _type(field.type), "nullable": True, "metadata": _comment(field)}
        for field in schema
    ]
    return {
        "id": str(uuid.uuid5(_NAMES, name)),
        "name": name,
        "description": doc,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }


def _comment(field: pa.Field) -> dict[str, str]:
    found = (field.metadata or {}).get(b"doc")
    return {} if found is None else {"comment": found.decode()}


def _type(kind: pa.DataType) -> object:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    found = {"string": "string", "bool": "boolean", "int64": "long", "date32[day]": "date"}.get(str(kind))
    if found is None:
        raise DeltaError(f"there is no Delta type for {kind}")
    return found
