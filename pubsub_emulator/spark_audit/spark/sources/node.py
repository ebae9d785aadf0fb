"""`pubsub_node`: headers, events, published entries and relay proofs of a chain, from its node by JSON-RPC."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.client.node import BlockHeader, SubstrateNode
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate
from pubsub_emulator.spark_audit.fetch.nodes import NodeSource as ProofSource
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Source, SourceError, Wanted, may_match

T = TypeVar("T")
Found = tuple[object, ...]
"""The values of a row."""

HEADERS, EVENTS, ENTRIES, CANDIDATES, PROOFS = "headers", "events", "entries", "candidates", "proofs"
_INT, _TEXT, _BYTES = pa.int64(), pa.string(), pa.binary()
_BLOCK: Final = {"number": _INT, "hash": _BYTES}
_ENTRY: Final = {"key": _BYTES, "value": _BYTES, "ttl": _INT, "when_inserted": _INT}
_JUDGED: Final = {"block": _BYTES, "verdict": _TEXT, "evidence": pa.list_(_TEXT)}
_PROOF: Final = {"relay_parent": _INT, "relay_root": _BYTES, "nodes": pa.list_(_BYTES), "bytes": _INT}
SCHEMAS: Final = {
    HEADERS: pa.schema({**_BLOCK, "parent": _BYTES}),
    EVENTS: pa.schema({**_BLOCK, "index": _INT, "pallet": _TEXT, "event": _TEXT, "fields": _TEXT, "phase": _TEXT}),
    ENTRIES: pa.schema({"number": _INT, "publisher": _INT, **_ENTRY}),
    CANDIDATES: pa.schema({"number": _INT, "chain": _INT, "chain_number": _INT, **_JUDGED}),
    PROOFS: pa.schema({**_BLOCK, **_PROOF}),
}
"""The columns of each table. `fields` is JSON, with bytes as `0x…`; `number` is that of the block of the node."""
MOST_KEYS: Final = 1000
"""Keys of a child trie that one request asks for."""


class WantedBlocks(Wanted):
    """The blocks of a chain that a query reads; a partition has a first and a last one.

    What asks the node raises `ClientError`.
    """

    source = "pubsub_node"
    options = ("table", "first", "last", "blocks", "publishers", "finalized")

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.table = self.choice("table", tuple(SCHEMAS), HEADERS)
        names = [name.strip() for name in self.text("publishers", ",").split(",") if name.strip()]
        odd = [name for name in names if not (name.isascii() and name.isdecimal())]
        if odd or (self.table == ENTRIES and not names):
            raise SourceError(f"{self.source}: option publishers lists numbers of parachains, as 1000,2000")
        self.publishers = [ParaId(int(name)) for name in names]
        self.url = self.text("path")
        self.first = self.number("first", 1)
        self.last = self.number("last", 0) if "last" in given else None
        self.blocks = max(self.number("blocks", 100), 1)
        self.finalized = self.choice("finalized", ("true", "false"), "true") == "true"
        self.schema = self.columns(SCHEMAS[self.table])

    def all(self) -> list[api.InputPartition]:
        """Ranges of blocks."""
        parts = self.between({}, self.newest())
        return [part for part in parts if may_match(self.filters, {"number": part.value})]

    def newest(self) -> Offset:
        """The block after the newest one that counts."""

        async def ask(node: SubstrateNode) -> int:
            head = await (node.finalized_head() if self.finalized else node.best_head())
            return (await node.header(head)).number

        last = self._run(ask)
        return {"next": max(last if self.last is None else min(last, self.last), self.first - 1) + 1}

    def between(self, start: Offset, end: Offset) -> list[api.InputPartition]:
        """Ranges of blocks between two offsets."""
        step, last = self.blocks, end["next"] - 1
        firsts = range(start.get("next", self.first), last + 1, step)
        return [api.InputPartition((at, min(at + step - 1, last))) for at in firsts]

    def rows(self, part: tuple[int, int]) -> Iterator[pa.Table]:
        """The rows of some blocks. Raises `FetchError`, `SourceError` as well."""
        if self.table == PROOFS:
            rows = asyncio.run(self._proofs(*part))
        else:
            rows = self._run(lambda node: self._rows(node, *part))
        names = SCHEMAS[self.table].names
        yield pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=SCHEMAS[self.table])

    def _run(self, work: Callable[[SubstrateNode], Awaitable[T]]) -> T:
        """Do something with the node, over a connection of its own."""

        async def connected() -> T:
            async with connect(self.url) as rpc:
                return await work(SubstrateNode(rpc))

        return asyncio.run(connected())

    async def _rows(self, node: SubstrateNode, first: int, last: int) -> list[Found]:
        rows: list[Found] = []
        before: bytes | None = None
        for number in range(first, last + 1):
            found = await node.block_hash(number)
            if found is None:
                raise SourceError(f"{self.url}: block {number} is not there any more")
            header = await node.header(found)
            if header.number != number or before not in {None, header.parent}:
                raise SourceError(f"{self.url}: block {number} does not follow the one before it; the chain went back")
            before = found
            rows += await self._of_block(node, header)
        return rows

    async def _of_block(self, node: SubstrateNode, header: BlockHeader) -> list[Found]:
        block = header.number, header.hash
        if self.table == HEADERS:
            return [(*block, header.parent)]
        if self.table == EVENTS:
            return [
                (*block, at, event.pallet, event.name, json.dumps(event.fields, default=_as_hex), event.phase)
                for at, event in enumerate(await node.events(header.hash, header.parent))
            ]
        if self.table == CANDIDATES:
            return await _candidates(node, header)
        return [row for para in self.publishers for row in await _entries(node, header, para)]

    async def _proofs(self, first: int, last: int) -> list[Found]:
        async with Endpoints((self.url,), RequestRate()) as nodes:
            proofs = await ProofSource("node", ParaId(0), nodes).blocks(first, last, lambda _done: None)
        return [
            (each.number, each.block, each.relay_parent, each.relay_root, list(each.proof), sum(map(len, each.proof)))
            for each in proofs
        ]


async def _entries(node: SubstrateNode, header: BlockHeader, para: ParaId) -> list[Found]:
    """The entries of a publisher at a block, in the order of the keys."""
    trie = "0x" + (b":child_storage:default:" + derive_child_key(para)).hex()
    at = "0x" + header.hash.hex()
    rows: list[Found] = []
    start: str | None = None
    while True:
        keys = await node.rpc.call("childstate_getKeysPaged", trie, "0x", MOST_KEYS, start, at)
        for key in keys:
            value = await node.rpc.call("childstate_getStorage", trie, key, at)
            entry = PublishedEntry.decode(bytes.fromhex(value[2:]))
            rows.append((header.number, para, bytes.fromhex(key[2:]), entry.value, entry.ttl, entry.when_inserted))
        if len(keys) < MOST_KEYS:
            return rows
        start = keys[-1]


async def _candidates(node: SubstrateNode, header: BlockHeader) -> list[Found]:
    """The parachain blocks that a relay block of this project's node judged, refused ones with the verdict."""
    found = await node.rpc.call("pubsub_block", "0x" + header.hash.hex())
    if found is None:
        raise SourceError(f"{node.rpc.url}: what was judged in block {header.number} is not kept any more")
    blocks = ((bytes.fromhex(each["hash"][2:]), each) for each in found["blocks"])
    return [(header.number, a["para"], a["number"], block, a["verdict"], a["evidence"]) for block, a in blocks]


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
