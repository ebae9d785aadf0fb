"""Rows as bytes, sorted and digested: what must be equal between the plain path, Spark and any partitioning (AU-4).

row     each column in schema order: 00, or 01 and the value
value   integer  i128, two's complement, little endian, 16 bytes
        string, binary  Vec<u8>      list  compact count, values      struct  its fields, as columns
digest  blake2_256 of (table name, version u32, compact number of rows, rows ascending)
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from primitives.hashing import blake2_256
from primitives.scale import encode_bytes, encode_compact
from primitives.types import Hash
from spark_audit.schema import Table


def encode_row(table: Table, row: Mapping[str, Any]) -> bytes:
    """The canonical bytes of one row."""
    return b"".join(_encode_optional(column.type, row[column.name]) for column in table.columns)


def digest_rows(table: Table, rows: Iterable[Mapping[str, Any]]) -> Hash:
    """The digest of a set of rows, whatever their order."""
    encoded = sorted(encode_row(table, row) for row in rows)
    head = encode_bytes(table.name.encode()) + table.version.to_bytes(4, "little") + encode_compact(len(encoded))
    return blake2_256(head + b"".join(encoded))


def _encode_optional(kind: pa.DataType, value: Any) -> bytes:
    return b"\x00" if value is None else b"\x01" + _encode(kind, value)


def _encode(kind: pa.DataType, value: Any) -> bytes:
    if pa.types.is_boolean(kind):
        return b"\x01" if value else b"\x00"
    if pa.types.is_integer(kind):
        return int(value).to_bytes(16, "little", signed=True)
    if pa.types.is_string(kind):
        return encode_bytes(value.encode())
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return encode_bytes(bytes(value))
    if pa.types.is_list(kind):
        return encode_compact(len(value)) + b"".join(_encode_optional(kind.value_type, item) for item in value)
    if pa.types.is_struct(kind):
        return b"".join(_encode_optional(field.type, value[field.name]) for field in kind)
    raise TypeError(f"rows hold no {kind}")
