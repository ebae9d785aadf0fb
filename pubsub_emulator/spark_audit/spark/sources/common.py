"""The base of the data sources: options, filters, and the classes of Spark's interface."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.columns import in_schema, plain_schema

Offset = dict[str, int]
"""The place of a stream in its data."""


class SourceError(PubsubError):
    """A wrong option, or data that cannot be read. The message is one line."""


class Source(api.DataSource, api.DataSourceStreamReader):
    """A data source of Spark, which is also the reader of its stream.

    Making one raises `SourceError` if an option is not known or has a wrong value.
    """

    format: ClassVar[str]
    """The name by which users choose the source."""
    known: ClassVar[tuple[str, ...]]
    """Options beside `path` and `columns`."""
    columns: pa.Schema
    """The columns of the chosen table."""
    filters: Sequence[api.Filter] = ()
    """Filters that Spark applies to the rows. Partitions without any row that passes can be left
    out."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        names = sorted({"path", "columns", *self.known})
        for name in options:
            if name.lower() not in names:
                raise SourceError(
                    f"{self.format} has no option {name!r}; it has {', '.join(names)}"
                )

    def text(self, name: str, default: str | None = None) -> str:
        """Return an option. Raises `SourceError` if it is missing and has no default."""
        found = self.options.get(name, default)
        if not found:
            raise SourceError(f"{self.format} needs the option {name!r}")
        return found

    def choice(self, name: str, values: Iterable[str], default: str) -> str:
        """Return an option that must be one of some values."""
        found = self.text(name, default)
        if found not in values:
            raise SourceError(
                f"{self.format}: option {name} is {found!r}; it can be {', '.join(values)}"
            )
        return found

    def number(self, name: str, default: int) -> int:
        """Return an option that must be a whole number from 0 on."""
        return self.whole(name, self.text(name, str(default)))

    def whole(self, name: str, found: str) -> int:
        """Return a part of an option as a whole number."""
        if not (found.isascii() and found.isdecimal()):
            raise SourceError(f"{self.format}: option {name} is {found!r}, not a whole number")
        return int(found)

    def chosen(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema in Spark's types, with the columns that the option `columns` names.

        Without that option, it has all columns.
        """
        named = [
            name.strip() for name in self.options.get("columns", "").split(",") if name.strip()
        ]
        for name in named:
            if name not in schema.names:
                raise SourceError(
                    f"{self.format} has no column {name!r}; it has {', '.join(schema.names)}"
                )
        return pa.schema(
            [each for each in plain_schema(schema) if each.name in (named or schema.names)]
        )

    @abstractmethod
    def all(self) -> list[api.InputPartition]:
        """Return the partitions of all data, except those in which no row passes the filters."""

    @abstractmethod
    def rows(self, part: Any) -> Iterator[pa.Table]:
        """Yield the rows of a partition, given its value."""

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in Spark's form."""
        for table in () if partition.value is None else self.rows(partition.value):
            yield from in_schema(table, self.columns).to_batches()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return cls.format

    def schema(self) -> StructType:
        """Return the columns of the table."""
        return from_arrow_schema(self.columns)

    def reader(self, schema: StructType) -> api.DataSourceReader:  # noqa: ARG002  # the option `columns` decides
        """Return the reader of a batch."""
        return _Reader(self)

    def streamReader(self, schema: StructType) -> api.DataSourceStreamReader:  # noqa: ARG002, N802  # Spark's name
        """Return the reader of a stream."""
        return self

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Return the offset before all data."""
        return {}


class _Reader(api.DataSourceReader):
    """The reader of a batch, which gets the filters from Spark."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def pushFilters(self, filters: list[api.Filter]) -> Iterable[api.Filter]:  # noqa: N802  # Spark's name
        self.source.filters = filters
        # Returning all filters makes Spark apply them to the rows as well: leaving out partitions
        # is not exact.
        return filters

    def partitions(self) -> Sequence[api.InputPartition]:
        return self.source.all()

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.source.read(partition)


def partitions_of(values: Sequence[object]) -> list[api.InputPartition]:
    """Return a partition for each value.

    Spark needs at least one partition, even if there is nothing to read.
    """
    return [api.InputPartition(each) for each in values or (None,)]


def may_match(filters: Iterable[api.Filter], bounds: Mapping[str, tuple[Any, Any]]) -> bool:
    """Return whether rows with columns within these bounds may pass all filters.

    Filters on columns without bounds are ignored.
    """
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        least, most = bounds.get(path[0], (None, None)) if len(path) == 1 else (None, None)
        if least is not None and not _passes(each, least, most):
            return False
    return True


def _passes(one: api.Filter, least: Any, most: Any) -> bool:
    """Return whether a value between `least` and `most` may pass a filter.

    If the filter is of an unknown kind or compares with null, the answer is yes.
    """
    match one:
        case api.EqualTo(_, value) | api.EqualNullSafe(_, value):
            return value is None or bool(least <= value <= most)
        case api.In(_, values):
            return any(value is not None and least <= value <= most for value in values)
        case api.GreaterThan(_, value) | api.GreaterThanOrEqual(_, value):
            return value is None or bool(most >= value)
        case api.LessThan(_, value) | api.LessThanOrEqual(_, value):
            return value is None or bool(least <= value)
    return True
