"""The node, which goes through the chain's best blocks one by one.

    async with PrismNode(service, log, chain):
        …

For each best block it appends final blocks to the log, processes them, updates the statuses of
operations, and anchors scheduled operations.
"""

import asyncio
import logging
from itertools import chain as chained
from typing import Final, Self

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.log.store import Store
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.process import read_object
from interchain_events.prism.service.chain import AnchoringChain
from interchain_events.prism.service.service import PrismService
from pubsub_emulator.client.errors import ClientError, NodeRefused

_LOG: Final = logging.getLogger("pubsub.prism")
_RETRY_SECONDS: Final = 1.0
_MOST_UNPROCESSED: Final = 512
"""The greatest number of blocks of the best branch that are read. While the node catches up with a
long chain, these are the last ones."""
_AGAIN_BLOCKS: Final = 8
"""The number of best blocks after which a submitted object is submitted again if it is not in a
block."""


class PrismNode:
    """The part of a node that follows a chain for a service.

    Use it as an asynchronous context manager. If the node has failed, its error is raised when the
    context ends.
    """

    def __init__(self, service: PrismService, log: Store, chain: AnchoringChain) -> None:
        self._service = service
        self._log = log
        self._chain = chain
        self._task: asyncio.Task[None] | None = None
        """The task that follows the chain."""
        self._submitting: asyncio.Task[None] | None = None
        """The task that submits objects."""
        self._anchored: dict[bytes, int] = {}
        """The submitted objects that have not been processed yet, each with the number of the best
        block at its submission."""
        self._may_anchor = asyncio.Event()
        """Set when there may be objects to submit."""
        self._best = b""
        """The hash of the best block up to which everything has been done."""
        self._last_settled: tuple[int, bytes | None] | None = None
        """The number and hash of the last settled block that has been read."""
        self._is_away = False
        """Whether the chain or the database does not answer. This is logged only once."""

    async def __aenter__(self) -> Self:
        self._service.wake_anchoring = self._may_anchor.set
        await self._service.events.__aenter__()
        self._task = asyncio.create_task(self._follow())
        self._submitting = asyncio.create_task(self._submit_objects())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._service.events.__aexit__()
        tasks = [task for task in (self._task, self._submitting) if task is not None]
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    async def ended(self) -> None:
        """Wait until the node has ended. Raises the error with which it has failed."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _follow(self) -> None:
        """Follow the chain until the task is cancelled or the node refuses a request."""
        while True:
            try:
                await self.advance()
                self._is_away = False
                await self._chain.wait(self._best)
            except NodeRefused:
                raise
            except (ClientError, StoreUnavailable) as error:
                if not self._is_away:
                    _LOG.warning("%s; asking again", error)
                self._is_away = True
                await asyncio.sleep(_RETRY_SECONDS)

    async def advance(self) -> None:
        """Go to the chain's best block, one block at a time.

        For each block, the log is processed and then the statuses are updated, as if this block
        were the best one.
        """
        best = await self._chain.best()
        if best.hash == self._best:
            return
        await self._chain.catch_up(self._log)
        # With -1, blocks are not processed, but rows of blocks that the log took back are removed.
        await asyncio.to_thread(self._service.processor.run, -1)
        branch = self._service.branch
        common = await self._common()
        known = {block.number for block in branch.blocks if block.number <= common}
        # A block that the log took back may still be on the chain. It is then missing before the
        # known ones.
        settled = self._chain.settled(best.number)
        processed = min(common, self._service.processor.processed)
        done = max(processed, await self._last_settled_read(settled))
        first = max(done + 1, best.number - _MOST_UNPROCESSED, 1)
        missing = [number for number in range(first, best.number + 1) if number not in known]
        added = [await self._chain.block(number) for number in missing]
        last_settled = (settled, await self._chain.hash_at(settled) if settled > 0 else None)
        # If the branch changed while its blocks were read, this is tried again.
        if added and await self._chain.hash_at(best.number) != best.hash:
            return
        steps = [number for number in missing if number > common]
        if not steps:
            # The best block is known already, for example because the chain became shorter.
            steps = [best.number]
        for number in steps:
            await asyncio.to_thread(self._service.processor.run, number)
            fresh = [block for block in added if block.number <= number]
            added = added[len(fresh) :]
            processed = max(self._service.processor.processed, self._chain.settled(number))
            gone = branch.go_to(common, fresh, number, processed)
            common = number
            if gone:
                await asyncio.to_thread(self._service.scheduled.left_branch, gone, number)
            inside = list(chained.from_iterable(block.operations for block in branch.blocks))
            most = self._service.limits.pending_blocks
            expired = await asyncio.to_thread(
                self._service.scheduled.expire, number, inside, most=most
            )
            for name in expired:
                branch.out_of_blocks.pop(name, None)
            branch.give_up(most)
            await self._service.notice()
        if self._anchored or not self._best:
            self._may_anchor.set()
        self._best = best.hash
        self._last_settled = last_settled

    async def _last_settled_read(self, settled: int) -> int:
        """Return the number of the last settled block that has been read.

        Returns `settled` before the first read, and -1 if the chain no longer has that block.
        """
        if self._last_settled is None:
            return settled
        number, block_hash = self._last_settled
        if block_hash is None or await self._chain.hash_at(number) != block_hash:
            return -1
        return number

    async def _common(self) -> int:
        """Return the number of the last block of the branch that the chain still has.

        If there is none, the result is the last processed block, which precedes the branch.
        """
        for block in reversed(self._service.branch.blocks):
            if await self._chain.hash_at(block.number) == block.hash:
                return block.number
        return self._service.processor.processed

    async def _submit_objects(self) -> None:
        """Submit every object with an operation that is RECEIVED, until the task is cancelled.

        An object whose transaction was lost with its block is submitted again.
        """
        logged = ""
        while True:
            await self._may_anchor.wait()
            self._may_anchor.clear()
            try:
                waiting = await asyncio.to_thread(self._service.scheduled.waiting)
                self._anchored = {
                    name: number for name, number in self._anchored.items() if name in waiting
                }
                for name, content in waiting.items():
                    if self._must_anchor(name, content):
                        await self._chain.anchor(content)
                        self._anchored[name] = self._service.branch.number
                logged = ""
            except (ClientError, StoreUnavailable) as error:
                if str(error) != logged:
                    _LOG.warning("an object could not be handed over: %s; trying again", error)
                logged = str(error)
                self._may_anchor.set()
                await asyncio.sleep(_RETRY_SECONDS)

    def _must_anchor(self, object_id: bytes, content: bytes) -> bool:
        """Return whether an object must be submitted now."""
        submitted_at = self._anchored.get(object_id)
        if submitted_at is None:
            return True
        branch = self._service.branch
        if branch.number - submitted_at < _AGAIN_BLOCKS:
            return False
        operations = (sha256(signed.raw) for signed in read_object(content) or ())
        return not any(map(branch.place, operations))
