"""The two halves of a node under asyncio: streams of operations, and the statuses of single ones (PR-50 to PR-63).

`PrismService.events` is the `EventService` of the log of operations. Statuses are read from tables and branch here, in
worker threads, since databases block; their streams count against the same limits.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.database.errors import StoreUnavailable
from pubsub_emulator.events.errors import LimitReached
from pubsub_emulator.events.log.store import Head
from pubsub_emulator.events.subscriptions.service import EventService, Recorder
from pubsub_emulator.events.subscriptions.streams import Ended, Held, Limits, woken
from pubsub_emulator.prism.core.errors import NothingAnchors, UnknownOperation
from pubsub_emulator.prism.core.filters import Filter
from pubsub_emulator.prism.core.status import FINAL, Branch, OperationStatus, Update
from pubsub_emulator.prism.service.watch import FINISHED, StatusReader, StatusRecorder, Watching
from pubsub_emulator.prism.tables.operations import OperationLog
from pubsub_emulator.prism.tables.processor import Processor
from pubsub_emulator.prism.tables.registry import PER_CLIENT, PrismRegistry
from pubsub_emulator.prism.tables.scheduled import PENDING_BLOCKS, Scheduled

_RETRY_SECONDS: Final = 0.5
_MINUTE: Final = 60.0
_LOOK_SECONDS: Final = 1.0  # how soon what another process processed is seen


@dataclass(frozen=True, slots=True)
class PrismLimits(Limits):
    """Limits of what clients hold open (PR-54), and of reading rows."""

    streams_per_client: int = 8
    bound: int = 500
    full_reads: int = 4
    subscriptions_per_client: int = PER_CLIENT
    pending_blocks: int = PENDING_BLOCKS
    schedules_per_minute: int = 100
    """Operations that a client may schedule."""


class OperationService(EventService[Filter]):
    """The service of the operations in a node's tables; the node says when there are more."""

    def __init__(self, log: OperationLog, registry: PrismRegistry, limits: Limits, recorder: Recorder | None) -> None:
        super().__init__(log, registry, limits, recorder)
        self.log = log
        self.subscriptions = registry
        self._noticed = asyncio.Event()

    def notice(self) -> None:
        """The tables may have changed."""
        self._noticed.set()

    def stop(self) -> None:
        """End all streams with a resumable status; nothing new begins."""
        super().stop()
        self.notice()

    async def _wait(self, _known: Head) -> None:
        await woken(self._noticed, _LOOK_SECONDS)
        self._noticed.clear()


class PrismService:
    """One node's subscriptions and statuses. `branch` is the best branch as far as the node followed it."""

    def __init__(
        self,
        processor: Processor,
        limits: PrismLimits | None = None,
        recorder: Recorder | None = None,
        status_recorder: StatusRecorder | None = None,
        *,
        anchors: bool = True,
    ) -> None:
        self.processor = processor
        self.limits = limits or PrismLimits()
        self._anchors = anchors
        database = processor.database
        registry = PrismRegistry(database, self.limits.subscriptions_per_client)
        self.events = OperationService(OperationLog(database), registry, self.limits, recorder)
        self.branch = Branch()
        self.scheduled = Scheduled(database)
        self._watch = StatusReader(self.scheduled, self.branch, status_recorder)
        self.handed_over: Callable[[], None] = lambda: None
        """Called when there is something new to anchor."""
        self._status_streams: dict[Held, None] = {}
        self._schedules: dict[str, list[float]] = {}  # when each client scheduled an operation, in the last minute

    async def notice(self) -> None:
        """The tables or the branch may have changed: wake everyone."""
        self.events.notice()
        await self._look_at_statuses()

    async def _look_at_statuses(self) -> None:
        await self._watch.look_at_all()
        for each in self._status_streams:
            each.wake.set()

    async def schedule(self, signed: Sequence[bytes], client: str) -> tuple[list[bytes], str]:
        """Store operations that this node anchors. Raises `BadRequest`, `AlreadyThere`, `LimitReached`.

        Raises `NothingAnchors` where the chain is only read.
        """
        self.events.check_stopping()
        if not self._anchors:
            raise NothingAnchors("this node only reads its chain; submit to a node that anchors, or with a wallet")
        self._check_schedule(client, len(signed))
        stored = await asyncio.to_thread(self.scheduled.add, signed, self.branch.number)
        self.handed_over()
        await self._look_at_statuses()
        return stored

    def _check_schedule(self, client: str, count: int) -> None:
        """Count operations of a client in the last minute; each costs the node's account a fee."""
        most, now = self.limits.schedules_per_minute, asyncio.get_running_loop().time()
        for each in [name for name, times in self._schedules.items() if times[-1] <= now - _MINUTE]:
            del self._schedules[each]
        times = [each for each in self._schedules.get(client, ()) if each > now - _MINUTE]
        if len(times) + count > most:
            raise LimitReached(f"a client may schedule {most} operations a minute")
        self._schedules[client] = times + [now] * max(count, 1)

    async def cancel_operation(self, operation_id: bytes, token: str) -> None:
        """Cancel an operation. Raises `UnknownOperation`, `NotCancellable`."""
        in_block = self.branch.place(operation_id) is not None
        await asyncio.to_thread(self.scheduled.cancel, operation_id, token, in_block)
        await self._look_at_statuses()

    async def statuses(self, operation_id: bytes, client: str) -> AsyncGenerator[Update, None]:
        """The status of an operation, then its changes, until a final one. Raises `UnknownOperation`, `Ended`."""
        with self.events.held(client) as mine, self._watch.stream(operation_id) as notes:
            self._status_streams[mine] = None
            try:
                async for update in self._statuses(operation_id, mine, notes):
                    notes.tell(update)
                    yield update
                notes.end(FINISHED)
            except Ended as error:
                notes.end(str(error))
                raise
            finally:
                del self._status_streams[mine]

    async def _statuses(self, operation_id: bytes, mine: Held, notes: Watching) -> AsyncIterator[Update]:
        last: Update | None = None
        while True:
            mine.wake.clear()
            self.events.check(mine)
            try:
                found = await self._watch.look(operation_id)
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if found is None and last is not None:  # out of blocks for too long, and not scheduled here
                found = Update(OperationStatus.CANCELLED)
            if found is None:
                raise UnknownOperation("no operation of this id is known here")
            notes.begin()
            if found == last:
                notes.wait()
            else:
                last = found
                yield found
            if found.status in FINAL:
                return
            await mine.wake.wait()
