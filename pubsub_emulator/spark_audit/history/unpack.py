"""Unpacking of Parquet files within limits, since a stranger may have made them.

A footer may state false sizes, and Arrow does not rely on it but on the headers of the pages. So
these headers are read before any page is unpacked. They state the size after unpacking and the
number of values. A small page of references can stand for many copies of a long value in a
dictionary, so such references are counted as well.

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
"""The maximum size of the row groups that are read from one file, in bytes after unpacking. An
honest writer had the whole segment in memory."""
MOST_VALUES: Final = 1 << 23
"""The maximum number of values in a row group, including nulls and the values in lists. Each
becomes a Python object at some time."""
MOST_FILE_VALUES: Final = 1 << 25
"""The maximum number of values in all row groups that are read from one file."""
MOST_FIELD: Final = 64 * 1_048_576
"""The maximum size, in bytes, of a page or line in files whose rows are read a few at a time."""
_HEADS: Final = (512, 65_536)
"""Numbers of bytes that are read to find a page's header. The second one is for headers with long
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
_UNPACKED: Final = (2,)
_PACKED: Final = (3,)
_DICTIONARY: Final = (7, 1)
_COUNTS: Final = ((5, 1), (8, 1), _DICTIONARY)
"""Fields of a page's header with its number of values, for each kind of page."""


class TooLarge(PubsubError):
    """A row group that is too large when unpacked, or whose page headers cannot be read."""


class ParquetSource(Protocol):
    """A Parquet file that can be read at any place."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position in the file."""

    def read(self, size: int = -1, /) -> bytes:
        """Return bytes from the present position on."""


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
        """An upper limit of the bytes that the column takes.

        It assumes that every value refers to a dictionary entry as long as the whole dictionary.
        """
        return self.pages + self.values * (self.width + self.dictionary)


@dataclass(slots=True)
class Spent:
    """Bytes and values of the row groups that were read from a file so far."""

    size: int = 0
    values: int = 0


def read_group(
    parquet: pq.ParquetFile,
    source: ParquetSource,
    index: int,
    columns: Sequence[str] | None = None,
    spent: Spent | None = None,
) -> pa.Table:
    """Return a row group, or some of its columns, if it is within the limits.

    `spent` has the totals of the row groups that were read before, and this one is added to it.
    Raises `TooLarge`, `ArrowException`.
    """
    spent = spent or Spent()
    values = check_group(parquet, source, index, columns=columns, spent=spent)
    # Arrow's threads are no faster here, and one that is still running when the program ends can
    # make it abort.
    group = parquet.read_row_group(
        index, columns=None if columns is None else list(columns), use_threads=False
    )
    spent.size += group.nbytes
    spent.values += values
    return group


def check_group(  # noqa: PLR0917  # as `read_group`
    parquet: pq.ParquetFile,
    source: ParquetSource,
    index: int,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    spent: Spent | None = None,
) -> int:
    """Return the number of values in a row group, without keeping it in memory.

    Raises `TooLarge` if it unpacks, together with `spent`, to more than `limit` bytes, and
    `ArrowException` if it is malformed.
    """
    spent = spent or Spent()
    total_limit = MOST_UNPACKED if limit is None else limit
    remaining = total_limit - spent.size
    chunks = list(_chunks(parquet, source, index, columns=columns))
    values: int = max(
        sum(chunk.values for chunk in chunks), parquet.metadata.row_group(index).num_rows
    )
    if values > MOST_VALUES:
        raise TooLarge(f"row group {index} has more than {MOST_VALUES} values")
    if values + spent.values > MOST_FILE_VALUES:
        raise TooLarge(
            f"row group {index} and those before it have more than {MOST_FILE_VALUES} values"
        )
    certain = sum(chunk.pages + chunk.values * chunk.width for chunk in chunks)
    # If the references into dictionaries decide whether the row group is too large, read it without
    # resolving them. That takes little memory.
    if certain <= remaining < sum(chunk.at_most for chunk in chunks):
        dictionary_paths = [chunk.path for chunk in chunks if chunk.dictionary]
        coded_parquet = pq.ParquetFile(
            source, metadata=parquet.metadata, read_dictionary=dictionary_paths, pre_buffer=False
        )
        group = coded_parquet.read_row_group(index, columns=dictionary_paths, use_threads=False)
        for column in group.columns:
            certain += sum(map(_referred, column.chunks))
    if certain > remaining:
        description = f"row group {index} unpacks"
        if spent.size:
            description = f"row group {index} and those before it unpack"
        raise TooLarge(f"{description} to more than {total_limit} bytes")
    return values


def batches(
    parquet: pq.ParquetFile, source: ParquetSource, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches of limited size.

    The number of rows in a batch depends on the largest page. Raises `TooLarge`, `ArrowException`.
    """
    for index in range(parquet.num_row_groups):
        largest = max(
            (chunk.largest for chunk in _chunks(parquet, source, index, columns=columns)), default=0
        )
        if largest > MOST_FIELD:
            raise TooLarge(f"row group {index} has a page of more than {MOST_FIELD} bytes")
        # In a list, a single row may have many values.
        if any(leaf.max_repetition_level for leaf in _leaves(parquet, columns)):
            check_group(parquet, source, index, columns=columns)
        rows = min(1024, max(1, MOST_FIELD // max(largest, 1)))
        yield from parquet.iter_batches(
            rows, row_groups=[index], columns=list(columns), use_threads=False
        )


def _leaves(parquet: pq.ParquetFile, columns: Sequence[str] | None) -> Iterator[pq.ColumnSchema]:
    """Yield the leaf columns of a file, that is, each field of a nested column separately."""
    for index in range(len(parquet.schema)):
        leaf = parquet.schema.column(index)
        if columns is None or leaf.path.partition(".")[0] in columns:
            yield leaf


def _chunks(
    parquet: pq.ParquetFile, source: ParquetSource, group_index: int, columns: Sequence[str] | None
) -> Iterator[_Chunk]:
    """Yield the size of each column of a row group."""
    group = parquet.metadata.row_group(group_index)
    for index in range(group.num_columns):
        column = group.column(index)
        if columns is not None and column.path_in_schema.partition(".")[0] not in columns:
            continue
        leaf = parquet.schema.column(index)
        chunk = _Chunk(column.path_in_schema, width=_WIDTHS.get(column.physical_type, leaf.length))
        start = column.data_page_offset
        dictionary = column.dictionary_page_offset
        # A row group without rows has no pages, and Arrow does not read any.
        if not start and not column.num_values:
            yield chunk
            continue
        if dictionary:
            start = min(start, dictionary)
        for page in _pages(source, start, start + column.total_compressed_size):
            chunk.pages += page[_UNPACKED]
            chunk.largest = max(chunk.largest, page[_UNPACKED])
            chunk.values += sum(page.get(field, 0) for field in _COUNTS)
            if _DICTIONARY in page and column.physical_type == "BYTE_ARRAY":
                chunk.dictionary += page[_UNPACKED]
        chunk.values = max(chunk.values, column.num_values)
        yield chunk


_Fields = dict[tuple[int, ...], int]
"""The numbers in a struct, by path: the ids of the fields that lead to the number."""


def _pages(source: ParquetSource, offset: int, end: int) -> Iterator[_Fields]:
    """Yield the headers of the pages between two offsets of a file.

    Raises `TooLarge` if a header cannot be read or states a negative size.
    """
    while offset < end:
        for length in _HEADS:
            source.seek(offset)
            head = _Head(source.read(min(length, end - offset)))
            try:
                page = head.struct()
                break
            except IndexError:
                continue
        else:
            raise TooLarge("a page has no header that can be read")
        # The two sizes are required. Each kind of page has only one of the counts.
        stated = [page.get(_UNPACKED, -1), page.get(_PACKED, -1)]
        stated += [page.get(field, 0) for field in _COUNTS]
        if min(stated) < 0:
            raise TooLarge("a page does not say its size")
        offset += head.offset + page[_PACKED]
        yield page


class _Head:
    """A reader of bytes that begin with a page's header."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    def struct(self, path: tuple[int, ...] = ()) -> _Fields:
        """Read a struct and return the numbers in it. Other values are skipped.

        `path` has the ids of the fields that lead to the struct. Raises `IndexError` if the bytes
        end too early, and `TooLarge` if a field has a type that page headers do not have.
        """
        numbers: _Fields = {}
        field = 0
        while (byte := self._byte()) != 0:
            step = byte >> 4
            kind = byte & 15
            # A step of 0 means that the field's id is too far from the last one and follows.
            if step:
                field += step
            else:
                field = self._number()
            field_path = (*path, field)
            # Types of Thrift's compact protocol: 1 and 2 are truth values without further bytes, 3
            # is a byte, 4 to 6 are integers, 7 is a double, 8 are bytes, 12 is a struct. Page
            # headers have no structs below the third level.
            if kind in {4, 5, 6}:
                numbers[field_path] = self._number()
            elif kind == 12 and len(path) < 3:
                numbers |= self.struct(field_path)
            elif kind == 8:
                length = self._varint()
                self.offset += length
            elif kind in {3, 7}:
                self.offset += 1 if kind == 3 else 8
            elif kind not in {1, 2}:
                raise TooLarge("a page has no header that can be read")
        return numbers

    def _byte(self) -> int:
        self.offset += 1
        return self.data[self.offset - 1]

    def _varint(self) -> int:
        """Read an unsigned number: 7 bits in each byte, the lowest first."""
        number = 0
        shift = 0
        while (byte := self._byte()) > 127 and shift < 63:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def _number(self) -> int:
        """Read a signed number, which is zigzag-encoded."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)


def _referred(array: pa.Array) -> int:
    """Return the bytes of an array's dictionary entries, counted once for each reference."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return sum(_referred(array.field(index)) for index in range(array.type.num_fields))
    if (
        pa.types.is_list(array.type)
        or pa.types.is_large_list(array.type)
        or pa.types.is_map(array.type)
    ):
        return _referred(array.values)
    return 0
