"""The recorder of a service's deliveries, in tables of `delivery_audit` (EV-40)."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Self

from interchain_events.delivery_audit.tables import (
    EVENT_DELIVERIES,
    EVENT_EPOCHS,
    EVENT_LOG,
    EVENT_STREAMS,
)
from interchain_events.delivery_audit.tagged import tag_fields
from interchain_events.delivery_audit.writer import append_part
from interchain_events.events.filters.codec import dump_filters
from interchain_events.events.log.store import LogReader
from interchain_events.events.rows import Row, row_digest
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.hub import Message
from interchain_events.events.subscriptions.registry import Subscription
from interchain_events.events.subscriptions.service import StreamRecorder
from pubsub_emulator.spark_audit.history.schema import Table

_ROWS: Final = 10_000
"""The number of rows that wait in memory before they are written."""


def now() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class TablesWriter:
    """The writer of tables in `folder`.

    Rows wait in memory until there are `_ROWS`, and are written in the order of `tables`. Used as a
    context manager, the writer writes the waiting rows when the context ends. If the program is
    killed, they are lost.
    """

    def __init__(self, folder: Path, tables: Iterable[Table], clock: Callable[[], int]) -> None:
        self._folder = folder
        self._clock = clock
        self._rows: dict[Table, list[dict[str, object]]] = {table: [] for table in tables}
        """The waiting rows by table."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def flush(self) -> None:
        """Write the waiting rows. If this raises `OSError`, those not written continue to wait."""
        for table, rows in self._rows.items():
            append_part(self._folder, table, rows)
            rows.clear()

    def flush_if_many(self) -> None:
        """Write the waiting rows if there are many. Raises `OSError`.

        Streams call this, so that a full disk ends a stream and not the server.
        """
        if sum(map(len, self._rows.values())) >= _ROWS:
            self.flush()


class DeliveryRecorder(TablesWriter, StreamRecorder):
    """The recorder of a service's deliveries.

    If the program is killed, the record of each stream lacks its latest deliveries, but never
    earlier ones.
    """

    def __init__(self, folder: Path, network: str, clock: Callable[[], int] = now) -> None:
        super().__init__(folder, (EVENT_DELIVERIES, EVENT_STREAMS), clock)
        self._network = network
        self._open: dict[str, tuple[Subscription, int]] = {}
        """The subscription of each open stream, and the number of rows delivered to it."""

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        self._open[stream] = (subscription, 0)
        self._stream(subscription, stream, after, None)

    def delivered(self, stream: str, message: Message) -> None:
        subscription, position = self._open[stream]
        common: dict[str, object] = {
            "network": self._network,
            "stream": stream,
            "subscription": subscription.name,
            "epoch": message.cursor.epoch,
            "at": self._clock(),
        }
        self._rows[EVENT_DELIVERIES] += (
            common | {"position": place, "seq": row.seq, "id": row.id, "digest": row_digest(row)}
            for place, row in enumerate(message.rows, position)
        )
        self._open[stream] = (subscription, position + len(message.rows))
        self.flush_if_many()

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        subscription, _ = self._open.pop(stream)
        self._stream(subscription, stream, cursor, how)

    def _stream(
        self, subscription: Subscription, stream: str, cursor: Cursor, ended: str | None
    ) -> None:
        """Record the beginning or the end of a stream."""
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
    """Write the log as `event_log` and its rewinds as `event_epochs`.

    Returns the number of events.
    """
    rows = _all_rows(store)
    count = 0
    while part := list(islice(rows, 50_000)):
        append_part(folder, EVENT_LOG, [_log_row(store.network, row) for row in part])
        count += len(part)
    epochs = [
        {"network": store.network, "epoch": epoch, "common": common}
        for epoch, common in store.epochs()
    ]
    append_part(folder, EVENT_EPOCHS, epochs)
    return count


def _log_row(network: str, row: Row) -> dict[str, object]:
    """Return a row of the log as a row of the table."""
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
    """Yield every row of the log."""
    after = 0
    while True:
        page = store.read(after, 10_000)
        yield from page.rows
        after = page.through
        if page.is_last:
            return
