"""Notification of subscribers: queues, batches, repeats and suspension (IC-22, IC-43, IC-45, RP-9).

Each subscriber has a queue with one window, and one more for each isolated replay. A window sends
one batch at a time and repeats it until every notification in it is confirmed. Batches of trusted
publications are sent by guaranteed calls, whose answers confirm them (IC-46).
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from interchain_events.icrc72 import keys
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.broadcaster.state import ChainKey, Forward, Note, Part, Queue, Window
from interchain_events.icrc72.facts import Trouble
from interchain_events.icrc72.ic.canister import BOUNDED, GUARANTEED, ONE_WAY, Answer, Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import Line, newest, put, take_out
from interchain_events.icrc72.messages import Event, EventNotification
from interchain_events.icrc72.methods import HANDLE, HANDLE_TRUSTED, Trusted
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.role import Confirmed
from interchain_events.icrc72.services import encoded
from interchain_events.icrc72.values import Value, array, blob, nat


class Spot(NamedTuple):
    """The place of a window."""

    subscriber: Principal
    replay: int
    """The isolated replay, or 0 for the main window."""


_OVERHEAD = 200
"""The most bytes that a notification adds to its event, apart from the filter."""


@dataclass
class Delivery(Part):
    """The part that notifies subscribers."""

    _ready: list[tuple[tuple[int, int, int], Principal, int]] = field(default_factory=list)
    """A heap of windows that can send a new batch, by the order of their first notification.

    An entry may be outdated, because its window has changed since. It is then ignored when it
    comes to the top.
    """
    _repeats: list[tuple[int, Principal, int]] = field(default_factory=list)
    """A heap of windows with a batch under way, by the round in which it is sent again."""
    _round: int = 0
    """The last round in which new batches were sent."""
    _batches: int = 0
    """How many new batches were sent in that round."""

    def __post_init__(self) -> None:
        # The heaps are not saved, so they are filled again after an upgrade.
        for subscriber, queue in self.state.queues.items():
            for replay, window in self._windows(queue):
                window.busy = False
                self._enlist(Spot(subscriber, replay), window)

    @staticmethod
    def _windows(queue: Queue) -> Iterator[tuple[int, Window]]:
        """Yield the windows of a queue with their isolated replays, or 0 for the main window."""
        yield 0, queue.main
        yield from list(queue.own.items())

    def queue_of(self, ctx: Context, who: Principal) -> Queue:
        """Return the queue of a subscriber, which is made when it is first needed."""
        queue = self.state.queues.get(who)
        if queue is None:
            queue = Queue(heard=ctx.now)
            self.state.queues[who] = queue
        return queue

    def count(self, name: str, more: int = 1) -> None:
        """Add to a counter of the broadcaster's statistics."""
        self.state.counts[name] = self.state.counts.get(name, 0) + more

    def figure(self, name: str, more: int = 1) -> None:
        """Add to a figure for the orchestrator's statistics.

        Only the `stats_kept` figures with the latest changes are kept.
        """
        figures = self.state.figures
        figures[name] = figures.pop(name, 0) + more
        while len(figures) > self.settings.stats_kept:
            del figures[next(iter(figures))]

    def add(self, ctx: Context, who: Principal, note: Note, *, window: int = 0) -> None:
        """Queue a notification in a window: the main one (0), or that of an isolated replay."""
        queue = self.queue_of(ctx, who)
        chosen = queue.window(window)
        # The silence of a subscriber is counted from the first notification that waits for it.
        if not self._anything(queue):
            queue.heard = ctx.now
        chosen.queue.append(note)
        self.state.pending[note.id] = who
        self._account(queue, note, 1)
        if note.stored:
            self.state.events[note.stored].refs += 1
        if len(chosen.queue) == 1 and not chosen.out:
            self._enlist(Spot(who, window), chosen)

    def tell(self, ctx: Context, who: Principal, data: Value, *, window: int = 0) -> int:
        """Queue a system event of this broadcaster (IC-38g), and return the notification's id."""
        note = self._system(
            ctx, system_namespace("subscriber", who), self.state.last_event + 1, data
        )
        self.add(ctx, who, note, window=window)
        return note.id

    def pass_on(self, ctx: Context, who: Principal, event: Event) -> int:
        """Queue a system event of the orchestrator, and return the notification's id.

        It does not take room in the store (IC-45a).
        """
        note = self._system(ctx, event.namespace, event.eventId, event.data)
        note.source = event.source
        self.add(ctx, who, note)
        return note.id

    def _system(self, ctx: Context, namespace: str, identifier: int, data: Value) -> Note:
        """Make a notification of a system event.

        It gets a number like an event in the store, so that all are sent in the order of arrival.
        """
        self.state.last_event += 1
        number = self.role.next_notification()
        order = (self.state.last_event, 0, 0)
        written = encoded(data)
        return Note(
            number,
            order,
            namespace,
            event_id=identifier,
            made=ctx.time,
            stored=0,
            size=len(written.encoding),
            data=written,
        )

    def live_full(self, queue: Queue) -> bool:
        """Return whether a subscriber's queue refuses further live events (IC-45b)."""
        return (
            queue.live >= self.settings.queue_notifications
            or queue.live_bytes >= self.settings.queue_bytes
        )

    def replay_full(self, ctx: Context, queue: Queue) -> bool:
        """Return whether a subscriber's queue refuses further replayed events (IC-45c).

        Replayed events may fill half of it. The queue of a silent subscriber refuses them until it
        is empty.
        """
        settings = self.settings
        silent = ctx.now - queue.heard > settings.silence
        full = (
            queue.replayed_bytes >= settings.queue_bytes // 2
            or queue.replayed >= settings.queue_notifications // 2
        )
        return full or (silent and self._anything(queue))

    def miss(  # noqa: PLR0917 — all that a subscriber is informed about
        self,
        ctx: Context,
        who: Principal,
        queue: Queue,
        chain: ChainKey,
        event: int,
        subscription: int,
    ) -> None:
        """Note that a suspended subscriber misses an event of a chain (IC-45e).

        The subscriber is informed only about the first one. Its chain begins anew after the
        suspension.
        """
        queue.prev = take_out(queue.prev, chain)
        if chain in queue.missed and queue.missed[chain] <= event:
            return
        queue.missed = put(queue.missed, chain, event)
        namespace, _, _ = chain
        error = Trouble(subscription, keys.SUSPENDED, namespace, event)
        self.tell(ctx, who, MemberAlert({}, (), (error,)).data("subscriber"))

    def _account(self, queue: Queue, note: Note, sign: int) -> None:
        """Add a notification to the counts of its queue (`sign` 1), or subtract it (`sign` -1)."""
        if note.data is not None or not note.stored:
            queue.system += sign
        elif note.replay:
            queue.replayed += sign
            queue.replayed_bytes += sign * note.size
        else:
            queue.live += sign
            queue.live_bytes += sign * note.size

    @staticmethod
    def _anything(queue: Queue) -> bool:
        """Return whether any notification is queued or under way."""
        return bool(queue.live or queue.replayed or queue.system)

    def _enlist(self, spot: Spot, window: Window) -> None:
        """Add a window to the heap of those that repeat a batch, or of those that are ready."""
        if window.out:
            heapq.heappush(self._repeats, (window.next, *spot))
        elif window.queue and not window.waits:
            heapq.heappush(self._ready, (window.queue[0].order, *spot))

    def wake(self, ctx: Context) -> None:
        """Repeat due batches and send new ones, within the limit of a round (IC-43c).

        If there is something new to send, repeats may take half of the limit, otherwise all of it.
        Repeats that do not fit are due in the next round.
        """
        left = self.settings.sends
        repeats: list[tuple[Spot, Window]] = []
        while self._repeats and self._repeats[0][0] <= ctx.now:
            due, who, replay = heapq.heappop(self._repeats)
            spot = Spot(who, replay)
            window = self._window(spot)
            # If the rounds differ, this entry is outdated, and the heap has a later one of this
            # window.
            if window is not None and window.out and not window.busy and window.next == due:
                repeats.append((spot, window))
        self._check_ready()
        share = left // 2 if self._ready else left
        for spot, window in repeats:
            if share <= 0:
                window.next = ctx.now + 1
                self._enlist(spot, window)
                continue
            sent = self._repeat(ctx, spot)
            share -= sent
            left -= sent
        if self._round != ctx.now:
            self._round = ctx.now
            self._batches = 0
        while left > 0 and self._ready and self._batches < self.settings.new_batches:
            self._batches += 1
            _, who, replay = heapq.heappop(self._ready)
            left -= self._send_new(ctx, Spot(who, replay), left)
            self._check_ready()

    def due(self, now: int) -> int | None:
        """Return the next round in which a batch may have to be sent."""
        if self._ready:
            return now + 1
        return self._repeats[0][0] if self._repeats else None

    def _check_ready(self) -> None:
        """Drop outdated entries from the top of the heap of ready windows."""
        while self._ready:
            order, who, replay = self._ready[0]
            window = self._window(Spot(who, replay))
            if (
                window is not None
                and not window.out
                and window.queue
                and window.queue[0].order == order
            ):
                return
            heapq.heappop(self._ready)

    def _window(self, spot: Spot) -> Window | None:
        """Return the window at a place, or `None` if it does not exist any more."""
        queue = self.state.queues.get(spot.subscriber)
        if queue is None:
            return None
        return queue.own.get(spot.replay) if spot.replay else queue.main

    def _send_new(self, ctx: Context, spot: Spot, left: int) -> int:
        """Send a new batch of a window, and return how many notifications it has.

        A batch has only trusted notifications, or only others, and is bounded in number and size.
        """
        window = self._window(spot)
        if window is None or window.out or not window.queue or window.waits:
            return 0
        settings = self.settings
        most = min(left, settings.batch_notifications)
        batch: list[Note] = []
        size = 0
        window.trusted = window.queue[0].trusted
        for note in window.queue:
            if len(batch) >= most or note.trusted != window.trusted:
                break
            size += note.size + _OVERHEAD + len(note.filter or "")
            if batch and size > settings.batch_bytes:
                break
            note.sent = ctx.time
            batch.append(note)
        del window.queue[: len(batch)]
        window.out = {note.id: note for note in batch}
        self._write(window)
        window.tries = 0
        window.came = False
        self._dispatch(ctx, spot, window)
        return len(batch)

    def _repeat(self, ctx: Context, spot: Spot) -> int:
        """Send the batch of a window again, and return how many notifications it has.

        First, if the subscriber is silent, its notifications are dropped, except system events.
        """
        window = self._window(spot)
        queue = self.state.queues[spot.subscriber]
        if window is None or not window.out or self._taken_as_done(ctx, spot, queue, window):
            return 0
        if ctx.now - queue.heard > self.settings.silence:
            self.drop_silent(ctx, spot.subscriber, queue)
            if not window.out:
                return 0
        self.count("retries", len(window.out))
        self._dispatch(ctx, spot, window)
        return len(window.out)

    def _dispatch(self, ctx: Context, spot: Spot, window: Window) -> None:
        """Send the batch of a window, and set the round in which it is repeated.

        Trusted batches are sent by guaranteed calls. Others are sent by one-way calls, or as a
        probe if the subscriber has never confirmed a notification.
        """
        settings = self.settings
        window.next = ctx.now + min(
            settings.repeat_first << min(window.tries, 20), settings.repeat_most
        )
        window.tries += 1
        if not window.trusted:
            heapq.heappush(self._repeats, (window.next, *spot))
            if self.state.queues[spot.subscriber].confirms:
                self.role.send(ctx, spot.subscriber, HANDLE, window.message, kind=ONE_WAY)
            else:
                self._probe(ctx, spot, window)
            return
        window.busy = True
        sent = tuple(window.out)

        def answered(ctx: Context, result: Trusted | None) -> None:
            window.busy = False
            if result is not None and result.tag == "Ok":
                for number in sent:
                    self.confirm(ctx, spot.subscriber, number)
            elif window.out:
                window.next = max(window.next, ctx.now + 1)
                heapq.heappush(self._repeats, (window.next, *spot))

        self.role.send(
            ctx, spot.subscriber, HANDLE_TRUSTED, window.message, answered, kind=GUARANTEED
        )

    def _probe(self, ctx: Context, spot: Spot, window: Window) -> None:
        """Send a batch by a call whose answer shows that the subscriber has received it."""
        sent = tuple(window.out)

        def answered(_ctx: Context, answer: Answer) -> None:
            if answer.ok and tuple(window.out) == sent:
                window.came = True

        ctx.call(spot.subscriber, HANDLE.name, window.message, answered, kind=BOUNDED)

    def _taken_as_done(self, ctx: Context, spot: Spot, queue: Queue, window: Window) -> bool:
        """Finish a batch that was received by a subscriber that has never confirmed a notification.

        Such a subscriber may not implement confirmations, so a batch is not repeated once it was
        received. Returns whether the batch was finished. Its notifications can still be confirmed
        later.
        """
        if queue.confirms or not window.came:
            return False
        who = spot.subscriber
        self.count("unconfirmed", len(window.out))
        self.figure(f"icrc72:subscriber:{who.text}:unconfirmed", len(window.out))
        for number, note in list(window.out.items()):
            self._finish(ctx, who, queue, number)
            queue.once = put(queue.once, number, note)
            self.state.pending[number] = who
        for oldest in islice(queue.once, max(len(queue.once) - self.settings.repeated, 0)):
            self.state.pending.pop(oldest, None)
        queue.once = newest(queue.once, self.settings.repeated)
        return True

    def _notification(self, note: Note) -> EventNotification:
        """Return a notification in the form in which it is sent, with its headers (IC-22)."""
        if note.data is not None:
            source = self.role.me if note.source is None else note.source
            return EventNotification(
                note.id,
                note.event_id,
                None,
                timestamp=note.made,
                namespace=note.namespace,
                data=note.data,
                headers=None,
                source=source,
                filter=None,
            )
        event = self.state.events[note.stored].event
        headers = [*(event.headers or ()), (keys.EVENT_TIMESTAMP, nat(event.timestamp))]
        headers.append((keys.PRIORITY, array(map(nat, note.place))))
        if note.prev is not None:
            headers.append((keys.PREV, nat(note.prev)))
        headers.append((keys.SENT, nat(note.sent)))
        return EventNotification(
            note.id,
            event.eventId,
            event.prevEventId,
            timestamp=note.made,
            namespace=event.namespace,
            data=event.data,
            headers=tuple(headers),
            source=event.source,
            filter=note.filter,
        )

    def confirm(self, ctx: Context, caller: Principal, number: int) -> Confirmed:
        """Take the confirmation of a notification by its subscriber (IC-44).

        Returns `Ok`, `Unauthorized` if the notification is for another subscriber, or `NotFound`.
        """
        who = self.state.pending.get(number)
        if who is None:
            return "NotFound"
        if who != caller:
            return "Unauthorized"
        queue = self.state.queues[who]
        # Its batch may have been finished without confirmations, see `_taken_as_done`.
        note = queue.once.get(number)
        if note is not None:
            queue.once = take_out(queue.once, number)
            del self.state.pending[number]
        else:
            note = self._finish(ctx, who, queue, number)
        if note is None:
            # It is queued but was never sent, so the caller has guessed its id.
            return "NotFound"
        queue.confirms = True
        self.count("confirmations")
        if note.subscription:
            self.figure(f"icrc72:subscription:{note.subscription}:confirmations")
            view = self.state.publications.get(note.namespace)
            if view is not None:
                self.figure(f"icrc72:publication:{view.id}:confirmations")
        if note.replay:
            self.figure(f"icrc77:replay:{note.replay}:confirmations")
        return "Ok"

    def _finish(self, ctx: Context, who: Principal, queue: Queue, number: int) -> Note | None:
        """Take a notification out of the batch under way that has it, and return it.

        Returns `None` if no batch has it. Windows that waited for it may send now.
        """
        for replay, window in self._windows(queue):
            note = window.out.get(number)
            if note is None:
                continue
            window.out = take_out(window.out, number)
            self._done(queue, note)
            queue.heard = ctx.now
            for other, waiting in list(queue.own.items()):
                if waiting.waits == number:
                    waiting.waits = 0
                    self._enlist(Spot(who, other), waiting)
            self._emptied(who, replay, window)
            return note
        return None

    def _emptied(self, who: Principal, replay: int, window: Window) -> None:
        """Start the next batch of a window if its present batch is done.

        A window of an isolated replay is deleted if no notification is left in it.
        """
        if window.out:
            return
        window.tries = 0
        window.message = b""
        if window.queue:
            self._enlist(Spot(who, replay), window)
        elif replay:
            queue = self.state.queues[who]
            queue.own = take_out(queue.own, replay)

    def _done(self, queue: Queue, note: Note) -> None:
        """Forget a notification that was taken out of its window."""
        self.state.pending.pop(note.id, None)
        self._account(queue, note, -1)
        if note.stored:
            self.release(note.stored)

    def release(self, number: int) -> None:
        """Drop one reference to a stored event. Without references the event is forgotten."""
        state = self.state
        stored = state.events[number]
        stored.refs -= 1
        if stored.refs:
            return
        del state.events[number]
        source = stored.event.source
        state.bytes_by[source, stored.own] -= stored.size
        if not state.bytes_by[source, stored.own]:
            del state.bytes_by[source, stored.own]
        if stored.own:
            state.bytes_own -= stored.size
            state.undone[source] -= 1
            if not state.undone[source]:
                del state.undone[source]
        else:
            state.bytes_relayed -= stored.size

    def drop_where(self, who: Principal, queue: Queue, namespace: str | None) -> None:
        """Drop a subscriber's notifications: the live ones of a namespace, or all (`None`)."""

        def is_dropped(note: Note) -> bool:
            return namespace is None or _is_live(note, namespace)

        for number, note in list(queue.once.items()):
            if is_dropped(note):
                queue.once = take_out(queue.once, number)
                del self.state.pending[number]
        for note in self._take_out(who, queue, is_dropped):
            self._done(queue, note)

    def _take_out(
        self, who: Principal, queue: Queue, is_dropped: Callable[[Note], bool]
    ) -> list[Note]:
        """Remove notifications from all windows of a queue, and return them.

        The caller must call `_done` for each. Batches under way are encoded again without them.
        """
        removed: list[Note] = []
        for replay, window in self._windows(queue):
            removed += [note for note in (*window.out.values(), *window.queue) if is_dropped(note)]
            window.out = {
                number: note for number, note in window.out.items() if not is_dropped(note)
            }
            window.queue = Line(note for note in window.queue if not is_dropped(note))
            if window.out:
                self._write(window)
            else:
                self._emptied(who, replay, window)
        return removed

    def _write(self, window: Window) -> None:
        """Encode the batch of a window."""
        window.message = HANDLE.argument(
            tuple(self._notification(note) for note in window.out.values())
        )

    def drop_silent(self, ctx: Context, who: Principal, queue: Queue) -> None:
        """Suspend a silent subscriber and drop its live and replayed notifications (IC-45d).

        The subscriber is informed about the first missed event of each chain.
        """
        lost = self._take_out(who, queue, lambda note: bool(note.stored))
        if not lost:
            return
        queue.suspended = True
        for note in sorted(lost, key=lambda note: note.order):
            self._done(queue, note)
            if note.replay:
                queue.lost = put(queue.lost, note.replay, None)
            elif note.chain is not None:
                self.miss(ctx, who, queue, note.chain, note.event_id, note.subscription)

    def relieve(self, ctx: Context) -> None:
        """Make room in a full store (IC-45d).

        Subscribers with a notification that is older than `silence` rounds are treated as silent.
        """
        oldest = ctx.time - self.settings.silence * 10**9
        for who, queue in list(self.state.queues.items()):
            notes: list[Note] = []
            for _, window in self._windows(queue):
                notes += (*window.out.values(), *islice(window.queue, 1))
            if any(note.stored and note.data is None and note.made < oldest for note in notes):
                self.drop_silent(ctx, who, queue)

    def relayed(self, forward: Forward, event: Event) -> Event:
        """Return an event with the headers for a relay."""
        headers = [*(event.headers or ()), (keys.RELAY_SENT, nat(forward.sent))]
        if forward.prev is not None:
            headers.append((keys.RELAY_PREV, nat(forward.prev)))
        if forward.late:
            headers.append((keys.RELAY_LATE, array([blob(who) for who in forward.late])))
        return event._replace(headers=tuple(headers))


def _is_live(note: Note, namespace: str) -> bool:
    """Return whether a notification is of a live event of a namespace."""
    return note.namespace == namespace and not note.replay and bool(note.stored)
