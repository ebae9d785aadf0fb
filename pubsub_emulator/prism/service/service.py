"""The two halves of a node under asyncio: streams of operations, and the statuses of single ones (PR-50 to PR-63).

`PrismService.events` is the `EventService` of the log of operations. Statuses are read from tables and branch here, in
worker threads, since databases block; their streams count against the same limits. A branch that moved meanwhile makes
rows stale, so they are read again. Statuses are written down where that is wanted (EV-40).
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pubsub_emulator.database.errors import StoreUnavailable
from pubsub_emulator.events.errors import LimitReached
from pubsub_emulator.events.log.store import Head
from pubsub_emulator.events.subscriptions.service import EventService, Recorder
from pubsub_emulator.events.subscriptions.streams import Ended, Held, Limits, woken
from pubsub_emulator.prism.core.errors import NothingAnchors, UnknownOperation
from pubsub_emulator.prism.core.filters import Filter
from pubsub_emulator.prism.core.status import FINAL, Branch, OperationStatus, Update
from pubsub_emulator.prism.tables.operations import OperationLog
from pubsub_emulator.prism.tables.processor import Processor
from pubsub_emulator.prism.tables.registry import PER_CLIENT, PrismRegistry
from pubsub_emulator.prism.tables.scheduled import PENDING_BLOCKS, Scheduled

FINISHED: Final = "finished"  #: How a stream ended that the node ended after a final status
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
    schedules_per_minute: int = 100  #: Operations that a client may schedule


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


class StatusRecorder(Protocol):
    """Writes channel 7 down (EV-40); `stream` is a name of its own for each stream. The calls' order counts."""

    def held(self, operation_id: bytes, update: Update) -> None:
        """The status of an operation is this from now on."""

    def began(self, stream: str, operation_id: bytes) -> None:
        """A stream begins."""

    def record(self, stream: str, update: Update) -> None:
        """A status is handed to the client's connection."""

    def waits(self, stream: str) -> None:
        """A stream looked just now, and has nothing to tell."""

    def stopped(self, stream: str, how: str) -> None:
        """A stream ended; `FINISHED`, or why else."""


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
        self._status_recorder = status_recorder
        self._looking = asyncio.Lock()
        self.handed_over: Callable[[], None] = lambda: None  #: Called when there is something new to anchor
        self._status_streams: dict[Held, bytes] = {}
        self._told: dict[bytes, Update | None] = {}  # what the recorder was told of the operations of these streams
        self._schedules: dict[str, list[float]] = {}  # when each client scheduled an operation, in the last minute

    async def notice(self) -> None:
        """The tables or the branch may have changed: wake everyone."""
        self.events.notice()
        await self._look_at_statuses()

    async def _look_at_statuses(self) -> None:
        for operation_id in tuple(self._told) if self._status_recorder is not None else ():
            with contextlib.suppress(StoreUnavailable):  # then the next look finds it
                await self._look(operation_id)
        for each in self._status_streams:
            each.wake.set()

    async def schedule(self, signed: Sequence[bytes], client: str) -> tuple[list[bytes], str]:
        """Store operations to anchor. Raises `BadRequest`, `AlreadyThere`, `LimitReached`, `NothingAnchors`."""
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
        name, how, last, recorder = secrets.token_hex(8), "disconnected", None, self._status_recorder
        with self.events.held(client) as mine:
            self._status_streams[mine] = operation_id
            self._told.setdefault(operation_id, None)
            try:
                while last is None or last.status not in FINAL:
                    mine.wake.clear()
                    self.events.check(mine)
                    try:
                        found = await self._look(operation_id)
                    except StoreUnavailable:
                        await asyncio.sleep(_RETRY_SECONDS)
                        continue
                    if found is None and last is not None:  # out of blocks for too long, and not scheduled here
                        found = Update(OperationStatus.CANCELLED)
                    if found is None:
                        raise UnknownOperation("no operation of this id is known here")
                    if last is None and recorder is not None:
                        recorder.began(name, operation_id)
                    is_new, last = found != last, found
                    if is_new:
                        if recorder is not None:
                            recorder.record(name, found)
                        yield found
                    elif recorder is not None:
                        recorder.waits(name)
                    if found.status not in FINAL:
                        await mine.wake.wait()
                how = FINISHED
            except Ended as error:
                how = str(error)
                raise
            finally:
                if last is not None and recorder is not None:
                    recorder.stopped(name, how)
                del self._status_streams[mine]
                if operation_id not in self._status_streams.values():
                    del self._told[operation_id]

    async def _look(self, operation_id: bytes) -> Update | None:
        """The status of an operation, `None` where nobody knows it; with a recorder one after the other."""
        if self._status_recorder is None:
            return await self._read(operation_id)
        async with self._looking:
            found = true = await self._read(operation_id)
            told = self._told.get(operation_id)
            if found is None and told is not None:  # out of blocks for too long, and not scheduled here
                true = Update(OperationStatus.CANCELLED)
            if true is not None and true != told and operation_id in self._told:
                self._told[operation_id] = true
                self._status_recorder.held(operation_id, true)
            return found

    async def _read(self, operation_id: bytes) -> Update | None:
        while True:
            version = self.branch.version
            known = await asyncio.to_thread(self.scheduled.known, operation_id)
            if self.branch.version == version:
                return self.branch.status(operation_id, known)
