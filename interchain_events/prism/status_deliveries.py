"""The recorder of the statuses in streams and of the true ones, for audits (EV-40).

The records are tables of `delivery_audit`.
"""

import secrets
from collections.abc import Callable
from pathlib import Path

from interchain_events.delivery_audit.tables import (
    STATUS_ANSWERS,
    STATUS_STREAMS,
    STATUS_TRUTHS,
)
from interchain_events.events.subscriptions.deliveries import TablesWriter, now
from interchain_events.prism.core.status import StatusUpdate
from interchain_events.prism.service.service import FINISHED, StatusRecorder
from interchain_events.prism.tables.operations import NETWORK


class _Stream:
    """An open stream of statuses."""

    def __init__(self, operation_id: bytes) -> None:
        self.operation_id = operation_id
        self.position = 0
        """The number of statuses that the stream has delivered."""
        self.settled: int | None = None
        """The number of the last record at the latest time at which the stream had delivered
        everything, `None` before the first such time."""


class StatusDeliveries(TablesWriter, StatusRecorder):
    """The recorder of statuses in tables.

    True statuses are written before answers, and answers before ends of streams, so that the true
    status for each answer is in the tables.
    """

    def __init__(self, folder: Path, clock: Callable[[], int] = now) -> None:
        super().__init__(folder, (STATUS_TRUTHS, STATUS_ANSWERS, STATUS_STREAMS), clock)
        self._run = secrets.token_hex(8)
        """A random name for this run. Records are ordered only within a run."""
        self._order = 0
        """The number of the last record."""
        self._open: dict[str, _Stream] = {}
        """The open streams by name."""

    def held(self, operation_id: bytes, update: StatusUpdate) -> None:
        self._rows[STATUS_TRUTHS].append(self._row(operation_id) | self._next() | _columns(update))

    def began(self, stream: str, operation_id: bytes) -> None:
        self._open[stream] = _Stream(operation_id)

    def record(self, stream: str, update: StatusUpdate) -> None:
        open_stream = self._open[stream]
        place = {"stream": stream, "position": open_stream.position}
        self._rows[STATUS_ANSWERS].append(
            self._row(open_stream.operation_id) | self._next() | place | _columns(update)
        )
        open_stream.position += 1
        self.flush_if_many()

    def waits(self, stream: str) -> None:
        self._open[stream].settled = self._order

    def stopped(self, stream: str, how: str) -> None:
        ended = self._open.pop(stream)
        settled = self._order if how == FINISHED else ended.settled
        row = self._row(ended.operation_id) | {"stream": stream, "settled": settled, "ended": how}
        self._rows[STATUS_STREAMS].append(row)

    def _row(self, operation_id: bytes) -> dict[str, object]:
        """Return the columns that all tables have."""
        return {
            "network": NETWORK,
            "run": self._run,
            "operation": operation_id,
            "at": self._clock(),
        }

    def _next(self) -> dict[str, object]:
        """Return the column with the number of the next record."""
        self._order += 1
        return {"order": self._order}


def _columns(update: StatusUpdate) -> dict[str, object]:
    """Return the columns of a status."""
    place = update.place
    return {
        "status": update.status.name,
        "level": update.level,
        "reason": None if update.reason is None else update.reason.name,
        "block": None if place is None else place.number,
        "block_hash": None if place is None else place.hash,
        "object_index": None if place is None else place.object_index,
        "operation_index": None if place is None else place.operation_index,
    }
