"""The format `pubsub_node`: headers, events, entries and relay proofs of a chain from its node."""

import asyncio
import json
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from pubsub_emulator.client.node import BlockHeader, SubstrateNode
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.history.schema import I64_MAX
from pubsub_emulator.spark_audit.spark.sources.common import (
    Offset,
    Source,
    SourceError,
    may_match,
    partitions_of,
)

Part = tuple[int, int, str, str]
"""A range of blocks: the numbers of the first and the last one, the hash of the block before them,
which is empty if it is not known, and the hash of the last one."""
Found = tuple[object, ...]
"""The values of a row, in the order of the table's columns."""

HEADERS = "headers"
EVENTS = "events"
ENTRIES = "entries"
CANDIDATES = "candidates"
PROOFS = "proofs"
_INT = pa.int64()
_TEXT = pa.string()
_BYTES = pa.binary()
_BLOCK: Final = {"number": _INT, "hash": _BYTES}
_ENTRY: Final = {"key": _BYTES, "value": _BYTES, "ttl": _INT, "when_inserted": _INT}
_JUDGED: Final = {"block": _BYTES, "verdict": _TEXT, "evidence": pa.list_(_TEXT)}
_PROOF: Final = {
    "relay_parent": _INT,
    "relay_root": _BYTES,
    "nodes": pa.list_(_BYTES),
    "bytes": _INT,
}
SCHEMAS: Final = {
    HEADERS: pa.schema({**_BLOCK, "parent": _BYTES}),
    EVENTS: pa.schema(
        {**_BLOCK, "index": _INT, "pallet": _TEXT, "event": _TEXT, "fields": _TEXT, "phase": _TEXT}
    ),
    ENTRIES: pa.schema({"number": _INT, "publisher": _INT, **_ENTRY}),
    CANDIDATES: pa.schema({"number": _INT, "chain": _INT, "chain_number": _INT, **_JUDGED}),
    PROOFS: pa.schema({**_BLOCK, **_PROOF}),
}
"""The columns of each table. `fields` is JSON, with bytes as `0x…`. `number` is the number of the
node's own block."""


class NodeSource(Source):
    """A reader of a node over JSON-RPC. Options: `path` (its URL), `columns`, and those below.

    - `table`: `headers` (the default), `events`, `entries`, `candidates` or `proofs`;
    - `first` (default 1) and `last` (default the newest final block): the blocks to read;
    - `blocks` (default 100): the number of blocks in a partition;
    - `publishers`: for `entries`, the publishers whose child tries are read at each block;
    - `finalized` (default `true`): whether a stream waits for final blocks. With `false` it reads
      the best ones. If the chain takes blocks back that the stream has read, the stream ends with
      an error;
    - `maxBlocksPerTrigger`: how many blocks a batch of a stream reads.

    The offset of a stream has the number of the next block (`next`) and the hash of the block
    before it (`after`).

    `candidates` has the parachain blocks that a relay chain of `pubsub serve` judged, with the
    verdict if one was refused. Filters on `number` leave blocks out. A failing node raises
    `ClientError`.
    """

    format = "pubsub_node"
    known = (
        "table",
        "first",
        "last",
        "blocks",
        "publishers",
        "finalized",
        "maxBlocksPerTrigger",
    )

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.url = self.text("path")
        self.table = self.choice("table", SCHEMAS, HEADERS)
        self.columns = self.chosen(SCHEMAS[self.table])
        listed = self.text("publishers").split(",") if self.table == ENTRIES else []
        self.publishers = [
            ParaId(self.whole("publishers", publisher.strip())) for publisher in listed
        ]
        self.first = self.number("first", 1)
        self.last = self.number("last", I64_MAX)
        self.blocks = max(self.number("blocks", 100), 1)
        self.most_blocks = self.limit("maxBlocksPerTrigger")
        self.finalized = self.choice("finalized", ("true", "false"), "true") == "true"

    def all(self) -> list[api.InputPartition]:
        """Return partitions of ranges of blocks."""
        return self.partitions({}, self.newest())

    def newest(self) -> Offset:
        """Return the number after that of the newest block to read, and the block's hash."""
        return asyncio.run(self._newest())

    def limited(self, start: Offset, end: Offset) -> Offset:
        """Return the offset after as many blocks as a batch may have."""
        first = max(start.get("next", self.first), self.first)
        if self.most_blocks is None or first + self.most_blocks >= end["next"]:
            return end
        return asyncio.run(self._after(first + self.most_blocks - 1))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """Return a limit if the options set one. Spark passes it on to `latestOffset`."""
        return ReadAllAvailable() if self.most_blocks is None else ReadMaxRows(self.most_blocks)

    def partitions(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """Return partitions for the blocks between two offsets.

        Raises `SourceError` if the chain has taken back a block that an offset names.
        """
        last = end["next"] - 1
        ends = [
            min(number + self.blocks - 1, last)
            for number in range(start.get("next", self.first), last + 1, self.blocks)
        ]
        hashes = asyncio.run(self._hashes(start, end, ends))
        first = start.get("next", self.first)
        previous = start.get("after", "")
        parts: list[Part] = []
        for range_end, end_hash in zip(ends, hashes, strict=True):
            parts.append((first, range_end, previous, end_hash))
            first = range_end + 1
            previous = end_hash
        return partitions_of(
            [part for part in parts if may_match(self.filters, {"number": part[:2]})]
        )

    def rows(self, part: Part) -> Iterator[pa.Table]:
        """Yield the rows of some blocks. Raises `FetchError`, `SourceError`, `ClientError`."""
        read = self._proofs if self.table == PROOFS else self._blocks
        found = asyncio.run(read(*part))
        shape = SCHEMAS[self.table]
        rows = [dict(zip(shape.names, values, strict=True)) for values in found]
        yield pa.Table.from_pylist(rows, schema=shape)

    async def _newest(self) -> Offset:
        """Return the offset after the newest block that may be read."""
        async with connect(self.url) as rpc:
            node = SubstrateNode(rpc)
            head = await (node.finalized_head() if self.finalized else node.best_head())
            number = (await node.header(head)).number
            if number > self.last:
                number = self.last
                head = await self._hash(node, self.last)
            if number < self.first:
                return {"next": self.first, "after": ""}
            return {"next": number + 1, "after": hexed(head)}

    async def _after(self, number: int) -> Offset:
        """Return the offset after a block."""
        async with connect(self.url) as rpc:
            return {
                "next": number + 1,
                "after": hexed(await self._hash(SubstrateNode(rpc), number)),
            }

    async def _hash(self, node: SubstrateNode, number: int) -> bytes:
        """Return the hash of a block. Raises `SourceError` if there is none."""
        block_hash = await node.block_hash(number)
        if block_hash is None:
            raise SourceError(f"{self.url}: block {number} is not there any more")
        return block_hash

    async def _hashes(self, start: Offset, end: Offset, numbers: Sequence[int]) -> list[str]:
        """Return the hashes of blocks, after checking that both offsets are of the node's chain.

        A checkpoint of an earlier version has no hashes.
        """
        async with connect(self.url) as rpc:
            node = SubstrateNode(rpc)
            for offset in (start, end):
                known = offset.get("after", "")
                if not known:
                    continue
                number = offset["next"] - 1
                block_hash = await node.block_hash(number)
                if block_hash is None or hexed(block_hash) != known:
                    state = "is not there any more"
                    if block_hash is not None:
                        state = f"is {hexed(block_hash)} now"
                    raise SourceError(
                        f"{self.url}: the stream has read block {number} as {known}, which {state}:"
                        " the chain went back; begin a new stream, with another checkpoint"
                    )
            return [hexed(await self._hash(node, number)) for number in numbers]

    async def _blocks(self, first: int, last: int, begins: str, ends: str) -> list[Found]:
        """Return the rows of blocks, for all tables except `proofs`.

        Each header must name the previous block as its parent. For the first header, that is the
        block `begins`, if it is known. The last block must be `ends`. Otherwise the chain took
        blocks back in the meantime, and `SourceError` is raised.
        """
        rows: list[Found] = []
        previous: bytes | None = unhex(begins) if begins else None
        async with connect(self.url) as rpc:
            node = SubstrateNode(rpc)
            for number in range(first, last + 1):
                block_hash = await self._hash(node, number)
                header = await node.header(block_hash)
                if (
                    header.number != number
                    or previous not in {None, header.parent}
                    or (number == last and hexed(block_hash) != ends)
                ):
                    raise SourceError(
                        f"{self.url}: block {number} does not follow the last one; the chain went"
                        " back"
                    )
                previous = block_hash
                rows += await self._of_block(node, header)
        return rows

    async def _of_block(self, node: SubstrateNode, header: BlockHeader) -> list[Found]:
        """Return the rows of one block."""
        block = (header.number, header.hash)
        if self.table == HEADERS:
            return [(*block, header.parent)]
        if self.table == EVENTS:
            return [
                (
                    *block,
                    index,
                    event.pallet,
                    event.name,
                    json.dumps(event.fields, default=hexed),
                    event.phase,
                )
                for index, event in enumerate(await node.events(header.hash, header.parent))
            ]
        if self.table == CANDIDATES:
            answer = await node.rpc.call("pubsub_block", hexed(header.hash))
            if answer is None:
                raise SourceError(
                    f"{self.url}: the node no longer has the candidates of block {header.number}"
                )
            return [
                (
                    header.number,
                    candidate["para"],
                    candidate["number"],
                    unhex(candidate["hash"]),
                    candidate["verdict"],
                    candidate["evidence"],
                )
                for candidate in answer["blocks"]
            ]
        entries: list[Found] = []
        for para in self.publishers:
            entries += [
                (header.number, para, key, *PublishedEntry.decode(value))
                async for key, value in node.child_storage(derive_child_key(para), header.hash)
            ]
        return entries

    async def _proofs(self, first: int, last: int, _begins: str, ends: str) -> list[Found]:
        """Return the rows of the table `proofs`. The last block must be `ends`."""
        # No other table needs these modules, which take a quarter of a second.
        from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate  # noqa: PLC0415  # as above
        from pubsub_emulator.spark_audit.fetch.nodes import NodeBlockSource  # noqa: PLC0415  # as above

        async with Endpoints((self.url,), RequestRate()) as nodes:
            proofs = await NodeBlockSource("node", ParaId(0), nodes).blocks(
                first, last, lambda _done: None
            )
        last_hash = {proof.number: proof.block for proof in proofs}.get(last)
        if last_hash is not None and hexed(last_hash) != ends:
            raise SourceError(f"{self.url}: block {last} was replaced: the chain was reorganised")
        return [
            (
                proof.number,
                proof.block,
                proof.relay_parent,
                proof.relay_root,
                list(proof.proof),
                sum(map(len, proof.proof)),
            )
            for proof in proofs
        ]
