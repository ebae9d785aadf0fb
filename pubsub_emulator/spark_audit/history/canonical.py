"""Rows as bytes, sorted and digested: what must be equal between the plain path, Spark and any partitioning (AU-4).

row     each column in schema order: 00, or 01 and the value
value   integer, time in milliseconds, day of the year 1  i128, two's complement, little endian, 16 bytes
        string, binary  Vec<u8>      list  compact count, values      struct  its fields, as columns
digest  blake2_256 of (table name, version u32, compact number of rows, rows ascending)
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.history.row import EPOCH, Row
from pubsub_emulator.spark_audit.history.schema import Table, fitted

Encoder = Callable[[Any], bytes]


def encode_row(table: Table, row: Row) -> bytes:
    """The canonical bytes of one row."""
    version, (fit,) = fitted(table, (row,))
    return b"".join([encode(fit[name]) for name, encode in _row_encoders(version)])


def digest_rows(table: Table, rows: Iterable[Row]) -> Hash:
    """The digest of a set of rows; their order does not matter."""
    table, listed = fitted(table, rows)
    encoders = _row_encoders(table)
    encoded = sorted([b"".join([encode(row[name]) for name, encode in encoders]) for row in listed])
    head = encode_bytes(table.name.encode()) + table.version.to_bytes(4, "little") + encode_compact(len(encoded))
    return blake2_256(head + b"".join(encoded))


@lru_cache(maxsize=64)
def _encoders(columns: tuple[tuple[str, pa.DataType], ...]) -> tuple[tuple[str, Encoder], ...]:
    return tuple((name, _optional(kind)) for name, kind in columns)


def milliseconds(value: datetime) -> int:
    """Milliseconds since 1970."""
    return (value - EPOCH) // timedelta(milliseconds=1)


def _row_encoders(table: Table) -> tuple[tuple[str, Encoder], ...]:
    return _encoders(tuple((column.name, column.type) for column in table.columns))


def _optional(kind: pa.DataType) -> Encoder:
    """An encoder of values of an Arrow type, `None` included."""
    if pa.types.is_boolean(kind):
        return lambda value: b"\x00" if value is None else b"\x01\x01" if value else b"\x01\x00"
    if pa.types.is_integer(kind):
        return lambda value: b"\x00" if value is None else b"\x01" + value.to_bytes(16, "little", signed=True)
    if pa.types.is_timestamp(kind):
        return lambda value: (
            b"\x00" if value is None else b"\x01" + milliseconds(value).to_bytes(16, "little", signed=True)
        )
    if pa.types.is_date(kind):
        return lambda value: (
            b"\x00" if value is None else b"\x01" + value.toordinal().to_bytes(16, "little", signed=True)
        )
    if pa.types.is_string(kind):
        return lambda value: b"\x00" if value is None else b"\x01" + encode_bytes(value.encode())
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda value: b"\x00" if value is None else b"\x01" + encode_bytes(value)
    if pa.types.is_list(kind):
        item = _optional(kind.value_type)
        return lambda value: (
            b"\x00"
            if value is None
            else b"\x01" + encode_compact(len(value)) + b"".join([item(each) for each in value])
        )
    if pa.types.is_struct(kind):
        fields = [(field.name, _optional(field.type)) for field in kind]
        return lambda value: (
            b"\x00" if value is None else b"\x01" + b"".join([encode(value[name]) for name, encode in fields])
        )
    raise TypeError(f"rows hold no {kind}")
