"""The statuses of watched operations, read as a whole, and written down where that is wanted (PR-60, EV-40).

A status comes of rows and of the branch. Rows are read in a thread; a branch that moved meanwhile makes them stale, so
they are read again.
"""

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Final, Protocol

from pubsub_emulator.database.errors import StoreUnavailable
from pubsub_emulator.prism.core.status import Branch, OperationStatus, Update
from pubsub_emulator.prism.tables.scheduled import Scheduled

FINISHED: Final = "finished"
"""How a stream ended that the node ended after a final status."""


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


class Watching:
    """One stream's notes; they go nowhere without a recorder."""

    def __init__(self, recorder: StatusRecorder | None, operation_id: bytes) -> None:
        self._recorder = recorder
        self._operation_id = operation_id
        self._name = secrets.token_hex(8)
        self._how: str | None = None

    def begin(self) -> None:
        """The operation is known, so there is something to tell."""
        if self._recorder is not None and self._how is None:
            self._how = "disconnected"
            self._recorder.began(self._name, self._operation_id)

    def tell(self, update: Update) -> None:
        """A status is handed over."""
        if self._recorder is not None:
            self._recorder.record(self._name, update)

    def wait(self) -> None:
        """It looked just now, and has nothing to tell."""
        if self._recorder is not None:
            self._recorder.waits(self._name)

    def end(self, how: str) -> None:
        """The end of the stream, unless it only loses its client."""
        if self._how is not None:
            self._how = how

    def close(self) -> None:
        """It ended."""
        if self._recorder is not None and self._how is not None:
            self._recorder.stopped(self._name, self._how)


class StatusReader:
    """Reads statuses; with a recorder one at a time, and each change is written down as it is seen."""

    def __init__(self, scheduled: Scheduled, branch: Branch, recorder: StatusRecorder | None) -> None:
        self._scheduled = scheduled
        self._branch = branch
        self._recorder = recorder
        self._lock = asyncio.Lock()
        self._watched: Counter[bytes] = Counter()
        self._held: dict[bytes, Update] = {}

    @contextlib.contextmanager
    def stream(self, operation_id: bytes) -> Iterator[Watching]:
        """A stream over one operation, which is watched meanwhile."""
        made = Watching(self._recorder, operation_id)
        self._watched[operation_id] += 1
        try:
            yield made
        finally:
            made.close()
            self._watched[operation_id] -= 1
            if not self._watched[operation_id]:
                del self._watched[operation_id]
                self._held.pop(operation_id, None)

    async def look(self, operation_id: bytes) -> Update | None:
        """The status of an operation, `None` where nobody knows it. Raises `StoreUnavailable`."""
        if self._recorder is None:
            return await self._read(operation_id)
        async with self._lock:
            found = await self._read(operation_id)
            held = self._held.get(operation_id)
            true = found
            if found is None and held is not None:  # out of blocks for too long, and not scheduled here
                true = Update(OperationStatus.CANCELLED)
            if true is not None and true != held and operation_id in self._watched:
                self._held[operation_id] = true
                self._recorder.held(operation_id, true)
            return found

    async def look_at_all(self) -> None:
        """Write down the status of all that is watched."""
        if self._recorder is not None:
            for each in tuple(self._watched):
                with contextlib.suppress(StoreUnavailable):  # then the next look finds it
                    await self.look(each)

    async def _read(self, operation_id: bytes) -> Update | None:
        while True:
            version = self._branch.version
            known = await asyncio.to_thread(self._scheduled.known, operation_id)
            if self._branch.version == version:
                return self._branch.status(operation_id, known)
