"""What the orchestrator assigns to a broadcaster, applied to its state (IC-38, IC-42)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72.alerts import Fact, Facts
from pubsub_emulator.eventplane.icrc72.broadcaster.delivery import Delivery, announced, finished
from pubsub_emulator.eventplane.icrc72.broadcaster.relaying import Relaying
from pubsub_emulator.eventplane.icrc72.broadcaster.state import (
    BroadcasterState,
    Delivered,
    Forwarded,
    PublicationView,
    Relay,
)
from pubsub_emulator.eventplane.icrc72.namespaces import is_system
from pubsub_emulator.eventplane.icrc72.settings import Settings
from pubsub_emulator.eventplane.icrc72.skip import Skip

DRAIN_LOOK: Final = 10
"""Rounds between two looks at what a removed publisher has still queued."""


@dataclass(slots=True)
class Pulled:
    """A system event with what was looked up for its additions."""

    id: int
    notification: int
    adds: Facts
    removes: list[Fact]
    subscriptions: dict[tuple[str, Principal], tuple[tuple[int, str | None, Skip | None], ...]] = field(
        default_factory=dict
    )
    publications: dict[str, PublicationView] = field(default_factory=dict)
    isolated: set[int] = field(default_factory=set)


class Assignments:
    """The publishers, subscribers, relays and replays of a broadcaster."""

    def __init__(self, state: BroadcasterState, settings: Settings, delivery: Delivery, relaying: Relaying) -> None:
        self.state = state
        self.settings = settings
        self.delivery = delivery
        self.relaying = relaying

    def apply(self, ctx: Context, pulled: Pulled) -> None:
        """Apply a system event as a whole, removals before additions."""
        self.state.publications.update(pulled.publications)
        added = {fact for fact, _ in pulled.adds}
        kept_relays = {fact[1:3] for fact in added if fact[0] == "relay"}
        for fact in pulled.removes:
            if fact in self.state.facts or fact[0] in {"rp", "rr", "rf"}:
                self._remove(ctx, fact, kept_relays)
            self.state.facts.pop(fact, None)
        for fact, value in pulled.adds:
            self._add(ctx, fact, value, pulled)
            self.state.facts[fact] = value

    def _add(self, ctx: Context, fact: Fact, value: Any, pulled: Pulled) -> None:
        state = self.state
        kind = fact[0]
        if kind == "pub":
            state.publishers.setdefault(fact[1], {})[fact[2]] = None
        elif kind == "sub":
            known = state.subscribers.setdefault(fact[1], {})
            if fact[2] not in known:
                state.served[fact[2]] = state.served.get(fact[2], 0) + 1
            known[fact[2]] = pulled.subscriptions.get((fact[1], fact[2]), ())
            if fact in state.facts:
                self._refresh(fact[2])
        elif kind == "relay":
            self._widen(state.relays.setdefault((fact[1], fact[2]), Relay()), fact[3], value)
        elif kind == "relayer":
            state.relayers[fact[1], fact[2]] = None
        elif kind == "rp":
            self._add_replay(ctx, fact[1], _delivered(value, isolated=fact[1] in pulled.isolated))
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
            state.drains[fact[2]] = ctx.now + DRAIN_LOOK + self.settings.drain_kept
            self._end_chains(lambda key, caller: key[0] == fact[1] and caller == fact[2])
        elif kind == "sub":
            self._remove_subscriber(fact[1], fact[2])
        elif kind == "relay":
            relay = state.relays.get((fact[1], fact[2]))
            if relay is not None:
                relay.entries.pop(fact[3], None)
                if not relay.entries and fact[1:3] not in kept_relays:
                    for lane in relay.lanes.values():
                        self.relaying.drop(lane)
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

    def _remove_replay(self, ctx: Context, number: int) -> None:
        delivered = self.state.delivered.pop(number, None)
        self.state.removed[number] = ctx.now
        if delivered is None or delivered.subscriber not in self.state.queues:
            return
        queue = self.state.queues[delivered.subscriber]
        lost = queue.lost.pop(number, 0) is None
        if not lost:
            self.delivery.tell(ctx, delivered.subscriber, finished(number), window=number if number in queue.own else 0)


def _delivered(value: Any, *, isolated: bool) -> Delivered:
    namespace, hands, subscriber, filter_, skip, publisher = value
    return Delivered(namespace, hands, subscriber, filter_, skip, publisher, isolated)
