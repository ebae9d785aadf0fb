"""The Delta log of a table, by which every engine reads one consistent version of it.

    <table>/_delta_log/00000000000000000000.json   a line for each action of a version:
                                                   protocol, metaData, add, remove, commitInfo
    <table>/_delta_log/00000000000000000020.checkpoint.parquet
                                                   everything up to that version, with
                                                   _last_checkpoint

It uses version 1 of the protocol for readers and 2 for writers
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md): plain Parquet files without extras. If
another engine has written to a log, this program continues after its last version, or refuses the
log if it uses features that are not known here.
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
"""The number of versions between two checkpoints. A reader reads at most this many."""

_MOST_BYTES: Final = 64 * 1_048_576
"""The maximum size of a version's file or of a checkpoint."""
_VERSION: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT_FILE: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_NAMES: Final = uuid.UUID("6f1a4b7e-51d6-5b0c-9c5e-0f6a3f0d7a10")
"""The namespace of the tables' ids. The protocol requires UUIDs."""
_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 2}
_TEXT = pa.string()
_INT = pa.int32()
_LONG = pa.int64()
_STRINGS = pa.map_(pa.string(), pa.string())
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
"""Fields of the action `metaData`."""
_ADDED: Final = {
    "path": _TEXT,
    "partitionValues": _STRINGS,
    "size": _LONG,
    "modificationTime": _LONG,
    "dataChange": pa.bool_(),
    "stats": _TEXT,
}
"""Fields of the action `add`."""
_CHECKPOINT: Final = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": _INT, "minWriterVersion": _INT}),
        "metaData": pa.struct(_DESCRIBED),
        "add": pa.struct(_ADDED),
    }
)
"""Columns of a checkpoint."""


class DeltaError(PubsubError):
    """A log that another writer changed, or a column for which Delta has no type."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a table, as the log describes it."""

    name: str
    """Its name in the table's folder."""
    size: int
    """Its bytes."""
    rows: int
    time: int
    """When it was written, in milliseconds since 1970."""
    bounds: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """By column: minimum, maximum and number of nulls. Readers use them to skip files."""

    def add(self) -> dict[str, object]:
        """Return the action that adds the file to the table."""
        minima: dict[str, object] = {}
        maxima: dict[str, object] = {}
        null_counts: dict[str, object] = {}
        for name, (minimum, maximum, nulls) in self.bounds.items():
            if minimum is not None:
                minima[name] = minimum
            if maximum is not None:
                maxima[name] = maximum
            null_counts[name] = nulls
        return {
            "path": self.name,
            "partitionValues": {},
            "size": self.size,
            "modificationTime": self.time,
            "dataChange": True,
            "stats": json.dumps(
                {
                    "numRecords": self.rows,
                    "minValues": minima,
                    "maxValues": maxima,
                    "nullCount": null_counts,
                }
            ),
        }


@dataclass(slots=True)
class Log:
    """The state of a table according to its log."""

    version: int = -1
    """The last version, -1 if there is none."""
    files: dict[str, DataFile] = field(default_factory=dict)
    """The table's files by name."""
    columns: list[str] = field(default_factory=list)
    """Names of the table's columns."""

    def apply(self, action: Mapping[str, Any]) -> None:
        """Apply an action.

        Raises `DeltaError` if the table uses features that are not known here. A malformed action
        raises `KeyError`, `TypeError` and the like, which `read_log` turns into `DeltaError`.
        """
        if (added := action.get("add")) is not None:
            name = unquote(added["path"])
            self.files[name] = DataFile(name, added["size"], 0, time=added["modificationTime"])
        if (removed := action.get("remove")) is not None:
            self.files.pop(unquote(removed["path"]), None)
        if (protocol := action.get("protocol")) is not None:
            reader = protocol["minReaderVersion"]
            writer = protocol["minWriterVersion"]
            if (reader, writer) > (_PROTOCOL["minReaderVersion"], _PROTOCOL["minWriterVersion"]):
                raise DeltaError(
                    f"it needs version {reader} of the protocol to be read and {writer} to be"
                    " written"
                )
        if (described := action.get("metaData")) is not None:
            self.columns = [
                field["name"] for field in json.loads(described["schemaString"])["fields"]
            ]
            if described["partitionColumns"]:
                raise DeltaError("it has partitions")


def read_log(store: Store, folder: str) -> Log:
    """Read a table's log, including versions that other engines wrote.

    It starts from the last checkpoint and applies the later versions. Raises `DeltaError` if the
    log is damaged or this program cannot continue it, and `OSError`.
    """
    names = store.names(f"{folder}/{LOG}")
    versions = sorted(int(match[1]) for name in names if (match := _VERSION.fullmatch(name)))
    checkpoints = sorted(
        int(match[1]) for name in names if (match := _CHECKPOINT_FILE.fullmatch(name))
    )
    log = Log()
    file = ""
    try:
        if checkpoints:
            file = f"{checkpoints[-1]:020d}.checkpoint.parquet"
            for action in _checkpointed(store.read(f"{folder}/{LOG}/{file}", _MOST_BYTES)):
                log.apply(action)
            log.version = checkpoints[-1]
        later_versions = [version for version in versions if version > log.version]
        for version in later_versions:
            file = f"{version:020d}.json"
            if version != log.version + 1:
                raise DeltaError(f"version {log.version + 1} is missing")  # noqa: TRY301  # as what `apply` raises
            for line in store.read(f"{folder}/{LOG}/{file}", _MOST_BYTES).splitlines():
                if line.strip():
                    log.apply(json.loads(line))
            log.version = version
    except DeltaError as error:
        raise DeltaError(f"{store}/{folder}: the log cannot be continued: {error}") from None
    except (
        pa.ArrowException,
        TooLarge,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        raise DeltaError(
            f"{store}/{folder}/{LOG}: {file} is not a version of a Delta log"
        ) from None
    return log


def _checkpointed(data: bytes) -> Iterator[dict[str, object]]:
    """Yield the actions in a checkpoint."""
    source = io.BytesIO(data)
    parquet = pq.ParquetFile(source, pre_buffer=False)
    known = [name for name in ("protocol", "metaData", "add") if name in parquet.schema_arrow.names]
    for index in range(parquet.num_row_groups):
        yield from read_group(parquet, source, index, columns=known).to_pylist()


def log_table(  # noqa: PLR0917  # the content of a version
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
    """Write version `version` of a table, in which the files `now` replace the files `before`.

    `time` is the present time in milliseconds since 1970. `reshaped` says that the columns changed.
    Every `CHECKPOINT_EVERY` versions, also write a checkpoint and remove old versions, except for
    those written after `since` (a time like `time`). Raises `DeltaError` if another writer has
    written this version, and `OSError`.
    """
    names_before = {file.name for file in before}
    names_now = {file.name for file in now}
    removed = [file for file in before if file.name not in names_now]
    added = [file for file in now if file.name not in names_before]
    metadata = _metadata(folder, doc, schema)
    removal = {"deletionTimestamp": time, "dataChange": True}
    writer = {"timestamp": time, "operation": "WRITE", "engineInfo": "pubsub-emulator"}
    actions: list[dict[str, object]] = [{"commitInfo": writer}]
    if version == 0:
        actions.append({"protocol": _PROTOCOL})
    if version == 0 or reshaped:
        actions.append({"metaData": metadata})
    actions += [{"remove": {"path": file.name, **removal, "size": file.size}} for file in removed]
    actions += [{"add": file.add()} for file in added]
    lines = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    # A version must not be overwritten: another engine may have written it in the meantime.
    if not store.put_new(f"{folder}/{LOG}/{version:020d}.json", lines.encode()):
        raise DeltaError(
            f"{store}/{folder}: version {version} is there already: somebody else writes to it"
        )
    if version and version % CHECKPOINT_EVERY == 0:
        _checkpoint(store, folder, version, metadata=metadata, now=now)
        for path, stamp in store.walk(f"{folder}/{LOG}").items():
            match = _VERSION.fullmatch(path.rpartition("/")[2])
            if match is None:
                continue
            # The versions since the previous checkpoint stay.
            is_replaced = int(match[1]) < version - CHECKPOINT_EVERY
            # Stamps are in nanoseconds.
            is_old = stamp.time < since * 1_000_000
            if is_replaced and is_old:
                store.remove(path)


def _checkpoint(
    store: Store, folder: str, version: int, metadata: dict[str, object], now: Sequence[DataFile]
) -> None:
    """Write a checkpoint with all files of the table, so that older versions need not be read."""
    rows: list[dict[str, object]] = [{"protocol": _PROTOCOL}, {"metaData": metadata}]
    rows += [{"add": file.add()} for file in now]
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_CHECKPOINT), buffer)
    store.put(
        f"{folder}/{LOG}/{version:020d}.checkpoint.parquet", bytes(buffer.getvalue().to_pybytes())
    )
    store.put(
        f"{folder}/{LOG}/_last_checkpoint",
        json.dumps({"version": version, "size": len(rows)}).encode(),
    )


def _metadata(folder: str, doc: str, schema: pa.Schema) -> dict[str, object]:
    """Return the action that describes the table: its id, columns and documentation."""
    name = folder.rpartition("/")[2]
    fields = [
        {
            "name": field.name,
            "type": _type(field.type),
            "nullable": True,
            "metadata": _comment(field),
        }
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
    """Return the metadata by which engines show a column's documentation."""
    doc = (field.metadata or {}).get(b"doc")
    return {} if doc is None else {"comment": doc.decode()}


def _type(kind: pa.DataType) -> object:
    """Return Delta's name of an Arrow type. Raises `DeltaError` if Delta has no such type."""
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    name = {"string": "string", "bool": "boolean", "int64": "long", "date32[day]": "date"}.get(
        str(kind)
    )
    if name is None:
        raise DeltaError(f"there is no Delta type for {kind}")
    return name
