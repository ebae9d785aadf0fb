"""Acceptance of events by a broadcaster: authority, chains and room (IC-41, IC-42, RP-8, R6).

An event comes from its publisher, from another broadcaster that relays it, or from the orchestrator
as a system event. It is checked, stored once, and queued for the subscribers served here and, if
the publisher brought it, for the relays to other broadcasters.
"""

from dataclasses import dataclass, replace
from typing import Final

from interchain_events.icrc72 import keys
from interchain_events.icrc72.broadcaster import state as s
from interchain_events.icrc72.broadcaster.delivery import Delivery
from interchain_events.icrc72.facts import Width, is_late
from interchain_events.icrc72.filters import Overrun, evaluate, parse
from interchain_events.icrc72.headers import Headers, read
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Err, Event, Ok, Result
from interchain_events.icrc72.methods import err, generic, ok, refused, too_many
from interchain_events.icrc72.namespaces import OWN, is_system
from interchain_events.icrc72.services import type_codec
from interchain_events.icrc72.values import Skip, blob, nat, value_hash

Answer = Result[tuple[int, ...]]
"""The answer to one event: the ids of the notifications that were made, or an error."""
BUSY: Final = err("Busy")
UNAUTHORIZED: Final = err("Unauthorized")
AGAIN: Final[Ok[tuple[int, ...]]] = ok(())
"""The answer to an event that was accepted before, or leads to no notification here."""

SHARE: Final = 4
"""A source may hold at most this many times the bytes that are left in the store."""

Full = set[tuple[s.ChainKey, Principal] | int]
"""Chains (with the caller) and replays that accept nothing more in this call.

After an event was refused as Busy, later ones of its chain must be refused, too, even if they are
smaller and would fit.
"""

Match = tuple[int, int, Principal, str | None]
"""A subscriber to notify: negative priority, subscription, subscriber and filter."""


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

    def fits(self) -> bool:
        """Return whether the event has only headers that its caller may bring (IC-41).

        A publisher may not bring headers that broadcasters append. A relay must name itself as the
        first broadcaster, and the event must not have been relayed before.
        """
        if self.direct:
            return not self.headers.planted
        return not self.headers.relayed and self.headers.broadcaster in {None, self.ctx.caller}

    def stamped(self) -> "Arrival":
        """Return the arrival with this broadcaster's headers appended to the event (IC-23)."""
        names = (
            (keys.RECEIVED, keys.BROADCASTER) if self.direct else (keys.RELAY_RECEIVED, keys.RELAY)
        )
        mine = ((names[0], nat(self.ctx.time)), (names[1], blob(self.ctx.me)))
        return replace(
            self, event=self.event._replace(headers=(*(self.event.headers or ()), *mine))
        )


@dataclass
class Acceptance(s.Part):
    """The part that judges events and hands them on."""

    delivery: Delivery
    orchestrator: Principal

    def publish(self, ctx: Context, events: tuple[Event, ...]) -> tuple[Answer, ...]:
        """Return the answers to a batch of events.

        An answer lists the ids of all notifications, so many subscribers make it long. Events are
        answered with Busy when the response might become too large.
        """
        full: Full = set()
        results: list[Answer] = []
        size = 0
        for event in events[: self.settings.batch_items]:
            if size > self.settings.batch_bytes // 2:
                self.delivery.count("busy")
                results.append(BUSY)
                continue
            results.append(self._one(ctx, event, full))
            size += _bytes_of(results[-1])
        if len(events) > len(results):
            results.append(too_many(self.settings.batch_items))
        return tuple(results)

    def _one(self, ctx: Context, event: Event, full: Full) -> Answer:
        """Judge one event as a system event, a replayed event or a live event."""
        it = Arrival(ctx, event, read(event.headers), ctx.caller == event.source)
        if is_system(event.namespace):
            result = self._system(ctx, event)
        elif it.headers.replay is not None:
            result = self._replayed(it, it.headers.replay, full)
        else:
            result = self._live(it, full)
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
        (who,) = served
        if self.delivery.queue_of(ctx, who).system >= self.settings.system_queue:
            return BUSY
        self.state.system[event.namespace] = event.eventId
        return ok((self.delivery.pass_on(ctx, who, event),))

    def _live(self, it: Arrival, full: Full) -> Answer:
        """Accept a live event of a publisher or relay.

        The checks come in the order of the rules: authority, size and hash, partition, uniqueness
        of the id, chain and finally room.
        """
        event, caller, namespace = it.event, it.ctx.caller, it.event.namespace
        publishes = it.direct and caller in self.state.publishers.get(namespace, ())
        relays = not it.direct and (namespace, caller) in self.state.relayers
        if not (publishes or relays) or not it.fits():
            return UNAUTHORIZED
        refused = self._content(it)
        if refused is not None:
            return refused
        view = self.state.publications.get(namespace)
        if view is None:
            return UNAUTHORIZED
        partition = _partition(event, it.headers, view)
        if partition is None:
            return improper("the event belongs to another partition than its header says")
        if it.direct and (other := self._other_source(event, partition)) is not None:
            return improper(
                f"{other.text} has published an event with this id: ids are unique in a namespace"
            )
        key: s.ChainKey = (namespace, event.source, partition)
        if (key, caller) in full:
            return BUSY
        chain = self.state.chains.get((key, caller))
        prev = event.prevEventId if it.direct else it.headers.relay_prev
        error = self._chained(event, chain, prev, view.mode)
        if error is not None:
            return error
        if not self._fits(it):
            full.add((key, caller))
            return BUSY
        # The subscribers' chains begin anew if the event does not continue the last one accepted
        # here: a new chain, a relay that names no predecessor, or another caller.
        begins = (
            chain is None
            or (prev is None and not it.direct)
            or self.state.callers.get(key, caller) != caller
        )
        if chain is None:
            chain = self.state.chains[key, caller] = s.EventSequence(event.eventId)
        self._remember(chain, event)
        self.state.callers[key] = caller
        return self._hand_on(it, key, view, begins=begins)

    def _content(self, it: Arrival) -> Err | None:
        """Return an error if the event is too large or does not have the hash in its header.

        Only the publisher's version is measured: headers of relays may make it longer.
        """
        if (
            it.direct
            and type_codec("broadcaster", "Event").size(it.event) > self.settings.event_bytes
        ):
            return generic(keys.TOO_LARGE)
        if it.headers.hash is not None and it.headers.hash != value_hash(it.event.data):
            return generic(keys.HASH_MISMATCH)
        return None

    def _other_source(self, event: Event, partition: int) -> Principal | None:
        """Return another source that has published an event with this id here, or `None`.

        Only the last `repeated` events of each chain are known.
        """
        for who in self.state.publishers[event.namespace]:
            chain = self.state.chains.get(((event.namespace, who, partition), who))
            if who != event.source and chain is not None and event.eventId in chain.seen:
                return who
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
        return (
            None
            if prev in {None, chain.last}
            else improper(f"the former event was {shown(chain.last)}")
        )

    def _remember(self, chain: s.EventSequence, event: Event) -> None:
        """Record an accepted event in its chain, and forget the oldest beyond `repeated`."""
        chain.last = max(chain.last, event.eventId)
        chain.seen[event.eventId] = value_hash(event.data)
        while len(chain.seen) > self.settings.repeated:
            del chain.seen[next(iter(chain.seen))]

    def _fits(self, it: Arrival) -> bool:
        """Return whether the store has room, if needed after dropping events of silent members."""
        if not self._has_room(it):
            self.delivery.relieve(it.ctx)
        return self._has_room(it)

    def _has_room(self, it: Arrival) -> bool:
        """Return whether an event fits into the store (IC-45).

        Events of publishers and of relays have separate room. The fuller the store is, the less a
        single source may hold of it, so that one cannot block the others.
        """
        size = type_codec("broadcaster", "Event").size(it.event)
        left = self.settings.store_bytes - (
            self.state.bytes_own if it.direct else self.state.bytes_relayed
        )
        mine = self.state.bytes_by.get((it.event.source, it.direct), 0)
        return size <= left and (not mine or mine + size <= SHARE * left)

    def _store(self, event: Event, *, own: bool) -> int:
        """Store an event without references, and return its number."""
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
        self, it: Arrival, key: s.ChainKey, view: s.PublicationView, *, begins: bool
    ) -> Answer:
        """Store a live event, queue its notifications and, from a publisher, its relays.

        A relayed event is never relayed again (I4).
        """
        state, now = self.state, it.ctx.now
        it = it.stamped()
        number = self._store(it.event, own=it.direct)
        # A reference of our own keeps the event while others come and go. `release` below drops it,
        # and with it an event that nobody wants.
        state.events[number].refs += 1
        state.recent[now] = state.recent.get(now, 0) + 1
        self.delivery.count("events")
        if it.direct:
            self.delivery.figure(f"icrc72:publication:{view.id}:events")
        made = self._notify(it, number, key, view, begins=begins)
        if it.direct:
            self._relay(number, it.event, key)
        if made:
            self.delivery.figure(f"icrc72:publication:{view.id}:events:sent")
        self.delivery.release(number)
        return ok(tuple(made))

    def _notify(
        self, it: Arrival, number: int, key: s.ChainKey, view: s.PublicationView, *, begins: bool
    ) -> list[int]:
        """Queue the notifications of a live event, and return their ids.

        A subscriber gets one notification, for the first of its subscriptions that lets the event
        pass. The order is by priority, in mode priority, and then by subscription. A subscriber
        whose queue is full is suspended, and only informed of the first event that it misses.
        """
        ctx, event, late = it.ctx, it.event, it.headers.late
        found: list[Match] = []
        for who, subscriptions in self.state.subscribers.get(event.namespace, {}).items():
            queue = self.delivery.queue_of(ctx, who)
            if begins:
                queue.prev.pop(key, None)
            # Events before this one may be missing for a subscriber that is late. Its chain begins
            # with the first event for which it is not.
            if (
                late
                and key not in queue.prev
                and is_late(who, (Width(each.filter, each.skip) for each in subscriptions), late)
            ):
                continue
            for subscription, filter_, skip in subscriptions:
                if self._passes(event, filter_, skip):
                    found.append((-view.priorities.get(who, 0), subscription, who, filter_))
                    break
        if view.mode != "priority":
            found = [(0, *each[1:]) for each in found]
        found.sort(key=lambda each: each[:2])
        made: list[int] = []
        for place, match in enumerate(found, 1):
            who = match[2]
            queue = self.delivery.queue_of(ctx, who)
            if not queue.suspended and self.delivery.live_full(queue):
                queue.suspended = True
                self.delivery.count("suspended")
            if queue.suspended:
                self.delivery.miss(ctx, who, queue, key, event.eventId, match[1])
                continue
            note = self._note(it, number, match, (place, len(found)))
            note.chain = key
            note.prev = queue.prev.get(key)
            note.trusted = view.trusted
            queue.prev[key] = event.eventId
            self.delivery.add(ctx, who, note)
            self.delivery.count("notifications")
            self.delivery.figure(f"icrc72:publication:{view.id}:notifications")
            self.delivery.figure(f"icrc72:subscription:{match[1]}:notifications")
            made.append(note.id)
        return made

    def _passes(self, event: Event, filter_: str | None, skip: Skip | None) -> bool:
        """Return whether an event passes the skip and then the filter (IC-27).

        An event for which the filter takes too many steps does not pass.
        """
        try:
            let_in = skip is None or skip.passes(event.eventId)
            return let_in and (filter_ is None or evaluate(parse(filter_), event.data, event))
        except Overrun:
            self.delivery.count("filter_overruns")
            return False

    def _note(
        self, it: Arrival, number: int, match: Match, place: tuple[int, int] = (1, 1)
    ) -> s.Note:
        """Make a notification of a stored event."""
        identifier = self.delivery.role.next_notification()
        size, order, event = self.state.events[number].size, (number, match[0], match[1]), it.event
        made = s.Note(
            identifier,
            order,
            event.namespace,
            event.eventId,
            it.ctx.time,
            number,
            size,
            match[1],
            match[3],
        )
        made.place = place
        return made

    def _relay(self, number: int, event: Event, key: s.ChainKey) -> None:
        """Queue an event for each relay that lets it pass, once."""
        for (namespace, _), relay in self.state.relays.items():
            if namespace != event.namespace:
                continue
            if any(self._passes(event, filter_, skip) for filter_, skip in relay.entries.values()):
                lane = relay.lanes.setdefault(key, s.Lane())
                lane.queue.append(s.Forward(number, lane.prev))
                lane.prev = event.eventId
                self.state.events[number].refs += 1

    def _replayed(self, it: Arrival, replay: int, full: Full) -> Answer:
        """Accept a replayed event as exit or entry of its replay (RP-8).

        A canister may be both for different replays. For a replay that was removed recently, the
        error tells the sender that it was canceled.
        """
        delivered = self.state.delivered.get(replay)
        forwarded = self.state.forwarded.get(replay)
        if delivered is not None and self._may_deliver(it, delivered):
            return self._take(
                replace(it, direct=delivered.hands == it.ctx.me), replay, delivered, full
            )
        if forwarded is not None and forwarded.removed is None and it.fits():
            known = (it.event.namespace, it.ctx.caller, it.event.source)
            if known == (forwarded.namespace, forwarded.publisher, forwarded.publisher):
                return self._take(it, replay, forwarded, full)
        gone = self.state.removed.get(replay)
        if gone is not None and it.ctx.now - gone < self.settings.replay_stalled:
            return generic(keys.CANCELED)
        return UNAUTHORIZED

    def _may_deliver(self, it: Arrival, delivered: s.Delivered) -> bool:
        """Return whether the caller may bring events of a replay that is delivered here.

        This is the publisher if the replay is not relayed, and otherwise only the broadcaster that
        both the replay and the separate assignment of the relay name.
        """
        caller, event = it.ctx.caller, it.event
        if event.namespace != delivered.namespace or delivered.publisher not in {
            None,
            event.source,
        }:
            return False
        if delivered.hands == it.ctx.me:
            serves = delivered.publisher is not None or caller in self.state.publishers.get(
                event.namespace, ()
            )
            return serves and it.direct and it.fits()
        return caller == delivered.hands == delivered.source and replace(it, direct=False).fits()

    def _again(self, event: Event, chain: s.EventSequence | None) -> Answer | None:
        """Return `None` for the next event of a replay, otherwise the answer: ids must ascend."""
        if chain is None or event.eventId > chain.last:
            return None
        if chain.seen.get(event.eventId) == value_hash(event.data):
            return AGAIN
        return improper(f"the last id of the replay was {shown(chain.last)}")

    def _take(self, it: Arrival, replay: int, way: s.Delivered | s.Forwarded, full: Full) -> Answer:
        """Accept an event of a replay from the right caller, and deliver or forward it.

        Events that the filter holds back are counted as accepted, because the publisher has sent
        them.
        """
        refused = self._content(it) or self._again(it.event, way.chain)
        if refused is not None:
            return refused
        if replay in full or self._is_full(it.ctx, way) or not self._fits(it):
            full.add(replay)
            return BUSY
        way.chain = way.chain or s.EventSequence(it.event.eventId)
        self._remember(way.chain, it.event)
        if it.direct:
            self.state.accepted[replay] = self.state.accepted.get(replay, 0) + 1
            self.delivery.figure(f"icrc77:replay:{replay}:published")
        if not self._passes(it.event, way.filter, way.skip):
            self.delivery.figure(f"icrc77:replay:{replay}:filtered_out")
            return AGAIN
        it = it.stamped()
        number = self._store(it.event, own=it.direct)
        if isinstance(way, s.Forwarded):
            self.state.events[number].refs += 1
            way.lane.queue.append(s.Forward(number, None))
            return AGAIN
        note = self._note(it, number, (0, 0, way.subscriber, way.filter))
        note.replay = replay
        self.delivery.add(it.ctx, way.subscriber, note, window=replay if way.isolated else 0)
        self.delivery.figure(f"icrc77:replay:{replay}:notifications")
        return ok((note.id,))

    def _is_full(self, ctx: Context, way: s.Delivered | s.Forwarded) -> bool:
        """Return whether the lane or the subscriber's queue takes no further event of a replay."""
        if isinstance(way, s.Forwarded):
            return len(way.lane.queue) >= self.settings.batch_notifications
        return self.delivery.replay_full(ctx, self.delivery.queue_of(ctx, way.subscriber))


def _bytes_of(result: Answer) -> int:
    """Return an upper bound of the bytes that an answer's ids take in Candid.

    The ids ascend, so the last one is the longest.
    """
    return (
        len(result.value) * ((result.value[-1].bit_length() + 6) // 7)
        if result.tag == "Ok" and result.value
        else 0
    )


def _partition(event: Event, headers: Headers, view: s.PublicationView) -> int | None:
    """Return the partition of an event, or `None` if its header names another one."""
    index = event.eventId % OWN % view.partitions
    return index if headers.partition in {None, (index, view.partitions)} else None
