"""What every data source here shares: options, types, filters, and the classes of Spark's interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.address import is_remote, local_path

Offset = dict[str, int]
PATH: Final = "path"
COLUMNS: Final = "columns"


class SourceError(PubsubError):
    """An option that means nothing, or data that cannot be read; one line."""


class Wanted(ABC):
    """The options that a user gives to one source, and the rows that they ask for, once or as a stream.

    Reading options raises `SourceError`. `filters` are those that Spark applies to what is read: partitions in which no
    row passes them can be left out.
    """

    source: ClassVar[str]
    options: ClassVar[tuple[str, ...]]
    """Those beside `path` and `columns`."""
    schema: pa.Schema
    """The columns of the rows."""
    filters: Sequence[api.Filter] = ()

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given
        names = sorted({PATH, COLUMNS, *self.options})
        for name in given:
            if name.lower() not in names:
                raise SourceError(f"{self.source} has no option {name!r}; it has {', '.join(names)}")

    def text(self, name: str, default: str | None = None) -> str:
        """An option, which has to be given where there is no default."""
        found = self.given.get(name, default)
        if not found:
            raise SourceError(f"{self.source} needs the option {name!r}")
        return found

    def choice(self, name: str, values: Sequence[str], default: str) -> str:
        """One of some values."""
        found = self.text(name, default)
        if found not in values:
            raise SourceError(f"{self.source}: option {name} is {found!r}; it can be {', '.join(values)}")
        return found

    def number(self, name: str, default: int) -> int:
        """A whole number that is not negative."""
        found = self.text(name, str(default))
        if not (found.isascii() and found.isdecimal()):
            raise SourceError(f"{self.source}: option {name} is {found!r}, not a whole number")
        return int(found)

    def address(self) -> str:
        """The option `path`, made absolute where it is a path of this machine."""
        found = self.text(PATH)
        return found if is_remote(found) else str(local_path(found).resolve())

    def columns(self, schema: pa.Schema) -> pa.Schema:
        """The schema in Spark's types, or the columns of it that the option `columns` names."""
        named = [name.strip() for name in self.given.get(COLUMNS, "").split(",") if name.strip()]
        for name in named:
            if name not in schema.names:
                raise SourceError(f"{self.source} has no column {name!r}; it has {', '.join(schema.names)}")
        return pa.schema([(each.name, plain(each.type)) for each in schema if each.name in (named or schema.names)])

    @abstractmethod
    def all(self) -> list[api.InputPartition]:
        """The partitions of everything, less those in which no row passes the filters."""

    @abstractmethod
    def newest(self) -> Offset:
        """The offset after everything that is there now."""

    @abstractmethod
    def between(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """The partitions of what came between two offsets."""

    @abstractmethod
    def rows(self, part: Any) -> Iterator[pa.Table]:
        """The rows of a partition, by its value."""

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Spark takes them; it wants one without rows where nothing is left to read."""
        for table in () if partition.value is None else self.rows(partition.value):
            yield from cast("Iterator[pa.RecordBatch]", fitted(table, self.schema).to_batches())


class _Reader(api.DataSourceReader):
    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def pushFilters(self, filters: list[api.Filter]) -> Iterable[api.Filter]:  # noqa: N802  # Spark's name
        self.wanted.filters = filters
        return filters  # Spark applies them to the rows of partitions that are left

    def partitions(self) -> Sequence[api.InputPartition]:
        return self.wanted.all() or [api.InputPartition(None)]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.wanted.read(partition)


class _StreamReader(api.DataSourceStreamReader):
    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        return {}

    def latestOffset(self, *_: object) -> Offset:  # noqa: N802  # Spark's name
        return self.wanted.newest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[api.InputPartition]:
        return self.wanted.between(start, end) or [api.InputPartition(None)]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        return self.wanted.read(partition)

    def commit(self, end: Offset) -> None:
        """Do nothing: Spark keeps the offsets."""


class Source(api.DataSource):
    """A data source of Spark; subclasses say what is `wanted`."""

    wanted: ClassVar[type[Wanted]]

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return cls.wanted.source

    def schema(self) -> StructType:
        """The columns of the table."""
        return from_arrow_schema(self.wanted(self.options).schema)

    def reader(self, schema: StructType) -> api.DataSourceReader:  # noqa: ARG002  # the option `columns` says which
        """The reader of everything that is there."""
        return _Reader(self.wanted(self.options))

    def streamReader(self, schema: StructType) -> api.DataSourceStreamReader:  # noqa: ARG002, N802  # as above
        """The reader of what comes."""
        return _StreamReader(self.wanted(self.options))


def plain(kind: pa.DataType) -> pa.DataType:
    """A type in which Spark has values of `kind`: signed integers, bytes of any length, microseconds."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    return pa.struct([(each.name, plain(each.type)) for each in kind]) if pa.types.is_struct(kind) else kind


def fitted(table: pa.Table, schema: Iterable[pa.Field]) -> pa.Table:
    """The columns of `schema` of a table; one that the table's version lacks is null."""
    found = {
        each.name: table.column(each.name).cast(each.type)
        if each.name in table.column_names
        else pa.nulls(len(table), each.type)
        for each in schema
    }
    return pa.table(found)


def may_match(filters: Iterable[api.Filter], bounds: Mapping[str, tuple[object, object]]) -> bool:
    """Whether rows whose columns are within these bounds may pass all filters; other columns leave nothing out."""
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        value: Any = getattr(each, "value", None)
        bound: tuple[Any, Any] = bounds.get(path[0], (None, None)) if len(path) == 1 else (None, None)
        least, greatest = bound
        if least is None or value is None:
            continue
        if isinstance(each, api.EqualTo | api.EqualNullSafe | api.In):
            values = value if isinstance(each, api.In) else (value,)
            passes = any(some is not None and least <= some <= greatest for some in values)
        elif isinstance(each, api.GreaterThan | api.GreaterThanOrEqual):
            passes = greatest >= value
        else:
            passes = not isinstance(each, api.LessThan | api.LessThanOrEqual) or least <= value
        if not passes:
            return False
    return True
