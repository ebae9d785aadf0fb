"""The chain that a PRISM node follows, and a chain behind a node's JSON-RPC."""

import asyncio
from typing import Final, NamedTuple, Protocol, Self

from interchain_events.events.log.sources.rpc import RpcSource
from interchain_events.events.log.store import Store
from interchain_events.pallets.prism import PALLET, Prism
from interchain_events.prism.core.status import BestBlock, best_block
from interchain_events.prism.tables.processor import Source
from pubsub_emulator.client.errors import UnknownBlock
from pubsub_emulator.client.extrinsics import signed_extrinsic
from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.runtime.framework.calls import EncodedCall, encode_call
from pubsub_emulator.runtime.framework.dispatch import Call

POLL_SECONDS: Final = 1.0
"""The longest wait in seconds until the best block is read again."""


class BlockRef(NamedTuple):
    """A block of the chain."""

    number: int
    hash: bytes


class AnchoringChain(Protocol):
    """The chain that a PRISM node follows.

    Methods raise `ClientError` while the chain does not answer.
    """

    async def catch_up(self, log: Store) -> None:
        """Append the final blocks that the log does not have."""

    async def best(self) -> BlockRef:
        """Return the best block."""

    async def hash_at(self, number: int) -> bytes | None:
        """Return the hash of the best branch's block with a number, `None` if there is none."""

    async def block(self, number: int) -> BestBlock:
        """Return the best branch's block with a number."""

    async def wait(self, known: bytes) -> None:
        """Wait until the best block has another hash than `known`, at most `POLL_SECONDS`."""

    async def anchor(self, content: bytes) -> None:
        """Submit an object to be anchored."""

    def settled(self, number: int) -> int:
        """Return the last block that counts as final if `number` is the best block.

        Returns -1 if the end of the log tells which blocks are final.
        """


class NodeChain(AnchoringChain):
    """A chain behind a node at a URL.

    `seed` is the secret of the account that anchors. An empty log begins with block `first`.
    """

    def __init__(self, url: str, source: Source, seed: bytes, first: int | None = 1) -> None:
        self._rpc_source = RpcSource(url)
        self._source = source
        self._seed = seed
        self._first = first
        self._signing = asyncio.Lock()
        """Held from the choice of a nonce until its extrinsic is in the pool, so that no other
        extrinsic gets the same nonce."""
        self._is_known = False
        """Whether the chain's genesis has been compared with the log's."""

    async def __aenter__(self) -> Self:
        await self._rpc_source.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rpc_source.__aexit__()

    async def catch_up(self, log: Store) -> None:
        """Append all final blocks that the log does not have.

        Raises `AnotherChain` if the log is of another chain.
        """
        if not self._is_known:
            await asyncio.to_thread(log.bind, await self._node.genesis_hash())
            self._is_known = True
        await self._rpc_source.catch_up(log, self._first)

    async def best(self) -> BlockRef:
        header = await self._node.header(await self._node.best_head())
        return BlockRef(header.number, header.hash)

    async def hash_at(self, number: int) -> bytes | None:
        return await self._node.block_hash(number)

    async def block(self, number: int) -> BestBlock:
        block = await self._rpc_source.block(number)
        carriers = [
            row for row in block.rows(0) if row.chain is None and row.kind == self._source.kind
        ]
        # The time is only needed for blocks with objects.
        time = carriers[0].time if carriers else 0
        return best_block(number, block.hash, time, objects=map(self._source.bytes_of, carriers))

    async def wait(self, known: bytes) -> None:
        """Wait until the best block has another hash than `known`, at most `POLL_SECONDS`.

        Over HTTP there are no subscriptions, so this waits for `POLL_SECONDS`. Raises
        `UnknownBlock` if the node ends the subscription.
        """
        if self._node.rpc.url.startswith("http"):
            await asyncio.sleep(POLL_SECONDS)
            return
        try:
            async with asyncio.timeout(POLL_SECONDS):
                updates = self._node.rpc.subscribe(
                    "chain_subscribeNewHeads", "chain_unsubscribeNewHeads"
                )
                async with updates as heads:
                    if await self._node.best_head() == known:
                        # The first notification has the current head, and the second a new one.
                        for _ in range(2):
                            await anext(heads)
        except TimeoutError:
            pass
        except StopAsyncIteration:
            raise UnknownBlock("the node ended the subscription to its heads") from None

    async def anchor(self, content: bytes) -> None:
        """Submit an object in a signed extrinsic of pallet `Prism`."""
        arguments = (content,)
        encoded = encode_call(Prism(), Call(PALLET.name, "anchor", arguments))
        async with self._signing:
            call = EncodedCall(PALLET.name, "anchor", arguments, encoded)
            extrinsic = await signed_extrinsic(self._node, self._seed, call)
            await self._node.rpc.call("author_submitExtrinsic", "0x" + extrinsic.hex())

    def settled(self, _number: int) -> int:
        """Return -1, because the node itself tells which blocks are final."""
        return -1

    @property
    def _node(self) -> SubstrateNode:
        return self._rpc_source.node
