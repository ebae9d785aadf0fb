"""The core of a broadcaster: its methods, statistics, and relaying to others (IC-41 to IC-47).

`Broadcaster` puts together the parts that share one `BroadcasterState`: `Acceptance` judges events,
`Delivery` notifies subscribers, `Relaying` sends events to other broadcasters, and `Assignments`
and `Pulling` apply the system events of the orchestrator.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from interchain_events.icrc72 import keys
from interchain_events.icrc72.broadcaster.accept import Acceptance
from interchain_events.icrc72.broadcaster.assignments import DRAIN_LOOK, Assignments, Pulling
from interchain_events.icrc72.broadcaster.delivery import Delivery
from interchain_events.icrc72.broadcaster.state import BroadcasterState, Forward, Lane, Part
from interchain_events.icrc72.ic.canister import GUARANTEED, SECOND, Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event, Results, SubscriptionRegistration
from interchain_events.icrc72.methods import PUBLISH, REGISTER_SUBSCRIPTION, is_ok
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.role import (
    Core,
    Handler,
    Query,
    RoleCanister,
    earliest,
    restored,
)
from interchain_events.icrc72.settings import DEFAULTS, Settings, fitting
from interchain_events.icrc72.values import Pairs, nat

_HEADERS_BYTES: Final = 200
"""The most bytes that headers add to a relayed event, apart from the list of late subscribers."""

_LATE_BYTES: Final = 40
"""The most bytes that one late subscriber adds."""

_REGISTER_AGAIN: Final = 5
"""How many rounds after a failure the broadcaster tries again to register."""


@dataclass
class Relaying(Part):
    """The part that relays events to other broadcasters.

    Events wait in lanes: one for each relay and chain, and one for each forwarded replay. A lane
    has one call under way and so keeps its events in order.
    """

    delivery: Delivery

    def lanes(self) -> list[Lane]:
        """Return all lanes."""
        lanes: list[Lane] = []
        for relay in self.state.relays.values():
            lanes += relay.lanes.values()
        return lanes + [forwarded.lane for forwarded in self.state.forwarded.values()]

    def drop(self, lane: Lane) -> None:
        """Give up the events that wait in a lane."""
        for forward in lane.queue:
            self.delivery.release(forward.stored)
        lane.queue.clear()

    def pump(self, ctx: Context) -> None:
        """Send one batch from each lane that has no call under way and need not wait."""
        for (_, target), relay in self.state.relays.items():
            for lane in relay.lanes.values():
                self._pump_lane(ctx, target, lane)
        for forwarded in self.state.forwarded.values():
            self._pump_lane(ctx, forwarded.target, forwarded.lane)

    def _bytes_of(self, forward: Forward) -> int:
        """Return an upper bound of the bytes that a relayed event takes in a call."""
        size = self.state.events[forward.stored].size
        return size + _HEADERS_BYTES + _LATE_BYTES * len(forward.late)

    def _pump_lane(self, ctx: Context, target: Principal, lane: Lane) -> None:
        """Send the next batch of a lane, if no call is under way and it need not wait.

        When the answer arrives, the events before the first one that was not accepted leave the
        lane. The lane continues with that one, after a wait that grows with each failure, because
        later events must not overtake it.
        """
        if lane.busy or not lane.queue or ctx.now < lane.next:
            return
        batch: list[Event] = []
        for forward in fitting(lane.queue, self._bytes_of, self.settings):
            if not forward.sent:
                forward.sent = ctx.time
            batch.append(self.delivery.relayed(forward, self.state.events[forward.stored].event))
        lane.busy = True

        def answered(ctx: Context, results: Results[tuple[int, ...]] | None) -> None:
            # The lane may have been given up in the meantime.
            if not any(known is lane for known in self.lanes()):
                return
            lane.busy = False
            answers = (results or ())[: len(batch)]
            accepted = 0
            for forward, result in zip(lane.queue, answers, strict=False):
                if result is None or result.tag != "Ok":
                    break
                self.delivery.release(forward.stored)
                lane.tries = 0
                accepted += 1
            del lane.queue[:accepted]
            # There may be fewer answers than events. Events without an answer are sent again.
            if answers and accepted == len(answers):
                lane.next = ctx.now
                return
            lane.next = ctx.now + min(
                self.settings.repeat_first << min(lane.tries, 20), self.settings.repeat_most
            )
            lane.tries += 1

        # The events were read from messages to this broadcaster, which has only added headers.
        events = PUBLISH.argument(tuple(batch), proven=True)
        self.role.send(ctx, target, PUBLISH, events, answered)


class Broadcaster(Core):
    """The role of a broadcaster."""

    name = "broadcaster"
    state: BroadcasterState
    accepts: type[Acceptance] = Acceptance
    """The class that judges events. Cheats replace it."""
    delivers: type[Delivery] = Delivery
    """The class that notifies subscribers. Cheats replace it."""

    def __init__(self, orchestrator: Principal, settings: Settings = DEFAULTS) -> None:
        self.state = BroadcasterState()
        self.settings = settings
        self.orchestrator = orchestrator
        self._registering = False

    def attach(self, role: RoleCanister) -> None:
        """Join a canister, and register for confirmations of notifications."""
        super().attach(role)
        role.confirmer(
            lambda ctx, number: self.delivery.confirm(ctx, ctx.caller, number),
            self.settings.batch_items,
        )
        self._wire()

    def _wire(self) -> None:
        """Make the parts for the current state. They are made again when `resume` replaces it."""
        shared = self.state, self.settings, self.role
        self.delivery = self.delivers(*shared)
        self.acceptance = self.accepts(*shared, self.delivery, self.orchestrator)
        self.publish = self.acceptance.publish
        self.relaying = Relaying(*shared, self.delivery)
        self.assignments = Assignments(*shared, self.delivery, self.relaying.drop)
        self.pulling = Pulling(*shared, self.orchestrator, self.assignments)

    def updates(self) -> Mapping[str, Handler]:
        """Return the update methods by name."""
        return {"icrc72_publish": self._publish, "icrc72_handle_notification": self.pulling.handle}

    def queries(self) -> Mapping[str, Query]:
        """Return the queries by name."""
        return {"icrc72_get_broadcaster_stats": self._stats}

    def begin(self, ctx: Context) -> None:
        """Register at the orchestrator for system events, which assign all further work."""
        self.state.registered = False
        self._register(ctx)

    def resume(self, state: object) -> None:
        """Continue with the saved chains, queues and ids (IC-47a)."""
        self.state = restored(state, BroadcasterState)
        self._registering = False
        self._wire()
        for lane in self.relaying.lanes():
            lane.busy = False

    def _register(self, ctx: Context) -> None:
        """Register for system events. If this fails, `wake` tries again."""
        self._registering = True
        item = SubscriptionRegistration(system_namespace("broadcaster", ctx.me), ())

        def answered(_ctx: Context, results: Results[int] | None) -> None:
            self._registering = False
            self.state.registered = is_ok(results)

        self.role.ask(
            ctx, self.orchestrator, REGISTER_SUBSCRIPTION, (item,), answered, kind=GUARANTEED
        )

    def wake(self, ctx: Context) -> None:
        """Do the due work: register, ask, notify, relay and forget."""
        if not self.state.registered and not self._registering:
            self._register(ctx)
        self.pulling.wake(ctx)
        self.delivery.wake(ctx)
        self.relaying.pump(ctx)
        self._forget(ctx)

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        return earliest(self._dues(now), now)

    def _dues(self, now: int) -> Iterator[int | None]:
        """Yield the next round in which each kind of work may be due."""
        if self.pulling.waits():
            yield now + 1
        yield self.delivery.due(now)
        if not self.state.registered:
            yield now + _REGISTER_AGAIN
        # `_forget` looks again whether a removed publisher still has queued events.
        if not self.state.undone.keys().isdisjoint(self.state.drains):
            yield now + DRAIN_LOOK
        for lane in self.relaying.lanes():
            if lane.queue and not lane.busy:
                yield lane.next

    def _publish(self, ctx: Context, events: tuple[Event, ...]) -> None:
        """Answer `icrc72_publish`, and send the new notifications at once."""
        PUBLISH.reply(ctx, self.publish(ctx, events))
        self.delivery.wake(ctx)

    def _forget(self, ctx: Context) -> None:
        """Forget old replays, removed publishers without queued events, and old counts."""
        state = self.state
        kept = self.settings.replay_stalled
        for replay, forwarded in list(state.forwarded.items()):
            if forwarded.removed is not None and ctx.now - forwarded.removed > kept:
                self.relaying.drop(forwarded.lane)
                del state.forwarded[replay]
        for replay, removed in list(state.removed.items()):
            if ctx.now - removed > kept:
                del state.removed[replay]
                state.accepted.pop(replay, None)
        for publisher, until in list(state.drains.items()):
            if publisher in state.undone:
                state.drains[publisher] = ctx.now + DRAIN_LOOK + self.settings.drain_kept
            elif ctx.now >= until:
                del state.drains[publisher]
        for round_ in list(state.recent):
            if round_ <= ctx.now - 100:
                del state.recent[round_]

    def _stats(self, _caller: Principal, time: int) -> Pairs:
        """Answer `icrc72_get_broadcaster_stats` (IC-35).

        Besides public statistics, the answer has figures for the orchestrator: by publication,
        subscription and replay, and how many events of a removed publisher are still queued.
        """
        state = self.state
        prefix = "icrc72:broadcaster:stats:"
        now = time // SECOND
        numbers = dict.fromkeys(keys.STATISTICS[prefix], 0) | state.counts
        numbers["events_last_100_rounds"] = sum(
            count for round_, count in state.recent.items() if round_ > now - 100
        )
        queues = state.queues.values()
        numbers["queued"] = sum(queue.live + queue.replayed + queue.system for queue in queues)
        numbers["bytes"] = state.bytes_own + state.bytes_relayed
        numbers["suspended"] = sum(1 for queue in queues if queue.suspended)
        pairs = [(prefix + name, nat(numbers[name])) for name in keys.STATISTICS[prefix]]
        pairs += [(name, nat(figure)) for name, figure in state.figures.items()]
        for replay in dict.fromkeys((*state.delivered, *state.forwarded, *state.removed)):
            waiting = len(state.forwarded[replay].lane.queue) if replay in state.forwarded else 0
            pairs.append((f"icrc77:replay:{replay}:queued", nat(waiting)))
            pairs.append((f"icrc77:replay:{replay}:accepted", nat(state.accepted.get(replay, 0))))
        for publisher, until in state.drains.items():
            if publisher in state.undone or now < until:
                queued = state.undone.get(publisher, 0)
                pairs.append((f"icrc72:drain:{publisher.text}:queued", nat(queued)))
        return tuple(pairs)
