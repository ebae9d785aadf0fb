"""Unpacking of Parquet files within bounds, since a stranger may have made them.

A footer may state false sizes. Arrow relies on the headers of the pages, so these are read before
any page is unpacked: they state the size after unpacking, and the number of values. A small page of
references can stand for many copies of a long value in a dictionary, so such references are counted
as well.

Page headers are structs in Thrift's compact protocol (https://github.com/apache/parquet-format,
`parquet.thrift`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pubsub_emulator.primitives.errors import PubsubError

MOST_UNPACKED: Final = 1_073_741_824
"""Bytes that the row groups read of a file may take once unpacked. An honest writer had the whole
segment in memory."""
MOST_VALUES: Final = 1 << 23
"""Values in a row group, including nulls and the values in lists. Each becomes a Python object at
some time."""
MOST_FILE_VALUES: Final = 1 << 25
"""Values in all row groups that are read of a file."""
MOST_FIELD: Final = 64 * 1_048_576
"""Bytes of one value in tables of strangers, whose rows are read a few at a time, and of a column
of those rows."""
_HEADS: Final = (512, 65_536)
"""Bytes in which a page's header is looked for. The second number is for headers with long
statistics."""
_WIDTHS: Final = {
    "BOOLEAN": 1,
    "INT32": 4,
    "INT64": 8,
    "INT96": 12,
    "FLOAT": 4,
    "DOUBLE": 8,
    "BYTE_ARRAY": 4,
}
"""Bytes of a value by physical type. For `BYTE_ARRAY`, these are the bytes of an offset."""

# Ids of fields in a page's header: `uncompressed_page_size`, `compressed_page_size`, and
# `num_values` of the header of a dictionary page.
_UNPACKED, _PACKED = (2,), (3,)
_DICTIONARY: Final = (7, 1)
_COUNTS: Final = ((5, 1), (8, 1), _DICTIONARY)
"""Fields of a page's header with its number of values, for each kind of page."""


class TooLarge(PubsubError):
    """A row group that unpacks to more than is allowed, or whose page headers cannot be read."""


class Source(Protocol):
    """A Parquet file that can be read at any place."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place in the file."""

    def read(self, size: int = -1, /) -> bytes:
        """Return bytes from the present place on."""


@dataclass(slots=True)
class _Chunk:
    """The size of one column of a row group, according to its page headers."""

    path: str
    pages: int = 0
    """Bytes of all its pages once unpacked."""
    largest: int = 0
    """Bytes of its largest page once unpacked."""
    values: int = 0
    """Number of its values."""
    dictionary: int = 0
    """Bytes of its dictionary if it contains texts or bytes of any length, else 0."""
    width: int = 0
    """Bytes that each value takes in Arrow, beside the content of `BYTE_ARRAY` values."""

    @property
    def at_most(self) -> int:
        """The most bytes that the column can take.

        Every value may be a reference to the longest value of the dictionary.
        """
        return self.pages + self.values * (self.width + self.dictionary)


@dataclass(slots=True)
class Spent:
    """Bytes and values of the row groups that were read of a file so far."""

    size: int = 0
    values: int = 0


def read_group(
    parquet: pq.ParquetFile,
    source: Source,
    at: int,
    columns: Sequence[str] | None = None,
    spent: Spent | None = None,
) -> pa.Table:
    """Return a row group, or some of its columns, if it is within the bounds.

    `spent` has the bytes and values that earlier row groups took of the bounds, and grows. Raises
    `TooLarge`, `ArrowException`.
    """
    spent = spent or Spent()
    values = check_group(parquet, source, at, columns, spent=spent)
    # Arrow's threads gain nothing here, and one that still winds up when a program ends aborts it.
    group = parquet.read_row_group(
        at, columns=None if columns is None else list(columns), use_threads=False
    )
    spent.size += group.nbytes
    spent.values += values
    return group


def check_group(  # noqa: PLR0917  # as `read_group`
    parquet: pq.ParquetFile,
    source: Source,
    at: int,
    columns: Sequence[str] | None = None,
    most: int | None = None,
    spent: Spent | None = None,
) -> int:
    """Return the number of values in a row group, without keeping it in memory.

    Raises `TooLarge` if it unpacks, together with `spent`, to more than `most` bytes, and
    `ArrowException` if it is malformed.
    """
    spent = spent or Spent()
    most = (MOST_UNPACKED if most is None else most) - spent.size
    chunks = list(_chunks(parquet, source, at, columns))
    values: int = max(
        sum(chunk.values for chunk in chunks), parquet.metadata.row_group(at).num_rows
    )
    if values > MOST_VALUES:
        raise TooLarge(f"row group {at} has more than {MOST_VALUES} values")
    if values + spent.values > MOST_FILE_VALUES:
        raise TooLarge(
            f"row group {at} and those before it have more than {MOST_FILE_VALUES} values"
        )
    certain = sum(chunk.pages + chunk.values * chunk.width for chunk in chunks)
    # It depends on the references into dictionaries whether the row group is too large. Read
    # without resolving them, it takes little memory.
    if certain <= most < sum(chunk.at_most for chunk in chunks):
        coded = [chunk.path for chunk in chunks if chunk.dictionary]
        again = pq.ParquetFile(
            source, metadata=parquet.metadata, read_dictionary=coded, pre_buffer=False
        )
        group = again.read_row_group(at, columns=coded, use_threads=False)
        for column in group.columns:
            certain += sum(map(_referred, column.chunks))
    if certain > most:
        which = (
            f"row group {at} and those before it unpack"
            if spent.size
            else f"row group {at} unpacks"
        )
        raise TooLarge(f"{which} to more than {most + spent.size} bytes")
    return values


def batches(
    parquet: pq.ParquetFile, source: Source, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file a few at a time, however long it is.

    The number of rows depends on the largest page, so that each batch is bounded. Raises
    `TooLarge`, `ArrowException`.
    """
    for at in range(parquet.num_row_groups):
        largest = max((chunk.largest for chunk in _chunks(parquet, source, at, columns)), default=0)
        if largest > MOST_FIELD:
            raise TooLarge(f"row group {at} has a page of more than {MOST_FIELD} bytes")
        # In a list, a single row may have many values.
        if any(leaf.max_repetition_level for leaf in _leaves(parquet, columns)):
            check_group(parquet, source, at, columns)
        rows = min(1024, max(1, MOST_FIELD // max(largest, 1)))
        yield from parquet.iter_batches(
            rows, row_groups=[at], columns=list(columns), use_threads=False
        )


def _leaves(parquet: pq.ParquetFile, columns: Sequence[str] | None) -> Iterator[pq.ColumnSchema]:
    """Yield the columns of a file. Each field of a nested column is a column here."""
    for index in range(len(parquet.schema)):
        leaf = parquet.schema.column(index)
        if columns is None or leaf.path.partition(".")[0] in columns:
            yield leaf


def _chunks(
    parquet: pq.ParquetFile, source: Source, at: int, columns: Sequence[str] | None
) -> Iterator[_Chunk]:
    """Yield the size of each column of a row group."""
    group = parquet.metadata.row_group(at)
    for index in range(group.num_columns):
        column = group.column(index)
        if columns is not None and column.path_in_schema.partition(".")[0] not in columns:
            continue
        leaf = parquet.schema.column(index)
        out = _Chunk(column.path_in_schema, width=_WIDTHS.get(column.physical_type, leaf.length))
        start, dictionary = column.data_page_offset, column.dictionary_page_offset
        # A row group without rows has no pages, and Arrow does not read any.
        if not start and not column.num_values:
            yield out
            continue
        if dictionary:
            start = min(start, dictionary)
        for page in _pages(source, start, start + column.total_compressed_size):
            out.pages += page[_UNPACKED]
            out.largest = max(out.largest, page[_UNPACKED])
            out.values += sum(page.get(field, 0) for field in _COUNTS)
            if _DICTIONARY in page and column.physical_type == "BYTE_ARRAY":
                out.dictionary += page[_UNPACKED]
        out.values = max(out.values, column.num_values)
        yield out


_Fields = dict[tuple[int, ...], int]
"""The numbers in a struct, by the ids of the fields that lead to each."""


def _pages(source: Source, at: int, end: int) -> Iterator[_Fields]:
    """Yield the headers of the pages between two places of a file.

    Raises `TooLarge` if a header cannot be read or states a negative size.
    """
    while at < end:
        for length in _HEADS:
            source.seek(at)
            head = _Head(source.read(min(length, end - at)))
            try:
                page = head.struct()
                break
            except IndexError:
                continue
        else:
            raise TooLarge("a page has no header that can be read")
        if (
            min(
                page.get(_UNPACKED, -1),
                page.get(_PACKED, -1),
                *(page.get(each, 0) for each in _COUNTS),
            )
            < 0
        ):
            raise TooLarge("a page does not say its size")
        at += head.at + page[_PACKED]
        yield page


class _Head:
    """Bytes that begin with a page's header, and the place in them up to which it was read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def struct(self, above: tuple[int, ...] = ()) -> _Fields:
        """Read a struct and return the numbers in it. Other values are skipped.

        `above` are the ids of the fields that lead to the struct. Raises `IndexError` if the bytes
        end too early, and `TooLarge` if a field has a type that page headers do not have.
        """
        out: _Fields = {}
        field = 0
        while (byte := self._byte()) != 0:
            step, kind = byte >> 4, byte & 15
            field = field + step if step else self._number()
            place = (*above, field)
            # Types of Thrift's compact protocol: 1 and 2 are truth values without further bytes, 3
            # is a byte, 4 to 6 are integers, 7 is a double, 8 are bytes, 12 is a struct.
            if kind in {4, 5, 6}:
                out[place] = self._number()
            elif kind == 12 and len(above) < 3:
                out |= self.struct(place)
            elif kind == 8:
                length = self._varint()
                self.at += length
            elif kind in {3, 7}:
                self.at += 1 if kind == 3 else 8
            elif kind not in {1, 2}:
                raise TooLarge("a page has no header that can be read")
        return out

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        """Read an unsigned number: 7 bits in each byte, the lowest first."""
        out = shift = 0
        while (byte := self._byte()) > 127 and shift < 63:
            out |= (byte & 127) << shift
            shift += 7
        return out | byte << shift

    def _number(self) -> int:
        """Read a signed number, which is zigzag-encoded."""
        found = self._varint()
        return found >> 1 ^ -(found & 1)


def _referred(array: pa.Array) -> int:
    """Return the bytes that an array takes once references into its dictionaries are resolved."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return sum(_referred(array.field(at)) for at in range(array.type.num_fields))
    if (
        pa.types.is_list(array.type)
        or pa.types.is_large_list(array.type)
        or pa.types.is_map(array.type)
    ):
        return _referred(array.values)
    return 0
