"""The format `pubsub_node`: headers, events, entries and relay proofs of a chain from its node."""

import asyncio
import json
from collections.abc import Iterator, MutableMapping
from typing import Final

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.client.node import BlockHeader, SubstrateNode
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate
from pubsub_emulator.spark_audit.fetch.nodes import NodeSource as ProofSource
from pubsub_emulator.spark_audit.history.schema import I64_MAX
from pubsub_emulator.spark_audit.spark.sources.common import (
    Offset,
    Source,
    SourceError,
    may_match,
    partitions_of,
)

Found = tuple[object, ...]
"""The values of a row, in the order of the table's columns."""

HEADERS, EVENTS, ENTRIES, CANDIDATES, PROOFS = (
    "headers",
    "events",
    "entries",
    "candidates",
    "proofs",
)
_INT, _TEXT, _BYTES = pa.int64(), pa.string(), pa.binary()
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
      the best ones, and keeps blocks that are taken back later.

    `candidates` has the parachain blocks that a relay chain of `pubsub serve` judged, with the
    verdict if one was refused. Filters on `number` leave blocks out. A failing node raises
    `ClientError`.
    """

    format = "pubsub_node"
    known = ("table", "first", "last", "blocks", "publishers", "finalized")

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.url = self.text("path")
        self.table = self.choice("table", SCHEMAS, HEADERS)
        self.columns = self.chosen(SCHEMAS[self.table])
        listed = self.text("publishers").split(",") if self.table == ENTRIES else []
        self.publishers = [ParaId(self.whole("publishers", each.strip())) for each in listed]
        self.first, self.last = self.number("first", 1), self.number("last", I64_MAX)
        self.blocks = max(self.number("blocks", 100), 1)
        self.finalized = self.choice("finalized", ("true", "false"), "true") == "true"

    def all(self) -> list[api.InputPartition]:
        """Return partitions of ranges of blocks."""
        return self.partitions({}, self.latestOffset())

    def latestOffset(self, *_given: object) -> Offset:  # noqa: N802  # Spark's name
        """Return the number after that of the newest block to read."""
        return {"next": max(min(asyncio.run(self._newest()), self.last), self.first - 1) + 1}

    def partitions(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """Return partitions for the blocks between two offsets."""
        last = end["next"] - 1
        firsts = range(start.get("next", self.first), last + 1, self.blocks)
        parts = [(at, min(at + self.blocks - 1, last)) for at in firsts]
        return partitions_of([part for part in parts if may_match(self.filters, {"number": part})])

    def rows(self, part: tuple[int, int]) -> Iterator[pa.Table]:
        """Yield the rows of some blocks. Raises `FetchError`, `SourceError`, `ClientError`."""
        rows = asyncio.run(self._proofs(*part) if self.table == PROOFS else self._blocks(*part))
        names = SCHEMAS[self.table].names
        yield pa.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in rows], schema=SCHEMAS[self.table]
        )

    async def _newest(self) -> int:
        async with connect(self.url) as rpc:
            node = SubstrateNode(rpc)
            head = await (node.finalized_head() if self.finalized else node.best_head())
            return (await node.header(head)).number

    async def _blocks(self, first: int, last: int) -> list[Found]:
        """Return the rows of blocks of all tables but `proofs`.

        Each header must name the one before as its parent. Otherwise the chain took blocks back
        while they were read.
        """
        rows: list[Found] = []
        before: bytes | None = None
        async with connect(self.url) as rpc:
            node = SubstrateNode(rpc)
            for number in range(first, last + 1):
                found = await node.block_hash(number)
                if found is None:
                    raise SourceError(f"{self.url}: block {number} is not there any more")
                header = await node.header(found)
                if header.number != number or before not in {None, header.parent}:
                    raise SourceError(
                        f"{self.url}: block {number} does not follow the last one; the chain went"
                        " back"
                    )
                before = found
                rows += await self._of_block(node, header)
        return rows

    async def _of_block(self, node: SubstrateNode, header: BlockHeader) -> list[Found]:
        """Return the rows of one block."""
        block = header.number, header.hash
        if self.table == HEADERS:
            return [(*block, header.parent)]
        if self.table == EVENTS:
            return [
                (
                    *block,
                    at,
                    event.pallet,
                    event.name,
                    json.dumps(event.fields, default=hexed),
                    event.phase,
                )
                for at, event in enumerate(await node.events(header.hash, header.parent))
            ]
        if self.table == CANDIDATES:
            found = await node.rpc.call("pubsub_block", hexed(header.hash))
            if found is None:
                raise SourceError(
                    f"{self.url}: what was judged in block {header.number} is not kept any more"
                )
            return [
                (
                    header.number,
                    a["para"],
                    a["number"],
                    unhex(a["hash"]),
                    a["verdict"],
                    a["evidence"],
                )
                for a in found["blocks"]
            ]
        return [
            (header.number, para, key, *PublishedEntry.decode(value))
            for para in self.publishers
            async for key, value in node.child_storage(derive_child_key(para), header.hash)
        ]

    async def _proofs(self, first: int, last: int) -> list[Found]:
        """Return the rows of the table `proofs`."""
        async with Endpoints((self.url,), RequestRate()) as nodes:
            proofs = await ProofSource("node", ParaId(0), nodes).blocks(
                first, last, lambda _done: None
            )
        return [
            (
                each.number,
                each.block,
                each.relay_parent,
                each.relay_root,
                list(each.proof),
                sum(map(len, each.proof)),
            )
            for each in proofs
        ]
