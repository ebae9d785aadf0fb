"""Writes down what the service delivered, as tables of `spark_audit.deliveries` (EV-40)."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Self

from pubsub_emulator.events.filters.codec import dump_filters
from pubsub_emulator.events.log.store import LogReader
from pubsub_emulator.events.rows import Row, row_digest
from pubsub_emulator.events.subscriptions.cursor import Cursor
from pubsub_emulator.events.subscriptions.hub import Message
from pubsub_emulator.events.subscriptions.registry import Subscription
from pubsub_emulator.events.subscriptions.service import Recorder
from pubsub_emulator.spark_audit.deliveries.tables import EVENT_DELIVERIES, EVENT_EPOCHS, EVENT_LOG, EVENT_STREAMS
from pubsub_emulator.spark_audit.deliveries.tagged import tag_fields
from pubsub_emulator.spark_audit.deliveries.writer import append_part
from pubsub_emulator.spark_audit.history.schema import Table

_ROWS: Final = 10_000  # rows that wait in memory before they become a part


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class TablesWriter:
    """Writes rows to tables in `folder`; a context manager that writes what waits at its end.

    Rows wait until there are `_ROWS`, and are written in the order of `tables`. A program that is killed loses what
    waits.
    """

    def __init__(self, folder: Path, tables: Iterable[Table], clock: Callable[[], int]) -> None:
        self._folder = folder
        self._clock = clock
        self._rows: dict[Table, list[dict[str, object]]] = {table: [] for table in tables}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def flush(self) -> None:
        """Write what waits. Raises `OSError`; then it still waits."""
        for table, rows in self._rows.items():
            append_part(self._folder, table, rows)
            rows.clear()

    def flush_if_many(self) -> None:
        """Write what waits if it is much; called by streams, so that a full disk ends a stream and not the server."""
        if sum(map(len, self._rows.values())) >= _ROWS:
            self.flush()


class DeliveryRecorder(TablesWriter, Recorder):
    """Of a killed program, the latest deliveries of each stream are lost, never one in between."""

    def __init__(self, folder: Path, network: str, clock: Callable[[], int] = now) -> None:
        super().__init__(folder, (EVENT_DELIVERIES, EVENT_STREAMS), clock)
        self._network = network
        self._open: dict[str, tuple[Subscription, int]] = {}

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        self._open[stream] = (subscription, 0)
        self._stream(subscription, stream, after, None)

    def delivered(self, stream: str, message: Message) -> None:
        subscription, position = self._open[stream]
        of_all: dict[str, object] = {"network": self._network, "stream": stream, "subscription": subscription.name}
        of_all |= {"epoch": message.cursor.epoch, "at": self._clock()}
        self._rows[EVENT_DELIVERIES] += (
            of_all | {"position": at, "seq": row.seq, "id": row.id, "digest": row_digest(row)}
            for at, row in enumerate(message.rows, position)
        )
        self._open[stream] = (subscription, position + len(message.rows))
        self.flush_if_many()

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        subscription, _ = self._open.pop(stream)
        self._stream(subscription, stream, cursor, how)

    def _stream(self, subscription: Subscription, stream: str, cursor: Cursor, ended: str | None) -> None:
        self._rows[EVENT_STREAMS].append(
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


def export_log(store: LogReader, folder: Path) -> int:
    """Write the log as `event_log`, and its rewinds as `event_epochs`; returns how many events."""
    rows, count = _all_rows(store), 0
    while part := list(islice(rows, 50_000)):
        append_part(folder, EVENT_LOG, [_log_row(store.network, row) for row in part])
        count += len(part)
    epochs = [{"network": store.network, "epoch": epoch, "common": common} for epoch, common in store.epochs()]
    append_part(folder, EVENT_EPOCHS, epochs)
    return count


def _log_row(network: str, row: Row) -> dict[str, object]:
    return {
        "network": network,
        "seq": row.seq,
        "chain": row.chain,
        "kind": row.kind,
        "id": row.id,
        "digest": row_digest(row),
        "fields": tag_fields(row.body),
    }


def _all_rows(store: LogReader) -> Iterator[Row]:
    after = 0
    while True:
        page = store.read(after, 10_000)
        yield from page.rows
        after = page.through
        if page.is_last:
            return
