"""Replays by a publisher (RP-7), and the archive of its log (RP-7c).

A replay sends the events of a range from the log again, in the order of their ids and one batch at
a time.

The publisher hands old blocks of its log over to an archive canister and forgets their data. Ids,
hashes and order stay in the log. A block is handed over when all its events are published and at
least `keep` newer events follow it, in parts that fit into a call. The archive answers how far it
has got, so after a lost answer the publisher only has to ask again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from interchain_events.icrc72 import keys
from interchain_events.icrc72.ic.canister import GUARANTEED, Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import (
    ArchivePart,
    Event,
    ReplayStatusUpdate,
    Results,
    state_of,
)
from interchain_events.icrc72.methods import ARCHIVE_APPEND, ARCHIVE_PAGE, PUBLISH, REPLAY_STATUS
from interchain_events.icrc72.publisher.state import Logged, PublisherState, Replaying
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.settings import Settings, fitting
from interchain_events.icrc72.values import Value, as_nat, boolean, first, nat, value_hash


class _Log(Protocol):
    """The part of a publisher that replays and the archive use."""

    state: PublisherState
    role: RoleCanister
    archive: Principal | None

    def wake(self, ctx: Context) -> None: ...
    def may_archive(self, keep: int) -> bool: ...
    def forget_block(self) -> None: ...


Pages = Callable[[Context, list[int], Callable[[Context, list[Event] | None], None]], None]
"""Fetches the events of rows of the log from an archive, `None` if it does not answer."""


@dataclass
class Replays:
    """The replays on which a publisher works."""

    orchestrator: Principal
    settings: Settings
    publisher: _Log
    pages: Pages | None = None
    """Fetches pages of a foreign archive; `None` for an archive of this project."""

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        state = self.publisher.state
        found: list[int] = [now + 1] if state.canceled else []
        for each in state.replays.values():
            if not each.busy or not each.reporting:
                sends = each.state == "running" and not each.busy
                found.append(max(each.wait if sends else each.report, now + 1))
        return min(found, default=None)

    def wake(self, ctx: Context) -> None:
        """Do the due work on each replay: fix its end, report its state, send a batch.

        The numbers of canceled replays are reported once, by guaranteed calls.
        """
        for number, each in list(self.publisher.state.replays.items()):
            if each.last is None:
                self._fix_end(each)
            if each.state == "running" and each.last is not None and each.place > each.last:
                each.state = "completed"
            if each.state == "running" and ctx.now - each.since > self.settings.replay_stalled:
                each.state, each.text = "errored", "stalled"
            self._report(ctx, number, each)
            if each.state == "running" and each.reported and not each.busy and ctx.now >= each.wait:
                self._send_replayed(ctx, number, each)
        for number, count in list(self.publisher.state.canceled.items()):
            del self.publisher.state.canceled[number]
            update = ReplayStatusUpdate(number, state_of("canceled", count, ""))
            self.publisher.role.ask(
                ctx, self.orchestrator, REPLAY_STATUS, (update,), kind=GUARANTEED
            )

    def _rows(self, each: Replaying) -> list[int]:
        """Return the rows of the log that are left to replay, in the order of ids."""
        state = self.publisher.state
        end = each.end if each.last is None else each.last + 1
        senders = (
            state.mine[each.namespace].senders.values() if each.namespace in state.mine else ()
        )
        appended = state.appended()
        ids: list[tuple[int, int]] = []
        for sender in senders:
            ids += [(state.log[row].event.eventId, row) for row in sender.events if row < appended]
        return [
            row
            for number, row in sorted(ids)
            if each.place <= number and (end is None or number < end)
        ]

    def _fix_end(self, each: Replaying) -> None:
        """Choose the last event of a replay when it begins (RP-2).

        Later events go to the subscriber as live ones. The range is cut at the longest one allowed.
        """
        mine = self.publisher.state.mine.get(each.namespace)
        said = None if mine is None else as_nat(first(mine.config, keys.MAX_RANGE))
        rows = self._rows(each)[: said or self.settings.max_range]
        each.last = self.publisher.state.log[rows[-1]].event.eventId if rows else -1

    def _report(self, ctx: Context, number: int, each: Replaying) -> None:
        """Report the state of a replay when it has changed, and regularly as a sign of life (RP-5).

        The first report is always `running`, because a replay cannot go from pending to a final
        state. A report that fails is repeated in the next round.
        """
        due = each.reported != each.state or ctx.now >= each.report
        if (
            each.reporting
            or not due
            or (each.reported != each.state and ctx.now < each.report and each.reported)
        ):
            return
        state = each.state if each.reported else "running"
        each.reporting = True

        def got(ctx: Context, results: Results[int] | None) -> None:
            each.reporting = False
            if results is None:
                each.report = ctx.now + 1
                return
            each.reported = state
            each.report = ctx.now + (self.settings.replay_report if each.state == state else 0)
            self.publisher.wake(ctx)

        update = ReplayStatusUpdate(number, state_of(state, each.count, each.text))
        self.publisher.role.ask(ctx, self.orchestrator, REPLAY_STATUS, (update,), got)

    def _send_replayed(self, ctx: Context, number: int, each: Replaying) -> None:
        """Send the next batch of a replay, or first get the page of the archive that it needs.

        Events are compared with the hashes in the log. If the archive has changed one, the replay
        ends with an error before this event.
        """
        rows = self._rows(each)[: self.settings.replay_events]
        batch: list[Event] = []
        size = 0
        for row in rows:
            logged = self.publisher.state.log[row]
            event = self._whole(logged, each)
            size += logged.size
            if event is None or (batch and size > self.settings.batch_bytes):
                break
            if value_hash(event.data) != logged.hash:
                each.state = "errored"
                each.text = f"hash mismatch at {shown(event.eventId)}"
                break
            batch.append(self.marked(event, number, each))
        if not batch and each.state == "running" and rows:
            self._fetch(ctx, number, each, rows)
            return
        if not batch:
            self._report(ctx, number, each)
            return
        each.busy = True

        def got(ctx: Context, results: Results[tuple[int, ...]] | None) -> None:
            each.busy = False
            for event, result in zip(batch, results or (), strict=False):
                if result is None or result.tag != "Ok":
                    break
                each.place = event.eventId + 1
                each.count += 1
                each.tries, each.since = 0, ctx.now
            else:
                if results is not None:
                    each.wait = ctx.now
                    return
            each.wait = ctx.now + min(1 << min(each.tries, 20), self.settings.publisher_wait)
            each.tries += 1

        self.publisher.role.ask(ctx, each.entry, PUBLISH, tuple(batch), got)

    @staticmethod
    def _whole(logged: Logged, each: Replaying) -> Event | None:
        """Return an event with its data, or `None` if it is archived and not on the last page."""
        if not logged.archived:
            return logged.event
        found = each.page.get(logged.event.eventId)
        return (
            None if found is None else logged.event._replace(data=found.data, headers=found.headers)
        )

    def _fetch(self, ctx: Context, number: int, each: Replaying, rows: list[int]) -> None:
        """Ask the archive for the page of events that begins with the first of these rows."""
        archive = self.publisher.archive
        start = self.publisher.state.log[rows[0]].event.eventId
        if (archive is None and self.pages is None) or each.last is None:
            each.state = "errored"
            each.text = f"event {shown(start)} is in an archive that is not known"
            self._report(ctx, number, each)
            return
        each.busy = True

        def got(ctx: Context, events: Sequence[Event] | None) -> None:
            each.busy = False
            if events is None:
                each.wait = ctx.now + min(1 << min(each.tries, 20), self.settings.publisher_wait)
                each.tries += 1
                return
            each.page = {
                event.eventId: event for event in events if event.namespace == each.namespace
            }
            each.wait = ctx.now
            if start not in each.page:
                each.state = "errored"
                each.text = f"the archive lacks event {shown(start)}"

        if self.pages is not None:
            self.pages(ctx, rows, got)
        elif archive is not None:
            page = (each.namespace, start, each.last + 1, self.settings.replay_events)
            self.publisher.role.ask(ctx, archive, ARCHIVE_PAGE, page, got)

    @staticmethod
    def marked(event: Event, number: int, each: Replaying) -> Event:
        """Return an event with the headers of a replay (IC-23).

        Each event names the last one of the replay, since a filter may hold back any event, also
        the last.
        """
        marks: list[tuple[str, Value]] = [
            (keys.REPLAYED, boolean(True)),
            (keys.REPLAY_ID, nat(number)),
        ]
        if each.last is not None:
            marks.append((keys.REPLAY_END, nat(each.last)))
        return event._replace(headers=(*(event.headers or ()), *marks))


@dataclass(slots=True)
class Archiving:
    """The transfer of a log's old blocks into an archive."""

    archive: Principal
    keep: int
    settings: Settings
    publisher: _Log
    _busy: bool = False

    def resume(self) -> None:
        """Continue after an upgrade, before which calls under way have ended."""
        self._busy = False

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        if self._busy or not self.publisher.may_archive(self.keep):
            return None
        return max(self.publisher.state.archive_wait, now + 1)

    def wake(self, ctx: Context) -> None:
        """Hand over the next part of the oldest block that may go.

        The answer is how many blocks, and how many events of the next one, the archive has.
        """
        state = self.publisher.state
        if self._busy or ctx.now < state.archive_wait:
            return
        if not self.publisher.may_archive(self.keep):
            return
        block = state.blocks[state.archived]
        parent = state.blocks[state.archived - 1].hash if state.archived else bytes(32)
        offset = state.archived_events
        rows = state.log[block.first + offset : block.first + block.count]
        events = tuple(row.event for row in fitting(rows, lambda row: row.size, self.settings))
        part = ArchivePart(
            state.archived + 1, block.round, parent, block.hash, offset, block.count, events
        )
        self._busy = True

        def got(ctx: Context, place: tuple[int, int] | None) -> None:
            self._busy = False
            if place is None:
                state.archive_wait = ctx.now + self.settings.publisher_wait
                return
            blocks, state.archived_events = place
            while state.archived < min(blocks, len(state.blocks)):
                self.publisher.forget_block()

        self.publisher.role.ask(ctx, self.archive, ARCHIVE_APPEND, part, got)
