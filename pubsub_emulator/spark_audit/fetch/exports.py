"""The source of blocks in exported tables with the columns of substrate-etl.

    blocks…      number, hash, parent_hash, state_root, block_time, relay_block_number,
                 relay_state_root
    extrinsics…  block_number, section, method,
                 params (JSON: validationData, relayChainState.trieNodes, …)

Files are Parquet, CSV or JSON lines. The name of a file or of its folder must begin with the
table's name. Only proofs can be verified. Hashes and times are claims of the export. Its relay
roots are compared with the inherents.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import IO, AnyStr, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pubsub_emulator.primitives.types import U32_MAX, ParaId, RelayBlockNumber
from pubsub_emulator.spark_audit.fetch.block import VALUES
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints
from pubsub_emulator.spark_audit.fetch.errors import FetchError, WrongBlock
from pubsub_emulator.spark_audit.fetch.relay import RelayHeaders
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.history.unpack import MOST_FIELD, TooLarge, batches
from pubsub_emulator.spark_audit.real_proofs.imported import RelayProof
from pubsub_emulator.spark_audit.real_proofs.values import plain_name

Row = Mapping[str, object]
"""A row of a table."""

_COLUMNS: Final = {
    "blocks": (
        "number",
        "hash",
        "parent_hash",
        "state_root",
        "block_time",
        "relay_block_number",
        "relay_state_root",
    ),
    "extrinsics": ("block_number", "section", "method", "params"),
}
"""Columns that are read, by table."""
_NUMBER: Final = {"blocks": "number", "extrinsics": "block_number"}
"""The column with the block number, by table."""
_ENDINGS: Final = (".parquet", ".csv", ".jsonl", ".json")
_CALL: Final = ("parachainsystem", "setvalidationdata")
"""Section and method of the inherent, as `plain_name` writes them: exports differ in case and
underscores."""


@dataclass(slots=True)
class _File:
    """A file of a table."""

    table: str
    path: str
    span: tuple[int, int] | None = None
    """The lowest and highest block number in the file, `None` before it was read."""


class _PlacedRow(NamedTuple):
    """A row that was read."""

    number: int
    """The number of the block that the row is about."""
    place: str
    """The file and the number of the row, for messages."""
    row: Row


class ExportSource:
    """A parachain's blocks from exported tables at an address.

    For a range of blocks, only the files that overlap it are read.
    """

    def __init__(
        self, network: str, chain: ParaId, base: Address | Store, relay: Endpoints | None = None
    ) -> None:
        self.network = network
        self.chain = chain
        self._store = open_store(base)
        self._relay = RelayHeaders(relay)
        paths = [path for path in self._store.walk() if path.endswith(_ENDINGS)]
        self._files: list[_File] = []
        for table in _COLUMNS:
            table_paths = [path for path in paths if _is_of_table(path, table)]
            if not table_paths:
                raise FetchError(
                    f"{self._store}: there is no file or folder whose name begins with {table}"
                )
            self._files += [_File(table, path) for path in table_paths]

    async def newest(self) -> int:
        """Return the number of the highest block in the export."""
        spans = [self._span(file) for file in self._files if file.table == "blocks"]
        return max((highest for _, highest in spans), default=0)

    async def name(self) -> str | None:
        """Return `None`, because an export has ParaIds but not names."""
        return None

    async def blocks(
        self, first: int, last: int, advance: Callable[[int], None]
    ) -> list[RelayProof]:
        """Return the inherents of a range of blocks. Raises `FetchError`."""
        heads = {placed.number: placed for placed in self._rows("blocks", first, last)}
        calls = {
            placed.number: placed
            for placed in self._rows("extrinsics", first, last)
            if (plain_name(placed.row["section"]), plain_name(placed.row["method"])) == _CALL
        }
        proofs: list[RelayProof] = []
        for number in range(first, last + 1):
            if number not in heads:
                raise WrongBlock(f"{self._store}: block {number} is not in the export")
            if number not in calls:
                raise WrongBlock(
                    f"{self._store}: the export has no set_validation_data of block {number}"
                )
            proofs.append(self._proof(heads[number], calls[number]))
            advance(len(proofs))
        return await self._relay.with_headers(proofs)

    def _rows(self, table: str, first: int, last: int) -> Iterator[_PlacedRow]:
        """Yield a table's rows about the blocks of a range."""
        for file in self._files:
            if file.table != table:
                continue
            low, high = self._span(file)
            if low <= last and first <= high:
                for placed in self._read(file):
                    if first <= placed.number <= last:
                        yield placed

    def _span(self, file: _File) -> tuple[int, int]:
        """Return the lowest and highest block number in a file, which is read at the first call."""
        if file.span is None:
            numbers = [placed.number for placed in self._read(file, (_NUMBER[file.table],))]
            # The span of an empty file does not overlap any range.
            file.span = (min(numbers), max(numbers)) if numbers else (U32_MAX, 0)
        return file.span

    def _read(self, file: _File, columns: tuple[str, ...] | None = None) -> Iterator[_PlacedRow]:
        """Yield the rows of a file. Raises `FetchError` if a column is missing."""
        wanted = columns or _COLUMNS[file.table]
        name = _NUMBER[file.table]
        file_place = f"{self._store}/{file.path}"
        with self._store.open(file.path) as content:
            rows = _rows_of(file_place, content, file.path, columns=wanted)
            for row_number, row in enumerate(rows, 1):
                place = f"{file_place}: row {row_number}"
                for column in wanted:
                    if column not in row:
                        raise FetchError(f"{place} has no {column}")
                yield _PlacedRow(VALUES.number(f"{place}: {name}", row[name]), place, row)

    def _proof(self, placed_head: _PlacedRow, placed_call: _PlacedRow) -> RelayProof:
        """Return the inherent of a block from its row and the row of its call.

        Raises `WrongBlock` if a value is missing or wrong, or if the two rows contradict each
        other.
        """
        number, place, head = placed_head
        _, call_place, call = placed_call
        data = _params(call_place, call["params"])
        validation = _inside(data, "validationData") or data
        relay_parent = VALUES.number(
            f"{call_place}: relayParentNumber", _inside(validation, "relayParentNumber")
        )
        root = VALUES.hash(
            f"{call_place}: relayParentStorageRoot", _inside(validation, "relayParentStorageRoot")
        )
        stated = (head["relay_block_number"], head["relay_state_root"])
        if all(value is not None and value != "" for value in stated):
            stated_parent = VALUES.number(f"{place}: relay_block_number", stated[0])
            if (stated_parent, VALUES.hex(f"{place}: relay_state_root", stated[1])) != (
                relay_parent,
                root,
            ):
                raise WrongBlock(
                    f"{place}: relay block and root of block {number} differ from its inherent"
                )
        nodes = _inside(data, "trieNodes")
        if not isinstance(nodes, list):
            raise WrongBlock(
                f"{call_place}: params of block {number} have no trie nodes: the export has no"
                " proofs"
            )
        max_pov = _inside(validation, "maxPovSize")
        return RelayProof(
            network=self.network,
            chain=self.chain,
            number=number,
            block=VALUES.hash(f"{place}: hash", head["hash"]),
            parent=VALUES.hash(f"{place}: parent_hash", head["parent_hash"]),
            state_root=VALUES.hash(f"{place}: state_root", head["state_root"]),
            relay_parent=RelayBlockNumber(relay_parent),
            relay_root=root,
            max_pov=None
            if max_pov is None
            else VALUES.number(f"{call_place}: maxPovSize", max_pov),
            proof=tuple(
                VALUES.hex(f"{call_place}: trieNodes[{index}]", node)
                for index, node in enumerate(nodes)
            ),
            downward=VALUES.downward(
                f"{call_place}: downwardMessages", _inside(data, "downwardMessages")
            ),
            horizontal=VALUES.horizontal(
                f"{call_place}: horizontalMessages", _inside(data, "horizontalMessages")
            ),
            source=json.dumps({"export": str(self._store)}),
            block_time=_time(place, head["block_time"]),
        )


def _is_of_table(path: str, table: str) -> bool:
    """Return whether the name of the file, or of a folder around it, begins with the table's."""
    return any(part.startswith(table) for part in path.split("/"))


def _rows_of(place: str, content: IO[bytes], path: str, columns: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of a file with these columns. Raises `FetchError`."""
    try:
        if path.endswith(".parquet"):
            parquet = pq.ParquetFile(content, pre_buffer=False)
            known = [name for name in columns if name in parquet.schema_arrow.names]
            for batch in batches(parquet, content, known):
                yield from batch.to_pylist()
        elif path.endswith(".csv"):
            csv.field_size_limit(MOST_FIELD)
            with TextIOWrapper(content, encoding="utf-8", newline="") as text:
                yield from csv.DictReader(_lines(place, text.readline))
        else:
            for line in _lines(place, content.readline):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise FetchError(f"{place}: a line is not an object")
                    yield row
    except (pa.ArrowException, TooLarge, csv.Error, ValueError, RecursionError) as error:
        lines = str(error).splitlines()
        problem = lines[0] if lines else type(error).__name__
        raise FetchError(f"{place}: {problem}") from None


def _lines(place: str, read: Callable[[int], AnyStr]) -> Iterator[AnyStr]:
    """Yield the lines of a file. Raises `FetchError` if one is longer than a value may be."""
    while line := read(MOST_FIELD + 1):
        if len(line) > MOST_FIELD:
            raise FetchError(f"{place}: a line has more than {MOST_FIELD} bytes")
        yield line


def _params(place: str, params: object) -> object:
    """Return the parameters of a call.

    In some exports, they are a text in JSON. Raises `WrongBlock` if the text is not JSON.
    """
    if not isinstance(params, str):
        return params
    try:
        return json.loads(params)
    except (ValueError, RecursionError):
        raise WrongBlock(f"{place}: params is not JSON") from None


def _inside(data: object, name: str, depth: int = 8) -> object:
    """Return the value of the first field of this name, `None` if there is no such field.

    Nested objects are searched as well, down to `depth` levels. Names are compared without case and
    underscores, since exports differ in them.
    """
    if isinstance(data, list):
        # Only a list at the top is searched: a list of arguments. Lists inside of it are not.
        data = {str(index): value for index, value in enumerate(data)}
    if not isinstance(data, dict) or depth == 0:
        return None
    for key, value in data.items():
        if plain_name(key) == name.lower():
            return value
    inner_values = (
        _inside(value, name, depth - 1) for value in data.values() if isinstance(value, dict)
    )
    return next((value for value in inner_values if value is not None), None)


def _time(place: str, value: object) -> datetime | None:
    """Return a block's time, `None` if there is none. Times without a zone are in UTC."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.removesuffix(" UTC"))
        except ValueError:
            raise WrongBlock(f"{place}: block_time is {str(value)[:40]!r}") from None
    if not isinstance(value, datetime):
        raise WrongBlock(f"{place}: block_time is {str(value)[:40]!r}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
