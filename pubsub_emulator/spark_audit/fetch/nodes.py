"""The source of blocks that asks nodes over JSON-RPC.

The hash of the last block of a range must be the same at every node. Every other block must be the
parent that the next block names. So a node that is on a fork or invents blocks can delay a range,
but cannot change it.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Final, TypeVar, cast

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.spark_audit.fetch.block import VALUES, RawBlock, read_block
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints
from pubsub_emulator.spark_audit.fetch.errors import FetchError, WrongBlock
from pubsub_emulator.spark_audit.fetch.inherent import relay_proof
from pubsub_emulator.spark_audit.fetch.relay import RelayHeaders, ask_hash, ask_header, each
from pubsub_emulator.spark_audit.real_proofs.imported import RelayProof

T = TypeVar("T")

_RUNTIMES: Final = 8
"""The maximum number of runtimes whose metadata stays in memory. A range rarely has more than two.
"""


class NodeBlockSource:
    """A parachain's blocks from its nodes.

    Relay roots are confirmed by nodes of the relay chain, if there are any.
    """

    def __init__(
        self, network: str, chain: ParaId, nodes: Endpoints, relay: Endpoints | None = None
    ) -> None:
        self.network = network
        self.chain = chain
        self.nodes = nodes
        self._relay = RelayHeaders(relay)
        self._metadata: dict[str, Metadata] = {}

    async def newest(self) -> int:
        """Return the number of the last finalized block. Raises `SourceLost`, `WrongBlock`."""
        head = await ask_hash(self.nodes, "the final head", "chain_getFinalizedHead")
        return (await ask_header(self.nodes, head, "the final head")).number

    async def name(self) -> str | None:
        """Return the chain's name, `None` if the nodes do not state it.

        Errors are ignored, because the name is not essential.
        """

        def check(url: str, answer: object) -> str:
            if not isinstance(answer, str):
                raise WrongBlock(f"{url}: the chain's name is not text")
            return answer

        try:
            return await self.nodes.ask(check, "system_chain")
        except FetchError:
            return None

    async def blocks(
        self, first: int, last: int, advance: Callable[[int], None]
    ) -> list[RelayProof]:
        """Return the inherents of blocks `first` to `last`. Raises `SourceLost`, `WrongBlock`.

        All blocks are first requested by number, several at a time. Then they are checked from the
        last one to the first. If a block is not the parent of the next one, the right block is
        requested by its hash.
        """
        anchor = await self._anchor(last)
        blocks = {last: await self._block(last, anchor)}
        done = 0

        async def fetch_one(number: int) -> None:
            nonlocal done
            block = await self._numbered(number)
            if block is not None:
                blocks[number] = block
            done += 1
            advance(done)

        await each(fetch_one, range(first, last), self.nodes.width)
        for number in range(last - 1, first - 1, -1):
            wanted = blocks[number + 1].header.parent
            known_block = blocks.get(number)
            # The node that was asked is on a fork, or it lies.
            if known_block is None or known_block.header.hash != wanted:
                blocks[number] = await self._block(number, wanted)
        ordered = [blocks[number] for number in range(first, last + 1)]
        source = json.dumps({"rpc": "chain_getBlock"})
        proofs: list[RelayProof] = []
        for block, name in zip(ordered, await self._runtimes(ordered), strict=True):
            place = f"block {block.header.number} of runtime {name}"
            proofs.append(
                relay_proof(
                    place, self._metadata[name], block, self.network, self.chain, name, source
                )
            )
        return await self._relay.with_headers(proofs)

    # Blocks

    async def _anchor(self, number: int) -> Hash:
        """Return the hash of a block. Raises `WrongBlock` if nodes disagree about it."""
        urls = self.nodes.urls
        asked = (
            ask_hash(self.nodes, f"block {number}", "chain_getBlockHash", number, only=url)
            for url in urls
        )
        urls_by_hash: dict[Hash, list[str]] = {}
        problems: list[str] = []
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for url, answer in zip(urls, answers, strict=True):
            if not isinstance(answer, BaseException):
                urls_by_hash.setdefault(answer, []).append(url)
            elif len(urls) == 1 and not isinstance(answer, WrongBlock):
                raise answer
            else:
                problems.append(str(answer))
        if len(urls_by_hash) > 1:
            shown = "; ".join(
                f"0x{block_hash.hex()} at {', '.join(agreeing)}"
                for block_hash, agreeing in urls_by_hash.items()
            )
            raise WrongBlock(f"the nodes disagree about block {number}: {shown}")
        if not urls_by_hash:
            raise WrongBlock("; ".join(problems))
        return next(iter(urls_by_hash))

    async def _numbered(self, number: int) -> RawBlock | None:
        """Return a block by its number, on the fork that the node follows.

        Returns `None` if the node's answer is wrong. Then the caller requests it by hash.
        """
        try:
            block_hash = await ask_hash(self.nodes, f"block {number}", "chain_getBlockHash", number)
            return await self._block(number, block_hash)
        except WrongBlock:
            return None

    async def _block(self, number: int, wanted: Hash) -> RawBlock:
        """Return a block by its hash. Raises `WrongBlock` if it has another number."""

        def check(url: str, answer: object) -> RawBlock:
            place = f"{url}: block {number}"
            if answer is None:
                reason = "is unknown to the node: it pruned the block or is on another fork"
                raise WrongBlock(f"{place}, 0x{wanted.hex()}, {reason}")
            block = read_block(place, answer, wanted)
            if block.header.number != number:
                raise WrongBlock(f"{place} has the number {block.header.number}")
            return block

        return await self.nodes.ask(check, "chain_getBlock", f"0x{wanted.hex()}")

    # Runtimes

    async def _runtimes(self, blocks: list[RawBlock]) -> list[str]:
        """Return the name and version of each block's runtime.

        Blocks between two blocks with the same runtime are assumed to have it as well. So a range
        without an upgrade costs two requests. An upgrade is found by bisection.
        """
        names: dict[int, str] = {}
        """Names by index in `blocks`."""

        async def fill(low: int, high: int) -> None:
            """Find the runtimes of the blocks with the indexes `low` to `high`."""
            for index in (low, high):
                if index not in names:
                    names[index] = await self._runtime(blocks[index])
            if names[low] == names[high]:
                names.update(dict.fromkeys(range(low, high), names[low]))
            elif high - low > 1:
                middle = (low + high) // 2
                await fill(low, middle)
                await fill(middle, high)

        await fill(0, len(blocks) - 1)
        return [names[index] for index in range(len(blocks))]

    async def _runtime(self, block: RawBlock) -> str:
        """Return name and version of a block's runtime, and load its metadata if necessary.

        A block is executed by the runtime in the state of its parent.
        """
        number = block.header.number
        parent = f"0x{block.header.parent.hex()}"

        def version(url: str, answer: object) -> str:
            try:
                parsed = cast("dict[str, str]", answer)
                return f"{parsed['specName']}/{int(parsed['specVersion'])}"
            except (KeyError, TypeError, ValueError):
                raise WrongBlock(f"{url}: block {number}: no runtime version") from None

        def metadata(url: str, answer: object) -> Metadata:
            try:
                return parse_metadata(VALUES.hex(f"{url}: metadata of block {number}", answer))
            except BadAnswer as error:
                raise WrongBlock(f"{url}: block {number}, runtime {name}: {error}") from None

        name = await self._of_state(number, version, "state_getRuntimeVersion", parent=parent)
        if name not in self._metadata:
            parsed = await self._of_state(number, metadata, "state_getMetadata", parent=parent)
            while len(self._metadata) >= _RUNTIMES:
                # Remove the metadata that was added first.
                del self._metadata[next(iter(self._metadata))]
            self._metadata[name] = parsed
        return name

    async def _of_state(
        self, number: int, check: Callable[[str, object], T], method: str, parent: str
    ) -> T:
        """Ask the nodes about a block's state, and return the answer as `check` returns it.

        If that fails, the message suggests an archive node, because other nodes forget old states.
        """
        try:
            return await self.nodes.ask(check, method, parent)
        except WrongBlock as error:
            raise WrongBlock(
                f"no node provides the runtime of block {number}; one that keeps old states (an"
                f" archive node) does: {error}"
            ) from None
