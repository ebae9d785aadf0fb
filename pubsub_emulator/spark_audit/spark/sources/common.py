"""The base of the data sources: options, filters, and the classes of Spark's interface."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.columns import in_schema, plain_schema

_OF_CATALOG: Final = "provider"
"""A property that Spark adds to the options when it makes a table of its catalog."""

Offset = dict[str, Any]
"""The place of a stream in its data, as JSON in the stream's checkpoint."""


class SourceError(PubsubError):
    """A wrong option, or data that cannot be read. The message is one line."""


class Source(api.DataSource, api.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A data source of Spark, which is also the reader of its stream.

    The names of options, tables and columns are not case-sensitive. The constructor raises
    `SourceError` if an option is not known or has a wrong value.
    """

    format: ClassVar[str]
    """The name by which users choose the source."""
    known: ClassVar[tuple[str, ...]]
    """Options beside `path` and `columns`."""
    columns: pa.Schema
    """The columns of the chosen table."""
    user_schema: pa.Schema | None = None
    """The same columns with the names that the user gave them in a schema."""
    target: Offset | None = None
    """The offset at which a stream with the trigger `availableNow` ends."""
    filters: Sequence[api.Filter] = ()
    """Filters that Spark applies to the rows. Partitions in which no row can pass may be left out.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        options = {name.lower(): value for name, value in options.items()}
        super().__init__(options)
        if _OF_CATALOG in options:
            # Spark 4.3 would create such a table, and then read it without its options.
            raise SourceError(
                f"{self.format} cannot be a table of Spark's catalog, since Spark forgets its"
                f" options; CREATE TEMPORARY VIEW … USING {self.format} works"
            )
        names = sorted({"path", "columns", *self.known})
        lower = {name.lower() for name in names}
        for name in options:
            if name == "paths":
                raise SourceError(
                    f"{self.format} reads one path; the rows of several are a union of DataFrames"
                )
            if name not in lower:
                raise SourceError(
                    f"{self.format} has no option {name!r}; it has {', '.join(names)}"
                )

    def text(self, name: str, default: str | None = None) -> str:
        """Return an option. Raises `SourceError` if it is missing and has no default."""
        value = self.options.get(name.lower(), default)
        if not value:
            raise SourceError(f"{self.format} needs the option {name!r}")
        return value

    def choice(self, name: str, values: Iterable[str], default: str) -> str:
        """Return an option that must be one of some values."""
        given = self.text(name, default)
        known = {value.lower(): value for value in values}
        if given.lower() not in known:
            raise SourceError(
                f"{self.format}: option {name} is {given!r}; it can be {', '.join(known.values())}"
            )
        return known[given.lower()]

    def number(self, name: str, default: int) -> int:
        """Return an option that must be a whole number from 0 on."""
        return self.whole(name, self.text(name, str(default)))

    def whole(self, name: str, value: str) -> int:
        """Return a part of an option as a whole number."""
        if not (value.isascii() and value.isdecimal()):
            raise SourceError(f"{self.format}: option {name} is {value!r}, not a whole number")
        return int(value)

    def listed(self, name: str) -> list[str]:
        """Return the parts of an option that is a list, an empty list if the option is missing."""
        parts = (part.strip() for part in self.options.get(name.lower(), "").split(","))
        return [part for part in parts if part]

    def limit(self, name: str) -> int | None:
        """Return an option that must be a whole number from 1 on, `None` if it is missing."""
        if name.lower() not in self.options:
            return None
        value = self.number(name, 0)
        if value == 0:
            raise SourceError(f"{self.format}: option {name} must be 1 or more")
        return value

    def chosen(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema in Spark's types, with the columns that the option `columns` names.

        Without that option, it has all columns.
        """
        names = {self._column(schema, name).name for name in self.listed("columns")}
        if not names:
            names = set(schema.names)
        return pa.schema([field for field in plain_schema(schema) if field.name in names])

    def _column(self, schema: pa.Schema, name: str) -> pa.Field:
        """Return a column by its name in any case. Raises `SourceError` if there is none."""
        for field in schema:
            if field.name.lower() == name.lower():
                return field
        raise SourceError(f"{self.format} has no column {name!r}; it has {', '.join(schema.names)}")

    def narrow(self, wanted: StructType) -> None:
        """Read only the columns of a schema that the user gave, in its order.

        Raises `SourceError` for an unknown column or another type.
        """
        fields: list[pa.Field] = []
        for field in wanted.fields:
            column = self._column(self.columns, field.name)
            kind = from_arrow_type(column.type)
            if _nullable(field.dataType) != _nullable(kind):
                raise SourceError(
                    f"{self.format}: column {column.name} is {kind.simpleString()}, not"
                    f" {field.dataType.simpleString()}"
                )
            fields.append(column.with_name(field.name))
        self.user_schema = pa.schema(fields)
        self.columns = pa.schema([self._column(self.columns, field.name) for field in fields])

    @abstractmethod
    def all(self) -> list[api.InputPartition]:
        """Return the partitions of all data, except those in which no row passes the filters."""

    @abstractmethod
    def rows(self, part: Any) -> Iterator[pa.Table]:
        """Yield the rows of a partition, given its value."""

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in Spark's form."""
        shown = self.columns if self.user_schema is None else self.user_schema
        # The one partition of a source without data has no value.
        if partition.value is None:
            return
        for table in self.rows(partition.value):
            rows = in_schema(table, self.columns)
            yield from pa.Table.from_arrays(rows.columns, schema=shown).to_batches()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return cls.format

    def schema(self) -> StructType:
        """Return the columns of the table."""
        return from_arrow_schema(self.columns)

    def reader(self, schema: StructType) -> api.DataSourceReader:
        """Return the reader of a batch. Raises `SourceError` for a schema that does not fit."""
        self.narrow(schema)
        return _Reader(self)

    def streamReader(self, schema: StructType) -> api.DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return the reader of a stream. Raises `SourceError` for a schema that does not fit."""
        self.narrow(schema)
        return self

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return the offset before all data."""
        return {}

    @abstractmethod
    def newest(self) -> Offset:
        """Return the offset after all data that are there now."""

    @abstractmethod
    def limited(self, start: Offset, end: Offset) -> Offset:
        """Return the offset up to which one batch reads, by the options that limit batches."""

    def latestOffset(  # noqa: N802  # Spark's name
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the offset up to which the next batch reads."""
        end = self.newest() if self.target is None else self.target
        if limit is None or isinstance(limit, ReadAllAvailable):
            return end
        return self.limited(start or {}, end)

    def reportLatestOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return the offset after all data, for the progress of a stream."""
        return self.newest()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Store the present end of the data, at which a stream with this trigger ends."""
        self.target = self.newest()


class _Reader(api.DataSourceReader):
    """The reader of a batch, which gets the filters from Spark."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def pushFilters(self, filters: list[api.Filter]) -> Iterable[api.Filter]:  # noqa: N802  # Spark's name
        self.source.filters = filters
        # Returning all filters makes Spark apply them to the rows as well. That is necessary
        # because only whole partitions are left out here.
        return filters

    def partitions(self) -> Sequence[api.InputPartition]:
        return self.source.all()

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.source.read(partition)


def _nullable(kind: DataType) -> DataType:
    """Return a type with all inner fields nullable.

    Types that differ only in what may be null are then equal.
    """
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind])
    return kind


def partitions_of(values: Sequence[object]) -> list[api.InputPartition]:
    """Return a partition for each value.

    Spark needs at least one partition. If there are no values, that partition's value is `None`.
    """
    if not values:
        return [api.InputPartition(None)]
    return [api.InputPartition(value) for value in values]


def may_match(filters: Iterable[api.Filter], bounds: Mapping[str, tuple[Any, Any]]) -> bool:
    """Return whether rows with columns within these bounds may pass all filters.

    Filters on columns without bounds are ignored.
    """
    for condition in filters:
        # A longer path leads into a struct, for whose fields there are no bounds.
        path: tuple[str, ...] = getattr(condition, "attribute", ())
        if len(path) != 1:
            continue
        low, high = bounds.get(path[0], (None, None))
        if low is not None and not _passes(condition, low, high):
            return False
    return True


def same_bounds(**values: Any) -> dict[str, tuple[Any, Any]]:
    """Return the bounds of columns that have the same value in all rows, for `may_match`."""
    return {name: (value, value) for name, value in values.items()}


def _passes(condition: api.Filter, low: Any, high: Any) -> bool:
    """Return whether a value between `low` and `high` may pass a filter.

    Returns true for a filter of an unknown kind and for a comparison with null.
    """
    match condition:
        case api.EqualTo(_, value) | api.EqualNullSafe(_, value):
            return value is None or bool(low <= value <= high)
        case api.In(_, values):
            return any(value is not None and low <= value <= high for value in values)
        case api.GreaterThan(_, value) | api.GreaterThanOrEqual(_, value):
            return value is None or bool(high >= value)
        case api.LessThan(_, value) | api.LessThanOrEqual(_, value):
            return value is None or bool(low <= value)
    return True
