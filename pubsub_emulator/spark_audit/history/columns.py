"""Columns in types that every engine knows: integers with a sign, bytes of any length, microseconds."""

import pyarrow as pa


def plain(kind: pa.DataType) -> pa.DataType:
    """The type in which every engine has values of `kind`."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    return pa.struct([(each.name, plain(each.type)) for each in kind]) if pa.types.is_struct(kind) else kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Columns in plain types, which may all be null."""
    return pa.schema([pa.field(each.name, plain(each.type), metadata=each.metadata) for each in schema])


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `schema`, in its types; those that the rows lack are null."""
    columns = [
        rows.column(each.name).cast(each.type) if each.name in rows.column_names else pa.nulls(len(rows), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
