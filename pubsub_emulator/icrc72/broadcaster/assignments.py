"""Assignments by the orchestrator to a broadcaster, applied to its state (IC-38, IC-42)."""

from dataclasses import dataclass, field
from typing import Final, cast

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.alerts import one_entry
from pubsub_emulator.icrc72.broadcaster import state as s
from pubsub_emulator.icrc72.broadcaster.delivery import Delivery
from pubsub_emulator.icrc72.broadcaster.relaying import Relaying
from pubsub_emulator.icrc72.facts import Delivering, Fact, FactValue, Forwarding, Handing, Width
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.namespaces import is_system
from pubsub_emulator.icrc72.settings import Settings

DRAIN_LOOK: Final = 10  # rounds between two looks at what a removed publisher has still queued


@dataclass(slots=True)
class Pulled:
    """A system event with what was looked up for its additions."""

    id: int
    notification: int
    adds: list[tuple[Fact, FactValue]]
    removes: list[Fact]
    subscriptions: dict[tuple[str, Principal], s.Served] = field(default_factory=dict)
    publications: dict[str, s.PublicationView] = field(default_factory=dict)
    isolated: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Assignments:
    """The publishers, subscribers, relays and replays of a broadcaster."""

    state: s.BroadcasterState
    settings: Settings
    delivery: Delivery
    relaying: Relaying

    def apply(self, ctx: Context, pulled: Pulled) -> None:
        """Apply a system event as a whole, removals before additions."""
        self.state.publications.update(pulled.publications)
        added = {fact for fact, _ in pulled.adds}
        kept_relays = {(fact[1], fact[2]) for fact in added if fact[0] == "relay"}
        for fact in pulled.removes:
            if fact in self.state.facts or fact[0] in {"rp", "rr", "rf"}:
                self._remove(ctx, fact, kept_relays)
            self.state.facts.pop(fact, None)
        for fact, value in pulled.adds:
            self._add(ctx, fact, value, pulled)
            self.state.facts[fact] = value

    def _add(self, ctx: Context, fact: Fact, value: FactValue, pulled: Pulled) -> None:
        state = self.state
        match fact:
            case ("pub", namespace, who):
                state.publishers.setdefault(namespace, {})[who] = None
            case ("sub", namespace, who):
                known = state.subscribers.setdefault(namespace, {})
                if who not in known:
                    state.served[who] = state.served.get(who, 0) + 1
                known[who] = pulled.subscriptions.get((namespace, who), ())
                if fact in state.facts and who in state.queues:  # adding what is there ends a suspension
                    state.queues[who].suspended = False
                    state.queues[who].missed.clear()
            case ("relay", namespace, target, who):
                self._widen(state.relays.setdefault((namespace, target), s.Relay()), who, cast("Width", value))
            case ("relayer", namespace, who):
                state.relayers[namespace, who] = None
            case ("rp", number):
                isolated = number in pulled.isolated
                self._add_replay(ctx, number, s.Delivered(*cast("Delivering", value), isolated=isolated))
            case ("rr", number):
                made = s.Forwarded(*cast("Forwarding", value))
                known_way = state.forwarded.setdefault(number, made)
                if known_way.publisher != made.publisher:
                    known_way.publisher, known_way.chain, known_way.removed = made.publisher, None, None
            case ("rf", number):
                if number in state.delivered:
                    state.delivered[number].source = cast("Handing", value)[1]

    @staticmethod
    def _widen(relay: s.Relay, who: Principal, value: Width) -> None:
        if who not in relay.entries:
            for lane in relay.lanes.values():
                for forward in lane.queue:
                    forward.late = (*forward.late, who)
        relay.entries[who] = value

    def _add_replay(self, ctx: Context, number: int, delivered: s.Delivered) -> None:
        known = self.state.delivered.get(number)
        if known is not None:  # the next publisher of the range goes on
            if (known.publisher, known.hands) != (delivered.publisher, delivered.hands):
                known.publisher, known.hands = delivered.publisher, delivered.hands
                known.chain = known.source = None
            return
        self.state.delivered[number] = delivered
        hands = self.state.facts.get(("rf", number))  # an orchestrator may name who hands it over before the replay
        if hands is not None:
            delivered.source = cast("Handing", hands)[1]
        alerted = self.delivery.tell(ctx, delivered.subscriber, one_entry(keys.SUBSCRIBER_REPLAY_ADD, number, ctx.me))
        if delivered.isolated:
            queue = self.state.queues[delivered.subscriber]
            window = queue.own.setdefault(number, type(queue.main)())
            window.waits = alerted

    def _remove(self, ctx: Context, fact: Fact, kept_relays: set[tuple[str, Principal]]) -> None:
        state = self.state
        match fact:
            case ("pub", namespace, who):
                state.publishers.get(namespace, {}).pop(who, None)
                state.drains[who] = ctx.now + DRAIN_LOOK + self.settings.drain_kept
                self._end_chains(namespace, who)
            case ("sub", namespace, who):
                self._remove_subscriber(namespace, who)
            case ("relay", namespace, target, who):
                relay = state.relays.get((namespace, target))
                if relay is not None:
                    relay.entries.pop(who, None)
                    if not relay.entries and (namespace, target) not in kept_relays:
                        for lane in relay.lanes.values():
                            self.relaying.drop(lane)
                        del state.relays[namespace, target]
            case ("relayer", namespace, who):
                state.relayers.pop((namespace, who), None)
                self._end_chains(namespace, who)
            case ("rp", number):
                self._remove_replay(ctx, number)
            case ("rr", number) if number in state.forwarded:
                state.forwarded[number].removed = state.removed[number] = ctx.now

    def _end_chains(self, namespace: str, caller: Principal) -> None:
        for key in [key for key, brought_by in self.state.chains if key[0] == namespace and brought_by == caller]:
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
        if not state.served.get(who):
            state.served.pop(who, None)
        queue = state.queues.get(who)
        if queue is None:
            return
        if is_system(namespace):
            state.system.pop(namespace, None)
            if who not in state.served:
                self.delivery.drop_where(who, queue, None)
                del state.queues[who]
            return
        self.delivery.drop_where(who, queue, namespace)
        for chains in (queue.prev, queue.missed):
            for key in [each for each in chains if each[0] == namespace]:
                del chains[key]

    def _remove_replay(self, ctx: Context, number: int) -> None:
        delivered = self.state.delivered.pop(number, None)
        self.state.removed[number] = ctx.now
        if delivered is None or delivered.subscriber not in self.state.queues:
            return
        queue = self.state.queues[delivered.subscriber]
        if number in queue.lost:
            del queue.lost[number]
            return
        window = number if number in queue.own else 0
        self.delivery.tell(ctx, delivered.subscriber, one_entry(keys.SUBSCRIBER_REPLAY_REMOVE, number), window=window)
