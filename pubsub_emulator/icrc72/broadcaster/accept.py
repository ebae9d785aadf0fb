"""Acceptance by a broadcaster: who may bring an event, chains, room (IC-41, IC-42, RP-8)."""

from typing import Final

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.broadcaster.delivery import Delivery
from pubsub_emulator.icrc72.broadcaster.state import (
    BroadcasterState,
    ChainKey,
    Delivered,
    EventSequence,
    Forward,
    Forwarded,
    Lane,
    Note,
    PublicationView,
    Stored,
)
from pubsub_emulator.icrc72.filters import Overrun, evaluate, parse
from pubsub_emulator.icrc72.headers import Headers, read
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.words import shown
from pubsub_emulator.icrc72.identifiers import OWN
from pubsub_emulator.icrc72.late import is_late
from pubsub_emulator.icrc72.messages import Err, Event, Ok, Result
from pubsub_emulator.icrc72.namespaces import is_system
from pubsub_emulator.icrc72.results import err, generic, ok, refused, too_many
from pubsub_emulator.icrc72.services import type_codec
from pubsub_emulator.icrc72.settings import Settings
from pubsub_emulator.icrc72.skip import Skip
from pubsub_emulator.icrc72.value_hash import value_hash
from pubsub_emulator.icrc72.values import blob, nat

Answer = Result[tuple[int, ...]]
BUSY: Final = err("Busy")
UNAUTHORIZED: Final = err("Unauthorized")
AGAIN: Final[Ok[tuple[int, ...]]] = ok(())
"""For an event that was accepted before."""

Full = set[tuple[ChainKey, Principal] | int]
"""Chains and replays of which nothing more is accepted in this call."""

Match = tuple[int, int, Principal, str | None]


def improper(detail: str) -> Err:
    """ImproperId with its reason."""
    return refused("ImproperId", detail)


class Acceptance:
    """Judges events and hands them on."""

    def __init__(
        self, state: BroadcasterState, settings: Settings, delivery: Delivery, orchestrator: Principal
    ) -> None:
        self.state = state
        self.settings = settings
        self.delivery = delivery
        self.orchestrator = orchestrator

    def publish(self, ctx: Context, events: tuple[Event, ...]) -> tuple[Answer, ...]:
        """The answers to a batch of events; Busy from where the ids of notifications would fill the response."""
        full: Full = set()
        results: list[Answer] = []
        told = 0
        for event in events[: self.settings.batch_items]:
            if told > self.settings.batch_bytes // 2:
                self.delivery.count("busy")
                results.append(BUSY)
                continue
            results.append(self._one(ctx, event, full))
            told += _bytes_of(results[-1])
        if len(events) > len(results):
            results.append(too_many(self.settings.batch_items))
        return tuple(results)

    def _one(self, ctx: Context, event: Event, full: Full) -> Answer:
        headers = read(event.headers)
        if is_system(event.namespace):
            result = self._system(ctx, event)
        elif headers.replay is not None:
            result = self._replayed(ctx, event, headers, headers.replay, full)
        else:
            result = self._live(ctx, event, headers, full)
        if result.tag == "Err":
            self.delivery.count("busy" if result == BUSY else "refused")
        return result

    # System events (IC-38b)

    def _system(self, ctx: Context, event: Event) -> Answer:
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

    # Live events

    def _live(self, ctx: Context, event: Event, headers: Headers, full: Full) -> Answer:
        caller, namespace = ctx.caller, event.namespace
        direct = caller in self.state.publishers.get(namespace, ()) and caller == event.source
        relayed = caller != event.source and (namespace, caller) in self.state.relayers
        if not (direct or relayed) or not _headers_fit(headers, caller, direct=direct):
            return UNAUTHORIZED
        refused = self._content(event, headers, direct=direct)
        if refused is not None:
            return refused
        view = self.state.publications.get(namespace)
        if view is None:
            return UNAUTHORIZED
        partition = _partition(event, headers, view)
        if partition is None:
            return improper("the event belongs to another partition than its header says")
        if direct and (other := self._other_source(event, partition)) is not None:
            return improper(f"{other.text} has published an event with this id: ids are unique in a namespace")
        key: ChainKey = (namespace, event.source, partition)
        if (key, caller) in full:
            return BUSY
        chain = self.state.chains.get((key, caller))
        prev = event.prevEventId if direct else headers.relay_prev
        restarts = prev is None
        told = self._chained(event, chain, prev, view.mode, restarts=restarts)
        if told is not None:
            return told
        if not self._fits(ctx, event, own=direct):
            full.add((key, caller))
            return BUSY
        begins = chain is None or (restarts and not direct) or self.state.callers.get(key, caller) != caller
        if chain is None:
            chain = self.state.chains[key, caller] = EventSequence(event.eventId)
        self._remember(chain, event)
        self.state.callers[key] = caller
        return self._hand_on(ctx, event, headers, key, view, direct=direct, begins=begins)

    def _content(self, event: Event, headers: Headers, *, direct: bool) -> Err | None:
        if direct and type_codec("broadcaster", "Event").size(event) > self.settings.event_bytes:
            return generic(keys.TOO_LARGE)
        if headers.hash is not None and headers.hash != value_hash(event.data):
            return generic(keys.HASH_MISMATCH)
        return None

    def _other_source(self, event: Event, partition: int) -> Principal | None:
        """Another source that published an event of this id here, as far back as repetition is recognised."""
        for who in self.state.publishers[event.namespace]:
            chain = self.state.chains.get(((event.namespace, who, partition), who))
            if who != event.source and chain is not None and event.eventId in chain.seen:
                return who
        return None

    @staticmethod
    def _chained(
        event: Event, chain: EventSequence | None, prev: int | None, mode: str, *, restarts: bool
    ) -> Answer | None:
        """IC-42: `None` for the next event of a chain, otherwise the answer."""
        seen = None if chain is None else chain.seen.get(event.eventId)
        if mode == "unordered":
            if seen is not None:
                same = seen == value_hash(event.data)
                return AGAIN if same else improper("another event had this id")
            return None
        if chain is None:
            return None
        if event.eventId <= chain.last:
            same = seen is not None and seen == value_hash(event.data)
            return AGAIN if same else improper(f"the last id was {shown(chain.last)}")
        if not restarts and prev != chain.last:
            return improper(f"the former event was {shown(chain.last)}")
        return None

    def _remember(self, chain: EventSequence, event: Event) -> None:
        chain.last = max(chain.last, event.eventId)
        chain.seen[event.eventId] = value_hash(event.data)
        while len(chain.seen) > self.settings.repeated:
            del chain.seen[next(iter(chain.seen))]

    def _fits(self, ctx: Context, event: Event, *, own: bool) -> bool:
        size = type_codec("broadcaster", "Event").size(event)
        held = self.state.bytes_own if own else self.state.bytes_relayed
        if held + size <= self.settings.store_bytes:
            return True
        self.delivery.relieve(ctx)
        held = self.state.bytes_own if own else self.state.bytes_relayed
        return held + size <= self.settings.store_bytes

    def _store(self, event: Event, *, own: bool) -> int:
        state = self.state
        state.last_event += 1
        size = type_codec("broadcaster", "Event").size(event)
        state.events[state.last_event] = Stored(event, size, own)
        if own:
            state.bytes_own += size
            state.undone[event.source] = state.undone.get(event.source, 0) + 1
        else:
            state.bytes_relayed += size
        return state.last_event

    def _hand_on(
        self,
        ctx: Context,
        event: Event,
        headers: Headers,
        key: ChainKey,
        view: PublicationView,
        *,
        direct: bool,
        begins: bool,
    ) -> Answer:
        state = self.state
        taken = _stamped(event, ctx, direct=direct)
        number = self._store(taken, own=direct)
        state.events[number].refs += 1
        state.recent[ctx.now] = state.recent.get(ctx.now, 0) + 1
        self.delivery.count("events")
        if direct:
            self.delivery.figure(f"icrc72:publication:{view.id}:events")
        made = self._notify(ctx, number, taken, headers.late, key, view, begins=begins)
        if direct:
            self._relay(number, event, key)
        if made:
            self.delivery.figure(f"icrc72:publication:{view.id}:events:sent")
        self.delivery.release(number)
        return ok(tuple(made))

    def _notify(  # noqa: PLR0917 — as above
        self,
        ctx: Context,
        number: int,
        event: Event,
        entries: frozenset[Principal],
        key: ChainKey,
        view: PublicationView,
        *,
        begins: bool,
    ) -> list[int]:
        found: list[Match] = []
        for who, subscriptions in self.state.subscribers.get(event.namespace, {}).items():
            queue = self.delivery.queue_of(ctx, who)
            if begins:
                queue.prev.pop(key, None)
            if entries and key not in queue.prev and is_late(who, (each[1:] for each in subscriptions), entries):
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
            note = self._note(ctx, number, event, match, place, len(found))
            note.chain, note.prev, note.trusted = key, queue.prev.get(key), view.trusted
            queue.prev[key] = event.eventId
            self.delivery.add(ctx, who, note)
            self.delivery.count("notifications")
            self.delivery.figure(f"icrc72:publication:{view.id}:notifications")
            self.delivery.figure(f"icrc72:subscription:{match[1]}:notifications")
            made.append(note.id)
        return made

    def _passes(self, event: Event, filter_: str | None, skip: Skip | None) -> bool:
        """Skip comes first, then the filter (IC-27)."""
        if skip is not None and not skip.passes(event.eventId):
            return False
        if filter_ is None:
            return True
        try:
            return evaluate(parse(filter_), event.data)
        except Overrun:
            self.delivery.count("filter_overruns")
            return False

    def _note(  # noqa: PLR0917 — what a notification is made of
        self, ctx: Context, number: int, event: Event, match: Match, place: int, of: int
    ) -> Note:
        identifier = self.delivery.role.next_notification()
        size = self.state.events[number].size
        order = (number, match[0], match[1])
        made = Note(identifier, order, event.namespace, event.eventId, ctx.time, number, size, match[1], match[3])
        made.place = (place, of)
        return made

    def _relay(self, number: int, event: Event, key: ChainKey) -> None:
        for (namespace, _), relay in self.state.relays.items():
            if namespace != event.namespace:
                continue
            if any(self._passes(event, filter_, skip) for filter_, skip in relay.entries.values()):
                lane = relay.lanes.setdefault(key, Lane())
                lane.queue.append(Forward(number, lane.prev))
                lane.prev = event.eventId
                self.state.events[number].refs += 1

    # Replayed events (RP-8)

    def _replayed(self, ctx: Context, event: Event, headers: Headers, replay: int, full: Full) -> Answer:
        delivered = self.state.delivered.get(replay)
        forwarded = self.state.forwarded.get(replay)
        caller = ctx.caller
        if delivered is not None and self._may_deliver(ctx, event, headers, delivered):
            return self._deliver(ctx, event, headers, replay, delivered, full)
        if (
            forwarded is not None
            and forwarded.removed is None
            and caller == event.source == forwarded.publisher
            and event.namespace == forwarded.namespace
            and _headers_fit(headers, caller, direct=True)
        ):
            return self._forward(ctx, event, headers, replay, forwarded, full)
        gone = self.state.removed.get(replay)
        if gone is not None and ctx.now - gone < self.settings.replay_stalled:
            return generic(keys.CANCELED)
        return UNAUTHORIZED

    def _may_deliver(self, ctx: Context, event: Event, headers: Headers, delivered: Delivered) -> bool:
        caller = ctx.caller
        if event.namespace != delivered.namespace or delivered.publisher not in {None, event.source}:
            return False
        if delivered.hands == ctx.me:
            serves = delivered.publisher is not None or caller in self.state.publishers.get(event.namespace, ())
            return serves and caller == event.source and _headers_fit(headers, caller, direct=True)
        return caller == delivered.hands == delivered.source and _headers_fit(headers, caller, direct=False)

    def _again(self, event: Event, chain: EventSequence | None) -> Answer | None:
        if chain is None or event.eventId > chain.last:
            return None
        if chain.seen.get(event.eventId) == value_hash(event.data):
            return AGAIN
        return improper(f"the last id of the replay was {shown(chain.last)}")

    def _deliver(  # noqa: PLR0917 — as above
        self, ctx: Context, event: Event, headers: Headers, replay: int, delivered: Delivered, full: Full
    ) -> Answer:
        direct = delivered.hands == ctx.me
        refused = self._content(event, headers, direct=direct) or self._again(event, delivered.chain)
        if refused is not None:
            return refused
        who = delivered.subscriber
        queue = self.delivery.queue_of(ctx, who)
        if replay in full or self.delivery.replay_full(ctx, queue) or not self._fits(ctx, event, own=direct):
            full.add(replay)
            return BUSY
        if delivered.chain is None:
            delivered.chain = EventSequence(event.eventId)
        self._remember(delivered.chain, event)
        if direct:
            self.state.accepted[replay] = self.state.accepted.get(replay, 0) + 1
            self.delivery.figure(f"icrc77:replay:{replay}:published")
        if not self._passes(event, delivered.filter, delivered.skip):
            self.delivery.figure(f"icrc77:replay:{replay}:filtered_out")
            return AGAIN
        taken = _stamped(event, ctx, direct=direct)
        number = self._store(taken, own=direct)
        note = self._note(ctx, number, taken, (0, 0, who, delivered.filter), 1, 1)
        note.replay = replay
        self.delivery.add(ctx, who, note, window=replay if delivered.isolated else 0)
        self.delivery.figure(f"icrc77:replay:{replay}:notifications")
        return ok((note.id,))

    def _forward(  # noqa: PLR0917 — as above
        self, ctx: Context, event: Event, headers: Headers, replay: int, forwarded: Forwarded, full: Full
    ) -> Answer:
        refused = self._content(event, headers, direct=True) or self._again(event, forwarded.chain)
        if refused is not None:
            return refused
        waiting = len(forwarded.lane.queue)
        if replay in full or waiting >= self.settings.batch_notifications or not self._fits(ctx, event, own=True):
            full.add(replay)
            return BUSY
        if forwarded.chain is None:
            forwarded.chain = EventSequence(event.eventId)
        self._remember(forwarded.chain, event)
        self.state.accepted[replay] = self.state.accepted.get(replay, 0) + 1
        self.delivery.figure(f"icrc77:replay:{replay}:published")
        if not self._passes(event, forwarded.filter, forwarded.skip):
            self.delivery.figure(f"icrc77:replay:{replay}:filtered_out")
            return AGAIN
        number = self._store(_stamped(event, ctx, direct=True), own=True)
        self.state.events[number].refs += 1
        forwarded.lane.queue.append(Forward(number, None))
        return AGAIN


def _bytes_of(result: Answer) -> int:
    """Bytes of the ids of notifications in an answer, which ascend."""
    return len(result.value) * ((result.value[-1].bit_length() + 6) // 7) if result.tag == "Ok" and result.value else 0


def _headers_fit(headers: Headers, caller: Principal, *, direct: bool) -> bool:
    if direct:
        return not headers.planted
    return not headers.relayed and headers.broadcaster in {None, caller}


def _partition(event: Event, headers: Headers, view: PublicationView) -> int | None:
    """The partition of an event; `None` when its header says another one."""
    index = event.eventId % OWN % view.partitions
    return index if headers.partition in {None, (index, view.partitions)} else None


def _stamped(event: Event, ctx: Context, *, direct: bool) -> Event:
    names = (keys.RECEIVED, keys.BROADCASTER) if direct else (keys.RELAY_RECEIVED, keys.RELAY)
    mine = ((names[0], nat(ctx.time)), (names[1], blob(ctx.me)))
    return event._replace(headers=(*(event.headers or ()), *mine))
