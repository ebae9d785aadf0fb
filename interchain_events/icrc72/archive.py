"""An archive canister, which keeps a publisher's log in a store of events (IC-48, RP-7c).

    archive = Archive(MemoryStore(publisher.text))
    where = network.create(0, RoleCanister([archive]))
    archive.writer = publisher

A block of the log has the events of one round. In the store, blocks are numbered without gaps, and
the round is the `block` of their rows. The store is not part of the canister's state: after an
upgrade, the new code is made with the same store.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import chain
from typing import Final

from interchain_events.events.log.store import Store
from interchain_events.events.rows import Block, Row, event_id
from interchain_events.events.values import canonical, encode_fields
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import ArchivePart, Event
from interchain_events.icrc72.methods import ARCHIVE_APPEND
from interchain_events.icrc72.publisher.core import Publisher
from interchain_events.icrc72.role import Core, Handler, Query, RoleCanister, restored
from interchain_events.icrc72.services import MAP, VALUE, read_map, read_value, type_codec
from interchain_events.icrc72.values import Value, blob, icrc3_value, map_, nat, text, value_hash

_Answer = tuple[int, tuple[tuple[int, Value], ...], tuple[()]]
"""The answer of `icrc3_get_blocks`: length of the log, blocks with indices, and no archives."""
_LONG: Final = 14_000
"""The bits from which a number is written in hex: `int` refuses longer decimal texts."""
_MOST_BYTES: Final = 1_000_000
"""The most bytes of rows whose blocks one answer has."""

_MOST_RANGES: Final = 100
"""How many ranges a request for blocks may have."""
BLOCK_TYPE: Final = "72event"
"""The type of the ICRC-3 blocks.

ICRC-83, which should define it, has no text yet. The name follows the pattern of ICRC-3.
"""

BLOCK_URL: Final = "https://github.com/dfinity/ICRC/issues/72"


class Archive(Core):
    """The role of an archive. Only the canister `writer` may append to it."""

    name = "archive"

    def __init__(self, store: Store, writer: Principal | None = None) -> None:
        self.store = store
        self.writer = writer
        self._pending: list[Event] = []
        """The events of a block that is not complete."""
        self._hashes: list[bytes] = []
        """The hashes of ICRC-3 blocks from the first on, as far as they were needed."""
        self._places: dict[str, tuple[list[int], list[int]]] = {}
        """For each namespace, the ids in ascending order, and the rows of the store."""
        page = store.read(0, 1000)
        while page.rows:
            for row in page.rows:
                self._place(row)
            page = store.read(page.through, 1000)

    def updates(self) -> Mapping[str, Handler]:
        """Return the update methods by name."""
        return {"archive_append": self._append}

    def queries(self) -> Mapping[str, Query]:
        """Return the queries by name."""
        return {
            "archive_page": self._page,
            "icrc3_get_blocks": self._blocks,
            "icrc3_get_archives": lambda _caller, _time, _asked: (),
            "icrc3_supported_block_types": lambda _caller, _time: ((BLOCK_TYPE, BLOCK_URL),),
        }

    def saved(self) -> list[Event]:
        """Return the events of a block that is not complete. All others are in the store."""
        return self._pending

    def resume(self, state: object) -> None:
        """Restore the saved state."""
        self._pending = restored(state, list)

    def event(self, namespace: str, identifier: int) -> Event | None:
        """Return an event of the archive, or `None`."""
        events = self.page(namespace, identifier, identifier + 1, 1)
        return events[0] if events else None

    def page(self, namespace: str, start: int, end: int, take: int) -> tuple[Event, ...]:
        """Return the first `take` events of a namespace with ids from `start` and below `end`."""
        ids, rows = self._places.get(namespace, ([], []))
        first = bisect_left(ids, start)
        last = bisect_left(ids, end)
        # The store returns the rows after a number.
        pages = (self.store.read(row - 1, 1) for row in rows[first:last][:take])
        return tuple(map(self._event, chain.from_iterable(page.rows for page in pages)))

    def _append(self, ctx: Context, part: ArchivePart) -> None:
        """Append a part of a block. Reply how many blocks, and events of the next one, are here.

        A part that does not continue what is here is ignored. The reply shows the publisher which
        part is next, so it may repeat a part whose answer was lost.
        """
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
        ARCHIVE_APPEND.reply(ctx, (blocks, len(self._pending)))

    def _keep(self, part: ArchivePart, events: list[Event]) -> None:
        """Put a complete block into the store."""
        entries = tuple(self._entry(part, index, event) for index, event in enumerate(events))
        after = self.store.head().seq
        block = Block(part.number, part.hash, part.parent, entries)
        self.store.append([block])
        for row in block.rows(after):
            self._place(row)

    def _place(self, row: Row) -> None:
        """Add a row to the index. A publisher's ids ascend within a namespace."""
        ids, rows = self._places.setdefault(row.kind, ([], []))
        ids.append(int(str(row.fields["eventId"]), 0))
        rows.append(row.seq)

    @staticmethod
    def _entry(part: ArchivePart, index: int, event: Event) -> Row:
        """Return an event as a row of the store. Data and headers are in Candid."""
        prev = None if event.prevEventId is None else _text_of(event.prevEventId)
        headers: bytes | None = None
        if event.headers is not None:
            headers = type_codec("archive", MAP).encode(event.headers)
        fields = {
            "eventId": _text_of(event.eventId),
            "prevEventId": prev,
            "timestamp": event.timestamp,
            "data": type_codec("archive", VALUE).encode(event.data),
            "headers": headers,
            "hash": value_hash(event.data),
        }
        body = encode_fields({name: canonical(value) for name, value in fields.items()})
        time = event.timestamp // 10**6
        return Row(
            seq=0,
            anchor=part.number,
            chain=None,
            block=part.round,
            index=index,
            kind=event.namespace,
            id=event_id(part.hash, index),
            time=time,
            body=body,
        )

    def _event(self, row: Row) -> Event:
        """Return the event in a row of the store."""
        fields = {name: str(value) for name, value in row.fields.items() if value is not None}
        data = read_value(bytes.fromhex(fields["data"][2:]))
        headers = read_map(bytes.fromhex(fields["headers"][2:])) if "headers" in fields else None
        prev = int(fields["prevEventId"], 0) if "prevEventId" in fields else None
        source = self.writer or Principal()
        return Event(
            int(fields["eventId"], 0),
            prev,
            int(fields["timestamp"]),
            namespace=row.kind,
            data=data,
            source=source,
            headers=headers,
        )

    def _block(self, row: Row) -> Value:
        """Return the event in a row as a block of an ICRC-3 log.

        Each row is one block. Blocks count from 0 and rows from 1.
        """
        event = self._event(row)
        tx: dict[str, Value] = {"eventId": nat(event.eventId), "namespace": text(event.namespace)}
        if event.prevEventId is not None:
            tx["prevEventId"] = nat(event.prevEventId)
        tx |= {
            "source": blob(event.source),
            "timestamp": nat(event.timestamp),
            "data": icrc3_value(event.data),
        }
        if event.headers is not None:
            tx["headers"] = icrc3_value(map_(event.headers))
        parent = {"phash": blob(self._hashes[row.seq - 2])} if row.seq > 1 else {}
        return map_(
            {**parent, "btype": text(BLOCK_TYPE), "ts": nat(event.timestamp), "tx": map_(tx)}
        )

    def _blocks(
        self, _caller: Principal, _time: int, ranges: tuple[tuple[int, int], ...]
    ) -> _Answer:
        """Answer `icrc3_get_blocks` with as many blocks as fit into a message, and at least one."""
        length = self.store.head().seq
        while len(self._hashes) < length:
            for row in self.store.read(len(self._hashes), 1000).rows:
                self._hashes.append(value_hash(self._block(row)))
        blocks: list[tuple[int, Value]] = []
        left = _MOST_BYTES
        asked = (range(start, min(start + count, length)) for start, count in ranges[:_MOST_RANGES])
        for index in chain.from_iterable(asked):
            (row,) = self.store.read(index, 1).rows
            left -= len(row.body)
            if left < 0 and blocks:
                break
            blocks.append((index, self._block(row)))
        return length, tuple(blocks), ()

    def _page(
        self, _caller: Principal, _time: int, page: tuple[str, int, int, int]
    ) -> tuple[Event, ...]:
        """Answer `archive_page`, whose argument is that of `page`."""
        namespace, start, end, take = page
        return self.page(namespace, start, end, min(take, 1000))


def _text_of(number: int) -> str:
    """Return a number as text that `int(text, 0)` reads, whatever its size."""
    return str(number) if number.bit_length() < _LONG else hex(number)


def whole_log(network: CanisterNetwork, publisher: Publisher) -> list[Event]:
    """Return a publisher's log, with archived data read from its archive.

    Events that were given up are left out, and so are archived ones if the archive's core cannot be
    read.
    """
    archive: Archive | None = None
    if publisher.archive is not None:
        canister = network.canister(publisher.archive)
        if isinstance(canister, RoleCanister):
            archive = next((core for core in canister.cores if isinstance(core, Archive)), None)
    log: list[Event] = []
    for row in publisher.state.log:
        if row.refused:
            continue
        event: Event | None = row.event
        if row.archived:
            event = None
            if archive is not None:
                event = archive.event(row.event.namespace, row.event.eventId)
        if event is not None:
            log.append(event)
    return log
