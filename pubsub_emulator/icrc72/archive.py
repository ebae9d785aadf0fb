"""An archive canister: a publisher's log in a store of the event plane, handed over in pages (IC-48, RP-7c).

    archive = Archive(MemoryStore(publisher.text))
    where = network.create(0, RoleCanister([archive]))
    archive.writer = publisher

A block of the log is one round's events. In the store it has the next number, because blocks of a store are counted
without gaps; the round is the row's `block`. The store outlives upgrades: the new code is made with the same one.
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NamedTuple

from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.errors import Trap
from pubsub_emulator.eventplane.ic.network import Network
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72.messages import Event
from pubsub_emulator.eventplane.icrc72.publisher.core import Publisher
from pubsub_emulator.eventplane.icrc72.role import Core, Handler, Query, RoleCanister, reply
from pubsub_emulator.eventplane.icrc72.services import MAP, VALUE, type_codec
from pubsub_emulator.eventplane.icrc72.value_hash import value_hash
from pubsub_emulator.eventplane.log.rows import Block, Entry, Row, event_id
from pubsub_emulator.eventplane.log.store import Store
from pubsub_emulator.eventplane.log.values import canonical, encode_fields


class Part(NamedTuple):
    """Events of one block, as a publisher hands them over."""

    number: int
    round: int
    parent: bytes
    hash: bytes
    offset: int
    total: int
    events: tuple[Event, ...]


class Archive(Core):
    """The role of an archive; only `writer` may append."""

    name = "archive"

    def __init__(self, store: Store, writer: Principal | None = None) -> None:
        self.store = store
        self.writer = writer
        self._pending: list[Event] = []
        self._places: dict[str, tuple[list[int], list[int]]] = {}
        """Of each namespace the ids in order, and their rows."""
        after = 0
        while True:
            page = store.read(after, 1000)
            for row in page.rows:
                self._place(row)
            after = page.through
            if page.is_last:
                break

    def updates(self) -> Mapping[str, Handler]:
        """Methods by name."""
        return {"archive_append": self._append}

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {"archive_page": self._page}

    def saved(self) -> Any:
        """The events of a block that is not whole."""
        return self._pending

    def resume(self, state: Any) -> None:
        """Restore the saved state."""
        self._pending = state

    def event(self, namespace: str, identifier: int) -> Event | None:
        """An event of the archive, or `None`."""
        found = self.page(namespace, identifier, identifier + 1, 1)
        return found[0] if found else None

    def page(self, namespace: str, start: int, end: int, take: int) -> tuple[Event, ...]:
        """The first `take` events of a namespace with ids in [start, end)."""
        ids, rows = self._places.get(namespace, ([], []))
        found: list[Event] = []
        at = bisect_left(ids, start)
        while at < len(ids) and ids[at] < end and len(found) < take:
            (row,) = self.store.read(rows[at] - 1, 1).rows
            found.append(self._event(row))
            at += 1
        return tuple(found)

    def _append(self, ctx: Context, given: Any) -> None:
        part = Part(*given)
        if ctx.caller != self.writer:
            raise Trap("only the publisher of this archive appends to it")
        blocks = self.store.head().anchor or 0
        if part.number == blocks + 1 and part.offset == len(self._pending):
            events = [*self._pending, *part.events]
            if len(events) < part.total:
                self._pending = events
            else:
                self._pending = []
                self._keep(part, events)
                blocks += 1
        reply(ctx, "archive_append", (blocks, len(self._pending)))

    def _keep(self, part: Part, events: list[Event]) -> None:
        entries = tuple(self._entry(part, at, event) for at, event in enumerate(events))
        after = self.store.head().seq
        block = Block(part.number, part.hash, part.parent, entries)
        self.store.append([block])
        for row in block.rows(after):
            self._place(row)

    def _place(self, row: Row) -> None:
        ids, rows = self._places.setdefault(row.kind, ([], []))
        ids.append(int(str(row.fields["eventId"])))
        rows.append(row.seq)

    @staticmethod
    def _entry(part: Part, at: int, event: Event) -> Entry:
        fields = {
            "eventId": str(event.eventId),
            "prevEventId": None if event.prevEventId is None else str(event.prevEventId),
            "timestamp": event.timestamp,
            "data": type_codec("archive", VALUE).encode(event.data),
            "headers": None if event.headers is None else type_codec("archive", MAP).encode(event.headers),
            "hash": value_hash(event.data),
        }
        body = encode_fields({name: canonical(value) for name, value in fields.items()})
        time = event.timestamp // 10**6
        return Entry(part.number, None, part.round, at, event.namespace, event_id(part.hash, at), time, body)

    def _event(self, row: Row) -> Event:
        fields: dict[str, Any] = row.fields
        (data,) = type_codec("archive", VALUE).decode(_bytes(fields["data"]))
        headers = None
        if fields["headers"] is not None:
            (headers,) = type_codec("archive", MAP).decode(_bytes(fields["headers"]))
        prev = None if fields["prevEventId"] is None else int(fields["prevEventId"])
        source = self.writer or Principal()
        return Event(int(fields["eventId"]), prev, fields["timestamp"], row.kind, data, source, headers)

    def _page(self, _caller: Principal, _time: int, asked: Any) -> tuple[Event, ...]:
        namespace, start, end, take = asked
        return self.page(namespace, start, end, min(take, 1000))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def whole_log(network: Network, publisher: Publisher) -> list[Event]:
    """A publisher's log with all data. Data that it no longer keeps is read from its archive."""
    archive: Archive | None = None
    if publisher.archive is not None:
        canister = network.canister(publisher.archive)
        cores = canister.cores if isinstance(canister, RoleCanister) else ()
        archive = next((each for each in cores if isinstance(each, Archive)), None)
    found: list[Event] = []
    for row in publisher.state.log:
        event: Event | None = row.event
        if row.archived:
            event = None if archive is None else archive.event(row.event.namespace, row.event.eventId)
        if event is not None:
            found.append(event)
    return found


__all__ = ["Archive", "whole_log"]
