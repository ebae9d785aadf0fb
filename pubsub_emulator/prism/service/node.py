"""The node at work: each new best block in turn, final blocks into the log, processing, statuses, hand-over.

async with PrismNode(service, log, chain):
    …
"""

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from pubsub_emulator.client.errors import ClientError, NodeRefused
from pubsub_emulator.eventplane.errors import StoreUnavailable
from pubsub_emulator.eventplane.log.store import Store
from pubsub_emulator.eventplane.prism.service.chain import Chain
from pubsub_emulator.eventplane.prism.service.service import PrismService

_LOG: Final = logging.getLogger("pubsub.prism")
_RETRY_SECONDS: Final = 1.0
_MOST_UNPROCESSED: Final = 512
"""Blocks of the best branch that are looked into: while a long chain is caught up with, only its end."""


class PrismNode:
    """Follows a chain for a service; an asynchronous context manager, which raises what cannot be mended at its end."""

    def __init__(self, service: PrismService, log: Store, chain: Chain) -> None:
        self._service = service
        self._log = log
        self._chain = chain
        self._task: asyncio.Task[None] | None = None
        self._handing: asyncio.Task[None] | None = None
        self._anchored: set[bytes] = set()
        self._to_anchor = asyncio.Event()
        self._best = b""
        self._is_away = False

    async def __aenter__(self) -> Self:
        self._service.handed_over = self._to_anchor.set
        self._to_anchor.set()
        self._task = asyncio.create_task(self._follow())
        self._handing = asyncio.create_task(self._hand_over())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.stop()
        tasks = [task for task in (self._task, self._handing) if task is not None]
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    async def ended(self) -> None:
        """Return, or raise why, when the node cannot go on."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _follow(self) -> None:
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
        """Go to the chain's best block, one block at a time: log, processing, then statuses."""
        best = await self._chain.best()
        if best.hash == self._best:
            return
        await self._chain.catch_up(self._log)
        await asyncio.to_thread(self._service.processor.run, -1)  # what the log took back
        branch = self._service.branch
        kept = await self._common()
        known = {each.number for each in branch.blocks if each.number <= kept}
        # A block that the log took back, and the chain has still, is missing before those that are known.
        first = max(min(kept, self._service.processor.processed) + 1, best.number - _MOST_UNPROCESSED, 1)
        missing = [number for number in range(first, best.number + 1) if number not in known]
        added = [await self._chain.block(number) for number in missing]
        if added and await self._chain.hash_at(best.number) != best.hash:  # the branch changed meanwhile
            return
        for number in [each for each in missing if each > kept] or [best.number]:
            await asyncio.to_thread(self._service.processor.run, number)
            fresh = [each for each in added if each.number <= number]
            added = added[len(fresh) :]
            gone = branch.go_to(kept, fresh, number, self._service.processor.processed)
            kept = number
            if gone:
                await asyncio.to_thread(self._service.scheduled.left_branch, gone, number)
            inside = [name for each in branch.blocks for name in each.operations]
            most = self._service.limits.pending_blocks
            expired = await asyncio.to_thread(self._service.scheduled.expire, number, inside, most)
            for name in expired:
                branch.out_of_blocks.pop(name, None)
            branch.give_up(most)
            await self._service.notice()
        self._best = best.hash

    async def _common(self) -> int:
        """The last block of the branch that the chain still has; those before it were processed."""
        for each in reversed(self._service.branch.blocks):
            if await self._chain.hash_at(each.number) == each.hash:
                return each.number
        return self._service.processor.processed

    async def _hand_over(self) -> None:
        """Anchor every object that has an operation RECEIVED, once for each run of this program."""
        said = ""
        while True:
            await self._to_anchor.wait()
            self._to_anchor.clear()
            try:
                for each in await asyncio.to_thread(self._service.scheduled.waiting):
                    if each.object_id not in self._anchored:
                        await self._chain.anchor(each.content)
                        self._anchored.add(each.object_id)
                said = ""
            except (ClientError, StoreUnavailable) as error:
                if str(error) != said:
                    _LOG.warning("an object could not be handed over: %s; trying again", error)
                said = str(error)
                self._to_anchor.set()
                await asyncio.sleep(_RETRY_SECONDS)
