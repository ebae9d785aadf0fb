"""An archive of a publisher's log of which only the ICRC-3 methods are known (RP-7c).

Another canister writes the archive, for example one that subscribes to the events. The publisher
looks through the archive's blocks in order, each once. If a block has an event of the log, with the
same hash, the publisher remembers it as the event's place. When all events of an old block of the
publisher's log have places, their data are forgotten, and replays fetch them from the archive.

Ranges of the archive's blocks may be in further archives, which `icrc3_get_archives` lists.
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
"""Continues with blocks of the archive, or with `None` if they are not available now."""


@record
class ForeignState:
    """The knowledge about a foreign archive."""

    looked: int = 0
    """How many blocks of the archive the publisher has looked through."""
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
        """Look through further blocks of the archive if a block of the log is old enough."""
        block = self._next_block()
        if self._busy or ctx.now < self.state.wait or block is None:
            return
        if self._has(block):
            self._forget()
            return
        self._busy = True
        count = self.settings.batch_notifications

        def answered(ctx: Context, answer: Blocks | None) -> None:
            self._busy = False
            before = self.state.looked
            if answer is not None:
                for index, archived_block in answer.blocks:
                    if index == self.state.looked:
                        self.state.looked += 1
                        self._look(index, archived_block)
            self._forget()
            if self.state.looked == before:
                self.state.wait = ctx.now + self.settings.publisher_wait

        self._ask(ctx, self.state.looked, count, answered)

    def page(
        self, ctx: Context, rows: list[int], then: Callable[[Context, list[Event] | None], None]
    ) -> None:
        """Fetch the events of rows of the log whose places in the archive ascend.

        `then` gets `None` if the archive does not answer. The list lacks events that are not in the
        archive or are unreadable.
        """
        places = [self.state.places[row] for row in rows if row in self.state.places]
        if not places:
            then(ctx, [])
            return
        start = places[0]
        count = min(max(places[-1] - start + 1, 1), self.settings.batch_notifications)

        def answered(ctx: Context, answer: Blocks | None) -> None:
            if answer is None:
                then(ctx, None)
                return
            events = [event_of(block, self.publisher.role.me) for _, block in answer.blocks]
            then(ctx, [event for event in events if event is not None])

        self._ask(ctx, start, count, answered)

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
        """Note a block of the archive as the place of an event, if it has one of the log."""
        event = event_of(block, self.publisher.role.me)
        if event is None:
            return
        row = self.publisher.row_of(event.namespace, event.eventId)
        if row is None or row in self.state.places:
            return
        logged = self.publisher.state.log[row]
        # The data are compared by their hash, everything else directly.
        same = event == logged.event._replace(data=event.data)
        if not logged.archived and same and value_hash(event.data) == logged.hash:
            self.state.places[row] = index

    def _ask(self, ctx: Context, start: int, count: int, then: Got) -> None:
        """Ask the archive for up to `count` blocks from `start` on.

        If it answers that they are in a further archive, ask for its archives and then the one that
        has them.
        """

        def got_blocks(ctx: Context, answer: Blocks | None) -> None:
            if answer is None or answer.blocks or not answer.archived or start >= answer.length:
                then(ctx, answer)
                return
            self.publisher.role.ask(ctx, self.archive, GET_ARCHIVES, (None,), got_archives)

        def got_archives(ctx: Context, archives: tuple[FurtherArchive, ...] | None) -> None:
            for further in archives or ():
                if further.start <= start <= further.end and further.canister != self.archive:
                    range_ = (start, min(count, further.end - start + 1))
                    self.publisher.role.ask(ctx, further.canister, GET_BLOCKS, (range_,), then)
                    return
            then(ctx, None)

        self.publisher.role.ask(ctx, self.archive, GET_BLOCKS, ((start, count),), got_blocks)


def event_of(block: Value, publisher: Principal) -> Event | None:
    """Return the event in a block of an ICRC-3 log.

    Returns `None` if the block is malformed, or has no event of this publisher. The parts of the
    event are in the Map `tx`, as `Archive` writes them.
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
        namespace=namespace,
        data=data,
        source=publisher,
        headers=None if headers is None else _pairs(headers),
    )


def _pairs(value: Value) -> Pairs:
    """Return the pairs of a Map, or an empty tuple for another value."""
    return value.value if value.tag == "Map" else ()
