"""Writes down what channel 7 told, beside what was true, as tables of `spark_audit.deliveries` (EV-40)."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pubsub_emulator.eventplane.prism.core.status import Update
from pubsub_emulator.eventplane.prism.deliveries import NETWORK
from pubsub_emulator.eventplane.prism.service.watch import FINISHED
from pubsub_emulator.spark_audit.deliveries.tables import STATUS_ANSWERS, STATUS_STREAMS, STATUS_TRUTHS
from pubsub_emulator.spark_audit.deliveries.writer import append_part

_ROWS: Final = 10_000
"""Rows that wait in memory before they become a part."""


def _now() -> int:
    return time.time_ns() // 1_000_000


class _Stream:
    def __init__(self, operation_id: bytes) -> None:
        self.operation_id = operation_id
        self.position = 0
        self.settled: int | None = None


class StatusDeliveries:
    """A `StatusRecorder` that keeps tables in `folder`; a context manager that writes what waits at its end.

    A program that is killed loses what waits. Truths are written before answers, and answers before ends, so no answer
    is without its truth.
    """

    def __init__(self, folder: Path, clock: Callable[[], int] = _now) -> None:
        self._folder = folder
        self._clock = clock
        self._run = secrets.token_hex(8)
        self._order = 0
        self._open: dict[str, _Stream] = {}
        self._truths: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []
        self._ended: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()

    def held(self, operation_id: bytes, update: Update) -> None:
        """Record the status that an operation has from now on."""
        self._truths.append(self._row(operation_id) | self._next() | _columns(update))

    def began(self, stream: str, operation_id: bytes) -> None:
        """Record that a stream begins."""
        self._open[stream] = _Stream(operation_id)

    def told(self, stream: str, update: Update) -> None:
        """Record a status that is handed to the client's connection."""
        told = self._open[stream]
        place = {"stream": stream, "position": told.position}
        self._answers.append(self._row(told.operation_id) | self._next() | place | _columns(update))
        told.position += 1
        if len(self._truths) + len(self._answers) >= _ROWS:  # here, so that a full disk ends a stream and not the node
            self.flush()

    def waits(self, stream: str) -> None:
        """Record that a stream looked just now and has nothing to report."""
        self._open[stream].settled = self._order

    def stopped(self, stream: str, how: str) -> None:
        """Record that a stream ended, with `FINISHED` or another reason."""
        ended = self._open.pop(stream)
        settled = self._order if how == FINISHED else ended.settled
        self._ended.append(self._row(ended.operation_id) | {"stream": stream, "settled": settled, "ended": how})

    def flush(self) -> None:
        """Write what waits. Raises `OSError`; then it still waits."""
        append_part(self._folder, STATUS_TRUTHS, self._truths)
        self._truths = []
        append_part(self._folder, STATUS_ANSWERS, self._answers)
        self._answers = []
        append_part(self._folder, STATUS_STREAMS, self._ended)
        self._ended = []

    def _row(self, operation_id: bytes) -> dict[str, Any]:
        return {"network": NETWORK, "run": self._run, "operation": operation_id, "at": self._clock()}

    def _next(self) -> dict[str, Any]:
        self._order += 1
        return {"order": self._order}


def _columns(update: Update) -> dict[str, Any]:
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
