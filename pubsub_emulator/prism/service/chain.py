"""A chain behind a node's JSON-RPC, as the PRISM node needs it: best branch, final blocks, anchoring."""

import asyncio
from typing import Final, NamedTuple, Protocol, Self

from pubsub_emulator.client.errors import UnknownBlock
from pubsub_emulator.client.extrinsics import signed_extrinsic
from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.events.log.sources.rpc import RpcSource
from pubsub_emulator.events.log.store import Store
from pubsub_emulator.prism.core.status import BestBlock, best_block
from pubsub_emulator.prism.tables.processor import Source
from pubsub_emulator.runtime.framework.calls import EncodedCall, encode_call
from pubsub_emulator.runtime.framework.dispatch import Call
from pubsub_emulator.runtime.pallet_prism import PALLET, Prism

POLL_SECONDS: Final = 1.0


class Head(NamedTuple):
    """A block of the chain."""

    number: int
    hash: bytes


class AnchoringChain(Protocol):
    """The chain that a PRISM node follows. Methods raise `ClientError` while it does not answer."""

    async def catch_up(self, log: Store) -> None:
        """Append to the log what is final and not in it."""

    async def best(self) -> Head:
        """The best block."""

    async def hash_at(self, number: int) -> bytes | None:
        """The hash of the best branch's block of that height."""

    async def block(self, number: int) -> BestBlock:
        """The block of the best branch at that height."""

    async def wait(self, known: bytes) -> None:
        """Wait until the best block is not the one with hash `known`, at most `POLL_SECONDS`."""

    async def anchor(self, content: bytes) -> None:
        """Submit an object to be anchored."""

    def settled(self, number: int) -> int:
        """The last block that the log looks at once `number` is the best block; -1 where the log's end says it."""


class NodeChain(AnchoringChain):
    """A chain behind a node at a URL. The account with the secret `seed` anchors; an empty log begins with `first`."""

    def __init__(self, url: str, source: Source, seed: bytes, first: int | None = 1) -> None:
        self._rpc_source = RpcSource(url)
        self._source = source
        self._seed = seed
        self._first = first
        self._signing = asyncio.Lock()
        self._is_known = False

    async def __aenter__(self) -> Self:
        await self._rpc_source.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rpc_source.__aexit__()

    async def catch_up(self, log: Store) -> None:
        """Append to the log all final blocks that it does not have. Raises `AnotherChain` if it is not the log's."""
        if not self._is_known:
            await asyncio.to_thread(log.bind, await self._node.genesis_hash())
            self._is_known = True
        await self._rpc_source.catch_up(log, self._first)

    async def best(self) -> Head:
        header = await self._node.header(await self._node.best_head())
        return Head(header.number, header.hash)

    async def hash_at(self, number: int) -> bytes | None:
        return await self._node.block_hash(number)

    async def block(self, number: int) -> BestBlock:
        found = await self._rpc_source.block(number)
        wanted = [row for row in found.rows(0) if row.chain is None and row.kind == self._source.kind]
        time = wanted[0].time if wanted else 0
        return best_block(number, found.hash, time, map(self._source.bytes_of, wanted))

    async def wait(self, known: bytes) -> None:
        if self._node.rpc.url.startswith("http"):
            await asyncio.sleep(POLL_SECONDS)
            return
        try:
            async with asyncio.timeout(POLL_SECONDS):
                updates = self._node.rpc.subscribe("chain_subscribeNewHeads", "chain_unsubscribeNewHeads")
                async with updates as heads:
                    if await self._node.best_head() == known:
                        for _ in range(2):  # the first notice is the present head, the second a new one
                            await anext(heads)
        except TimeoutError:
            pass
        except StopAsyncIteration:
            raise UnknownBlock("the node ended the subscription to its heads") from None

    async def anchor(self, content: bytes) -> None:
        """Submit an object to be anchored, as a signed extrinsic of pallet `Prism` in the node's pool."""
        arguments = (content,)
        encoded = encode_call(Prism(), Call(PALLET.name, "anchor", arguments))
        async with self._signing:
            call = EncodedCall(PALLET.name, "anchor", arguments, encoded)
            extrinsic = await signed_extrinsic(self._node, self._seed, call)
            await self._node.rpc.call("author_submitExtrinsic", "0x" + extrinsic.hex())

    def settled(self, _number: int) -> int:
        """-1: final blocks are the node's to name."""
        return -1

    @property
    def _node(self) -> SubstrateNode:
        return self._rpc_source.node
