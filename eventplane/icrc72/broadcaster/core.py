"""The role of a broadcaster: alerts, assignments, relays, statistics (IC-38, IC-41 to IC-47)."""

from collections.abc import Callable, Mapping
from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import BOUNDED, GUARANTEED, ONE_WAY, Answer, Context
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.alerts import Fact, Facts, read_broker_alert
from pubsub_emulator.eventplane.icrc72.broadcaster.accept import Acceptance
from pubsub_emulator.eventplane.icrc72.broadcaster.delivery import Delivery, announced, finished
from pubsub_emulator.eventplane.icrc72.broadcaster.state import (
    BroadcasterState,
    Delivered,
    Forwarded,
    Lane,
    PublicationView,
    Relay,
)
from pubsub_emulator.eventplane.icrc72.errors import ConfigError
from pubsub_emulator.eventplane.icrc72.messages import (
    ByNat,
    ByText,
    Event,
    EventNotification,
    OrchestrationFilter,
    SubscriptionRegistration,
)
from pubsub_emulator.eventplane.icrc72.namespaces import is_system, system_namespace
from pubsub_emulator.eventplane.icrc72.role import Core, Got, Handler, Query, RoleCanister, reply
from pubsub_emulator.eventplane.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.eventplane.icrc72.skip import Skip, skip_of
from pubsub_emulator.eventplane.icrc72.values import (
    Pairs,
    as_items,
    as_nat,
    as_principal,
    as_text,
    first,
    nat,
)

_NO_STATS = Variant("None")

_DRAIN_LOOK = 10
_LATE_BYTES = 40  # of a principal in the header of an event that waits for a relay
"""Rounds between two looks at what a removed publisher has still queued."""


class _Pulling:
    """A system event whose additions are being looked up."""

    def __init__(self, number: int, notification: int, adds: Facts, removes: list[Fact]) -> None:
        self.id = number
        self.notification = notification
        self.adds = adds
        self.removes = removes
        self.left = 0
        self.subscriptions: dict[tuple[str, Principal], tuple[tuple[int, str | None, Skip | None], ...]] = {}
        self.publications: dict[str, PublicationView] = {}
        self.isolated: set[int] = set()
        self.again: list[Callable[[Context], None]] = []


class Broadcaster(Core):
    """The role of a broadcaster."""

    name = "broadcaster"

    def __init__(self, orchestrator: Principal, settings: Settings = DEFAULTS) -> None:
        self.state = BroadcasterState()
        self.settings = settings
        self.orchestrator = orchestrator
        self._pulling: _Pulling | None = None
        self._registering = False

    def attach(self, role: RoleCanister) -> None:
        """Confirm the canister's notifications, too."""
        super().attach(role)
        role.confirmer(self._confirmed, self.settings.batch_items)
        self._wire()

    def _wire(self) -> None:
        self.delivery = Delivery(self.state, self.settings, self.role)
        self.acceptance = Acceptance(self.state, self.settings, self.delivery, self.orchestrator)
        self.publish = self.acceptance.publish

    def updates(self) -> Mapping[str, Handler]:
        """Methods by name."""
        return {"icrc72_publish": self._publish, "icrc72_handle_notification": self._handle}

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {"icrc72_get_broadcaster_stats": self._stats}

    def begin(self, ctx: Context) -> None:
        """Register for alerts; nothing is done before the orchestrator says so."""
        self.state.registered = False
        self._register(ctx)

    def saved(self) -> Any:
        """Everything remembered."""
        return self.state

    def resume(self, state: Any) -> None:
        """Go on: chains, queues and ids are kept (IC-47a)."""
        self.state = state
        self._pulling = None
        self._registering = False
        for lane in self._lanes():
            lane.busy = False
        self._wire()

    def _register(self, ctx: Context) -> None:
        self._registering = True
        item = SubscriptionRegistration(system_namespace("broadcaster", ctx.me), ())

        def got(_ctx: Context, values: tuple[Any, ...] | None, _answer: Answer) -> None:
            self._registering = False
            results: tuple[Any, ...] = () if values is None else values[0]
            self.state.registered = bool(results) and results[0] is not None and results[0].tag == "Ok"

        method = "icrc72_register_subscription"
        self.role.ask(ctx, self.orchestrator, method, (item,), then=got, kind=GUARANTEED)

    # Waking

    def wake(self, ctx: Context) -> None:
        """Send what is due."""
        if not self.state.registered and not self._registering:
            self._register(ctx)
        if self._pulling is not None:
            again, self._pulling.again = self._pulling.again, []
            for ask in again:
                ask(ctx)
        self.delivery.wake(ctx)
        self._pump(ctx)
        self._forget(ctx)

    def due(self, now: int) -> int | None:
        """The next round in which something is to be sent."""
        found = [] if self.state.registered else [now + 5]
        if self._pulling is not None and self._pulling.again:
            found.append(now + 1)
        if any(who in self.state.undone for who in self.state.drains):
            found.append(now + _DRAIN_LOOK)
        due = self.delivery.due(now)
        if due is not None:
            found.append(due)
        found += [max(lane.next, now + 1) for lane in self._lanes() if lane.queue and not lane.busy]
        return min(found, default=None)

    def _lanes(self) -> list[Lane]:
        lanes = [lane for relay in self.state.relays.values() for lane in relay.lanes.values()]
        return lanes + [each.lane for each in self.state.forwarded.values()]

    def _publish(self, ctx: Context, events: tuple[Event, ...]) -> None:
        reply(ctx, "icrc72_publish", self.publish(ctx, events))
        self.delivery.wake(ctx)

    def _confirmed(self, ctx: Context, number: int) -> str:
        return self.delivery.confirm(ctx, ctx.caller, number)

    # Relaying (IC-43d)

    def _pump(self, ctx: Context) -> None:
        for (namespace, target), relay in self.state.relays.items():
            for key, lane in relay.lanes.items():
                where = (namespace, target)
                self._pump_lane(
                    ctx,
                    target,
                    lane,
                    lambda w=where, k=key, x=lane: self._is_lane(w, k, x),  # type: ignore[misc]
                )
        for number, forwarded in self.state.forwarded.items():
            lane = forwarded.lane
            self._pump_lane(
                ctx,
                forwarded.target,
                lane,
                lambda n=number, x=lane: n in self.state.forwarded and self.state.forwarded[n].lane is x,  # type: ignore[misc]
            )

    def _is_lane(self, where: tuple[str, Principal], key: Any, lane: Lane) -> bool:
        relay = self.state.relays.get(where)
        return relay is not None and relay.lanes.get(key) is lane

    def _pump_lane(self, ctx: Context, target: Principal, lane: Lane, alive: Callable[[], bool]) -> None:
        if lane.busy or not lane.queue or ctx.now < lane.next:
            return
        batch: list[Event] = []
        size = 0
        for forward in lane.queue:
            stored = self.state.events[forward.stored]
            size += stored.size + 200 + _LATE_BYTES * len(forward.late)
            if len(batch) >= self.settings.batch_notifications or (batch and size > self.settings.batch_bytes):
                break
            forward.sent = forward.sent or ctx.time
            batch.append(self.delivery.relayed(forward, stored.event))
        lane.busy = True

        def answered(ctx: Context, values: tuple[Any, ...] | None, _answer: Answer) -> None:
            if not alive():
                return
            lane.busy = False
            results = () if values is None else values[0]
            for result in results[: len(batch)]:
                if result is None or result.tag != "Ok":
                    break
                self.delivery.release(lane.queue.popleft().stored)
                lane.tries = 0
            else:
                if results:
                    lane.next = ctx.now
                    return
            lane.next = ctx.now + min(self.settings.repeat_first << min(lane.tries, 20), self.settings.repeat_most)
            lane.tries += 1

        self.role.ask(ctx, target, "icrc72_publish", tuple(batch), then=answered, kind=BOUNDED)

    # System events (IC-38c)

    def _handle(self, ctx: Context, notifications: tuple[EventNotification, ...]) -> None:
        mine = system_namespace("broadcaster", ctx.me)
        taken = [each for each in notifications if each.namespace == mine and ctx.caller == self.orchestrator]
        for each in taken:
            if each.eventId <= self.state.applied:
                self._confirm(ctx, each.notificationId)
            elif self._pulling is None or self._pulling.id < each.eventId:
                self._pull(ctx, each)
        if taken:
            reply(ctx, "icrc72_handle_notification")

    def _confirm(self, ctx: Context, notification: int) -> None:
        self.role.ask(ctx, self.orchestrator, "icrc72_confirm_notifications", (notification,), kind=ONE_WAY)

    def _pull(self, ctx: Context, event: EventNotification) -> None:
        adds, removes = read_broker_alert(event.data)
        pulling = self._pulling = _Pulling(event.eventId, event.notificationId, adds, removes)
        names: dict[str, None] = {}
        for fact, _ in adds:
            if fact[0] in {"pub", "relayer"} or (fact[0] == "sub" and not is_system(fact[1])):
                names[fact[1]] = None
            if fact[0] == "sub" and not is_system(fact[1]):
                self._ask_subscriptions(ctx, pulling, fact[1], fact[2])
            elif fact[0] == "rp":
                self._ask_replay(ctx, pulling, fact[1])
        for name in names:
            self._ask_publication(ctx, pulling, name)
        self._pulled(ctx, pulling)

    def _ask(self, ctx: Context, pulling: _Pulling, method: str, page: Any, then: Callable[[Any], None]) -> None:
        """A bounded call that is repeated until answered."""
        pulling.left += 1

        def got(ctx: Context, values: tuple[Any, ...] | None, answer: Answer) -> None:
            if self._pulling is not pulling:
                return
            del answer
            if values is None:
                pulling.again.append(lambda ctx: self.role.ask(ctx, self.orchestrator, method, page, then=got))
                return
            then(values[0])
            pulling.left -= 1
            self._pulled(ctx, pulling)

        repeated: Got = got
        self.role.ask(ctx, self.orchestrator, method, page, then=repeated)

    def _ask_subscriptions(self, ctx: Context, pulling: _Pulling, namespace: str, who: Principal) -> None:
        slices = (Variant("BySubscriber", who), Variant("ByNamespace", namespace))
        page = ByNat(None, 1000, OrchestrationFilter(_NO_STATS, slices))

        def got(infos: Any) -> None:
            found = [_subscription(each.subscriptionId, each.config) for each in infos]
            pulling.subscriptions[namespace, who] = tuple(each for each in found if each is not None)

        self._ask(ctx, pulling, "icrc72_get_subscriptions", page, got)

    def _ask_publication(self, ctx: Context, pulling: _Pulling, namespace: str) -> None:
        page = ByText(None, 1, OrchestrationFilter(_NO_STATS, (Variant("ByNamespace", namespace),)))

        def got(infos: Any) -> None:
            for each in infos:
                if each.namespace == namespace:
                    pulling.publications[namespace] = _publication(each.publicationId, each.config)

        self._ask(ctx, pulling, "icrc72_get_publications", page, got)

    def _ask_replay(self, ctx: Context, pulling: _Pulling, number: int) -> None:
        def got(infos: Any) -> None:
            for each in infos:
                if each is not None and each.replayId == number:
                    value = first(each.config, keys.REPLAY_ISOLATED)
                    if value is not None and value.value is True:
                        pulling.isolated.add(number)

        page = ByNat(number - 1, 1, OrchestrationFilter(_NO_STATS, ()))
        self._ask(ctx, pulling, "icrc77_get_replays", page, got)

    def _pulled(self, ctx: Context, pulling: _Pulling) -> None:
        if pulling.left or self._pulling is not pulling:
            return
        self._pulling = None
        self._apply(ctx, pulling)
        self.state.applied = pulling.id
        self._confirm(ctx, pulling.notification)

    # Applying an alert: as a whole, removals before additions

    def _apply(self, ctx: Context, pulling: _Pulling) -> None:
        self.state.publications.update(pulling.publications)
        added = {fact for fact, _ in pulling.adds}
        kept_relays = {fact[1:3] for fact in added if fact[0] == "relay"}
        for fact in pulling.removes:
            if fact in self.state.facts or fact[0] in {"rp", "rr", "rf"}:
                self._remove(ctx, fact, kept_relays)
            self.state.facts.pop(fact, None)
        for fact, value in pulling.adds:
            self._add(ctx, fact, value, pulling)
            self.state.facts[fact] = value

    def _add(self, ctx: Context, fact: Fact, value: Any, pulling: _Pulling) -> None:
        state = self.state
        kind = fact[0]
        if kind == "pub":
            state.publishers.setdefault(fact[1], {})[fact[2]] = None
        elif kind == "sub":
            known = state.subscribers.setdefault(fact[1], {})
            if fact[2] not in known:
                state.served[fact[2]] = state.served.get(fact[2], 0) + 1
            known[fact[2]] = pulling.subscriptions.get((fact[1], fact[2]), ())
            if fact in state.facts:
                self._refresh(fact[2])
        elif kind == "relay":
            self._widen(state.relays.setdefault((fact[1], fact[2]), Relay()), fact[3], value)
        elif kind == "relayer":
            state.relayers[fact[1], fact[2]] = None
        elif kind == "rp":
            self._add_replay(ctx, fact[1], _delivered(value, isolated=fact[1] in pulling.isolated))
        elif kind == "rr":
            state.forwarded.setdefault(fact[1], Forwarded(*(value[0], value[1], value[2], value[3], value[4])))
        elif kind == "rf" and fact[1] in state.delivered:
            state.delivered[fact[1]].source = value[1]

    @staticmethod
    def _widen(relay: Relay, who: Principal, value: Any) -> None:
        if who not in relay.entries:
            for lane in relay.lanes.values():
                for forward in lane.queue:
                    forward.late = (*forward.late, who)
        relay.entries[who] = value

    def _refresh(self, who: Principal) -> None:
        """Adding what is there ends a suspension."""
        queue = self.state.queues.get(who)
        if queue is not None:
            queue.suspended = False
            queue.missed.clear()

    def _add_replay(self, ctx: Context, number: int, delivered: Delivered) -> None:
        if number in self.state.delivered:
            return
        self.state.delivered[number] = delivered
        told = self.delivery.tell(ctx, delivered.subscriber, announced(number, ctx.me))
        if delivered.isolated:
            queue = self.state.queues[delivered.subscriber]
            window = queue.own.setdefault(number, type(queue.main)())
            window.waits = told

    def _remove(self, ctx: Context, fact: Fact, kept_relays: set[tuple[Any, ...]]) -> None:
        state = self.state
        kind = fact[0]
        if kind == "pub":
            state.publishers.get(fact[1], {}).pop(fact[2], None)
            state.drains[fact[2]] = ctx.now + _DRAIN_LOOK + self.settings.drain_kept
            self._end_chains(lambda key, caller: key[0] == fact[1] and caller == fact[2])
        elif kind == "sub":
            self._remove_subscriber(fact[1], fact[2])
        elif kind == "relay":
            relay = state.relays.get((fact[1], fact[2]))
            if relay is not None:
                relay.entries.pop(fact[3], None)
                if not relay.entries and fact[1:3] not in kept_relays:
                    for lane in relay.lanes.values():
                        self._drop_lane(lane)
                    del state.relays[fact[1], fact[2]]
        elif kind == "relayer":
            state.relayers.pop((fact[1], fact[2]), None)
            self._end_chains(lambda key, caller: key[0] == fact[1] and caller == fact[2])
        elif kind == "rp":
            self._remove_replay(ctx, fact[1])
        elif kind == "rr" and fact[1] in state.forwarded:
            state.forwarded[fact[1]].removed = ctx.now
            state.removed[fact[1]] = ctx.now

    def _end_chains(self, which: Callable[[Any, Principal], bool]) -> None:
        for key, caller in [each for each in self.state.chains if which(*each)]:
            del self.state.chains[key, caller]
            if self.state.callers.get(key) == caller:
                self.state.callers[key] = Principal()

    def _remove_subscriber(self, namespace: str, who: Principal) -> None:
        state = self.state
        served = state.subscribers.get(namespace, {})
        if who in served:
            del served[who]
            state.served[who] -= 1
        if not served:
            state.subscribers.pop(namespace, None)
        left = state.served.get(who, 0)
        if not left:
            state.served.pop(who, None)
        queue = state.queues.get(who)
        if queue is None:
            return
        if is_system(namespace):
            state.system.pop(namespace, None)
            if not left:
                self.delivery.drop_where(who, queue, None)
                del state.queues[who]
            return
        self.delivery.drop_where(who, queue, namespace)
        for key in [each for each in queue.prev if each[0] == namespace]:
            del queue.prev[key]
        for key in [each for each in queue.missed if each[0] == namespace]:
            del queue.missed[key]

    def _drop_lane(self, lane: Lane) -> None:
        while lane.queue:
            self.delivery.release(lane.queue.popleft().stored)

    def _remove_replay(self, ctx: Context, number: int) -> None:
        delivered = self.state.delivered.pop(number, None)
        self.state.removed[number] = ctx.now
        if delivered is None or delivered.subscriber not in self.state.queues:
            return
        queue = self.state.queues[delivered.subscriber]
        lost = queue.lost.pop(number, 0) is None
        if not lost:
            self.delivery.tell(ctx, delivered.subscriber, finished(number), window=number if number in queue.own else 0)

    def _forget(self, ctx: Context) -> None:
        """Replays that ended long ago, and the rounds before the last hundred."""
        state = self.state
        kept = self.settings.replay_stalled
        for number, each in list(state.forwarded.items()):
            if each.removed is not None and ctx.now - each.removed > kept:
                self._drop_lane(each.lane)
                del state.forwarded[number]
        for number, at in list(state.removed.items()):
            if ctx.now - at > kept:
                del state.removed[number]
                state.accepted.pop(number, None)
        for who, until in list(state.drains.items()):
            if who in state.undone:
                state.drains[who] = ctx.now + _DRAIN_LOOK + self.settings.drain_kept
            elif ctx.now >= until:
                del state.drains[who]
        for at in [each for each in state.recent if each <= ctx.now - 100]:
            del state.recent[at]

    # Statistics

    def _stats(self, _caller: Principal, time: int) -> Pairs:
        state = self.state
        prefix = "icrc72:broadcaster:stats:"
        now = time // 10**9
        numbers = dict.fromkeys(keys.STATISTICS[prefix], 0) | state.counts
        numbers["events_last_100_rounds"] = sum(count for at, count in state.recent.items() if at > now - 100)
        numbers["queued"] = sum(each.live + each.replayed + each.system for each in state.queues.values())
        numbers["bytes"] = state.bytes_own + state.bytes_relayed
        numbers["suspended"] = sum(each.suspended for each in state.queues.values())
        pairs = [(prefix + name, nat(numbers[name])) for name in keys.STATISTICS[prefix]]
        pairs += [(name, nat(number)) for name, number in state.figures.items()]
        for number in {**state.delivered, **state.forwarded, **state.removed}:
            forwarded = state.forwarded.get(number)
            waiting = 0 if forwarded is None else len(forwarded.lane.queue)
            pairs.append((f"icrc77:replay:{number}:queued", nat(waiting)))
            pairs.append((f"icrc77:replay:{number}:accepted", nat(state.accepted.get(number, 0))))
        for who, until in state.drains.items():
            if who in state.undone or now < until:
                pairs.append((f"icrc72:drain:{who.text}:queued", nat(state.undone.get(who, 0))))
        return tuple(pairs)


def _delivered(value: Any, *, isolated: bool) -> Delivered:
    namespace, hands, subscriber, filter_, skip, publisher = value
    return Delivered(namespace, hands, subscriber, filter_, skip, publisher, isolated)


def _subscription(number: int, config: Pairs) -> tuple[int, str | None, Skip | None] | None:
    stopped = first(config, keys.STOPPED)
    if stopped is not None and stopped.value is True:
        return None
    written = first(config, keys.SKIP)
    try:
        skip = None if written is None else skip_of(written)
    except ConfigError:
        skip = None
    return number, as_text(first(config, keys.FILTER)), skip


def _publication(number: int, config: Pairs) -> PublicationView:
    priorities: dict[Principal, int] = {}
    for each in as_items(first(config, keys.PRIORITIES)) or ():
        pair = as_items(each) or ()
        who = as_principal(pair[0]) if len(pair) == 2 else None
        if who is not None:
            priorities[who] = as_nat(pair[1]) or 0
    trusted = first(config, keys.TRUSTED)
    return PublicationView(
        number,
        as_principal(first(config, keys.CREATOR)) or Principal(),
        as_text(first(config, keys.MODE)) or "fifo",
        as_nat(first(config, keys.PARTITIONS)) or 1,
        priorities,
        trusted is not None and trusted.value is True,
    )


__all__ = ["Broadcaster"]
