"""Replays by a publisher (RP-7), and the archive of its log (RP-7c).

A replay sends the events of a range from the log again, in the order of their ids and one batch at
a time.

The publisher hands old blocks of its log over to an archive canister and forgets their data. Ids,
hashes and order stay in the log. A block is handed over when all its events are published and at
least `keep` newer events follow it. It is sent in parts that fit into a call. Each answer says how
much the archive has, so after a lost answer the publisher only has to send the part again.
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
"""Fetches the events of rows of the log from an archive, and calls a function with them.

It is called with `None` if the archive does not answer.
"""


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
        rounds: list[int] = [now + 1] if state.canceled else []
        for replay in state.replays.values():
            if replay.busy and replay.reporting:
                continue
            sends = replay.state == "running" and not replay.busy
            rounds.append(max(replay.wait if sends else replay.report, now + 1))
        return min(rounds, default=None)

    def wake(self, ctx: Context) -> None:
        """Do the due work on each replay: choose its end, report its state, send a batch.

        For a canceled replay, the number of its sent events is reported once, by a guaranteed call.
        """
        for number, replay in list(self.publisher.state.replays.items()):
            if replay.last is None:
                self._fix_end(replay)
            if replay.state == "running" and replay.last is not None and replay.place > replay.last:
                replay.state = "completed"
            if replay.state == "running" and ctx.now - replay.since > self.settings.replay_stalled:
                replay.state = "errored"
                replay.text = "stalled"
            self._report(ctx, number, replay)
            waits = replay.busy or ctx.now < replay.wait
            if replay.state == "running" and replay.reported and not waits:
                self._send_replayed(ctx, number, replay)
        for number, count in list(self.publisher.state.canceled.items()):
            del self.publisher.state.canceled[number]
            update = ReplayStatusUpdate(number, state_of("canceled", count, ""))
            self.publisher.role.ask(
                ctx, self.orchestrator, REPLAY_STATUS, (update,), kind=GUARANTEED
            )

    def _rows(self, replay: Replaying) -> list[int]:
        """Return the rows of the log that still have to be replayed, in the order of ids."""
        state = self.publisher.state
        publication = state.mine.get(replay.namespace)
        if publication is None:
            return []
        end = replay.end if replay.last is None else replay.last + 1
        appended = state.appended()
        events: list[tuple[int, int]] = []
        for sender in publication.senders.values():
            for row in sender.events:
                identifier = state.log[row].event.eventId
                in_range = replay.place <= identifier and (end is None or identifier < end)
                if row < appended and in_range:
                    events.append((identifier, row))
        return [row for _, row in sorted(events)]

    def _fix_end(self, replay: Replaying) -> None:
        """Choose the last event of a replay when it begins (RP-2).

        Later events reach the subscriber as live ones. A range that is longer than allowed is cut.
        """
        mine = self.publisher.state.mine.get(replay.namespace)
        max_range = None if mine is None else as_nat(first(mine.config, keys.MAX_RANGE))
        rows = self._rows(replay)[: max_range or self.settings.max_range]
        # Without events, the replay is completed at once, because it begins after id -1.
        replay.last = self.publisher.state.log[rows[-1]].event.eventId if rows else -1

    def _report(self, ctx: Context, number: int, replay: Replaying) -> None:
        """Report the state of a replay when it has changed, and regularly as a sign of life (RP-5).

        The first report is always `running`, because a replay cannot go from pending to a final
        state. A report that fails is repeated in the next round.
        """
        # The first report does not wait. Later ones do, even if the state has changed.
        if replay.reporting or (replay.reported and ctx.now < replay.report):
            return
        state = replay.state if replay.reported else "running"
        replay.reporting = True

        def answered(ctx: Context, results: Results[int] | None) -> None:
            replay.reporting = False
            if results is None:
                replay.report = ctx.now + 1
                return
            replay.reported = state
            replay.report = ctx.now + (self.settings.replay_report if replay.state == state else 0)
            self.publisher.wake(ctx)

        update = ReplayStatusUpdate(number, state_of(state, replay.count, replay.text))
        self.publisher.role.ask(ctx, self.orchestrator, REPLAY_STATUS, (update,), answered)

    def _send_replayed(self, ctx: Context, number: int, replay: Replaying) -> None:
        """Send the next batch of a replay.

        If the next events are in the archive, their page is asked for first, and the batch is sent
        later. The events before the first refused one are accepted. The refused one is sent again
        after a wait that grows with each failure.
        """
        rows = self._rows(replay)[: self.settings.replay_events]
        batch = self._batch(number, replay, rows)
        if not batch and replay.state == "running" and rows:
            self._fetch(ctx, number, replay, rows)
            return
        if not batch:
            self._report(ctx, number, replay)
            return
        replay.busy = True

        def answered(ctx: Context, results: Results[tuple[int, ...]] | None) -> None:
            replay.busy = False
            refused = results is None
            for event, result in zip(batch, results or (), strict=False):
                if result is None or result.tag != "Ok":
                    refused = True
                    break
                replay.place = event.eventId + 1
                replay.count += 1
                replay.tries = 0
                replay.since = ctx.now
            if refused:
                self._retry(ctx, replay)
            else:
                replay.wait = ctx.now

        self.publisher.role.ask(ctx, replay.entry, PUBLISH, tuple(batch), answered)

    def _retry(self, ctx: Context, replay: Replaying) -> None:
        """Have a replay continue after a wait that grows with each failure."""
        wait = min(1 << min(replay.tries, 20), self.settings.publisher_wait)
        replay.wait = ctx.now + wait
        replay.tries += 1

    def _batch(self, number: int, replay: Replaying, rows: list[int]) -> list[Event]:
        """Return the events of the first of these rows, as many as fit into a call.

        It ends before an event that is neither in the log nor on the last page of the archive. If
        the archive has changed an event, so that it no longer has the hash in the log, the replay
        ends with an error.
        """
        batch: list[Event] = []
        size = 0
        for row in rows:
            logged = self.publisher.state.log[row]
            event = self._whole(logged, replay)
            size += logged.size
            if event is None or (batch and size > self.settings.batch_bytes):
                break
            if value_hash(event.data) != logged.hash:
                replay.state = "errored"
                replay.text = f"hash mismatch at {shown(event.eventId)}"
                break
            batch.append(self.marked(event, number, replay))
        return batch

    @staticmethod
    def _whole(logged: Logged, replay: Replaying) -> Event | None:
        """Return an event with its data, or `None` if it is archived and not on the last page."""
        if not logged.archived:
            return logged.event
        archived = replay.page.get(logged.event.eventId)
        if archived is None:
            return None
        return logged.event._replace(data=archived.data, headers=archived.headers)

    def _fetch(self, ctx: Context, number: int, replay: Replaying, rows: list[int]) -> None:
        """Ask the archive for the page of events that begins with the first of these rows."""
        archive = self.publisher.archive
        start = self.publisher.state.log[rows[0]].event.eventId
        if (archive is None and self.pages is None) or replay.last is None:
            replay.state = "errored"
            replay.text = f"event {shown(start)} is in an archive that is not known"
            self._report(ctx, number, replay)
            return
        replay.busy = True

        def got_page(ctx: Context, events: Sequence[Event] | None) -> None:
            replay.busy = False
            if events is None:
                self._retry(ctx, replay)
                return
            replay.page = {
                event.eventId: event for event in events if event.namespace == replay.namespace
            }
            replay.wait = ctx.now
            if start not in replay.page:
                replay.state = "errored"
                replay.text = f"the archive lacks event {shown(start)}"

        if self.pages is not None:
            self.pages(ctx, rows, got_page)
        elif archive is not None:
            page = (replay.namespace, start, replay.last + 1, self.settings.replay_events)
            self.publisher.role.ask(ctx, archive, ARCHIVE_PAGE, page, got_page)

    @staticmethod
    def marked(event: Event, number: int, replay: Replaying) -> Event:
        """Return an event with the headers of a replay (IC-23).

        Each event names the last one of the replay, because a filter may hold back any of them,
        even the last.
        """
        marks: list[tuple[str, Value]] = [
            (keys.REPLAYED, boolean(True)),
            (keys.REPLAY_ID, nat(number)),
        ]
        if replay.last is not None:
            marks.append((keys.REPLAY_END, nat(replay.last)))
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
        """Send the next part of the oldest block that may be archived.

        The archive answers with the number of complete blocks that it has, and the number of events
        of the next one.
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
            state.archived + 1,
            block.round,
            parent,
            hash=block.hash,
            offset=offset,
            total=block.count,
            events=events,
        )
        self._busy = True

        def answered(ctx: Context, progress: tuple[int, int] | None) -> None:
            self._busy = False
            if progress is None:
                state.archive_wait = ctx.now + self.settings.publisher_wait
                return
            blocks, state.archived_events = progress
            while state.archived < min(blocks, len(state.blocks)):
                self.publisher.forget_block()

        self.publisher.role.ask(ctx, self.archive, ARCHIVE_APPEND, part, answered)
