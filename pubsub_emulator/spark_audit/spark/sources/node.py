"""`pubsub_node`: headers, events, published entries and relay proofs of a chain, from its node by JSON-RPC."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeVar

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.client.node import BlockHeader, SubstrateNode
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate
from pubsub_emulator.spark_audit.fetch.nodes import NodeSource as ProofSource
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Options, Source, SourceError, may_match

T = TypeVar("T")

HEADERS, EVENTS, ENTRIES, CANDIDATES, PROOFS = "headers", "events", "entries", "candidates", "proofs"
SCHEMAS: Final = {
    HEADERS: pa.schema([("number", pa.int64()), ("hash", pa.binary()), ("parent", pa.binary())]),
    EVENTS: pa.schema(
        [
            ("number", pa.int64()),
            ("hash", pa.binary()),
            ("index", pa.int64()),
            ("pallet", pa.string()),
            ("event", pa.string()),
            ("fields", pa.string()),
            ("phase", pa.string()),
        ]
    ),
    ENTRIES: pa.schema(
        [
            ("number", pa.int64()),
            ("publisher", pa.int64()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("ttl", pa.int64()),
            ("when_inserted", pa.int64()),
        ]
    ),
    CANDIDATES: pa.schema(
        [
            ("number", pa.int64()),
            ("chain", pa.int64()),
            ("chain_number", pa.int64()),
            ("block", pa.binary()),
            ("verdict", pa.string()),
            ("evidence", pa.list_(pa.string())),
        ]
    ),
    PROOFS: pa.schema(
        [
            ("number", pa.int64()),
            ("hash", pa.binary()),
            ("relay_parent", pa.int64()),
            ("relay_root", pa.binary()),
            ("nodes", pa.list_(pa.binary())),
            ("bytes", pa.int64()),
        ]
    ),
}
"""The columns of each table. `fields` is JSON, with bytes as `0x…`; `number` is that of the block of the node."""
MOST_KEYS: Final = 1000
"""Keys of a child trie that one request asks for."""


@dataclass
class BlocksPartition(api.InputPartition):
    """Blocks `first` to `last`."""

    first: int
    last: int


@dataclass(frozen=True)
class WantedBlocks:
    """The blocks of a chain that a query reads."""

    url: str
    table: str
    first: int
    last: int | None
    blocks: int
    publishers: tuple[ParaId, ...]
    finalized: bool
    schema: pa.Schema

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Read the options. Raises `SourceError`."""
        options = Options(NodeSource.name(), given)
        options.check("table", "first", "last", "blocks", "publishers", "finalized")
        table = options.choice("table", tuple(SCHEMAS), HEADERS)
        names = [name.strip() for name in options.text("publishers", ",").split(",") if name.strip()]
        odd = [name for name in names if not (name.isascii() and name.isdecimal())]
        if odd or (table == ENTRIES and not names):
            raise SourceError(f"{NodeSource.name()}: option publishers lists numbers of parachains, as 1000,2000")
        return cls(
            options.text("path"),
            table,
            options.number("first", 1),
            options.number("last", 0) if "last" in options.given else None,
            max(options.number("blocks", 100), 1),
            tuple(ParaId(int(name)) for name in names),
            options.choice("finalized", ("true", "false"), "true") == "true",
            options.columns(SCHEMAS[table]),
        )

    def all(self, filters: Sequence[api.Filter]) -> list[BlocksPartition]:
        """Ranges of blocks. Raises `ClientError`."""
        parts = self.between({}, self.newest())
        return [part for part in parts if may_match(filters, number=(part.first, part.last))]

    def newest(self) -> Offset:
        """The block after the newest one that counts. Raises `ClientError`."""

        async def ask(node: SubstrateNode) -> int:
            head = await (node.finalized_head() if self.finalized else node.best_head())
            return (await node.header(head)).number

        last = self.run(ask)
        return {"next": max(last if self.last is None else min(last, self.last), self.first - 1) + 1}

    def between(self, start: Offset, end: Offset) -> list[BlocksPartition]:
        """Ranges of blocks between two offsets."""
        step, last = self.blocks, end["next"] - 1
        first = start.get("next", self.first)
        return [BlocksPartition(at, min(at + step - 1, last)) for at in range(first, last + 1, step)]

    def run(self, work: Callable[[SubstrateNode], Awaitable[T]]) -> T:
        """Do something with the node, over a connection of its own. Raises `ClientError`."""

        async def connected() -> T:
            async with connect(self.url) as rpc:
                return await work(SubstrateNode(rpc))

        return asyncio.run(connected())

    def read(self, partition: BlocksPartition) -> Iterator[pa.Table]:
        """The rows of some blocks. Raises `ClientError`, `FetchError`, `SourceError`."""
        if self.table == PROOFS:
            rows = asyncio.run(self._proofs(partition))
        else:
            rows = self.run(lambda node: self._rows(node, partition))
        yield pa.Table.from_pylist(rows, schema=SCHEMAS[self.table])

    async def _rows(self, node: SubstrateNode, part: BlocksPartition) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        before: bytes | None = None
        for number in range(part.first, part.last + 1):
            found = await node.block_hash(number)
            if found is None:
                raise SourceError(f"{self.url}: block {number} is not there any more")
            header = await node.header(found)
            if header.number != number or before not in {None, header.parent}:
                raise SourceError(f"{self.url}: block {number} does not follow the one before it; the chain went back")
            before = found
            rows += await self._of_block(node, header)
        return rows

    async def _of_block(self, node: SubstrateNode, header: BlockHeader) -> list[dict[str, object]]:
        if self.table == HEADERS:
            return [{"number": header.number, "hash": header.hash, "parent": header.parent}]
        if self.table == EVENTS:
            return [
                {
                    "number": header.number,
                    "hash": header.hash,
                    "index": at,
                    "pallet": event.pallet,
                    "event": event.name,
                    "fields": json.dumps(event.fields, default=_as_hex),
                    "phase": event.phase,
                }
                for at, event in enumerate(await node.events(header.hash, header.parent))
            ]
        if self.table == CANDIDATES:
            return await _candidates(node, header)
        return [row for para in self.publishers for row in await _entries(node, header, para)]

    async def _proofs(self, part: BlocksPartition) -> list[dict[str, object]]:
        async with Endpoints((self.url,), RequestRate()) as nodes:
            proofs = await ProofSource("node", ParaId(0), nodes).blocks(part.first, part.last, lambda _done: None)
        return [
            {
                "number": proof.number,
                "hash": proof.block,
                "relay_parent": proof.relay_parent,
                "relay_root": proof.relay_root,
                "nodes": list(proof.proof),
                "bytes": sum(map(len, proof.proof)),
            }
            for proof in proofs
        ]


async def _entries(node: SubstrateNode, header: BlockHeader, para: ParaId) -> list[dict[str, object]]:
    """The entries of a publisher at a block, in the order of the keys."""
    trie = "0x" + (b":child_storage:default:" + derive_child_key(para)).hex()
    at = "0x" + header.hash.hex()
    rows: list[dict[str, object]] = []
    start: str | None = None
    while True:
        keys = await node.rpc.call("childstate_getKeysPaged", trie, "0x", MOST_KEYS, start, at)
        for key in keys:
            value = await node.rpc.call("childstate_getStorage", trie, key, at)
            entry = PublishedEntry.decode(bytes.fromhex(value[2:]))
            found = {"key": bytes.fromhex(key[2:]), "value": entry.value, "ttl": entry.ttl}
            rows.append({"number": header.number, "publisher": para, "when_inserted": entry.when_inserted, **found})
        if len(keys) < MOST_KEYS:
            return rows
        start = keys[-1]


async def _candidates(node: SubstrateNode, header: BlockHeader) -> list[dict[str, object]]:
    """The parachain blocks that a relay block of this project's node judged, refused ones with the verdict."""
    found = await node.rpc.call("pubsub_block", "0x" + header.hash.hex())
    if found is None:
        raise SourceError(f"{node.rpc.url}: what was judged in block {header.number} is not kept any more")
    return [
        {
            "number": header.number,
            "chain": each["para"],
            "chain_number": each["number"],
            "block": bytes.fromhex(each["hash"][2:]),
            "verdict": each["verdict"],
            "evidence": each["evidence"],
        }
        for each in found["blocks"]
    ]


def _as_hex(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    raise TypeError(f"{type(value).__name__} has no JSON form")


class NodeSource(Source):
    """Options: `path` (the node's URL), `table` (headers), `columns`, and those below.

    Blocks `first` (1) to `last` (the newest final one) are read, `blocks` (100) in a partition. `entries` has the child
    tries of `publishers` at each of these blocks; `candidates` has the parachain blocks that a relay chain of `pubsub
    serve` judged, with the verdict on a refused one. A stream goes on from `first` with final blocks, or with the best
    ones where `finalized` is `false`: what is then taken back stays in the stream. Filters on `number` spare blocks.
    """

    wanted = WantedBlocks

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "pubsub_node"
