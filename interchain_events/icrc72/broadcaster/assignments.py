"""Assignments by the orchestrator (IC-38, IC-42).

A system event names publications, subscribers and replays, but not their configurations. `Pulling`
asks the orchestrator for these, and `Assignments` then applies the event as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, cast

from interchain_events.icrc72 import facts as f
from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.broadcaster import state as s
from interchain_events.icrc72.broadcaster.delivery import Delivery
from interchain_events.icrc72.config import read_publication, read_subscription
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.canister import ONE_WAY, Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import nothing, put_single, take_out
from interchain_events.icrc72.namespaces import is_system, system_namespace
from interchain_events.icrc72.values import first

DRAIN_LOOK: Final = 10
"""How many rounds pass between two checks whether a removed publisher still has queued events."""
_REPLAYS: Final = (f.ReplayFact, f.ReplayRelayFact, f.ReplayRelayerFact)
"""The facts about replays."""


@dataclass(slots=True, eq=False)
class Pulled:
    """A system event with the configurations that were asked for."""

    id: int
    notification: int
    content: BrokerAlert
    subscriptions: dict[tuple[str, Principal], s.Served] = field(default_factory=dict)
    """The subscriptions of each namespace and subscriber."""
    publications: dict[str, s.PublicationView] = field(default_factory=dict)
    isolated: set[int] = field(default_factory=set)
    """The replays that are isolated."""
    left: int = 0
    """How many questions have no answer yet."""
    again: list[Callable[[Context], None]] = field(default_factory=list)
    """The questions that have failed and will be asked again."""


@dataclass
class Assignments(s.Part):
    """The part that applies changes of publishers, subscribers, relays and replays."""

    delivery: Delivery
    drop: Callable[[s.Lane], None]
    """Gives up the events that wait in a lane."""

    def apply(self, ctx: Context, pulled: Pulled) -> None:
        """Apply a system event as a whole, removals before additions.

        A relay that is removed and added again, with another width, keeps its queued events.
        """
        self.state.publications.update(pulled.publications)
        kept_relays = {
            (fact.namespace, fact.target)
            for fact in pulled.content.adds
            if isinstance(fact, f.RelayFact)
        }
        for fact in pulled.content.removes:
            # The removal of a replay is noted even if its addition never arrived.
            if fact in self.state.facts or isinstance(fact, _REPLAYS):
                self._remove(ctx, fact, kept_relays)
            self.state.facts.pop(fact, None)
        for fact, value in pulled.content.adds.items():
            self._add(ctx, fact, value, pulled)
            self.state.facts[fact] = value

    def _add(self, ctx: Context, fact: f.Fact, value: f.FactValue, pulled: Pulled) -> None:
        """Apply the addition of a fact, or a new value of a known one."""
        state = self.state
        match fact:
            case f.PublisherFact(namespace, who):
                state.publishers.setdefault(namespace, {})[who] = None
            case f.SubscriberFact(namespace, who):
                known = state.subscribers.get(namespace, nothing())
                if who not in known:
                    state.served[who] = state.served.get(who, 0) + 1
                subscriptions = pulled.subscriptions.get((namespace, who), ())
                state.subscribers[namespace] = put_single(known, who, subscriptions)
                # A fact that is sent again ends a suspension (IC-45).
                if fact in state.facts and who in state.queues:
                    state.queues[who].suspended = False
                    state.queues[who].missed = nothing()
            case f.RelayFact(namespace, target, who):
                relay = state.relays.setdefault((namespace, target), s.Relay())
                self._widen(relay, who, cast("f.Width", value))
            case f.RelayerFact(namespace, who):
                state.relayers[namespace, who] = None
            case f.ReplayFact(number):
                # `Delivered` begins with the fields of `Delivering`, and below `Forwarded` with
                # those of `Forwarding`.
                isolated = number in pulled.isolated
                delivered = s.Delivered(*cast("f.Delivering", value), isolated=isolated)
                self._add_replay(ctx, number, delivered)
            case f.ReplayRelayFact(number):
                forwarded = s.Forwarded(*cast("f.Forwarding", value))
                former = state.forwarded.setdefault(number, forwarded)
                # The replay continues with its next publisher, whose ids may be smaller.
                if former.publisher != forwarded.publisher:
                    former.publisher = forwarded.publisher
                    former.chain = None
                    former.removed = None
            case f.ReplayRelayerFact(number):
                if number in state.delivered:
                    state.delivered[number].source = cast("f.Handing", value).entry

    @staticmethod
    def _widen(relay: s.Relay, who: Principal, value: f.Width) -> None:
        """Add a subscriber to a relay, and mark it as late on the events that wait already."""
        if who not in relay.entries:
            for lane in relay.lanes.values():
                for forward in lane.queue:
                    forward.late = (*forward.late, who)
        relay.entries[who] = value

    def _add_replay(self, ctx: Context, number: int, delivered: s.Delivered) -> None:
        """Begin to deliver a replay, and announce it to the subscriber (RP-6).

        If it is already known, it continues with its next publisher.
        """
        former = self.state.delivered.get(number)
        if former is not None:
            if (former.publisher, former.hands) != (delivered.publisher, delivered.hands):
                former.publisher = delivered.publisher
                former.hands = delivered.hands
                former.chain = None
                former.source = self._handing(number)
            return
        self.state.delivered[number] = delivered
        delivered.source = self._handing(number)
        begun = MemberAlert({f.BegunFact(number): ctx.me}, ())
        announcement = self.delivery.tell(ctx, delivered.subscriber, begun.data("subscriber"))
        if delivered.isolated:
            queue = self.state.queues[delivered.subscriber]
            # The replay's own window must not overtake the announcement, which is in the main one.
            queue.window(number).waits = announcement

    def _handing(self, number: int) -> Principal | None:
        """Return the broadcaster that was assigned to relay a replay, or `None`.

        An orchestrator may assign it before the replay itself. If the replay's next publisher has
        the same entry, the assignment is not sent again.
        """
        value = self.state.facts.get(f.ReplayRelayerFact(number))
        return None if value is None else cast("f.Handing", value).entry

    def _remove(self, ctx: Context, fact: f.Fact, kept_relays: set[tuple[str, Principal]]) -> None:
        """Apply the removal of a fact.

        `kept_relays` are the relays for which the same system event adds a fact.
        """
        state = self.state
        match fact:
            case f.PublisherFact(namespace, who):
                state.publishers.get(namespace, {}).pop(who, None)
                state.drains[who] = ctx.now + DRAIN_LOOK + self.settings.drain_kept
                self._end_chains(namespace, who)
            case f.SubscriberFact(namespace, who):
                self._remove_subscriber(namespace, who)
            case f.RelayFact(namespace, target, who):
                relay = state.relays.get((namespace, target))
                if relay is not None:
                    relay.entries.pop(who, None)
                    if not relay.entries and (namespace, target) not in kept_relays:
                        for lane in relay.lanes.values():
                            self.drop(lane)
                        del state.relays[namespace, target]
            case f.RelayerFact(namespace, who):
                state.relayers.pop((namespace, who), None)
                self._end_chains(namespace, who)
            case f.ReplayFact(number):
                self._remove_replay(ctx, number)
            case f.ReplayRelayFact(number) if number in state.forwarded:
                state.forwarded[number].removed = ctx.now
                state.removed[number] = ctx.now

    def _end_chains(self, namespace: str, caller: Principal) -> None:
        """Forget the chains from a caller that was removed (IC-42).

        If the caller returns, or another one follows, the subscribers' chains begin anew.
        """
        for key, chain_caller in list(self.state.chains):
            if key[0] == namespace and chain_caller == caller:
                del self.state.chains[key, caller]
                if self.state.callers.get(key) == caller:
                    self.state.callers[key] = Principal()

    def _remove_subscriber(self, namespace: str, who: Principal) -> None:
        """Stop notifying a subscriber of a namespace, and drop its notifications.

        Its queue is deleted with its system namespace, if it is not served in any other namespace.
        """
        state = self.state
        served = state.subscribers.get(namespace, nothing())
        if who in served:
            served = take_out(served, who)
            state.served[who] -= 1
        if served:
            state.subscribers[namespace] = served
        else:
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
        queue.prev = _without(queue.prev, namespace)
        queue.missed = _without(queue.missed, namespace)

    def _remove_replay(self, ctx: Context, number: int) -> None:
        """Stop delivering a replay, and inform the subscriber about its end (RP-6).

        The subscriber is not informed if notifications of the replay were dropped, because it takes
        the end as a sign that all accepted events were delivered.
        """
        delivered = self.state.delivered.pop(number, None)
        self.state.removed[number] = ctx.now
        if delivered is None or delivered.subscriber not in self.state.queues:
            return
        queue = self.state.queues[delivered.subscriber]
        if number in queue.lost:
            queue.lost = take_out(queue.lost, number)
            return
        window = number if number in queue.own else 0
        ended = MemberAlert({}, (f.BegunFact(number),))
        self.delivery.tell(ctx, delivered.subscriber, ended.data("subscriber"), window=window)


def _without(chains: Mapping[s.ChainKey, int], namespace: str) -> Mapping[s.ChainKey, int]:
    """Return the chains of other namespaces."""
    for key in list(chains):
        if key[0] == namespace:
            chains = take_out(chains, key)
    return chains


A = TypeVar("A")
R = TypeVar("R")


@dataclass
class Pulling(s.Part):
    """The part that takes system events and asks the orchestrator for their details."""

    orchestrator: Principal
    assignments: Assignments
    _pulling: Pulled | None = None
    """The system event whose details are being asked for."""

    def waits(self) -> bool:
        """Return whether a question must be asked again."""
        return self._pulling is not None and bool(self._pulling.again)

    def wake(self, ctx: Context) -> None:
        """Ask the failed questions again."""
        if self._pulling is not None:
            questions = self._pulling.again
            # A question that fails again adds itself to the new list.
            self._pulling.again = []
            for ask in questions:
                ask(ctx)

    def handle(self, ctx: Context, notifications: tuple[m.EventNotification, ...]) -> None:
        """Take system events from the orchestrator.

        An event that was already applied is confirmed again. A newer event replaces one whose
        details are not complete. Notifications from others are left to the other roles of the
        canister.
        """
        if ctx.caller != self.orchestrator:
            return
        own_namespace = system_namespace("broadcaster", ctx.me)
        events = [event for event in notifications if event.namespace == own_namespace]
        for event in events:
            if event.eventId <= self.state.applied:
                self._confirm(ctx, event.notificationId)
            elif self._pulling is None or self._pulling.id < event.eventId:
                self._pull(ctx, event)
        if events:
            methods.HANDLE.reply(ctx, None)

    def _confirm(self, ctx: Context, notification: int) -> None:
        self.role.ask(ctx, self.orchestrator, methods.CONFIRM, (notification,), kind=ONE_WAY)

    def _pull(self, ctx: Context, event: m.EventNotification) -> None:
        """Take up a system event, and ask for the details of all of its additions.

        An unreadable event is only counted. It is never confirmed, so the orchestrator notices.
        """
        try:
            content = BrokerAlert.read(event.data)
        except ConfigError:
            self.assignments.delivery.count("unreadable")
            return
        pulling = Pulled(event.eventId, event.notificationId, content)
        self._pulling = pulling
        names: dict[str, None] = {}
        for fact in content.adds:
            match fact:
                case f.PublisherFact(namespace) | f.RelayerFact(namespace):
                    names[namespace] = None
                case f.SubscriberFact(namespace, who) if not is_system(namespace):
                    names[namespace] = None
                    self._ask_subscriptions(ctx, pulling, namespace, who)
                case f.ReplayFact(number):
                    self._ask_replay(ctx, pulling, number)
        for name in names:
            self._ask_publication(ctx, pulling, name)
        self.finish(ctx, pulling)

    def _ask(
        self,
        ctx: Context,
        pulling: Pulled,
        method: methods.Method[A, R],
        page: A,
        then: Callable[[R], None],
    ) -> None:
        """Ask a question by a bounded call, which is repeated until it is answered.

        `then` is called with the answer.
        """
        pulling.left += 1
        question = _Question(self, pulling, method, page, then)
        question.ask(ctx)

    def _ask_subscriptions(
        self, ctx: Context, pulling: Pulled, namespace: str, who: Principal
    ) -> None:
        """Ask for a subscriber's subscriptions in a namespace, and leave out stopped ones."""
        slices = (m.by_subscriber(who), m.by_namespace(namespace))
        page = m.Page(None, 1000, m.OrchestrationFilter(m.NO_STATISTICS, slices))

        # The type is quoted because otherwise it would be built anew for each question.
        def answered(infos: "tuple[m.SubscriptionInfo, ...]") -> None:
            served: list[s.ServedSubscription] = []
            for info in infos:
                config = read_subscription(info.config)
                if not config.stopped:
                    served.append(
                        s.ServedSubscription(info.subscriptionId, config.filter, config.skip)
                    )
            pulling.subscriptions[namespace, who] = tuple(served)

        self._ask(ctx, pulling, methods.GET_SUBSCRIPTIONS, page, answered)

    def _ask_publication(self, ctx: Context, pulling: Pulled, namespace: str) -> None:
        """Ask for the configuration of a publication."""
        page = m.Page(None, 1, m.OrchestrationFilter(m.NO_STATISTICS, (m.by_namespace(namespace),)))

        def answered(infos: tuple[m.PublicationInfo, ...]) -> None:
            for info in infos:
                if info.namespace == namespace:
                    config = read_publication(info.config)
                    pulling.publications[namespace] = s.PublicationView(
                        id=info.publicationId,
                        mode=config.mode,
                        partitions=config.partitions,
                        priorities=config.priorities,
                        trusted=config.trusted,
                    )

        self._ask(ctx, pulling, methods.GET_PUBLICATIONS, page, answered)

    def _ask_replay(self, ctx: Context, pulling: Pulled, number: int) -> None:
        """Ask whether a replay is isolated."""

        def answered(infos: tuple[m.ReplayStatus | None, ...]) -> None:
            for status in infos:
                if status is not None and status.replayId == number:
                    value = first(status.config, keys.REPLAY_ISOLATED)
                    if value is not None and value.value is True:
                        pulling.isolated.add(number)

        # A page begins after `prev`, so this page has exactly the one replay.
        page = m.Page(number - 1, 1, m.OrchestrationFilter(m.NO_STATISTICS, ()))
        self._ask(ctx, pulling, methods.GET_REPLAYS, page, answered)

    def is_current(self, pulling: Pulled) -> bool:
        """Return whether no newer system event has replaced this one."""
        return self._pulling is pulling

    def finish(self, ctx: Context, pulling: Pulled) -> None:
        """Apply and confirm a system event if all questions about it are answered."""
        if pulling.left or self._pulling is not pulling:
            return
        self._pulling = None
        self.assignments.apply(ctx, pulling)
        self.state.applied = pulling.id
        self._confirm(ctx, pulling.notification)


@dataclass(slots=True, eq=False)
class _Question(Generic[A, R]):
    """A question about the details of a system event.

    This is a class, because two functions that call each other would be a reference cycle, which
    only the garbage collector frees. There is one question for each new subscriber.
    """

    asker: Pulling
    pulling: Pulled
    method: methods.Method[A, R]
    page: A
    then: Callable[[R], None]

    def ask(self, ctx: Context) -> None:
        """Ask the question.

        An orchestrator without ICRC-77 does not have the method for replays; that error counts as
        an answer.
        """
        absent = self._done if self.method.name == methods.GET_REPLAYS.name else None
        self.asker.role.ask(
            ctx, self.asker.orchestrator, self.method, self.page, self._answered, absent=absent
        )

    def _answered(self, ctx: Context, answer: R | None) -> None:
        """Take the answer. If there is none, the question is asked again later."""
        if answer is None:
            self.pulling.again.append(self.ask)
        elif self.asker.is_current(self.pulling):
            self.then(answer)
            self._done(ctx)

    def _done(self, ctx: Context) -> None:
        """Count this question as answered, and go on if it was the last one."""
        if self.asker.is_current(self.pulling):
            self.pulling.left -= 1
            self.asker.finish(ctx, self.pulling)
