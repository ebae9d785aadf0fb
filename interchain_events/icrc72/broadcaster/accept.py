"""Acceptance of events by a broadcaster: authority, chains and room (IC-41, IC-42, RP-8, R6).

An event comes from its publisher, from another broadcaster that relays it, or from the orchestrator
as a system event. It is checked, stored once, and queued for the subscribers served here and, if
the publisher brought it, for the relays to other broadcasters.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from interchain_events.icrc72 import keys
from interchain_events.icrc72.broadcaster import state as s
from interchain_events.icrc72.broadcaster.delivery import Delivery
from interchain_events.icrc72.facts import Width, is_late
from interchain_events.icrc72.filters import Overrun, evaluate, parse
from interchain_events.icrc72.headers import Headers, read
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import put_shared, take_out
from interchain_events.icrc72.messages import Err, Event, Ok, Result
from interchain_events.icrc72.methods import err, generic, ok, refused, too_many
from interchain_events.icrc72.namespaces import is_system, partition_of
from interchain_events.icrc72.services import type_codec
from interchain_events.icrc72.values import Skip, blob, nat, value_hash

Answer = Result[tuple[int, ...]]
"""The answer to one event: the ids of the notifications that were made, or an error."""
BUSY: Final = err("Busy")
UNAUTHORIZED: Final = err("Unauthorized")
AGAIN: Final[Ok[tuple[int, ...]]] = ok(())
"""The answer to an event that was accepted before, or leads to no notification here."""

SHARE: Final = 4
"""A source may hold at most this many times the bytes that are free in the store."""

Full = set[tuple[s.ChainKey, Principal] | int]
"""Chains (with the caller) and replays of which no more events are accepted in this call.

After an event was refused as Busy, later ones of its chain must be refused, too, even if they are
smaller and would fit.
"""


class Match(NamedTuple):
    """A subscriber to notify, with the first of its subscriptions that lets the event pass."""

    rank: int
    """The negative priority in mode priority, otherwise 0. The lowest is notified first."""
    subscription: int
    subscriber: Principal
    filter: str | None


def improper(detail: str) -> Err:
    """Return an error ImproperId with its reason."""
    return refused("ImproperId", detail)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that a caller brings."""

    ctx: Context
    event: Event
    headers: Headers
    direct: bool
    """Whether its publisher brings it, and not a relay."""

    def has_allowed_headers(self) -> bool:
        """Return whether the event has only headers that its caller may bring (IC-41).

        A publisher may not bring headers that broadcasters append. If an event from a relay names
        the first broadcaster, this must be the relay itself, and the event must not have been
        relayed before.
        """
        if self.direct:
            return not self.headers.planted
        return not self.headers.relayed and self.headers.broadcaster in {None, self.ctx.caller}

    def stamped(self) -> "Arrival":
        """Return the arrival with this broadcaster's headers appended to the event (IC-23)."""
        if self.direct:
            received, broadcaster = keys.RECEIVED, keys.BROADCASTER
        else:
            received, broadcaster = keys.RELAY_RECEIVED, keys.RELAY
        stamp = ((received, nat(self.ctx.time)), (broadcaster, blob(self.ctx.me)))
        headers = (*(self.event.headers or ()), *stamp)
        return replace(self, event=self.event._replace(headers=headers))


@dataclass
class Acceptance(s.Part):
    """The part that judges events and hands them on."""

    delivery: Delivery
    orchestrator: Principal

    def publish(self, ctx: Context, events: tuple[Event, ...]) -> tuple[Answer, ...]:
        """Return the answers to a batch of events.

        An answer lists the ids of all notifications, so it is long if there are many subscribers.
        When the answers together might become too large for a response, further events are answered
        with Busy.
        """
        full: Full = set()
        results: list[Answer] = []
        size = 0
        for event in events[: self.settings.batch_items]:
            if size > self.settings.batch_bytes // 2:
                self.delivery.count("busy")
                results.append(BUSY)
                continue
            results.append(self._judge(ctx, event, full))
            size += _bytes_of(results[-1])
        if len(events) > len(results):
            results.append(too_many(self.settings.batch_items))
        return tuple(results)

    def _judge(self, ctx: Context, event: Event, full: Full) -> Answer:
        """Judge one event as a system event, a replayed event or a live event."""
        arrival = Arrival(ctx, event, read(event.headers), direct=ctx.caller == event.source)
        if is_system(event.namespace):
            result = self._system(ctx, event)
        elif arrival.headers.replay is not None:
            result = self._replayed(arrival, arrival.headers.replay, full)
        else:
            result = self._live(arrival, full)
        if result.tag == "Err":
            self.delivery.count("busy" if result == BUSY else "refused")
        return result

    def _system(self, ctx: Context, event: Event) -> Answer:
        """Accept a system event of the orchestrator for a member that is served here."""
        served = self.state.subscribers.get(event.namespace)
        if not served or ctx.caller != self.orchestrator or event.source != ctx.caller:
            return UNAUTHORIZED
        if event.eventId <= self.state.system.get(event.namespace, 0):
            return AGAIN
        # A system namespace has only its owner as a subscriber.
        (subscriber,) = served
        if self.delivery.queue_of(ctx, subscriber).system >= self.settings.system_queue:
            return BUSY
        self.state.system[event.namespace] = event.eventId
        return ok((self.delivery.pass_on(ctx, subscriber, event),))

    def _live(self, arrival: Arrival, full: Full) -> Answer:
        """Accept a live event of a publisher or relay.

        The checks come in the order of the rules: authority, size and hash, partition, uniqueness
        of the id, chain and finally room.
        """
        event = arrival.event
        namespace = event.namespace
        caller = arrival.ctx.caller
        publishes = arrival.direct and caller in self.state.publishers.get(namespace, ())
        relays = not arrival.direct and (namespace, caller) in self.state.relayers
        if not (publishes or relays) or not arrival.has_allowed_headers():
            return UNAUTHORIZED
        refused = self._content(arrival)
        if refused is not None:
            return refused
        view = self.state.publications.get(namespace)
        if view is None:
            return UNAUTHORIZED
        partition = _partition(event, arrival.headers, view)
        if partition is None:
            return improper("the event belongs to another partition than its header says")
        other = self._other_source(event, partition) if arrival.direct else None
        if other is not None:
            return improper(
                f"{other.text} has published an event with this id: ids are unique in a namespace"
            )
        key: s.ChainKey = (namespace, event.source, partition)
        if (key, caller) in full:
            return BUSY
        chain = self.state.chains.get((key, caller))
        prev = event.prevEventId if arrival.direct else arrival.headers.relay_prev
        error = self._chained(event, chain, prev, view.mode)
        if error is not None:
            return error
        if not self._makes_room(arrival):
            full.add((key, caller))
            return BUSY
        # The subscribers' chains begin anew if it is unknown whether events are missing between
        # the last one accepted here and this one.
        names_no_predecessor = prev is None and not arrival.direct
        other_caller = self.state.callers.get(key, caller) != caller
        begins = chain is None or names_no_predecessor or other_caller
        if chain is None:
            chain = s.EventSequence(event.eventId)
            self.state.chains[key, caller] = chain
        self._remember(chain, event)
        self.state.callers[key] = caller
        return self._hand_on(arrival, key, view, begins=begins)

    def _content(self, arrival: Arrival) -> Err | None:
        """Return an error if the event is too large, or its data do not match its hash header.

        The size is only checked for events from their publishers, because relays add headers.
        """
        if arrival.direct:
            size = type_codec("broadcaster", "Event").size(arrival.event)
            if size > self.settings.event_bytes:
                return generic(keys.TOO_LARGE)
        stated_hash = arrival.headers.hash
        if stated_hash is not None and stated_hash != value_hash(arrival.event.data):
            return generic(keys.HASH_MISMATCH)
        return None

    def _other_source(self, event: Event, partition: int) -> Principal | None:
        """Return another source that has published an event with this id here, or `None`.

        Only the last `repeated` events of each chain are known.
        """
        for publisher in self.state.publishers[event.namespace]:
            key = (event.namespace, publisher, partition)
            chain = self.state.chains.get((key, publisher))
            if publisher != event.source and chain is not None and event.eventId in chain.seen:
                return publisher
        return None

    @staticmethod
    def _chained(
        event: Event, chain: s.EventSequence | None, prev: int | None, mode: str
    ) -> Answer | None:
        """Return `None` if the event may follow in its chain, otherwise the answer (IC-42).

        A repetition with the same data is answered with `AGAIN`. In mode unordered, only the id
        must be new. Otherwise ids must ascend, and a named predecessor must be the last event.
        """
        if chain is None:
            return None
        seen = chain.seen.get(event.eventId)
        if seen is not None and seen == value_hash(event.data):
            return AGAIN
        if mode == "unordered":
            return None if seen is None else improper("another event had this id")
        if event.eventId <= chain.last:
            return improper(f"the last id was {shown(chain.last)}")
        if prev not in {None, chain.last}:
            return improper(f"the former event was {shown(chain.last)}")
        return None

    def _remember(self, chain: s.EventSequence, event: Event) -> None:
        """Record an accepted event in its chain, and forget the oldest beyond `repeated`."""
        chain.last = max(chain.last, event.eventId)
        chain.seen[event.eventId] = value_hash(event.data)
        while len(chain.seen) > self.settings.repeated:
            del chain.seen[next(iter(chain.seen))]

    def _makes_room(self, arrival: Arrival) -> bool:
        """Return whether the store has room for an event.

        If it has not, the events that wait for silent members are dropped first.
        """
        if not self._has_room(arrival):
            self.delivery.relieve(arrival.ctx)
        return self._has_room(arrival)

    def _has_room(self, arrival: Arrival) -> bool:
        """Return whether an event fits into the store (IC-45).

        Events of publishers and of relays have separate room. The fuller the store is, the less a
        single source may hold of it, so that one cannot block the others.
        """
        size = type_codec("broadcaster", "Event").size(arrival.event)
        stored = self.state.bytes_own if arrival.direct else self.state.bytes_relayed
        left = self.settings.store_bytes - stored
        held = self.state.bytes_by.get((arrival.event.source, arrival.direct), 0)
        return size <= left and (not held or held + size <= SHARE * left)

    def _store(self, event: Event, *, own: bool) -> int:
        """Store an event without references, and return its number.

        `own` says whether its publisher brought it, and not a relay.
        """
        state = self.state
        state.last_event += 1
        size = type_codec("broadcaster", "Event").size(event)
        state.events[state.last_event] = s.Stored(event, size, own)
        state.bytes_by[event.source, own] = state.bytes_by.get((event.source, own), 0) + size
        if own:
            state.bytes_own += size
            state.undone[event.source] = state.undone.get(event.source, 0) + 1
        else:
            state.bytes_relayed += size
        return state.last_event

    def _hand_on(
        self, arrival: Arrival, key: s.ChainKey, view: s.PublicationView, *, begins: bool
    ) -> Answer:
        """Store a live event, and queue its notifications and relays.

        Only an event from its publisher is relayed: a relayed event is never relayed again (I4).
        `begins` says whether the chains of the subscribers begin anew with this event.
        """
        state = self.state
        now = arrival.ctx.now
        arrival = arrival.stamped()
        number = self._store(arrival.event, own=arrival.direct)
        # This reference keeps the event in the store until its notifications and relays are queued.
        # `release` below drops it, and with it an event that goes nowhere.
        state.events[number].refs += 1
        state.recent[now] = state.recent.get(now, 0) + 1
        self.delivery.count("events")
        if arrival.direct:
            self.delivery.figure(f"icrc72:publication:{view.id}:events")
        notifications = self._notify(arrival, number, key, view, begins=begins)
        if arrival.direct:
            self._relay(number, arrival.event, key)
        if notifications:
            self.delivery.figure(f"icrc72:publication:{view.id}:events:sent")
        self.delivery.release(number)
        return ok(tuple(notifications))

    def _notify(
        self,
        arrival: Arrival,
        number: int,
        key: s.ChainKey,
        view: s.PublicationView,
        *,
        begins: bool,
    ) -> list[int]:
        """Queue the notifications of a live event, and return their ids.

        A subscriber gets one notification, for the first of its subscriptions that lets the event
        pass. In mode priority, the order is by priority and then by subscription, otherwise only by
        subscription. A subscriber whose queue is full is suspended, and only informed about the
        first event that it misses.
        """
        ctx = arrival.ctx
        event = arrival.event
        matches = self._matches(arrival, key, view, begins=begins)
        notifications: list[int] = []
        for place, match in enumerate(matches, 1):
            subscriber = match.subscriber
            subscription = match.subscription
            queue = self.delivery.queue_of(ctx, subscriber)
            if not queue.suspended and self.delivery.live_full(queue):
                queue.suspended = True
                self.delivery.count("suspended")
            if queue.suspended:
                self.delivery.miss(ctx, subscriber, queue, key, event.eventId, subscription)
                continue
            note = self._note(arrival, number, match, place=(place, len(matches)))
            note.chain = key
            note.prev = queue.prev.get(key)
            note.trusted = view.trusted
            queue.prev = put_shared(queue.prev, key, event.eventId)
            self.delivery.add(ctx, subscriber, note)
            self.delivery.count("notifications")
            self.delivery.figure(f"icrc72:publication:{view.id}:notifications")
            self.delivery.figure(f"icrc72:subscription:{subscription}:notifications")
            notifications.append(note.id)
        return notifications

    def _matches(
        self, arrival: Arrival, key: s.ChainKey, view: s.PublicationView, *, begins: bool
    ) -> list[Match]:
        """Return the subscribers to notify of a live event, in the order of notification.

        With `begins`, the chains of the subscribers begin anew with this event.
        """
        ctx = arrival.ctx
        event = arrival.event
        late = arrival.headers.late
        matches: list[Match] = []
        for subscriber, subscriptions in self.state.subscribers.get(event.namespace, {}).items():
            queue = self.delivery.queue_of(ctx, subscriber)
            if begins:
                queue.prev = take_out(queue.prev, key)
            # A subscriber that is late may miss events before this one. Its chain begins with the
            # first event for which it is not late.
            if late and key not in queue.prev:
                widths = (Width(served.filter, served.skip) for served in subscriptions)
                if is_late(subscriber, widths, late):
                    continue
            for served in subscriptions:
                if self._passes(event, served.filter, served.skip):
                    rank = -view.priorities.get(subscriber, 0) if view.mode == "priority" else 0
                    matches.append(Match(rank, served.id, subscriber, served.filter))
                    break
        matches.sort(key=lambda match: (match.rank, match.subscription))
        return matches

    def _passes(self, event: Event, filter_: str | None, skip: Skip | None) -> bool:
        """Return whether an event passes the skip and then the filter (IC-27).

        An event for which the filter takes too many steps does not pass.
        """
        try:
            if skip is not None and not skip.passes(event.eventId):
                return False
            return filter_ is None or evaluate(parse(filter_), event.data, event)
        except Overrun:
            self.delivery.count("filter_overruns")
            return False

    def _note(
        self, arrival: Arrival, number: int, match: Match, *, place: tuple[int, int] = (1, 1)
    ) -> s.Note:
        """Make a notification of the stored event with a number.

        `place` is its position among the notifications of this event, and their number.
        """
        event = arrival.event
        return s.Note(
            id=self.delivery.role.next_notification(),
            order=(number, match.rank, match.subscription),
            namespace=event.namespace,
            event_id=event.eventId,
            made=arrival.ctx.time,
            stored=number,
            size=self.state.events[number].size,
            subscription=match.subscription,
            filter=match.filter,
            place=place,
        )

    def _relay(self, number: int, event: Event, key: s.ChainKey) -> None:
        """Queue an event once for each relay that lets it pass."""
        for (namespace, _), relay in self.state.relays.items():
            if namespace != event.namespace:
                continue
            if any(self._passes(event, filter_, skip) for filter_, skip in relay.entries.values()):
                lane = relay.lanes.setdefault(key, s.Lane())
                lane.queue.append(s.Forward(number, lane.prev))
                lane.prev = event.eventId
                self.state.events[number].refs += 1

    def _replayed(self, arrival: Arrival, replay: int, full: Full) -> Answer:
        """Accept a replayed event as exit or entry of its replay (RP-8).

        For a replay that was removed recently, the error says that it was canceled.
        """
        delivered = self.state.delivered.get(replay)
        forwarded = self.state.forwarded.get(replay)
        if delivered is not None and self._may_deliver(arrival, delivered):
            arrival = replace(arrival, direct=delivered.hands == arrival.ctx.me)
            return self._take(arrival, replay, delivered, full)
        if forwarded is not None and self._may_forward(arrival, forwarded):
            return self._take(arrival, replay, forwarded, full)
        removed = self.state.removed.get(replay)
        if removed is not None and arrival.ctx.now - removed < self.settings.replay_stalled:
            return generic(keys.CANCELED)
        return UNAUTHORIZED

    @staticmethod
    def _may_forward(arrival: Arrival, forwarded: s.Forwarded) -> bool:
        """Return whether the caller may bring events of a replay that is forwarded from here.

        This is only the publisher that is replaying.
        """
        event = arrival.event
        return (
            forwarded.removed is None
            and event.namespace == forwarded.namespace
            and arrival.ctx.caller == event.source == forwarded.publisher
            and arrival.has_allowed_headers()
        )

    def _may_deliver(self, arrival: Arrival, delivered: s.Delivered) -> bool:
        """Return whether the caller may bring events of a replay that is delivered here.

        This is the publisher if the replay is not relayed. Otherwise it is only the broadcaster
        that both the replay (`hands`) and the separate assignment of the relay (`source`) name.
        """
        caller = arrival.ctx.caller
        event = arrival.event
        if event.namespace != delivered.namespace:
            return False
        if delivered.publisher not in {None, event.source}:
            return False
        if delivered.hands == arrival.ctx.me:
            publishers = self.state.publishers.get(event.namespace, ())
            may_publish = delivered.publisher is not None or caller in publishers
            return may_publish and arrival.direct and arrival.has_allowed_headers()
        if not caller == delivered.hands == delivered.source:
            return False
        return replace(arrival, direct=False).has_allowed_headers()

    def _again(self, event: Event, chain: s.EventSequence | None) -> Answer | None:
        """Return `None` if the event may follow in its replay, in which ids must ascend.

        Otherwise return the answer: `AGAIN` for a repetition with the same data, or an error.
        """
        if chain is None or event.eventId > chain.last:
            return None
        if chain.seen.get(event.eventId) == value_hash(event.data):
            return AGAIN
        return improper(f"the last id of the replay was {shown(chain.last)}")

    def _take(
        self, arrival: Arrival, replay: int, role: s.Delivered | s.Forwarded, full: Full
    ) -> Answer:
        """Accept an event of a replay from the right caller, and deliver or forward it.

        `role` says whether this broadcaster is the exit or the entry of the replay. Events that the
        filter holds back are counted as accepted, because the publisher has sent them.
        """
        refused = self._content(arrival)
        if refused is not None:
            return refused
        answer = self._again(arrival.event, role.chain)
        if answer is not None:
            return answer
        if replay in full or self._is_full(arrival.ctx, role) or not self._makes_room(arrival):
            full.add(replay)
            return BUSY
        if role.chain is None:
            role.chain = s.EventSequence(arrival.event.eventId)
        self._remember(role.chain, arrival.event)
        if arrival.direct:
            self.state.accepted[replay] = self.state.accepted.get(replay, 0) + 1
            self.delivery.figure(f"icrc77:replay:{replay}:published")
        if not self._passes(arrival.event, role.filter, role.skip):
            self.delivery.figure(f"icrc77:replay:{replay}:filtered_out")
            return AGAIN
        arrival = arrival.stamped()
        number = self._store(arrival.event, own=arrival.direct)
        if isinstance(role, s.Forwarded):
            self.state.events[number].refs += 1
            role.lane.queue.append(s.Forward(number, None))
            return AGAIN
        match = Match(rank=0, subscription=0, subscriber=role.subscriber, filter=role.filter)
        note = self._note(arrival, number, match)
        note.replay = replay
        window = replay if role.isolated else 0
        self.delivery.add(arrival.ctx, role.subscriber, note, window=window)
        self.delivery.figure(f"icrc77:replay:{replay}:notifications")
        return ok((note.id,))

    def _is_full(self, ctx: Context, role: s.Delivered | s.Forwarded) -> bool:
        """Return whether the lane or the subscriber's queue refuses further events of a replay."""
        if isinstance(role, s.Forwarded):
            return len(role.lane.queue) >= self.settings.batch_notifications
        return self.delivery.replay_full(ctx, self.delivery.queue_of(ctx, role.subscriber))


def _bytes_of(result: Answer) -> int:
    """Return an upper bound of the bytes that an answer's ids take in Candid.

    An id takes one byte for 7 bits. The ids ascend, so the last one is the longest.
    """
    if result.tag != "Ok" or not result.value:
        return 0
    longest = (result.value[-1].bit_length() + 6) // 7
    return len(result.value) * longest


def _partition(event: Event, headers: Headers, view: s.PublicationView) -> int | None:
    """Return the partition of an event, or `None` if its header names another one."""
    index = partition_of(event.eventId, view.partitions)
    return index if headers.partition in {None, (index, view.partitions)} else None
