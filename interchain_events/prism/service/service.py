"""The service of a node under asyncio: streams of operations and of statuses (PR-50 to PR-63).

`PrismService.events` is the `EventService` of the log of operations. The statuses of single
operations are read here, from the tables and the best branch. Calls of databases block, so they run
in worker threads. If the branch has moved meanwhile, the rows are stale and are read again.

Streams of statuses count against the same limits as streams of operations. They are recorded if
there is a recorder (EV-40).
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.errors import LimitReached
from interchain_events.events.log.store import Head
from interchain_events.events.subscriptions.service import EventService, StreamRecorder
from interchain_events.events.subscriptions.streams import Ended, Held, Limits, woken
from interchain_events.prism.core.errors import NothingAnchors, UnknownOperation
from interchain_events.prism.core.filters import Filter
from interchain_events.prism.core.status import FINAL, Branch, OperationStatus, StatusUpdate
from interchain_events.prism.tables.operations import OperationLog
from interchain_events.prism.tables.processor import Processor
from interchain_events.prism.tables.registry import PER_CLIENT, PrismRegistry
from interchain_events.prism.tables.scheduled import PENDING_BLOCKS, Scheduled

FINISHED: Final = "finished"
"""The reason for the end of a stream after a final status."""
_RETRY_SECONDS: Final = 0.5
_MINUTE: Final = 60.0
_LOOK_SECONDS: Final = 1.0
"""The longest time in seconds until rows of another process are seen."""


@dataclass(frozen=True, slots=True)
class PrismLimits(Limits):
    """The limits of clients (PR-54) and of reading."""

    streams_per_client: int = 8
    bound: int = 500
    full_reads: int = 4
    subscriptions_per_client: int = PER_CLIENT
    """The greatest number of subscriptions of one client."""
    pending_blocks: int = PENDING_BLOCKS
    """The number of best blocks after which a scheduled operation is cancelled if it is not in a
    block."""
    schedules_per_minute: int = 100
    """The greatest number of operations that a client may schedule in a minute."""


class OperationService(EventService[Filter]):
    """The service of the operations in a node's tables.

    The node calls `notice` when the tables may have changed. Rows of other processes are seen
    within `_LOOK_SECONDS`.
    """

    def __init__(
        self,
        log: OperationLog,
        registry: PrismRegistry,
        limits: Limits,
        recorder: StreamRecorder | None,
    ) -> None:
        super().__init__(log, registry, limits, recorder)
        self.log = log
        self.subscriptions = registry
        self._noticed = asyncio.Event()
        """Set when the tables may have changed."""

    def notice(self) -> None:
        """Report that the tables may have changed."""
        self._noticed.set()

    def stop(self) -> None:
        """End all streams with a resumable status, and refuse new ones."""
        super().stop()
        self.notice()

    async def _wait(self, _known: Head) -> None:
        """Wait until the node reports a change, at most `_LOOK_SECONDS`."""
        await woken(self._noticed, _LOOK_SECONDS)
        self._noticed.clear()


class StatusRecorder(Protocol):
    """A record of streams of statuses (EV-40). `stream` is a unique name for each stream.

    The order of the calls matters, because an audit compares each delivered status with the one
    that was true at that time.
    """

    def held(self, operation_id: bytes, update: StatusUpdate) -> None:
        """Record that an operation has this status from now on."""

    def began(self, stream: str, operation_id: bytes) -> None:
        """Record that a stream begins."""

    def record(self, stream: str, update: StatusUpdate) -> None:
        """Record that a status was handed to the client's connection."""

    def waits(self, stream: str) -> None:
        """Record that a stream has read the status just now and has nothing new to deliver."""

    def stopped(self, stream: str, how: str) -> None:
        """Record that a stream has ended. `how` is `FINISHED` or another reason."""


class PrismService:
    """The subscriptions and statuses of one node."""

    def __init__(
        self,
        processor: Processor,
        limits: PrismLimits | None = None,
        recorder: StreamRecorder | None = None,
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
        """The best branch, as far as the node has followed it."""
        self.scheduled = Scheduled(database)
        self._status_recorder = status_recorder
        self._looking = asyncio.Lock()
        """Held while a status is read and recorded, so that records are in order."""
        self.wake_anchoring: Callable[[], None] = lambda: None
        """A function that is called when there is something new to anchor. The node sets it."""
        self._status_streams: dict[Held, bytes] = {}
        """The operation of each open stream of statuses."""
        self._recorded: dict[bytes, StatusUpdate | None] = {}
        """The last recorded status of each operation that has a stream."""
        self._schedules: dict[str, list[float]] = {}
        """The times of the last minute at which each client scheduled operations."""

    async def notice(self) -> None:
        """Wake all streams, because the tables or the branch may have changed."""
        self.events.notice()
        await self._refresh_status_streams()

    async def _refresh_status_streams(self) -> None:
        """Record the statuses of operations that have streams, and wake these streams."""
        if self._status_recorder is not None:
            for operation_id in tuple(self._recorded):
                # If the database does not answer, the status is recorded the next time.
                with contextlib.suppress(StoreUnavailable):
                    await self._read_and_record(operation_id)
        for held in self._status_streams:
            held.wake.set()

    async def schedule(self, signed: Sequence[bytes], client: str) -> tuple[list[bytes], str]:
        """Store operations to be anchored. Returns their ids and a token to cancel them.

        Raises `BadRequest`, `AlreadyThere`, `LimitReached` and `NothingAnchors`.
        """
        self.events.check_stopping()
        if not self._anchors:
            raise NothingAnchors(
                "this node only reads its chain; submit to a node that anchors, or with a wallet"
            )
        self._check_schedule(client, len(signed))
        stored = await asyncio.to_thread(self.scheduled.add, signed, self.branch.number)
        self.wake_anchoring()
        await self._refresh_status_streams()
        return stored

    def _check_schedule(self, client: str, count: int) -> None:
        """Count the operations that a client schedules within a minute. Raises `LimitReached`.

        There is a limit because each operation costs the node's account a fee.
        """
        most = self.limits.schedules_per_minute
        now = asyncio.get_running_loop().time()
        begin = now - _MINUTE
        self._schedules = {
            name: times for name, times in self._schedules.items() if times[-1] > begin
        }
        times = [time for time in self._schedules.get(client, ()) if time > begin]
        if len(times) + count > most:
            raise LimitReached(f"a client may schedule at most {most} operations a minute")
        self._schedules[client] = times + [now] * max(count, 1)

    async def cancel_operation(self, operation_id: bytes, token: str) -> None:
        """Cancel an operation. Raises `UnknownOperation` and `NotCancellable`."""
        in_block = self.branch.place(operation_id) is not None
        await asyncio.to_thread(self.scheduled.cancel, operation_id, token, in_block=in_block)
        await self._refresh_status_streams()

    async def statuses(
        self, operation_id: bytes, client: str
    ) -> AsyncGenerator[StatusUpdate, None]:
        """Yield the status of an operation, and then its changes, until a final one.

        Raises `UnknownOperation` and `Ended`.
        """
        name = secrets.token_hex(8)
        how = "disconnected"
        last = None
        recorder = self._status_recorder
        with self.events.held(client) as held:
            self._status_streams[held] = operation_id
            self._recorded.setdefault(operation_id, None)
            try:
                while last is None or last.status not in FINAL:
                    held.wake.clear()
                    self.events.check(held)
                    try:
                        update = await self._read_and_record(operation_id)
                    except StoreUnavailable:
                        await asyncio.sleep(_RETRY_SECONDS)
                        continue
                    # A known operation is forgotten if it was not scheduled here and has been out
                    # of blocks for too long.
                    if update is None and last is not None:
                        update = StatusUpdate(OperationStatus.CANCELLED)
                    if update is None:
                        raise UnknownOperation("this node knows no operation with this id")
                    if last is None and recorder is not None:
                        recorder.began(name, operation_id)
                    is_new = update != last
                    last = update
                    if is_new:
                        if recorder is not None:
                            recorder.record(name, update)
                        yield update
                    elif recorder is not None:
                        recorder.waits(name)
                    if update.status not in FINAL:
                        await held.wake.wait()
                how = FINISHED
            except Ended as error:
                how = str(error)
                raise
            finally:
                if last is not None and recorder is not None:
                    recorder.stopped(name, how)
                del self._status_streams[held]
                if operation_id not in self._status_streams.values():
                    del self._recorded[operation_id]

    async def _read_and_record(self, operation_id: bytes) -> StatusUpdate | None:
        """Return the status of an operation, `None` if it is unknown.

        If there is a recorder, statuses are read one after the other and changes are recorded.
        """
        if self._status_recorder is None:
            return await self._read(operation_id)
        async with self._looking:
            update = await self._read(operation_id)
            recorded = self._recorded.get(operation_id)
            current = update
            # A known operation was forgotten, as in `statuses`.
            if update is None and recorded is not None:
                current = StatusUpdate(OperationStatus.CANCELLED)
            if current is not None and current != recorded and operation_id in self._recorded:
                self._recorded[operation_id] = current
                self._status_recorder.held(operation_id, current)
            return update

    async def _read(self, operation_id: bytes) -> StatusUpdate | None:
        """Return the status according to the rows and the branch, both of the same moment."""
        while True:
            version = self.branch.version
            known = await asyncio.to_thread(self.scheduled.known, operation_id)
            if self.branch.version == version:
                return self.branch.status(operation_id, known)
