"""What every data source here shares: options, filters, and the classes of Spark's interface."""

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


class SourceError(PubsubError):
    """An option that means nothing, or data that cannot be read; one line."""


class Source(api.DataSource, api.DataSourceStreamReader):
    """A data source of Spark and the reader of its stream. Making one raises `SourceError` for senseless options.

    `filters` are those that Spark applies to rows: partitions in which no row passes them can be left out.
    """

    format: ClassVar[str]
    known: ClassVar[tuple[str, ...]]
    """The options beside `path` and `columns`."""
    columns: pa.Schema
    filters: Sequence[api.Filter] = ()

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        names = sorted({"path", "columns", *self.known})
        for name in options:
            if name.lower() not in names:
                raise SourceError(f"{self.format} has no option {name!r}; it has {', '.join(names)}")

    def text(self, name: str, default: str | None = None) -> str:
        """An option, which has to be given where there is no default."""
        found = self.options.get(name, default)
        if not found:
            raise SourceError(f"{self.format} needs the option {name!r}")
        return found

    def choice(self, name: str, values: Iterable[str], default: str) -> str:
        """One of some values."""
        found = self.text(name, default)
        if found not in values:
            raise SourceError(f"{self.format}: option {name} is {found!r}; it can be {', '.join(values)}")
        return found

    def number(self, name: str, default: int) -> int:
        """A whole number that is not negative."""
        return self.whole(name, self.text(name, str(default)))

    def whole(self, name: str, found: str) -> int:
        """The number that a part of an option is."""
        if not (found.isascii() and found.isdecimal()):
            raise SourceError(f"{self.format}: option {name} is {found!r}, not a whole number")
        return int(found)

    def chosen(self, schema: pa.Schema) -> pa.Schema:
        """The schema in Spark's types, or the columns of it that the option `columns` names."""
        named = [name.strip() for name in self.options.get("columns", "").split(",") if name.strip()]
        for name in named:
            if name not in schema.names:
                raise SourceError(f"{self.format} has no column {name!r}; it has {', '.join(schema.names)}")
        return pa.schema([each for each in plain_schema(schema) if each.name in (named or schema.names)])

    @abstractmethod
    def all(self) -> list[api.InputPartition]:
        """The partitions of everything, less those in which no row passes the filters."""

    @abstractmethod
    def rows(self, part: Any) -> Iterator[pa.Table]:
        """The rows of a partition, by its value."""

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Spark takes them."""
        for table in () if partition.value is None else self.rows(partition.value):
            yield from in_schema(table, self.columns).to_batches()

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return cls.format

    def schema(self) -> StructType:
        """The columns of the table."""
        return from_arrow_schema(self.columns)

    def reader(self, schema: StructType) -> api.DataSourceReader:  # noqa: ARG002  # the option `columns` says which
        """The reader of everything that is there."""
        return _Reader(self)

    def streamReader(self, schema: StructType) -> api.DataSourceStreamReader:  # noqa: ARG002, N802  # Spark's name
        """The reader of what comes."""
        return self

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        """Nothing was read."""
        return {}


class _Reader(api.DataSourceReader):
    def __init__(self, source: Source) -> None:
        self.source = source

    def pushFilters(self, filters: list[api.Filter]) -> Iterable[api.Filter]:  # noqa: N802  # Spark's name
        self.source.filters = filters
        return filters  # Spark applies them to the rows of partitions that are left

    def partitions(self) -> Sequence[api.InputPartition]:
        return self.source.all()

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.source.read(partition)


def partitions_of(values: Sequence[object]) -> list[api.InputPartition]:
    """A partition of each value; Spark wants one where nothing is left to read."""
    return [api.InputPartition(each) for each in values or (None,)]


def may_match(filters: Iterable[api.Filter], bounds: Mapping[str, tuple[Any, Any]]) -> bool:
    """Whether rows whose columns are within these bounds may pass all filters; other columns leave nothing out."""
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        least, most = bounds.get(path[0], (None, None)) if len(path) == 1 else (None, None)
        if least is not None and not _passes(each, least, most):
            return False
    return True


def _passes(one: api.Filter, least: Any, most: Any) -> bool:
    """Whether some value from the least to the most one, or none at all, may pass a filter."""
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
