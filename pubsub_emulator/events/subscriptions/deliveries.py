"""Writes down what the service delivered, as tables of `spark_audit.deliveries` (EV-40)."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from pubsub_emulator.eventplane.filters.codec import dump_filters
from pubsub_emulator.eventplane.log.present import row_digest
from pubsub_emulator.eventplane.log.rows import Row
from pubsub_emulator.eventplane.log.store import Page
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor
from pubsub_emulator.eventplane.subscriptions.hub import Message
from pubsub_emulator.eventplane.subscriptions.registry import Subscription
from pubsub_emulator.spark_audit.deliveries.tables import EVENT_DELIVERIES, EVENT_EPOCHS, EVENT_LOG, EVENT_STREAMS
from pubsub_emulator.spark_audit.deliveries.tagged import tag_fields
from pubsub_emulator.spark_audit.deliveries.writer import append_part

_ROWS: Final = 10_000
"""Rows that wait in memory before they become a part."""


def _now() -> int:
    return time.time_ns() // 1_000_000


class DeliveryRecorder:
    """A `Recorder` that keeps tables in `folder`; a context manager that writes what waits at its end.

    A program that is killed loses what waits: of each stream the latest deliveries, never one in between.
    """

    def __init__(self, folder: Path, network: str, clock: Callable[[], int] = _now) -> None:
        self._folder = folder
        self._network = network
        self._clock = clock
        self._open: dict[str, tuple[Subscription, int]] = {}
        self._streams: list[dict[str, Any]] = []
        self._deliveries: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        """Record that a stream begins after a cursor."""
        self._open[stream] = (subscription, 0)
        self._stream(subscription, stream, after, None)

    def delivered(self, stream: str, message: Message) -> None:
        """Record rows that are handed to the client's connection."""
        subscription, position = self._open[stream]
        at = self._clock()
        for row in message.rows:
            self._deliveries.append(
                delivery_row(self._network, subscription.name, stream, position, message.cursor.epoch, row, at)
            )
            position += 1
        self._open[stream] = (subscription, position)
        if len(self._deliveries) >= _ROWS:
            self.flush()

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        """Record that a stream ended; `cursor` is that of the last message handed over."""
        subscription, _ = self._open.pop(stream)
        self._stream(subscription, stream, cursor, how)

    def flush(self) -> None:
        """Write what waits. Raises `OSError`; then it still waits."""
        append_part(self._folder, EVENT_DELIVERIES, self._deliveries)
        self._deliveries = []
        append_part(self._folder, EVENT_STREAMS, self._streams)
        self._streams = []

    def _stream(self, subscription: Subscription, stream: str, cursor: Cursor, ended: str | None) -> None:
        self._streams.append(
            {
                "network": self._network,
                "stream": stream,
                "subscription": subscription.name,
                "filters": dump_filters(subscription.filters),
                "epoch": cursor.epoch,
                "seq": cursor.seq,
                "at": self._clock(),
                "ended": ended,
            }
        )


def delivery_row(  # noqa: PLR0917  # the columns of the table
    network: str, subscription: str, stream: str, position: int, epoch: int, row: Row, at: int
) -> dict[str, Any]:
    """The row of `event_deliveries` for one event."""
    return {
        "network": network,
        "stream": stream,
        "subscription": subscription,
        "position": position,
        "epoch": epoch,
        "seq": row.seq,
        "id": row.id,
        "digest": row_digest(row),
        "at": at,
    }


class Exported(Protocol):
    """A log that can be written beside deliveries of it."""

    @property
    def network(self) -> str:
        """Its name in the tables."""

    def read(self, after: int, limit: int) -> Page:
        """Rows after `after`, at most `limit`."""

    def epochs(self) -> list[tuple[int, int]]:
        """Every rewind as (epoch that it began, last `seq` that it left)."""


def export_log(store: Exported, folder: Path) -> int:
    """Write the log as `event_log`, and its rewinds as `event_epochs`; returns how many events."""
    rows, count = _all_rows(store), 0
    while part := list(islice(rows, 50_000)):
        append_part(folder, EVENT_LOG, [_log_row(store.network, row) for row in part])
        count += len(part)
    append_part(
        folder,
        EVENT_EPOCHS,
        [{"network": store.network, "epoch": epoch, "common": common} for epoch, common in store.epochs()],
    )
    return count


def _log_row(network: str, row: Row) -> dict[str, Any]:
    return {
        "network": network,
        "seq": row.seq,
        "chain": row.chain,
        "kind": row.kind,
        "id": row.id,
        "digest": row_digest(row),
        "fields": tag_fields(row.body),
    }


def _all_rows(store: Exported) -> Iterator[Row]:
    after = 0
    while True:
        page = store.read(after, 10_000)
        yield from page.rows
        after = page.through
        if page.is_last:
            return
