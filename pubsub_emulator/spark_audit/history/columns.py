"""Conversion of columns to types that every engine knows.

These are signed integers, bytes of any length, and times in microseconds.
"""

import pyarrow as pa


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type that every engine knows and that can hold all values of the given type."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types. All columns may be null."""
    return pa.schema(
        [pa.field(field.name, plain(field.type), metadata=field.metadata) for field in schema]
    )


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a schema. Missing columns are null."""
    columns: list[pa.ChunkedArray | pa.Array] = []
    for field in schema:
        if field.name in rows.column_names:
            columns.append(rows.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    return pa.Table.from_arrays(columns, schema=schema)
