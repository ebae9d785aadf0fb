"""Exported tables with substrate-etl's columns: blocks with time and relay root, extrinsics with their parameters.

    blocks…      number, hash, parent_hash, state_root, block_time, relay_block_number, relay_state_root
    extrinsics…  block_number, section, method, params (JSON: validationData, relayChainState.trieNodes, …)

Files are Parquet, CSV or JSON lines, called after their table or in a folder that is. Nothing but the proof can be
verified in them: hashes and times are the export's word, and its relay roots are compared with the inherents.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import IO, AnyStr, Final

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

_COLUMNS: Final = {
    "blocks": ("number", "hash", "parent_hash", "state_root", "block_time", "relay_block_number", "relay_state_root"),
    "extrinsics": ("block_number", "section", "method", "params"),
}
_NUMBER: Final = {"blocks": "number", "extrinsics": "block_number"}
_ENDINGS: Final = (".parquet", ".csv", ".jsonl", ".json")
_CALL: Final = ("parachainsystem", "setvalidationdata")


@dataclass(slots=True)
class _File:
    """One file of a table and the block numbers in it, known once it was read."""

    table: str
    path: str
    span: tuple[int, int] | None = field(default=None)


class ExportSource:
    """A parachain's blocks from exported tables at an address; each range reads the files that overlap it."""

    def __init__(self, network: str, chain: ParaId, base: Address | Store, relay: Endpoints | None = None) -> None:
        self.network = network
        self.chain = chain
        self._store = open_store(base)
        self._relay = RelayHeaders(relay)
        paths = [path for path in self._store.walk() if path.endswith(_ENDINGS)]
        self._files: list[_File] = []
        for table in _COLUMNS:
            mine = [path for path in paths if any(part.startswith(table) for part in path.split("/"))]
            if not mine:
                raise FetchError(f"{self._store}: there is no file or folder whose name begins with {table}")
            self._files += [_File(table, path) for path in mine]

    async def newest(self) -> int:
        """The highest block of the export."""
        return max((self._span(file)[1] for file in self._files if file.table == "blocks"), default=0)

    async def name(self) -> str | None:
        """An export has numbers of chains only."""
        return None

    async def blocks(self, first: int, last: int, advance: Callable[[int], None]) -> list[RelayProof]:
        """The inherents of a range of blocks. Raises `FetchError`."""
        heads = {number: (place, row) for number, place, row in self._rows("blocks", first, last)}
        calls = {
            number: (place, row)
            for number, place, row in self._rows("extrinsics", first, last)
            if (plain_name(row["section"]), plain_name(row["method"])) == _CALL
        }
        proofs: list[RelayProof] = []
        for number in range(first, last + 1):
            if number not in heads:
                raise WrongBlock(f"{self._store}: block {number} is not in the export")
            if number not in calls:
                raise WrongBlock(f"{self._store}: the export has no set_validation_data of block {number}")
            proofs.append(self._proof(number, *heads[number], *calls[number]))
            advance(len(proofs))
        return await self._relay.vouched(proofs)

    def _rows(self, table: str, first: int, last: int) -> Iterator[tuple[int, str, Row]]:
        for file in self._files:
            if file.table != table:
                continue
            low, high = self._span(file)
            if low <= last and first <= high:
                for number, place, row in self._read(file):
                    if first <= number <= last:
                        yield number, place, row

    def _span(self, file: _File) -> tuple[int, int]:
        if file.span is None:
            numbers = [number for number, _, _ in self._read(file, (_NUMBER[file.table],))]
            file.span = (min(numbers), max(numbers)) if numbers else (U32_MAX, 0)
        return file.span

    def _read(self, file: _File, columns: tuple[str, ...] | None = None) -> Iterator[tuple[int, str, Row]]:
        wanted = columns or _COLUMNS[file.table]
        name = _NUMBER[file.table]
        with self._store.open(file.path) as content:
            for at, row in enumerate(_rows_of(f"{self._store}/{file.path}", content, file.path, wanted), 1):
                place = f"{self._store}/{file.path}: row {at}"
                for column in wanted:
                    if column not in row:
                        raise FetchError(f"{place} has no {column}")
                yield VALUES.number(f"{place}: {name}", row[name]), place, row

    def _proof(self, number: int, place: str, head: Row, where: str, call: Row) -> RelayProof:
        data = _params(where, call["params"])
        validation = _inside(data, "validationData") or data
        relay_parent = VALUES.number(f"{where}: relayParentNumber", _inside(validation, "relayParentNumber"))
        root = VALUES.hash(f"{where}: relayParentStorageRoot", _inside(validation, "relayParentStorageRoot"))
        stated = head["relay_block_number"], head["relay_state_root"]
        if all(each is not None and each != "" for each in stated):
            stated_parent = VALUES.number(f"{place}: relay_block_number", stated[0])
            if (stated_parent, VALUES.hex(f"{place}: relay_state_root", stated[1])) != (relay_parent, root):
                raise WrongBlock(f"{place}: relay block and root of block {number} differ from its inherent")
        nodes = _inside(data, "trieNodes")
        if not isinstance(nodes, list):
            raise WrongBlock(f"{where}: params of block {number} have no trie nodes: the export has no proofs")
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
            max_pov=None if max_pov is None else VALUES.number(f"{where}: maxPovSize", max_pov),
            proof=tuple(VALUES.hex(f"{where}: trieNodes[{at}]", node) for at, node in enumerate(nodes)),
            downward=VALUES.downward(f"{where}: downwardMessages", _inside(data, "downwardMessages")),
            horizontal=VALUES.horizontal(f"{where}: horizontalMessages", _inside(data, "horizontalMessages")),
            source=json.dumps({"export": str(self._store)}),
            block_time=_time(place, head["block_time"]),
        )


def _rows_of(place: str, content: IO[bytes], path: str, columns: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a file, some columns of each. Raises `FetchError`."""
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
        raise FetchError(f"{place}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None


def _lines(place: str, read: Callable[[int], AnyStr]) -> Iterator[AnyStr]:
    """The lines of a file. Raises `FetchError` for one that is longer than a field may be."""
    while line := read(MOST_FIELD + 1):
        if len(line) > MOST_FIELD:
            raise FetchError(f"{place}: a line has more than {MOST_FIELD} bytes")
        yield line


def _params(place: str, params: object) -> object:
    if not isinstance(params, str):
        return params
    try:
        return json.loads(params)
    except (ValueError, RecursionError):
        raise WrongBlock(f"{place}: params is not JSON") from None


def _inside(data: object, name: str, depth: int = 8) -> object:
    """The value of the first field of that name, however deep, in either case; `None` where there is none."""
    if isinstance(data, list):
        data = {str(at): each for at, each in enumerate(data)}
    if not isinstance(data, dict) or depth == 0:
        return None
    for key, value in data.items():
        if plain_name(key) == name.lower():
            return value
    found = (_inside(value, name, depth - 1) for value in data.values() if isinstance(value, dict))
    return next((each for each in found if each is not None), None)


def _time(place: str, value: object) -> datetime | None:
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
