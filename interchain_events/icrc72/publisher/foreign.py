"""An archive of a publisher's log that only the ICRC-3 standard is known of (RP-7c).

Whoever keeps the archive writes it: a canister that subscribes to the events, for example. The
publisher looks through its blocks, in order and once. A block that has an event of the log, with
the hash that the log has, is the place of this event. When all events of an old block of the log
have places, their data are forgotten, and replays fetch them from there.

A log may have further archives with ranges of its blocks. They are found by `icrc3_get_archives`.
"""

from collections.abc import Callable
from dataclasses import field

from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record
from interchain_events.icrc72.messages import Blocks, Event, FurtherArchive
from interchain_events.icrc72.methods import GET_ARCHIVES, GET_BLOCKS
from interchain_events.icrc72.publisher.core import Publisher
from interchain_events.icrc72.publisher.state import LogBlock
from interchain_events.icrc72.role import Core, restored
from interchain_events.icrc72.settings import Settings
from interchain_events.icrc72.values import (
    Pairs,
    Value,
    as_nat,
    as_principal,
    as_text,
    first,
    from_icrc3,
    value_hash,
)

Got = Callable[[Context, Blocks | None], None]
"""Continues with blocks of the log, or with `None` if they cannot be had now."""


@record
class ForeignState:
    """What is known of a foreign archive."""

    looked: int = 0
    """How many blocks of the archive were looked through."""
    places: dict[int, int] = field(default_factory=dict)
    """For rows of the publisher's log, the index of the block that has the event."""
    wait: int = 0
    """The round before which the archive is not asked."""


class ForeignArchive(Core):
    """The part of a publisher that knows an archive by its ICRC-3 methods alone."""

    name = "foreign"
    state: ForeignState

    def __init__(self, publisher: Publisher, archive: Principal, keep: int) -> None:
        self.state = ForeignState()
        self.publisher = publisher
        self.archive = archive
        self.keep = keep
        publisher.replays.pages = self.page
        self._busy = False

    @property
    def settings(self) -> Settings:
        """Return the settings of the publisher."""
        return self.publisher.settings

    def resume(self, state: object) -> None:
        """Continue after an upgrade, before which calls under way have ended."""
        self.state = restored(state, ForeignState)
        self._busy = False

    def due(self, now: int) -> int | None:
        """Return the next round in which the archive has to be looked through."""
        if self._busy or self._next_block() is None:
            return None
        return max(self.state.wait, now + 1)

    def wake(self, ctx: Context) -> None:
        """Look through further blocks of the archive if events of the log may go there."""
        block = self._next_block()
        if self._busy or ctx.now < self.state.wait or block is None:
            return
        if self._has(block):
            self._forget()
            return
        self._busy = True
        count = self.settings.batch_notifications

        def got(ctx: Context, blocks: Blocks | None) -> None:
            self._busy = False
            before = self.state.looked
            for index, each in () if blocks is None else blocks.blocks:
                if index == self.state.looked:
                    self.state.looked += 1
                    self._look(index, each)
            self._forget()
            if self.state.looked == before:
                self.state.wait = ctx.now + self.settings.publisher_wait

        self._ask(ctx, self.state.looked, count, got)

    def page(
        self, ctx: Context, rows: list[int], then: Callable[[Context, list[Event] | None], None]
    ) -> None:
        """Fetch the events of rows of the log that follow each other in the archive.

        `then` gets `None` if the archive does not answer. Events that are not in it, or that are
        unreadable, are missing from the list.
        """
        places = [self.state.places[row] for row in rows if row in self.state.places]
        if not places:
            then(ctx, [])
            return
        start = places[0]
        count = min(max(places[-1] - start + 1, 1), self.settings.batch_notifications)

        def got(ctx: Context, blocks: Blocks | None) -> None:
            if blocks is None:
                then(ctx, None)
                return
            events = [event_of(each, self.publisher.role.me) for _, each in blocks.blocks]
            then(ctx, [each for each in events if each is not None])

        self._ask(ctx, start, count, got)

    def _next_block(self) -> LogBlock | None:
        """Return the block of the log whose data are forgotten next, if it is old enough."""
        state = self.publisher.state
        if not self.publisher.may_archive(self.keep):
            return None
        return state.blocks[state.archived]

    def _has(self, block: LogBlock) -> bool:
        """Return whether all events of a block of the log have places in the archive."""
        rows = range(block.first, block.first + block.count)
        return all(row in self.state.places for row in rows)

    def _forget(self) -> None:
        """Forget the data of all blocks of the log that are old enough and in the archive."""
        block = self._next_block()
        while block is not None and self._has(block):
            self.publisher.forget_block()
            block = self._next_block()

    def _look(self, index: int, block: Value) -> None:
        """Note the place of an event, if a block of the archive has one of the log."""
        event = event_of(block, self.publisher.role.me)
        row = None if event is None else self.publisher.row_of(event.namespace, event.eventId)
        if event is None or row is None or row in self.state.places:
            return
        logged = self.publisher.state.log[row]
        if (
            not logged.archived
            and event == logged.event._replace(data=event.data)
            and (value_hash(event.data) == logged.hash)
        ):
            self.state.places[row] = index

    def _ask(self, ctx: Context, start: int, count: int, then: Got) -> None:
        """Ask for blocks, at the archive that has them."""

        def got(ctx: Context, blocks: Blocks | None) -> None:
            if blocks is None or blocks.blocks or not blocks.archived or start >= blocks.length:
                then(ctx, blocks)
                return
            self.publisher.role.ask(ctx, self.archive, GET_ARCHIVES, (None,), further)

        def further(ctx: Context, archives: tuple[FurtherArchive, ...] | None) -> None:
            for each in archives or ():
                if each.start <= start <= each.end and each.canister != self.archive:
                    most = min(count, each.end - start + 1)
                    asked = ((start, most),)
                    self.publisher.role.ask(ctx, each.canister, GET_BLOCKS, asked, then)
                    return
            then(ctx, None)

        self.publisher.role.ask(ctx, self.archive, GET_BLOCKS, ((start, count),), got)


def event_of(block: Value, publisher: Principal) -> Event | None:
    """Return the event in a block of an ICRC-3 log.

    Returns `None` if the block does not have one, is malformed, or is of another publisher. The
    parts of the event are in the Map `tx`, as `Archive` writes them.
    """
    try:
        tx = from_icrc3(first(_pairs(block), "tx") or block)
        parts = _pairs(tx)
        headers = first(parts, "headers")
        identifier = as_nat(first(parts, "eventId"))
        time = as_nat(first(parts, "timestamp"))
        namespace = as_text(first(parts, "namespace"))
        data = first(parts, "data")
        source = as_principal(first(parts, "source"))
    except ConfigError:
        return None
    if identifier is None or time is None or namespace is None or data is None:
        return None
    if source != publisher:
        return None
    return Event(
        identifier,
        as_nat(first(parts, "prevEventId")),
        time,
        namespace,
        data,
        publisher,
        None if headers is None else _pairs(headers),
    )


def _pairs(value: Value) -> Pairs:
    """Return the pairs of a Map, and nothing for another value."""
    return value.value if value.tag == "Map" else ()
