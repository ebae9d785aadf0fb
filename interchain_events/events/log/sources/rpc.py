"""The log of a Substrate chain or network over JSON-RPC (EV-4).

    async with RpcSource("wss://relay…", {2000: "wss://para…"}) as source:
        await source.follow(store)

The first URL is that of the leading chain. The blocks of a parachain are logged if a URL is given
for it. The blocks that the leading chain included are known from its event
`ParaInclusion.CandidateIncluded`, or from `Paras.NewHeadNoted` together with the storage
`Paras.Heads`.

Only finalised blocks are appended. If the node's finalised chain no longer has the log's last
block, the log is rewound to the last block that both have. If the finalised chain is only shorter
than the log, the node is behind and is asked again later, unless it has methods that take blocks
back.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final, Self

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.errors import AnotherChain, SourceError
from interchain_events.events.log.store import Store, put
from interchain_events.events.rows import Block, ChainBlock, assemble
from pubsub_emulator.client.answers import HEAD, METHODS, read
from pubsub_emulator.client.errors import NodeRefused, NodeUnavailable, UnknownBlock
from pubsub_emulator.client.node import BlockHeader, DecodedEvent, SubstrateNode
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.emulator.network.block_time import SLOT_MS
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import BABE_ENGINE
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.storage_keys import para_head
from pubsub_emulator.primitives.types import ParaId

_LOG: Final = logging.getLogger("pubsub.log")
_AT_ONCE: Final = 16
"""The greatest number of blocks that are fetched at the same time."""
_RETRY_SECONDS: Final = 1.0
_DEVELOPMENT: Final = "dev_"
"""The prefix of the methods of development nodes, which take final blocks back on request."""
_PRE_RUNTIME: Final = 6
"""The variant of the digest items that the block's author writes before the runtime runs."""
_CANDIDATE_INCLUDED: Final = ("ParaInclusion", "CandidateIncluded")
_NEW_HEAD_NOTED: Final = ("Paras", "NewHeadNoted")


class RpcSource:
    """A leading chain and parachains behind nodes.

    Use it as an asynchronous context manager. `paras` has the URLs of parachains by para id.
    `poll_seconds` is the longest wait between two questions to the leading chain.
    """

    def __init__(
        self, url: str, paras: Mapping[int, str] | None = None, *, poll_seconds: float = 6.0
    ) -> None:
        self.node = SubstrateNode(connect(url))
        """The node of the leading chain."""
        self._paras = {
            para: SubstrateNode(connect(para_url)) for para, para_url in (paras or {}).items()
        }
        """The nodes of the parachains that are logged."""
        self._poll_seconds = poll_seconds
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for node in (self.node, *self._paras.values()):
            await self._stack.enter_async_context(node.rpc)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def reach(self) -> None:
        """Ask every node for its genesis hash. Raises `NodeUnavailable` if one does not answer."""
        for node in (self.node, *self._paras.values()):
            await node.genesis_hash()

    async def follow(
        self, store: Store, first: int | None = None, *, until: int | None = None
    ) -> None:
        """Append every finalised block until the log has block `until`, or forever.

        An empty log begins with block `first`, by default the newest one. If a node or the database
        does not answer, it is asked again. Raises `AnotherChain`, `SourceError` and `ClientError`
        for errors that last, for example if an empty log would begin after `until`.
        """
        away = False
        bound = False
        while True:
            try:
                if not bound:
                    await asyncio.to_thread(store.bind, await self.node.genesis_hash())
                    bound = True
                await self.catch_up(store, first, until=until)
                reached = (await asyncio.to_thread(store.head)).anchor or 0
                if until is not None and reached >= until:
                    return
                away = False
                await self._next_head(reached)
            except (NodeUnavailable, UnknownBlock, StoreUnavailable) as error:
                if not away:
                    _LOG.warning("%s; asking again", error)
                away = True
                await asyncio.sleep(_RETRY_SECONDS)

    async def catch_up(
        self, store: Store, first: int | None = None, *, until: int | None = None
    ) -> int:
        """Append the finalised blocks that the log does not have, and return their number.

        Raises the errors of `follow`, and also those after which `follow` asks again.
        """
        final = await self.node.header(await self.node.finalized_head())
        head = await asyncio.to_thread(store.head)
        if head.anchor is None or head.hash is None:
            begin = final.number if first is None else first
            if until is not None and begin > until:
                # The log would remain empty, and `follow` would never end.
                raise SourceError(
                    f"{self.node.rpc.url}: the log would begin at block {begin}, which is"
                    f" after the last block that is asked for, {until}; give its first block"
                    " (--from)"
                )
        else:
            await self._check_not_behind(head.anchor, final.number)
            common = await self._rewind_to_common(store, head.anchor, head.hash, final=final.number)
            begin = common + 1
        last = final.number if until is None else min(final.number, until)
        appended = 0
        for start in range(begin, last + 1, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, last + 1))
            blocks = await asyncio.gather(*map(self.block, numbers))
            appended += await asyncio.to_thread(put, store, blocks)
        return appended

    async def block(self, number: int) -> Block:
        """Return the log's block at a height of the leading chain.

        Raises `UnknownBlock`, `SourceError` and `ClientError`.
        """
        block_hash = await self.node.block_hash(number)
        if block_hash is None:
            raise UnknownBlock(f"{self.node.rpc.url}: the node has no block {number}")
        header = await self.node.header(block_hash)
        events = await self.node.events(block_hash, header.parent)
        time = await self.node.timestamp(block_hash)
        if time is None:
            # A chain without timestamps has its time in the slot numbers.
            time = _slot(header) * SLOT_MS
        included = [
            await self._para_block(para, para_header, time)
            for para, para_header in await self._included(header, events)
        ]
        return assemble(_chain_block(None, header, time, events), included, parent=header.parent)

    # Parachains

    async def _included(
        self, relay: BlockHeader, events: list[DecodedEvent]
    ) -> list[tuple[int, BlockHeader]]:
        """Return the parachain blocks that a relay block included, in order.

        Only parachains with a URL are considered.
        """
        candidates = [
            _candidate(event)
            for event in events
            if (event.pallet, event.name) == _CANDIDATE_INCLUDED
        ]
        if candidates:
            return [
                (para, await self._paras[para].header(bytes(blake2_256(head))))
                for para, head in candidates
                if para in self._paras
            ]
        # `NewHeadNoted` names only the parachain. If a relay block noted several heads of it, they
        # are its last blocks.
        noted = [_noted(event) for event in events if (event.pallet, event.name) == _NEW_HEAD_NOTED]
        counts = Counter(para for para in noted if para in self._paras)
        chains = {para: await self._newest(relay, para, count) for para, count in counts.items()}
        return [(para, chains[para].pop(0)) for para in noted if para in chains]

    async def _newest(self, relay: BlockHeader, para: int, count: int) -> list[BlockHeader]:
        """Return the last `count` blocks of a parachain up to a relay block, oldest first.

        Raises `SourceError` if the relay block does not have a valid head of the parachain.
        """
        raw = await self.node.storage(para_head(ParaId(para)), relay.hash)
        if raw is None:
            raise SourceError(f"relay block {relay.number} has no head of parachain {para}")
        try:
            block = bytes(blake2_256(Reader(raw).bytes_()))
        except ScaleError as error:
            raise SourceError(
                f"the head of parachain {para} in relay block {relay.number}: {error}"
            ) from error
        chain: list[BlockHeader] = []
        for _ in range(count):
            chain.append(await self._paras[para].header(block))
            block = chain[-1].parent
        return chain[::-1]

    async def _para_block(self, para: int, header: BlockHeader, anchor_time: int) -> ChainBlock:
        """Return a block of a parachain, with the relay block's time if it has no timestamp."""
        node = self._paras[para]
        events = await node.events(header.hash, header.parent)
        time = await node.timestamp(header.hash)
        return _chain_block(para, header, anchor_time if time is None else time, events)

    # Following

    async def _check_not_behind(self, anchor: int, final: int) -> None:
        """Raise `UnknownBlock` if a node has not finalised the log's last block yet.

        A node with development methods may have taken blocks back, so it is not behind.
        """
        url = self.node.rpc.url
        if final >= anchor:
            return
        try:
            methods = read(
                METHODS, await self.node.rpc.call("rpc_methods"), f"{url}: rpc_methods"
            ).methods
        except NodeRefused:
            methods = ()
        if not any(method.startswith(_DEVELOPMENT) for method in methods):
            raise UnknownBlock(
                f"{url}: its newest final block is {final}, and the log ends at {anchor}"
            )

    async def _rewind_to_common(self, store: Store, anchor: int, block: bytes, final: int) -> int:
        """Rewind the log to its last block that is on the node's finalised chain.

        `anchor` and `block` are the number and hash of the log's last block, `final` is the number
        of the node's last final block. Returns the number of the common block. Raises
        `AnotherChain` if there is none.
        """
        common = min(anchor, final)
        while True:
            stored: bytes | None = block
            if common != anchor:
                stored = await asyncio.to_thread(store.hash_at, common)
            if stored is None:
                raise AnotherChain(
                    f"{self.node.rpc.url} shares no block with the log, which ends at {anchor}"
                )
            if await self.node.block_hash(common) == stored:
                break
            common -= 1
        if common < anchor:
            _LOG.warning("blocks after %d were reverted", common)
            await asyncio.to_thread(store.rewind, common)
        return common

    async def _next_head(self, known: int) -> None:
        """Wait for a finalised block other than number `known`, at most `poll_seconds`.

        Over HTTP there are no subscriptions, so this waits for `poll_seconds`.
        """
        if self.node.rpc.url.startswith("http"):
            await asyncio.sleep(self._poll_seconds)
            return
        subscription = self.node.rpc.subscribe(
            "chain_subscribeFinalizedHeads", "chain_unsubscribeFinalizedHeads"
        )
        async with subscription as heads:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds):
                    async for header in heads:
                        if read(HEAD, header, f"{self.node.rpc.url}: a head").number != known:
                            return


def _chain_block(
    chain: int | None, header: BlockHeader, time: int, events: list[DecodedEvent]
) -> ChainBlock:
    """Return a block with its decoded events."""
    kinds = [(f"{event.pallet}.{event.name}", event.fields) for event in events]
    return ChainBlock(chain, header.number, header.hash, time=time, events=kinds)


def _candidate(event: DecodedEvent) -> tuple[int, bytes]:
    """Return the para id and the head data in an event `CandidateIncluded`.

    Raises `SourceError` if it lacks them.
    """
    try:
        receipt, head = list(event.fields.values())[:2]
        return int(receipt["descriptor"]["para_id"]), bytes(head)
    except (KeyError, TypeError, ValueError):
        raise SourceError("a CandidateIncluded event without para id or head data") from None


def _noted(event: DecodedEvent) -> int:
    """Return the para id in an event `NewHeadNoted`, its first field.

    Raises `SourceError` if that is not an integer.
    """
    para = next(iter(event.fields.values()), None)
    if isinstance(para, int):
        return para
    raise SourceError("a NewHeadNoted event without para id")


def _slot(header: BlockHeader) -> int:
    """Return the slot in a header's BABE digest, 0 if it has none."""
    for item in header.logs:
        if item[:5] == bytes((_PRE_RUNTIME,)) + BABE_ENGINE:
            with contextlib.suppress(ScaleError):
                return int.from_bytes(Reader(item, 5).bytes_()[5:13], "little")
    return 0
