"""Canonical bytes of rows, and digests of sets of rows (AU-4).

Digests must be equal on every engine and however the work is split.

    row     each column in schema order: 00 for null, or 01 and the value
    value   integer; time in milliseconds since 1970; day, counted from 1 in the year 1:
                         i128, two's complement, little endian, 16 bytes
            boolean      one byte, 00 or 01
            string, binary  Vec<u8>
            list         compact count, values (each as a column)
            struct       its fields (each as a column)
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
"""Encodes a value or `None`."""


def encode_row(table: Table, row: Row) -> bytes:
    """Return the canonical bytes of one row, in the version of the table that the row needs."""
    version, (fitting,) = fitted(table, (row,))
    return b"".join([encode(fitting[name]) for name, encode in _row_encoders(version)])


def digest_rows(table: Table, rows: Iterable[Row]) -> Hash:
    """Return the digest of a set of rows. Their order does not matter.

    The table's version is the lowest one that has all columns with values. So a column that is
    added to a table does not change the digest of older rows.
    """
    table, fitting = fitted(table, rows)
    encoders = _row_encoders(table)
    encoded = sorted(
        [b"".join([encode(row[name]) for name, encode in encoders]) for row in fitting]
    )
    head = (
        encode_bytes(table.name.encode())
        + table.version.to_bytes(4, "little")
        + encode_compact(len(encoded))
    )
    return blake2_256(head + b"".join(encoded))


@lru_cache(maxsize=64)
def _encoders(columns: tuple[tuple[str, pa.DataType], ...]) -> tuple[tuple[str, Encoder], ...]:
    """Return an encoder for each column, given by name and type."""
    return tuple((name, _optional(kind)) for name, kind in columns)


def milliseconds(value: datetime) -> int:
    """Return the milliseconds from 1970 to a time."""
    return (value - EPOCH) // timedelta(milliseconds=1)


def _row_encoders(table: Table) -> tuple[tuple[str, Encoder], ...]:
    return _encoders(tuple((column.name, column.type) for column in table.columns))


def _encode_boolean(value: bool | None) -> bytes:
    if value is None:
        return b"\x00"
    return b"\x01\x01" if value else b"\x01\x00"


def _optional(kind: pa.DataType) -> Encoder:
    """Return an encoder for values of an Arrow type, and for `None`.

    The type is only examined here, not for each value, since each row of a history is encoded.
    """
    if pa.types.is_boolean(kind):
        return _encode_boolean
    if pa.types.is_integer(kind):
        return lambda value: (
            b"\x00" if value is None else b"\x01" + value.to_bytes(16, "little", signed=True)
        )
    if pa.types.is_timestamp(kind):
        return lambda value: (
            b"\x00"
            if value is None
            else b"\x01" + milliseconds(value).to_bytes(16, "little", signed=True)
        )
    if pa.types.is_date(kind):
        return lambda value: (
            b"\x00"
            if value is None
            else b"\x01" + value.toordinal().to_bytes(16, "little", signed=True)
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
            else b"\x01" + encode_compact(len(value)) + b"".join([item(entry) for entry in value])
        )
    if pa.types.is_struct(kind):
        fields = [(field.name, _optional(field.type)) for field in kind]
        return lambda value: (
            b"\x00"
            if value is None
            else b"\x01" + b"".join([encode(value[name]) for name, encode in fields])
        )
    raise TypeError(f"values of the type {kind} have no canonical bytes")
